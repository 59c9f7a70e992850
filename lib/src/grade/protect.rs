//! What a prediction must not decide: which tests there are, and how they are run.
//!
//! A runner reads settings and plugins from the repository, and an interpreter takes modules from its working
//! folder before its own. So a file of the prediction that gold leaves alone and that can stand in for the
//! runner is put back. What the tested code itself does inside the runner's process cannot be kept out; where
//! it names the runner's insides, it is flagged.

use std::collections::BTreeSet;

use super::graded::Flag;
use super::patch::apply::{put_back, there, touched};
use super::patch::{changes, paths};
use crate::sandbox::{Place, Sandbox, SandboxError};
use crate::task::Task;

/// Files that configure test runners or what starts them, or that an interpreter loads by itself. Some hold
/// other settings as well: gold passes without a change to them.
const SETTINGS: [&str; 26] = [
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "noxfile.py",
    ".coveragerc",
    ".noserc",
    "nose.cfg",
    "unittest.cfg",
    "sitecustomize.py",
    "usercustomize.py",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.js",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".cargo/config",
    ".cargo/config.toml",
];

/// Beginnings of such files (`vitest.config.ts`).
const SETTINGS_STEMS: [&str; 7] = [
    "vitest.config.",
    "vitest.workspace.",
    "vite.config.",
    "jest.config.",
    ".mocharc.",
    "karma.conf.",
    ".config/nextest.",
];

/// Files that can steer a runner, but hold dependencies or build rules that a solution may need to change.
const MIXED: [&str; 7] =
    ["package.json", "Cargo.toml", "go.mod", "go.work", "Makefile", "GNUmakefile", "makefile"];

/// Folders of installed code, at any depth: runners live there, or what is loaded in place of a source.
const INSTALLED: [&str; 5] = ["node_modules", "site-packages", ".venv", "venv", "__pycache__"];

/// Endings of folders whose entry points pytest loads as plugins.
const METADATA: [&str; 2] = [".egg-info", ".dist-info"];

/// The folders that stand on Python's path: its working folder, and the one of the `src` layout.
const ROOTS: [&str; 2] = ["", "src/"];

/// Modules that make up pytest.
const PYTEST: [&str; 15] = [
    "pytest",
    "_pytest",
    "py",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "exceptiongroup",
    "tomli",
    "colorama",
    "attr",
    "coverage",
    "xdist",
    "execnet",
    "nose",
];

/// Python's own modules, all versions: `python -m pytest` takes one of the working folder first. Left out:
/// `test`, as folders of tests are called.
const STANDARD: &str = "\
    abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect \
    builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys \
    compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses \
    dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno \
    faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt \
    getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp \
    importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox \
    mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt \
    ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools \
    pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile \
    pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy \
    sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket \
    socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep \
    struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios \
    textwrap threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle \
    turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser \
    winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// Whether a file could be what Python loads in place of the runner or of one of Python's own modules.
fn may_shadow(path: &str) -> bool {
    ROOTS.iter().filter_map(|root| path.strip_prefix(root)).any(|rest| {
        let module = match rest.split_once('/') {
            // Without `__init__` a folder stands behind a module of the same name.
            Some((folder, file)) if file.starts_with("__init__.") => folder,
            Some(_) => return false,
            None => match rest.split_once('.') {
                Some((_, end)) if !["py", "pyc", "so"].contains(&end.rsplit('.').next().unwrap_or(end)) => {
                    return false;
                }
                Some((stem, _)) => stem,
                // A link to a folder.
                None => rest,
            },
        };
        PYTEST.contains(&module)
            || module.starts_with("pytest_")
            || (rest == path && STANDARD.split_whitespace().any(|name| name == module))
    })
}

/// Other spellings under which the module that a file shadows may be there already.
fn spellings(path: &str) -> Vec<String> {
    let (root, rest) = path.strip_prefix("src/").map_or(("", path), |rest| ("src/", rest));
    let module = rest.split(['/', '.']).next().unwrap_or(rest);
    vec![format!("{root}{module}.py"), format!("{root}{module}/__init__.py")]
}

/// Whether a file decides how tests are run, by its name alone.
fn is_setting(path: &str) -> bool {
    let named =
        |name: &str| path.strip_suffix(name).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'));
    let begins = |stem: &str| {
        path.rfind(stem).is_some_and(|at| {
            (at == 0 || path[..at].ends_with('/')) && !path[at + stem.len()..].contains('/')
        })
    };
    let of_root = |root: &&str| path.strip_prefix(root).is_some_and(|name| !name.contains('/'));
    SETTINGS.iter().any(|name| named(name))
        || (path.ends_with(".pth") && ROOTS.iter().any(of_root))
        || SETTINGS_STEMS.iter().any(|stem| begins(stem))
        || path
            .split('/')
            .any(|part| INSTALLED.contains(&part) || METADATA.iter().any(|ending| part.ends_with(ending)))
}

/// Whether a test command starts this file: as a program of its own or as an interpreter's script.
fn is_started(path: &str, commands: &[String]) -> bool {
    const SHELLS: [&str; 7] = ["sh", "bash", "python", "python3", "node", "ruby", "source"];
    commands.iter().any(|command| {
        let words: Vec<&str> = command.split(|c: char| c.is_whitespace() || ";&|()'\"".contains(c)).collect();
        words.iter().enumerate().any(|(at, word)| {
            let started = word.ends_with(".sh")
                || word.starts_with("./")
                || at.checked_sub(1).is_some_and(|before| SHELLS.contains(&words[before]));
            started && word.strip_prefix("./").unwrap_or(word) == path
        })
    })
}

/// Puts back what the prediction must not decide, and tells what it touched.
pub(super) async fn protect(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    task: &Task,
    patch: &str,
) -> Result<BTreeSet<Flag>, SandboxError> {
    let tests = paths(&task.evaluator.test_patch);
    let gold = paths(&task.evaluator.patch);
    // What git sees, and what the patch says: the one misses ignored files, the other can be misread.
    let mut changed = touched(sandbox, place).await?;
    changed.extend(paths(patch));
    let shadows = shadows(sandbox, place, changed.difference(&gold)).await?;
    let mut back = tests.clone();
    let mut flags = suspects(task, patch);
    for path in changed {
        let name = path.rsplit('/').next().unwrap_or(&path);
        if tests.contains(&path) {
            flags.insert(Flag::TestFileRestored { path });
        } else if gold.contains(&path) {
            // Part of the solution.
        } else if is_setting(&path)
            || shadows.contains(&path)
            || is_started(&path, &task.solver.recipe.test_cmd)
        {
            back.insert(path.clone());
            flags.insert(Flag::ConfigRestored { path });
        } else if MIXED.contains(&name) {
            flags.insert(Flag::ConfigTouched { path });
        }
    }
    put_back(sandbox, place, &back).await?;
    Ok(flags)
}

/// The files that shadow a module of the runner or of Python. A module that the base commit has at that place
/// is the project's own.
async fn shadows<'a>(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    changed: impl Iterator<Item = &'a String>,
) -> Result<BTreeSet<String>, SandboxError> {
    let mut found: BTreeSet<String> = changed.filter(|path| may_shadow(path)).cloned().collect();
    if !found.is_empty() {
        let own = there(sandbox, place, &found.iter().flat_map(|path| spellings(path)).collect()).await?;
        found.retain(|path| !spellings(path).iter().any(|spelling| own.contains(spelling)));
    }
    Ok(found)
}

/// What only code that reaches into a Python test runner names.
const INSIDES: [&str; 7] = [
    "_pytest",
    "pytest_runtest",
    "TestReport",
    "pytest.hookimpl",
    "import pytest",
    "from pytest",
    "unittest.TestResult",
];

/// Files, other than tests, whose added lines name a runner's insides though gold's do not.
fn suspects(task: &Task, patch: &str) -> BTreeSet<Flag> {
    let gold = changes(&task.evaluator.patch);
    let mut flags = BTreeSet::new();
    for file in changes(patch) {
        let Some(path) = file.new.filter(|path| path.ends_with(".py") && !is_test(path)) else { continue };
        let named = |word: &&&str| {
            file.added.contains(**word) && !gold.iter().any(|file| file.added.contains(**word))
        };
        if let Some(word) = INSIDES.iter().find(named) {
            flags.insert(Flag::Suspect { path, word: (*word).to_owned() });
        }
    }
    flags
}

/// Whether a Python file is a test by pytest's habits.
fn is_test(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or_default();
    name.starts_with("test_")
        || name.ends_with("_test.py")
        || name == "conftest.py"
        || parts.any(|folder| ["test", "tests", "testing"].contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_for_the_runner_is_told_by_its_path() {
        for path in [
            "pytest.py",
            "pytest/__init__.py",
            "_pytest/__init__.py",
            "src/pluggy.py",
            "src/iniconfig/__init__.py",
            "pytest_cov.py",
            "argparse.py",
            "json/__init__.py",
            "re.cpython-312-x86_64-linux-gnu.so",
            "pytest.pyc",
            "pytest",
        ] {
            assert!(may_shadow(path), "{path}");
        }
        for path in [
            "src/widget/pytest.py",
            "src/json/__init__.py",
            "widget.py",
            "queue/worker.py",
            "test/__init__.py",
            "types.d.ts",
            "pytest.md",
        ] {
            assert!(!may_shadow(path), "{path}");
        }
    }

    #[test]
    fn settings_are_told_by_their_names() {
        for path in [
            "conftest.py",
            "a/b/conftest.py",
            "pyproject.toml",
            "tests/setup.cfg",
            "src/sitecustomize.py",
            "vitest.config.ts",
            "web/.mocharc.json",
            "node_modules/mocha/bin/mocha.js",
            "a/node_modules/x.js",
            "src/evil.egg-info/entry_points.txt",
            "tests/__pycache__/helpers.cpython-312.pyc",
            ".cargo/config.toml",
            "a/.cargo/config",
            "rust-toolchain",
            ".config/nextest.toml",
            "evil.pth",
            "src/evil.pth",
        ] {
            assert!(is_setting(path), "{path}");
        }
        for path in [
            "myconftest.py",
            "build.rs",
            "docs/config.toml",
            "package.json",
            "a/vitest.config.d/x.ts",
            "models/weights.pth",
        ] {
            assert!(!is_setting(path), "{path}");
        }
    }

    #[test]
    fn scripts_of_a_test_command_are_told_from_its_arguments() {
        let commands = ["cd x && ./ci/run.sh a".to_owned(), "python3 run.py src/a.py; bash t.sh".to_owned()];
        for (path, started) in
            [("ci/run.sh", true), ("run.py", true), ("t.sh", true), ("src/a.py", false), ("x", false)]
        {
            assert_eq!(is_started(path, &commands), started, "{path}");
        }
    }
}
