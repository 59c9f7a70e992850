//! Which files a piece of Python writes, as far as its text tells.

use std::sync::LazyLock;

use regex::Regex;

/// A text literal, or a name; in two groups.
const PATH: &str = r#"(?:[rbuf]{0,2}['"]([^'"\n]+)['"]|(?:str\(\s*)?([A-Za-z_][\w.]*))"#;

static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?m)\b([A-Za-z_][\w.]*)\s*=\s*(?:(?:pathlib\.)?Path\(\s*)?[rbuf]{0,2}['"]([^'"\n]+)['"]"#)
        .ok()
});

/// `for NAME in [literals]`.
static LOOPS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\bfor\s+(\w+)\s+in\s+[\[(]([^\])]*)[\])]").ok());

static LITERALS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"['"]([^'"\n]+)['"]"#).ok());

/// `def name(parameter, …)`, for functions that write the file they are called with.
static FUNCTIONS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)^\s*def\s+(\w+)\(\s*(\w+)[^)]*\)").ok());

static WRITES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let ways = [
        format!(r#"\bopen\(\s*{PATH}\s*\)?\s*,\s*(?:mode\s*=\s*)?['"](?:[rbtU]*[wax]|[rbt]*\+)"#),
        format!(r"\bPath\(\s*{PATH}\s*\)\.write_(?:text|bytes)\("),
        r"()\b([A-Za-z_]\w*)\.write_(?:text|bytes)\(".to_owned(),
        r#"()\b([A-Za-z_]\w*)\.open\(\s*['"][wax]"#.to_owned(),
        format!(r"\bfileinput\.(?:input|FileInput)\(\s*(?:files\s*=\s*)?{PATH}\s*,[^)]*inplace"),
        format!(r"\b(?:os\.(?:remove|unlink)|shutil\.rmtree)\(\s*{PATH}"),
        format!(r"\b(?:shutil\.(?:copy\w*|move)|os\.(?:rename|replace))\([^,()]*,\s*{PATH}"),
    ];
    ways.iter().filter_map(|way| Regex::new(way).ok()).collect()
});

/// The files that a piece of Python writes, each once, in the order of the text.
pub(super) fn python_writes(code: &str) -> Vec<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for way in WRITES.iter() {
        for groups in way.captures_iter(code) {
            let at = groups.get(0).map_or(0, |whole| whole.start());
            let literal = groups.get(1).map(|text| text.as_str()).filter(|text| !text.is_empty());
            match (literal, groups.get(2)) {
                (Some(path), _) => found.push((at, path.to_owned())),
                (None, Some(name)) => {
                    found.extend(values(code, at, name.as_str()).into_iter().map(|path| (at, path)));
                }
                (None, None) => {}
            }
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let mut files: Vec<String> = Vec::new();
    for (_, path) in found {
        if !files.contains(&path) {
            files.push(path);
        }
    }
    files
}

/// What a name stands for at a place: its last assignment before it, the literals that it loops over, or what its
/// function is called with.
fn values(code: &str, at: usize, name: &str) -> Vec<String> {
    let before = &code[..at];
    let named = NAMED.iter().flat_map(|named| named.captures_iter(before));
    if let Some(last) = named.filter(|groups| &groups[1] == name).last() {
        return vec![last[2].to_owned()];
    }
    let literals = |text: &str| -> Vec<String> {
        LITERALS.iter().flat_map(|all| all.captures_iter(text)).map(|groups| groups[1].to_owned()).collect()
    };
    let mut loops = LOOPS.iter().flat_map(|loops| loops.captures_iter(before));
    if let Some(one) = loops.find(|groups| &groups[1] == name) {
        return literals(&one[2]);
    }
    let functions = FUNCTIONS.iter().flat_map(|functions| functions.captures_iter(before));
    let Some(function) = functions.filter(|groups| &groups[2] == name).last() else { return Vec::new() };
    let call = format!("{}(", &function[1]);
    let after = function.get(0).map_or(0, |whole| whole.end());
    let calls = code[after..].match_indices(&call);
    calls
        .filter_map(|(place, _)| {
            let arguments = &code[after..][place + call.len()..];
            let first = arguments.split([',', ')']).next()?.trim();
            literals(first).into_iter().next()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_written() {
        for (code, files) in [
            ("open('a/b.py', 'w').write(s)", vec!["a/b.py"]),
            ("with open(\"a.py\", mode='a') as f:", vec!["a.py"]),
            ("open('a.py').read(); open('a.py', 'rb')", vec![]),
            (
                "p = 'x.py'\ns = open(p).read()\nopen(p, 'w').write(s)\np = 'y.py'\nopen(p, 'w')",
                vec!["x.py", "y.py"],
            ),
            ("from pathlib import Path\np = Path('x.py')\np.write_text(p.read_text())", vec!["x.py"]),
            ("Path('q.py').write_text('')", vec!["q.py"]),
            ("for f in ['a', 'b']:\n  open(f, 'r+')", vec!["a", "b"]),
            ("def fix(name):\n  open(name, 'w')\nfix('a.py')\nfix('b.py')", vec!["a.py", "b.py"]),
            ("open(unknown, 'w')", vec![]),
        ] {
            assert_eq!(python_writes(code), files, "{code}");
        }
    }
}
