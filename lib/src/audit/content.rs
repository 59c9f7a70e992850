//! The answer in the content of files, archives, compiled code, variables and an image's own words.

use std::collections::{BTreeMap, BTreeSet};

use regex::bytes::Regex;

use super::answer::{Answer, Found, Kind, Piece, Verdict, stem};
use super::listing::{self, Entry};
use super::packages::Own;
use super::{AuditError, Remedy, Report, STATE, View, archive};
use crate::sandbox::{Exec, OutputLimit, Sandbox};

/// Files larger than this are not searched.
const MOST: u64 = 64 << 20;

/// Archives larger than this are not unpacked, nor more of them than these bytes together.
const MOST_ARCHIVE: u64 = 32 << 20;
const MOST_ARCHIVES: u64 = 512 << 20;

/// Prints those of the files that standard input names in which one of the texts in the file `$1` stands. Which ones is
/// read from the files: what `grep -o` prints where texts overlap differs from one grep to the other.
const SEARCH: &str = r#"LC_ALL=C xargs -0 grep -alF -f "$1" -- 2> /dev/null; exit 0"#;

/// Searches every file that may hold the answer.
pub(super) async fn search(
    sandbox: &mut dyn Sandbox,
    view: &View<'_>,
    own: &Own,
    report: &mut Report,
) -> Result<(), AuditError> {
    let chosen: Vec<&Entry> = view.candidates().filter(|entry| entry.size <= MOST).collect();
    report.searched = chosen.len();
    let found = grep(sandbox, view, &chosen).await?;
    for (path, found) in &found {
        if found.any(|piece| *piece == Piece::Tarball) && path.contains("/_cacache/index-v") {
            let text = sandbox.get(path, MOST).await?.unwrap_or_default();
            tarballs(view, own, path, &String::from_utf8_lossy(&text), report);
        }
        if found.any(|piece| *piece == Piece::Bundle) {
            report.add("bundle", path, "a git bundle", view.remedy(path));
        }
        if let Some(verdict) = view.answer.judge(found, listing::in_package(path)) {
            let diff = found.any(|piece| *piece == Piece::DiffHeader);
            tell(view, path, &verdict, diff, report);
        }
    }
    archives(sandbox, view, report).await?;
    compiled(sandbox, view, report).await?;
    for entry in chosen.iter().filter(|entry| entry.path.ends_with(".pack")) {
        if head(sandbox, &entry.path).await?.starts_with(b"PACK") {
            report.add("pack-file", &entry.path, "a git pack outside a repository", view.remedy(&entry.path));
        }
    }
    Ok(())
}

/// Later versions of the package itself in npm's cache, by a file of its index: that, and what it leads to.
fn tarballs(view: &View<'_>, own: &Own, path: &str, text: &str, report: &mut Report) {
    let cache = path.split_once("/index-v").map_or(path, |(cache, _)| cache);
    for tarball in own.tarballs_in(text).iter().filter(|it| own.is_later(&it.version) == Some(true)) {
        let what = format!("npm's cache holds version {} of the package itself", tarball.version);
        report.add("package-cache", path, &what, view.remedy(path));
        let content = tarball.content.as_ref().map(|content| format!("{cache}/{content}"));
        if let Some(content) = content.filter(|content| view.entries.iter().any(|it| it.path == *content)) {
            let what = format!("the tarball of version {} of the package itself", tarball.version);
            report.add("package-cache", &content, &what, view.remedy(&content));
        }
    }
}

/// What of the answer stands in which file.
async fn grep<'a>(
    sandbox: &mut dyn Sandbox,
    view: &View<'a>,
    files: &[&Entry],
) -> Result<BTreeMap<String, Found<'a>>, AuditError> {
    let mut all: BTreeMap<String, Found<'a>> = BTreeMap::new();
    let paths = files.iter().map(|entry| entry.path.clone()).collect();
    let paths = files_with(sandbox, view, view.answer.texts().collect(), paths).await?;
    // the words at a bundle's head also stand in every copy of git, which is large: those need not be read
    for path in &paths {
        let head = head(sandbox, path).await?;
        if let Some(line) = view.answer.heads().find(|text| head.starts_with(text.as_bytes())) {
            view.answer.note(all.entry(path.clone()).or_default(), line);
        }
    }
    let paths = files_with(sandbox, view, view.answer.texts_but_heads().collect(), paths).await?;
    let Some(pattern) = pattern(view.answer) else { return Ok(all) };
    for path in paths {
        let Some(content) = sandbox.get(&path, MOST).await? else { continue };
        note_all(view.answer, &pattern, &content, all.entry(path).or_default());
    }
    Ok(all)
}

/// Those of the files in which one of these texts stands.
async fn files_with(
    sandbox: &mut dyn Sandbox,
    view: &View<'_>,
    texts: Vec<&str>,
    paths: BTreeSet<String>,
) -> Result<BTreeSet<String>, AuditError> {
    if texts.is_empty() {
        return Ok(BTreeSet::new());
    }
    let place = format!("{STATE}/texts-to-find");
    sandbox.put(&place, (texts.join("\n") + "\n").as_bytes(), 0o600).await?;
    // the texts' own file last: a search that does not find them there did not work
    let stdin = paths.iter().chain([&place]).flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
    let argv = ["sh", "-c", SEARCH, "memtrial", &place].map(str::to_owned).into();
    let output = OutputLimit { head: 256 << 20, tail: 0 };
    let exec = Exec { argv, stdin, output, ..Exec::bash("", "/").timeout(view.subject.timeout) };
    let output = sandbox.exec(&exec).await?;
    let failed = |reason: String| AuditError::Failed { action: "searching the files", reason };
    if !output.success() {
        return Err(failed(format!("{:?}", output.ended)));
    }
    let mut found: BTreeSet<String> =
        String::from_utf8_lossy(&output.bytes).lines().map(str::to_owned).collect();
    if !found.remove(&place) {
        return Err(failed("the sandbox's grep and xargs do not find what must be there".into()));
    }
    Ok(found)
}

/// Reports a file under the detector that its place and kind call for.
fn tell(view: &View<'_>, path: &str, verdict: &Verdict, diff: bool, report: &mut Report) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let lines = matches!(verdict.kind, Kind::Gold | Kind::Tests);
    let detector = match verdict.kind {
        Kind::Fields => "task-fields",
        Kind::Hidden => "hidden-text",
        Kind::PullRequest => "pull-request",
        Kind::TestNames if !ends(&[".sh", ".bash"]) => "test-names",
        _ if lines && listing::is_of_editor(path) => "tool-cache",
        _ if listing::in_cache(path) => "package-cache",
        _ if listing::in_package(path) => "installed-copy",
        Kind::Tests | Kind::TestNames if ends(&[".sh", ".bash"]) => "eval-script",
        _ if diff || ends(&[".patch", ".diff", ".orig", ".rej"]) => "patch-file",
        _ if listing::in_build(path) => "build-output",
        Kind::Gold => "answer-lines",
        Kind::Tests | Kind::TestNames => "test-lines",
    };
    report.add(detector, path, &verdict.what, view.remedy(path));
}

/// Unpacks archives and searches what they hold.
async fn archives(sandbox: &mut dyn Sandbox, view: &View<'_>, report: &mut Report) -> Result<(), AuditError> {
    if view.answer.texts_but_heads().next().is_none() {
        return Ok(());
    }
    let Some(pattern) = pattern(view.answer) else { return Ok(()) };
    let ends = [".whl", ".egg", ".zip", ".jar", ".tgz", ".gz", ".crate", ".zst", ".gem"];
    let stored = |path: &str| path.contains("/pip/http") || path.contains("_cacache/content-v2");
    let mut room = MOST_ARCHIVES;
    let mut left_out = 0;
    for entry in
        view.candidates().filter(|it| stored(&it.path) || ends.iter().any(|end| it.path.ends_with(end)))
    {
        if entry.size > MOST_ARCHIVE || entry.size > room {
            left_out += 1;
            continue;
        }
        room -= entry.size;
        let Some(bytes) = sandbox.get(&entry.path, MOST_ARCHIVE).await? else { continue };
        let Some(content) = archive::unpack(&bytes) else { continue };
        let mut found = Found::default();
        note_all(view.answer, &pattern, &content, &mut found);
        if let Some(verdict) = view.answer.judge(&found, true) {
            let detector = if listing::in_cache(&entry.path) { "package-cache" } else { "archive" };
            report.add(detector, &entry.path, &format!("holds {}", verdict.what), view.remedy(&entry.path));
        }
    }
    if left_out > 0 {
        report.could_not("archives", &format!("{left_out} are too large to be unpacked"));
    }
    Ok(())
}

/// Compiled code by the names in it.
async fn compiled(sandbox: &mut dyn Sandbox, view: &View<'_>, report: &mut Report) -> Result<(), AuditError> {
    let ends = [".pyc", ".pyo", ".class", ".beam"];
    for entry in view.candidates().filter(|it| ends.iter().any(|end| it.path.ends_with(end))) {
        let stem = stem(&entry.path);
        let stem = stem.split('$').next().unwrap_or(stem);
        if !view.answer.has_words(stem) {
            continue;
        }
        let code = sandbox.get(&entry.path, MOST_ARCHIVE).await?.unwrap_or_default();
        let words = view.answer.words_in(stem, &code);
        if let Some(word) = words.first() {
            let what = format!("{} names that the gold patch brings in, for example {word}", words.len());
            let remedy = Remedy::Remove(entry.path.clone());
            report.add("bytecode", &entry.path, &what, remedy);
        }
    }
    Ok(())
}

/// Variables of the sandbox, and what an image says of itself.
pub(super) async fn surroundings(
    sandbox: &mut dyn Sandbox,
    view: &View<'_>,
    report: &mut Report,
) -> Result<(), AuditError> {
    let script = "env; tr '\\0' '\\n' < /proc/1/environ 2> /dev/null; exit 0";
    let argv = ["sh", "-c", script].map(str::to_owned).into();
    let output = sandbox.exec(&Exec { argv, ..Exec::bash("", "/") }).await?;
    let Some(pattern) = pattern(view.answer) else { return Ok(()) };
    let said = output.text();
    let variables = said
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, text)| (name, text, "environment-variable"));
    let facts =
        view.subject.facts.iter().map(|(place, text)| (place.as_str(), text.as_str(), "image-metadata"));
    for (place, text, detector) in variables.chain(facts) {
        if ["GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_COMMON_DIR"]
            .iter()
            .any(|name| place.ends_with(name))
        {
            report.add("environment-variable", place, &format!("leads git to {text:?}"), Remedy::None);
            continue;
        }
        let mut found = Found::default();
        note_all(view.answer, &pattern, text.as_bytes(), &mut found);
        if let Some(verdict) = view.answer.judge(&found, false) {
            report.add(detector, place, &verdict.what, Remedy::None);
        } else if detector == "image-metadata" && found.any(|piece| *piece == Piece::Column) {
            report.add(detector, place, "a column of the task's data", Remedy::None);
        }
    }
    Ok(())
}

/// One pattern for all texts but those at a file's head.
fn pattern(answer: &Answer) -> Option<Regex> {
    let mut texts: Vec<&str> = answer.texts_but_heads().collect();
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let all: Vec<String> = texts.iter().map(|text| regex::escape(text)).collect();
    Regex::new(&all.join("|")).ok()
}

fn note_all<'a>(answer: &'a Answer, pattern: &Regex, content: &[u8], found: &mut Found<'a>) {
    for hit in pattern.find_iter(content) {
        answer.note(found, &String::from_utf8_lossy(hit.as_bytes()));
    }
}

/// The first bytes of a file.
async fn head(sandbox: &mut dyn Sandbox, path: &str) -> Result<Vec<u8>, AuditError> {
    let argv = ["head", "-c", "16", "--", path].map(str::to_owned).into();
    Ok(sandbox.exec(&Exec { argv, ..Exec::bash("", "/") }).await?.bytes)
}
