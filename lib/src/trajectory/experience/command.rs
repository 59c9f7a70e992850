//! What shell commands tell about themselves: which files they change, whether they run tests.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::python::python_writes;
use super::shell::{Simple, simple_commands};

/// Simple commands that run tests, by their words joined with spaces.
static TESTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let runners = [
        r"(?:python[\d.]* (?:-\S+ |ignore |error )*-m )?(?:pytest|py\.test|unittest|nose2?|nosetests|tox|nox|trial)(?: |$)",
        r"python[\d.]* (?:-\S+ |ignore |error )*(?:\S*/)?(?:runtests|test_?\w*|\w+_test|bin/test)(?:\.py)?(?: |$)",
        r"python[\d.]* (?:-\S+ |ignore |error )*(?:\S*/)?(?:manage|setup)\.py test(?: |$)",
        r"python[\d.]* (?:-\S+ |ignore |error )*-c .*\b(?:sympy|numpy|scipy|pandas|astropy|sklearn)\.test\(",
        r"(?:\S*/)?(?:bin/(?:test|doctest|pytest)|runtests\.py|run_tests?\.(?:sh|py))(?: |$)",
        r"(?:cargo (?:\+\S+ )?(?:test|nextest)|go test|ctest|dotnet test|swift test|dart test|mix test|sbt test|deno test)(?: |$)",
        r"(?:npm|yarn|pnpm|bun)(?: run)? (?:test\S*|t)(?: |$)",
        r"(?:npx |yarn |pnpm |pnpm exec )?(?:jest|vitest|mocha|ava|karma|playwright test)(?: |$)",
        r"(?:mvn|\./mvnw|gradle|\./gradlew)(?: .*)? :?(?:\S*:)?(?:test|check|verify)\b",
        r"(?:make|rake|bundle exec rake) (?:\S+ )*(?:test|check)(?: |$)",
        r"(?:bundle exec )?(?:rspec|minitest)(?: |$)",
        r"(?:\S*vendor/bin/)?phpunit(?: |$)|busted(?: |$)|bats(?: |$)|R CMD check(?: |$)|julia .*runtests",
    ];
    Regex::new(&format!("^(?:{})", runners.join("|"))).ok()
});

/// Words before a command that run it: it is what counts.
const WRAPPERS: [&str; 17] = [
    "sudo", "env", "time", "nohup", "exec", "command", "then", "do", "else", "if", "while", "until", "!",
    "{", "}", "nice", "eval",
];

/// What a command line tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Files that it changes, each once, in order; relative ones to where the line starts.
    pub edits: Vec<String>,
    /// Whether it runs tests.
    pub tests: bool,
}

/// Reads the commands of one run in their order, so that a script which one of them writes is known when a later one
/// runs it.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// What the scripts that were written would change when run, by their path.
    scripts: HashMap<String, Vec<String>>,
}

/// Scripts that call each other are followed this deep.
const DEPTH: usize = 3;

impl Commands {
    /// What the next command line of the run tells.
    /// `folder` is where the line starts; empty: not known.
    pub fn read(&mut self, line: &str, folder: &str) -> Told {
        let mut told = Told::default();
        self.line(line, &mut folder.to_owned(), DEPTH, &mut told);
        told
    }

    /// Takes note of a file that a tool wrote, in case it is a script that is run later.
    pub fn wrote(&mut self, path: &str, text: &str) {
        self.note(path, text, DEPTH);
    }

    fn note(&mut self, path: &str, text: &str, depth: usize) {
        let edits = match path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("py") => python_writes(text),
            Some("sh") if depth > 0 => {
                let mut told = Told::default();
                self.line(text, &mut String::new(), depth - 1, &mut told);
                told.edits
            }
            _ => return,
        };
        self.scripts.insert(path.to_owned(), edits);
    }

    fn line(&mut self, line: &str, folder: &mut String, depth: usize, told: &mut Told) {
        for simple in simple_commands(line) {
            let words = unwrapped(&simple.words);
            let mut edits = simple.writes.clone();
            if let (Some(input), Some(path)) = (&simple.input, simple.writes.first()) {
                self.note(&joined(folder, path), input, depth);
            }
            match words.first().map(|name| name.rsplit('/').next().unwrap_or(name)) {
                Some("cd" | "pushd") => {
                    if let Some(into) = words.get(1).filter(|into| *into != "-") {
                        *folder = joined(folder, into);
                    }
                }
                Some("bash" | "sh" | "zsh") => match words.iter().position(|word| is_cluster(word, 'c')) {
                    Some(flag) if depth > 0 => {
                        if let Some(inner) = words.get(flag + 1) {
                            self.line(inner, &mut folder.clone(), depth - 1, told);
                        }
                    }
                    _ => {
                        edits.extend(self.script(folder, words));
                        if let Some(input) = simple.input.as_deref().filter(|_| depth > 0) {
                            self.line(input, &mut folder.clone(), depth - 1, told);
                        }
                    }
                },
                Some(name) if name.starts_with("python") => edits.extend(self.python(&simple, folder, words)),
                Some(name) => {
                    edits.extend(changed(name, words, &simple));
                    if words[0].contains('/') {
                        edits.extend(
                            self.scripts.get(&joined(folder, &words[0])).cloned().unwrap_or_default(),
                        );
                    }
                }
                None => {}
            }
            for path in edits {
                let path = joined(folder, &path);
                if is_file(&path) && !told.edits.contains(&path) {
                    told.edits.push(path);
                }
            }
            let said = words.join(" ");
            told.tests |= TESTS.as_ref().is_some_and(|tests| tests.is_match(&said));
        }
    }

    fn python(&self, simple: &Simple, folder: &str, words: &[String]) -> Vec<String> {
        if let Some(code) = words.iter().position(|word| word == "-c").and_then(|flag| words.get(flag + 1)) {
            return python_writes(code);
        }
        let mut edits = self.script(folder, words);
        edits.extend(simple.input.iter().flat_map(|code| python_writes(code)));
        edits
    }

    /// What the script would change that an interpreter is called with.
    fn script(&self, folder: &str, words: &[String]) -> Vec<String> {
        let script = words.iter().skip(1).find(|word| !word.starts_with('-'));
        let script = script.and_then(|path| self.scripts.get(&joined(folder, path)));
        script.cloned().unwrap_or_default()
    }
}

/// The words from the command's own name on: without variables, wrappers and time limits before it.
fn unwrapped(words: &[String]) -> &[String] {
    let mut rest = words;
    loop {
        let Some(first) = rest.first() else { return rest };
        let assigns = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        });
        if assigns || WRAPPERS.contains(&first.as_str()) {
            rest = &rest[1..];
        } else if first == "timeout" || first == "xvfb-run" {
            let own = |word: &&String| word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            rest = &rest[1 + rest[1..].iter().take_while(own).count()..];
        } else {
            return rest;
        }
    }
}

/// Files that a command changes, by its name and arguments.
fn changed(name: &str, words: &[String], simple: &Simple) -> Vec<String> {
    let arguments = &words[1..];
    let plain = || arguments.iter().filter(|word| !word.starts_with('-')).cloned().collect::<Vec<_>>();
    match name {
        "sed" | "gsed" | "perl" | "ruby" => in_place(arguments),
        "tee" | "rm" | "touch" | "unlink" | "truncate" => plain(),
        "mv" | "cp" | "install" | "ln" => target(&plain()),
        "ed" | "ex" => plain().into_iter().take(1).collect(),
        "patch" => patched(simple.input.as_deref().unwrap_or_default())
            .into_iter()
            .chain(plain().into_iter().take(1))
            .collect(),
        "apply_patch" | "applypatch" => {
            patched(&[&arguments.join("\n"), simple.input.as_deref().unwrap_or_default()].join("\n"))
        }
        "git" => match arguments.iter().find(|word| !word.starts_with('-')).map(String::as_str) {
            Some("apply" | "am") => patched(simple.input.as_deref().unwrap_or_default()),
            Some("mv") => target(&plain()[1..]),
            Some("rm" | "restore") => plain()[1..].to_vec(),
            Some("checkout") => match arguments.iter().position(|word| word == "--") {
                Some(dashes) => arguments[dashes + 1..].to_vec(),
                // branches have no file ending
                None => plain()[1..].iter().filter(|word| has_ending(word)).cloned().collect(),
            },
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn has_ending(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.')
        .is_some_and(|(stem, ending)| !stem.is_empty() && ending.bytes().all(|b| b.is_ascii_alphabetic()))
}

/// Whether a word is a cluster of one-letter options that holds this one.
fn is_cluster(word: &str, option: char) -> bool {
    word.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(option))
}

/// The files of `sed -i` and its like; none where nothing is changed in place.
fn in_place(arguments: &[String]) -> Vec<String> {
    let (mut in_place, mut script_given, mut files) = (false, false, Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            files.push(word.clone());
            continue;
        };
        if let Some(long) = letters.strip_prefix('-') {
            in_place |= long.starts_with("in-place");
            script_given |= long.starts_with("expression") || long.starts_with("file");
            continue;
        }
        // what follows the i is the ending of the backup
        let options = letters.split('i').next().unwrap_or_default();
        in_place |= letters.contains('i') && !options.contains('e');
        let takes_next =
            if letters.contains('i') { letters.ends_with('e') } else { letters.ends_with(['e', 'f']) };
        if takes_next {
            words.next();
        }
        script_given |= takes_next || options.contains('e');
    }
    if !in_place {
        return Vec::new();
    }
    let script = usize::from(!script_given).min(files.len());
    files.split_off(script)
}

/// Where `mv` and `cp` put things: the last word; in a folder under the name of what was put there.
fn target(plain: &[String]) -> Vec<String> {
    match plain {
        [sources @ .., to] if !sources.is_empty() => {
            if !to.ends_with('/') && sources.len() == 1 {
                return vec![to.clone()];
            }
            let name = |source: &String| source.rsplit('/').next().unwrap_or(source).to_owned();
            sources.iter().map(|source| format!("{}/{}", to.trim_end_matches('/'), name(source))).collect()
        }
        _ => Vec::new(),
    }
}

/// The files that a patch changes: a unified diff, or the form of `apply_patch`.
pub(super) fn patched(patch: &str) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    let mut removed = None;
    for line in patch.lines() {
        let line = line.trim_end();
        let path = if let Some(path) = line.strip_prefix("+++ ") {
            let path = path.split('\t').next().unwrap_or(path);
            match path {
                "/dev/null" => removed.take(),
                _ => Some(path.strip_prefix("b/").unwrap_or(path)),
            }
        } else if let Some(path) = line.strip_prefix("--- ") {
            let path = path.split('\t').next().unwrap_or(path);
            removed = Some(path.strip_prefix("a/").unwrap_or(path));
            None
        } else {
            ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "]
                .iter()
                .find_map(|mark| line.strip_prefix(mark))
        };
        if let Some(path) =
            path.map(str::trim).filter(|path| !path.is_empty() && !files.iter().any(|f| f == path))
        {
            files.push(path.to_owned());
        }
    }
    files
}

/// A path below a folder, without `.` and `..` in it.
pub(super) fn joined(folder: &str, path: &str) -> String {
    let whole = if path.starts_with(['/', '~', '$']) || folder.is_empty() {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let path = parts.join("/");
    if whole.starts_with('/') { format!("/{path}") } else { path }
}

/// Whether a path can be told: no device, no pattern, no variable.
fn is_file(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with("/dev/")
        && !path.starts_with("/proc/")
        && path != "/"
        && !path.contains(['$', '*', '`', '?', '{', '\n', '<', '>'])
}

/// Whether a command line runs tests.
pub fn runs_tests(command: &str) -> bool {
    Commands::default().read(command, "").tests
}

/// The files that a command line changes, each once, in order: redirections, `sed -i`, `tee`, `cp` and `mv`, patches,
/// Python that opens files for writing. Devices are no files; what a here-document holds is no command.
pub fn edited_files(command: &str) -> Vec<String> {
    Commands::default().read(command, "").edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_edits() {
        for (command, files) in [
            ("sed -i 's/a/b/' src/x.py", vec!["src/x.py"]),
            ("sed -n '1,5p' x.py | sed -i.bak -e 's/a > b/c/' -e 1d y.py z.py", vec!["y.py", "z.py"]),
            ("perl -pi -e 's/a/b/' x.pl; perl -0777 -pe 1 y.pl; sed -e 's/i/j/' q", vec!["x.pl"]),
            ("cat > repro.py <<'EOF'\nprint(1 > 0)\nEOF", vec!["repro.py"]),
            ("grep -rn 'foo > bar' src 2>/dev/null | head", vec![]),
            ("python - <<'E'\nopen('a/b.py', 'w').write(s)\nE", vec!["a/b.py"]),
            ("python3 -c \"p = 'a.py'; open(p, 'w')\"", vec!["a.py"]),
            ("cat <<'E' > fix.py\nopen('src/a.py', 'w')\nE\npython fix.py", vec!["fix.py", "src/a.py"]),
            ("cd src && echo 1 >> ./a.txt && cd .. && touch b", vec!["src/a.txt", "b"]),
            ("cd /testbed && git mv a.py b.py", vec!["/testbed/b.py"]),
            ("cp a.py b.py lib/ && mv x y && rm -rf old", vec!["lib/a.py", "lib/b.py", "y", "old"]),
            ("git apply <<'E'\n--- a/x.py\n+++ b/x.py\nE", vec!["x.py"]),
            ("git apply - <<'E'\n--- a/x.py\n+++ /dev/null\nE", vec!["x.py"]),
            ("apply_patch <<'E'\n*** Begin Patch\n*** Update File: a b.py\n*** End Patch\nE", vec!["a b.py"]),
            ("git checkout main; git checkout src/a.py; git checkout HEAD -- q", vec!["src/a.py", "q"]),
            ("bash -lc 'echo x | tee -a log.txt'", vec!["log.txt"]),
            ("echo $X > $Y; ls > *.txt", vec![]),
            ("ls -la", vec![]),
        ] {
            assert_eq!(edited_files(command), files, "{command}");
        }
    }

    #[test]
    fn a_script_changes_what_it_writes_when_it_is_run() {
        let mut commands = Commands::default();
        assert_eq!(commands.read("cat > /t/fix.py <<'E'\nopen('a.py', 'w')\nE", "").edits, ["/t/fix.py"]);
        assert_eq!(commands.read("cat /t/fix.py", "").edits, Vec::<String>::new());
        assert_eq!(commands.read("cd /t && python -u fix.py", "").edits, ["/t/a.py"]);
    }

    #[test]
    fn sees_tests() {
        for (command, tests) in [
            ("cd /testbed && python -m pytest tests/test_a.py", true),
            ("PYTHONPATH=. pytest -x", true),
            ("timeout -k 5 60 ./tests/runtests.py admin", true),
            ("cargo test -p x", true),
            ("bash -c 'make -j4 check'", true),
            ("python manage.py test app", true),
            ("python -W ignore test_fix.py", true),
            ("npm run test:unit && ls", true),
            ("grep pytest setup.cfg", false),
            ("echo 'run pytest -x'", false),
            ("pip install pytest", false),
            ("cat > t.sh <<'E'\npytest\nE", false),
            ("ls tests", false),
            ("./tests/runtests.py admin", true),
        ] {
            assert_eq!(runs_tests(command), tests, "{command}");
        }
    }
}
