//! Files put into the sandbox and taken out.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, Mode, OFlags, ResolveFlags, fchmod, mkdirat, open, openat, openat2, renameat, unlinkat,
};
use rustix::io::Errno;

use crate::fault::{During, Fault, Result};

/// The folder that absolute paths start at: `/`, or a folder that stands for it where there is no isolation.
pub struct Root {
    path: PathBuf,
}

impl Root {
    /// Paths start at this folder.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where an inside path lies.
    pub fn locate(&self, inside: &str) -> PathBuf {
        self.path.join(inside.trim_start_matches('/'))
    }

    /// Writes `length` bytes of `body` to a file: parents made, whole or not at all, a link at its place replaced.
    pub fn put(&self, inside: &str, mode: u32, body: &mut impl Read, length: u64) -> Result<()> {
        let (parents, name) = split(inside)?;
        let folder = self.make_folder(&parents)?;
        let temporary = format!(".{}.memtrial", rustix::process::getpid().as_raw_nonzero());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let _ = unlinkat(&folder, &temporary, AtFlags::empty());
        let file = openat(&folder, &temporary, flags, Mode::from_raw_mode(0o600)).during(inside)?;
        let written = write_file(file, mode, body, length)
            .and_then(|()| renameat(&folder, &temporary, &folder, &name).map_err(io::Error::from));
        if written.is_err() {
            let _ = unlinkat(&folder, &temporary, AtFlags::empty());
        }
        written.during(inside)
    }

    /// Reads a regular file of at most `limit` bytes; `None` where there is none.
    pub fn get(&self, inside: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let (parents, name) = split(inside)?;
        let folder = match self.open_folder(&parents) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(None),
            other => other.during(inside)?,
        };
        // NONBLOCK: a pipe without a writer must not hold the sandbox up before it is seen to be one.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&folder, &name, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            other => File::from(other.during(inside)?),
        };
        if !file.metadata().during(inside)?.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).during(inside)?;
        if bytes.len() as u64 > limit {
            return Err(Fault(format!("{inside}: holds more than {limit} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Opens the place of a mount, a folder or a file, making it where it is missing. No link leads out of the root.
    pub fn place(&self, inside: &str, folder: bool) -> Result<OwnedFd> {
        let (mut names, name) = split(inside)?;
        let parent = self.make_folder(&names)?;
        if folder {
            names.push(name);
            return self.make_folder(&names);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&parent, &name, path, Mode::empty())
            .or_else(|_| {
                openat(&parent, &name, flags, Mode::from_raw_mode(0o644))?;
                openat(&parent, &name, path, Mode::empty())
            })
            .during(inside)
    }

    /// Opens a folder by its names below the root. Where the root stands for `/`, no link leads out of it.
    fn open_folder(&self, names: &[String]) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(&self.path, flags, Mode::empty())?;
        if names.is_empty() {
            return Ok(root);
        }
        let path = names.join("/");
        if self.path == Path::new("/") {
            return openat(&root, path, flags, Mode::empty());
        }
        openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)
    }

    fn make_folder(&self, names: &[String]) -> Result<OwnedFd> {
        let shown = |depth: usize| format!("/{}", names[..depth].join("/"));
        let mut folder = self.open_folder(&[]).during("/")?;
        for depth in 1..=names.len() {
            folder = match self.open_folder(&names[..depth]) {
                Err(Errno::NOENT) => {
                    match mkdirat(folder.as_fd(), &names[depth - 1], Mode::from_raw_mode(0o755)) {
                        Err(Errno::EXIST) | Ok(()) => {}
                        Err(error) => return Err(error).during(shown(depth)),
                    }
                    self.open_folder(&names[..depth]).during(shown(depth))?
                }
                other => other.during(shown(depth))?,
            };
        }
        Ok(folder)
    }
}

fn write_file(file: OwnedFd, mode: u32, body: &mut impl Read, length: u64) -> io::Result<()> {
    let mut file = File::from(file);
    if io::copy(&mut body.take(length), &mut file)? != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    fchmod(&file, Mode::from_raw_mode(mode & 0o7777))?;
    Ok(())
}

/// The folders and the name of an absolute path without `..`.
fn split(inside: &str) -> Result<(Vec<String>, String)> {
    let bad = |why: &str| Fault(format!("{inside}: {why}"));
    let mut names = Vec::new();
    let mut absolute = false;
    for part in Path::new(inside).components() {
        match part {
            Component::RootDir => absolute = true,
            Component::Normal(name) => names.extend(name.to_str().map(str::to_owned)),
            Component::ParentDir => return Err(bad("holds `..`")),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    if !absolute {
        return Err(bad("is not absolute"));
    }
    let name = names.pop().ok_or_else(|| bad("names no file"))?;
    Ok((names, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn root() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        let root = Root::new(folder.path().join("root"));
        (folder, root)
    }

    #[test]
    fn a_file_goes_in_with_parents_and_mode_and_comes_out() {
        let (_folder, root) = root();
        root.put("/a/b/c", 0o751, &mut b"\0\xffmore".as_slice(), 2).unwrap();
        assert_eq!(root.get("/a/b/c", 2).unwrap().unwrap(), b"\0\xff");
        assert_eq!(fs::metadata(root.locate("/a/b/c")).unwrap().permissions().mode() & 0o7777, 0o751);
        assert_eq!(fs::read_dir(root.locate("/a/b")).unwrap().count(), 1, "no temporary file stays");
        assert!(root.get("/a/b/c", 1).unwrap_err().0.contains("more than 1 bytes"));
    }

    #[test]
    fn links_are_replaced_not_followed_and_lead_nowhere_outside() {
        let (folder, root) = root();
        let secret = folder.path().join("secret");
        fs::write(&secret, "mine").unwrap();
        symlink(&secret, root.locate("/link")).unwrap();
        symlink(folder.path(), root.locate("/out")).unwrap();
        symlink("../..", root.locate("/up")).unwrap();
        assert_eq!(root.get("/link", 99).unwrap(), None);
        assert_eq!(root.get("/out/secret", 99).unwrap(), None);
        assert_eq!(root.get("/up/secret", 99).unwrap(), None);
        root.put("/link", 0o644, &mut b"new".as_slice(), 3).unwrap();
        root.put("/up/secret", 0o644, &mut b"new".as_slice(), 3).unwrap();
        assert_eq!(fs::read(&secret).unwrap(), b"mine");
        assert_eq!(fs::read(root.locate("/secret")).unwrap(), b"new");
        assert!(fs::symlink_metadata(root.locate("/link")).unwrap().is_file());
    }

    #[test]
    fn what_is_no_regular_file_is_absent() {
        let (_folder, root) = root();
        fs::create_dir(root.locate("/folder")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.locate("/pipe"),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        for path in ["/folder", "/pipe", "/none", "/none/none", "/pipe/none"] {
            assert_eq!(root.get(path, 9).unwrap(), None, "{path}");
        }
    }

    #[test]
    fn a_path_that_is_not_absolute_or_climbs_is_refused() {
        for path in ["a", "", "/", "/a/../../b"] {
            assert!(split(path).is_err(), "{path}");
        }
        assert_eq!(split("//a/./b").unwrap(), (vec!["a".into()], "b".into()));
    }

    #[test]
    fn a_body_that_ends_early_leaves_nothing() {
        let (_folder, root) = root();
        assert!(root.put("/a", 0o644, &mut b"12".as_slice(), 3).is_err());
        assert_eq!(fs::read_dir(root.locate("/")).unwrap().count(), 0);
    }
}
