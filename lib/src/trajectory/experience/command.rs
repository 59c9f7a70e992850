//! What a shell command tells about itself: which files it changes, whether it runs tests.

use std::sync::LazyLock;

use regex::Regex;

/// Commands that run tests, at the start of a command line.
static TESTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let runners = [
        r"(?:python[\d.]* -m )?(?:pytest|py\.test|unittest|nose2?|tox|nox)\b",
        r"python[\d.]* (?:\S*/)?(?:runtests|test_?\w*|bin/test)(?:\.py)?\b",
        r"(?:\./)?(?:bin/test|tests/runtests\.py)\b",
        r"(?:cargo (?:test|nextest)|go test|ctest|dotnet test|swift test|dart test|mix test|sbt test)\b",
        r"(?:npm|yarn|pnpm|bun)(?: run)? (?:test|t)\b|(?:npx )?(?:jest|vitest|mocha|ava|karma|playwright test)\b",
        r"(?:mvn|\./mvnw|gradle|\./gradlew)\b.*\b(?:test|check|verify)\b",
        r"(?:make|rake|bundle exec rake) (?:test|check)\b|(?:bundle exec )?(?:rspec|minitest)\b",
        r"(?:vendor/bin/)?phpunit\b|busted\b|bats\b|R CMD check\b|julia .*runtests",
    ];
    let alternatives = runners.join("|");
    Regex::new(&format!(r"(?m)(?:^|&&|;|\|\||\btime |\btimeout \S+ )\s*(?:\w+=\S*\s+)*(?:{alternatives})"))
        .ok()
});

/// Ways in which a command line changes a file; the first group is its path.
static EDITS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let path = r#"['"]?([^\s'"<>|&;()]+)['"]?"#;
    let ways = [
        format!(r"(?:^|[^<>&\d])>>?\s*{path}"),
        format!(r"\btee (?:-a )?{path}"),
        r#"\bsed (?:-\w*i\S*|.* -i\S*)(?: -e)? (?:'[^']*'|"[^"]*"|\S+) ([^\s'"<>|&;()]+)"#.to_owned(),
        format!(r"\*\*\* (?:Add|Update|Delete) File: {path}"),
        r#"\bopen\(\s*['"]([^'"]+)['"]\s*,\s*['"][wa]"#.to_owned(),
        r#"\bPath\(\s*['"]([^'"]+)['"]\s*\)\.write_text"#.to_owned(),
    ];
    ways.iter().filter_map(|way| Regex::new(&format!("(?m){way}")).ok()).collect()
});

/// Whether a command line runs tests.
pub fn runs_tests(command: &str) -> bool {
    TESTS.as_ref().is_some_and(|tests| tests.is_match(command))
}

/// The files that a command line changes, each once, in the order of their ways of change. Devices are no files.
pub fn edited_files(command: &str) -> Vec<String> {
    let mut files = Vec::new();
    for way in EDITS.iter() {
        for found in way.captures_iter(command) {
            let Some(path) = found.get(1).map(|path| path.as_str()) else { continue };
            if !path.starts_with("/dev/") && !path.starts_with(['$', '&']) && !files.iter().any(|f| f == path)
            {
                files.push(path.to_owned());
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_edits() {
        for (command, files) in [
            ("sed -i 's/a/b/' src/x.py", vec!["src/x.py"]),
            ("cat > repro.py <<'EOF'\nprint(1 > 0)\nEOF", vec!["repro.py"]),
            ("grep -rn foo src 2>/dev/null | head", vec![]),
            ("python - <<'E'\nopen('a/b.py', 'w').write(s)\nE", vec!["a/b.py"]),
            ("ls -la", vec![]),
        ] {
            assert_eq!(edited_files(command), files, "{command}");
        }
    }

    #[test]
    fn sees_tests() {
        for (command, tests) in [
            ("cd /testbed && python -m pytest tests/test_a.py", true),
            ("PYTHONPATH=. pytest -x", true),
            ("cargo test -p x", true),
            ("grep pytest setup.cfg", false),
            ("ls tests", false),
            ("./tests/runtests.py admin", true),
        ] {
            assert_eq!(runs_tests(command), tests, "{command}");
        }
    }
}
