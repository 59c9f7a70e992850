//! Every file of an environment that its user can see, and what its path says of it.

use std::time::Duration;

use super::AuditError;
use crate::sandbox::{Exec, OutputLimit, Sandbox};

/// Lists type, size and path of everything under the folders `$1` but for the folders `$2`, both with blanks between,
/// each entry ended by a NUL (where this `find` cannot, by a line end).
const LIST: &str = r"
closed=$2
set -- $(for root in $1; do [ -e $root ] && echo $root; done)
[ $# -gt 0 ] || exit 0
prune='-path /proc -o -path /sys -o -path /dev'
for folder in $closed; do prune=$prune' -o -path '$folder; done
if find / -maxdepth 0 -printf x > /dev/null 2>&1; then
  find $@ \( $prune \) -prune -o \( -type f -o -type d \) -printf '%y\t%s\t%p\0' 2> /dev/null
else
  find $@ \( $prune \) -prune -o -type d -print 2> /dev/null | sed 's/^/d\t0\t/'
  find $@ \( $prune \) -prune -o -type f -exec stat -c 'f	%s	%n' {} + 2> /dev/null
fi
exit 0
";

/// A file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) folder: bool,
}

/// Lists what lies under `roots`, absolute folders or patterns without blanks, but for the folders `closed`.
pub(super) async fn list(
    sandbox: &mut dyn Sandbox,
    roots: &[String],
    closed: &[String],
    timeout: Duration,
) -> Result<Vec<Entry>, AuditError> {
    let argv = ["sh", "-c", LIST, "memtrial", &roots.join(" "), &closed.join(" ")].map(str::to_owned).into();
    let output = OutputLimit { head: 1 << 30, tail: 0 };
    let exec = Exec { argv, output, ..Exec::bash("", "/").timeout(timeout) };
    let output = sandbox.exec(&exec).await?;
    if !output.success() || output.elided.is_some() {
        let reason = format!("{:?}: {}", output.ended, output.text().lines().last().unwrap_or_default());
        return Err(AuditError::Failed { action: "listing the files", reason });
    }
    let text = String::from_utf8_lossy(&output.bytes);
    let mut entries: Vec<Entry> = text.split(['\0', '\n']).filter_map(entry).collect();
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries.dedup();
    Ok(entries)
}

fn entry(line: &str) -> Option<Entry> {
    let mut parts = line.splitn(3, '\t');
    let (kind, size, path) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Entry { path: path.to_owned(), size: size.parse().ok()?, folder: kind == "d" })
}

/// The repositories among the entries: folders with `objects` and `HEAD`, in order.
pub(super) fn repositories(entries: &[Entry]) -> Vec<String> {
    let is_file = |path: &str| {
        entries.binary_search_by(|entry| entry.path.as_str().cmp(path)).is_ok_and(|at| !entries[at].folder)
    };
    let parents =
        entries.iter().filter(|entry| entry.folder).filter_map(|entry| entry.path.strip_suffix("/objects"));
    parents.filter(|parent| is_file(&format!("{parent}/HEAD"))).map(str::to_owned).collect()
}

/// Whether a path lies in a folder, or is it.
pub(super) fn is_under(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || folder.ends_with('/'))
}

/// Folders of the system: their files come with the operating system. Packages in them do not.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/boot", "/var/lib/dpkg", "/var/lib/apt"];

/// Whether the content of a file may hold the answer: not the operating system's own files.
pub(super) fn is_readable(path: &str) -> bool {
    let own = is_under(path, "/usr/local") || is_under(path, "/usr/src") || in_package(path);
    own || !SYSTEM.iter().any(|folder| is_under(path, folder))
}

/// Whether a path lies among installed packages.
pub(super) fn in_package(path: &str) -> bool {
    [
        "/site-packages/",
        "/dist-packages/",
        "/node_modules/",
        "/registry/src/",
        "/pkg/mod/",
        "/gems/",
        "/vendor/",
    ]
    .iter()
    .any(|part| path.contains(part))
}

/// Whether a path lies in a cache of a package manager.
pub(super) fn in_cache(path: &str) -> bool {
    [
        "/.cache/",
        "/_cacache/",
        "/registry/cache/",
        "/pkg/mod/cache/",
        "/.npm/",
        "/.yarn/",
        "/.m2/",
        "/pip/http",
        "/.pnpm-store/",
    ]
    .iter()
    .any(|part| path.contains(part))
}

/// Whether a path lies among what a build made.
pub(super) fn in_build(path: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    parts.iter().any(|part| {
        ["build", "dist", "target", "out", "_build", ".eggs"].contains(part) || part.ends_with(".egg")
    })
}

/// Whether a path is a file that an editor keeps of another file's earlier or later state.
pub(super) fn is_of_editor(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let folder = [
        "/.idea/",
        "/.vscode/",
        "/.history/",
        "/.fleet/",
        "/.vim/",
        "/.emacs.d/",
        "/.local/share/JetBrains/",
    ]
    .iter()
    .any(|part| path.contains(part));
    folder
        || name.ends_with('~')
        || [".swp", ".swo", ".un~", ".viminfo"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_entries_and_finds_repositories() {
        let text = "d\t4\t/a/.git/objects\0f\t3\t/a/.git/HEAD\0f\t9\t/a/t\tab\0d\t1\t/b/objects\0noise";
        let mut entries: Vec<Entry> = text.split('\0').filter_map(entry).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!(repositories(&entries), ["/a/.git"]);
        assert!(entries.iter().any(|entry| entry.path == "/a/t\tab" && entry.size == 9));
    }

    #[test]
    fn a_path_says_whose_a_file_is() {
        assert!(
            !is_readable("/usr/share/doc/x") && is_readable("/usr/local/x") && is_readable("/usrlocal/x")
        );
        assert!(is_readable("/usr/lib/python3/dist-packages/humanize/time.py"));
        assert!(in_build("/testbed/build/lib/a.py") && !in_build("/testbed/build"));
        assert!(in_build("/x/a.egg/b") && is_of_editor("/t/.a.py.swp") && is_of_editor("/t/.idea/w.xml"));
    }
}
