//! Where a run's repository lies, so that paths are told relative to it.

use super::command::joined;

/// The folder of SWE-bench's images and of those made after them.
const TESTBED: &str = "/testbed";

/// The repository's folders, and the one that commands start in.
#[derive(Debug, Clone)]
pub(super) struct Place {
    roots: Vec<String>,
    folder: String,
}

impl Default for Place {
    fn default() -> Self {
        Self { roots: vec![TESTBED.to_owned()], folder: String::new() }
    }
}

impl Place {
    /// The run works in this folder now; the first one stated is the repository's.
    pub fn work_in(&mut self, folder: &str) {
        let folder = folder.trim_end_matches('/');
        if !folder.starts_with('/') || folder == self.folder {
            return;
        }
        let known = |root: &String| {
            folder == root || folder.strip_prefix(root.as_str()).is_some_and(|r| r.starts_with('/'))
        };
        if !self.roots.iter().any(known) && self.folder.is_empty() {
            self.roots.push(folder.to_owned());
        }
        folder.clone_into(&mut self.folder);
    }

    /// The folder that commands start in; empty: not known.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// A path relative to the repository where it lies in it; else as it is.
    pub fn relative(&self, path: &str) -> String {
        let path = joined(&self.folder, path);
        let inside = self.roots.iter().find_map(|root| path.strip_prefix(root.as_str())?.strip_prefix('/'));
        // OpenHands: /workspace/<owner>__<name>__<version>/
        let workspace = || {
            let (folder, inside) = path.strip_prefix("/workspace/")?.split_once('/')?;
            folder.contains("__").then_some(inside)
        };
        inside.or_else(workspace).unwrap_or(&path).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_paths_of_the_repository() {
        let mut place = Place::default();
        assert_eq!(place.relative("/testbed/a/../b.py"), "b.py");
        place.work_in("/home/me/widget/");
        place.work_in("/home/me/widget/src");
        assert_eq!(place.relative("x.rs"), "src/x.rs");
        assert_eq!(place.relative("/home/me/widget/src/x.rs"), "src/x.rs");
        assert_eq!(place.relative("/tmp/x"), "/tmp/x");
        assert_eq!(place.relative("/workspace/acme__widget__1.0/x.rs"), "x.rs");
    }
}
