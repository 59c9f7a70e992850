//! Calls of tools as commands: the shell tools and the editors of the agents whose logs are read.

use serde_json::Value;

use super::command::{Commands, patched};
use super::event::Event;
use super::place::Place;
use super::python::python_writes;

/// Tools that run a shell command.
const SHELLS: [&str; 16] = [
    "bash",
    "shell",
    "localshell",
    "localshellcall",
    "terminal",
    "executebash",
    "execcommand",
    "runcommand",
    "executecommand",
    "runterminalcmd",
    "runshellcommand",
    "containerexec",
    "exec",
    "cmdrun",
    "run",
    "terminalaction",
];

/// Tools that change files, whatever their arguments say.
const EDITORS: [&str; 24] = [
    "edit",
    "editfile",
    "multiedit",
    "write",
    "writefile",
    "create",
    "createfile",
    "notebookedit",
    "insert",
    "replace",
    "searchreplace",
    "strreplace",
    "patch",
    "applypatch",
    "applydiff",
    "deletefile",
    "movefile",
    "renamefile",
    "fileedit",
    "filewrite",
    "writetofile",
    "replaceinfile",
    "editnotebook",
    "append",
];

/// Tools that change files only with some values of `command`.
const VIEWERS: [&str; 6] =
    ["strreplaceeditor", "strreplacebasededittool", "fileeditor", "texteditor", "editor", "fileeditoraction"];

const PATHS: [&str; 10] = [
    "file_path",
    "filePath",
    "path",
    "filename",
    "file_name",
    "notebook_path",
    "target_file",
    "file",
    "new_path",
    "filepath",
];

const SCRIPTS: [&str; 6] = ["command", "cmd", "script", "commands", "CommandLine", "input"];

/// A tool's name without what differs between spellings of it.
fn plain(name: &str) -> String {
    let own = name.rsplit("__").next().unwrap_or(name);
    own.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// A call as an event; `open` is the file that the agent's editor shows, for editors that name none.
pub(super) fn call(
    name: &str,
    arguments: &Value,
    open: Option<&str>,
    place: &Place,
    commands: &mut Commands,
) -> Event {
    let tool = plain(name);
    if SHELLS.contains(&tool.as_str())
        && let Some(line) = shell_line(arguments)
    {
        return shell(line, place, commands);
    }
    let mut edits: Vec<String> = Vec::new();
    let mut tests = false;
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    if is_edit(&tool, text("command")) {
        edits.extend(PATHS.iter().filter_map(|key| text(key)).map(str::to_owned));
        let patch =
            ["input", "patch", "patchText", "diff"].iter().find_map(|key| text(key)).or(arguments.as_str());
        edits.extend(patch.map(patched).unwrap_or_default());
        if edits.is_empty() {
            edits.extend(open.map(str::to_owned));
        }
        let written = ["content", "file_text", "text"].iter().find_map(|key| text(key));
        if let (Some(path), Some(written)) = (edits.first(), written) {
            commands.wrote(&super::command::joined(place.folder(), path), written);
        }
    } else if let Some(code) = text("code").filter(|_| tool.contains("python") || tool.contains("ipython")) {
        edits = python_writes(code);
        tests = super::runs_tests(code.trim_start_matches('!'));
    }
    let mut relative: Vec<String> = Vec::new();
    for path in edits {
        let path = place.relative(&path);
        if !relative.contains(&path) {
            relative.push(path);
        }
    }
    let said = match arguments {
        Value::Null => name.to_owned(),
        Value::String(free) => format!("{name} {free}"),
        object => format!("{name} {object}"),
    };
    Event::Command { text: said, edits: relative, tests }
}

/// A shell command as an event.
pub(super) fn shell(line: String, place: &Place, commands: &mut Commands) -> Event {
    let told = commands.read(&line, place.folder());
    let mut edits: Vec<String> = Vec::new();
    for path in told.edits {
        let path = place.relative(&path);
        if !edits.contains(&path) {
            edits.push(path);
        }
    }
    Event::Command { text: line, edits, tests: told.tests }
}

fn is_edit(tool: &str, command: Option<&str>) -> bool {
    match command {
        Some(command) if VIEWERS.contains(&tool) => !matches!(command, "view" | "undo_edit"),
        _ => EDITORS.contains(&tool),
    }
}

/// The command line among a shell tool's arguments: a text, or words.
fn shell_line(arguments: &Value) -> Option<String> {
    if let Value::String(line) = arguments {
        return Some(line.clone());
    }
    match SCRIPTS.iter().find_map(|key| arguments.get(key).filter(|value| !value.is_null()))? {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words[..] {
                [shell, flag, line]
                    if shell.ends_with("sh") && flag.starts_with('-') && flag.ends_with('c') =>
                {
                    Some(line.to_owned())
                }
                _ => Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
            }
        }
        _ => None,
    }
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let bare = |c: char| c.is_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(bare) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tells_what_tools_do() {
        for (name, arguments, text, edits) in [
            ("Bash", json!({"command": "ls > a"}), "ls > a", vec!["a"]),
            ("shell", json!({"command": ["bash", "-lc", "ls | wc"]}), "ls | wc", vec![]),
            ("shell", json!({"command": ["grep", "a b", "x"]}), "grep 'a b' x", vec![]),
            (
                "shell",
                json!({"command": ["apply_patch", "*** Begin Patch\n*** Add File: n.py\n+1\n"]}),
                "",
                vec!["n.py"],
            ),
            (
                "Edit",
                json!({"file_path": "/testbed/a.py"}),
                r#"Edit {"file_path":"/testbed/a.py"}"#,
                vec!["a.py"],
            ),
            ("str_replace_editor", json!({"command": "view", "path": "/testbed/a.py"}), "", vec![]),
            ("str_replace_editor", json!({"command": "create", "path": "/testbed/a.py"}), "", vec!["a.py"]),
            ("apply_patch", json!("*** Begin Patch\n*** Update File: b.py\n"), "", vec!["b.py"]),
            ("mcp__fs__write_file", json!({"path": "c.md", "content": ""}), "", vec!["c.md"]),
            ("edit", json!({"search": "a"}), "", vec!["open.py"]),
            ("Read", json!({"file_path": "/testbed/a.py"}), "", vec![]),
            ("submit", Value::Null, "submit", vec![]),
        ] {
            let event = call(name, &arguments, Some("open.py"), &Place::default(), &mut Commands::default());
            let Event::Command { text: said, edits: found, .. } = event else { panic!("{event:?}") };
            assert_eq!(found, edits, "{name} {arguments}");
            assert!(text.is_empty() || said == text, "{said}");
        }
    }
}
