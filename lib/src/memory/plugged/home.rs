//! The folder that a program may write to, read by memtrial without trusting what lies in it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, readlinkat};
use sha2::{Digest as _, Sha256};

use super::super::Store;

/// Files of a store at most: an index of a database has thousands, none a million.
const MOST_FILES: u64 = 1_000_000;

/// One system's folder; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Home {
    folder: tempfile::TempDir,
    not_store: Vec<String>,
    most_bytes: u64,
}

impl Home {
    /// Makes an empty one below this folder.
    pub fn new(below: &Path, label: &str, not_store: Vec<String>, most_bytes: u64) -> io::Result<Self> {
        fs_err::create_dir_all(below)?;
        let folder = tempfile::Builder::new().prefix(label).tempdir_in(below)?;
        let home = Self { folder, not_store, most_bytes };
        home.wipe()?;
        Ok(home)
    }

    /// What the program may write to.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// A place beside it, which the program does not see.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Empties the state.
    pub fn wipe(&self) -> io::Result<()> {
        if self.state().exists() {
            fs_err::remove_dir_all(self.state())?;
        }
        fs_err::create_dir_all(self.state().join("tmp"))
    }

    /// What lies in the store, by content: files in the order of their paths, links by where they point.
    pub fn store(&self, records: u64) -> io::Result<Store> {
        let mut digest = Sha256::new();
        let mut bytes = 0;
        self.walk(&mut |path, found| {
            digest.update((path.as_os_str().len() as u64).to_le_bytes());
            digest.update(path.as_os_str().as_encoded_bytes());
            match found {
                Found::File(mut file) => {
                    let mut content = Sha256::new();
                    bytes += io::copy(&mut file, &mut content)?;
                    if bytes > self.most_bytes {
                        let most = self.most_bytes >> 20;
                        return Err(io::Error::other(format!("the store holds more than {most} MiB")));
                    }
                    digest.update(b"file");
                    digest.update(content.finalize());
                }
                Found::Link(to) => {
                    digest.update(b"link");
                    digest.update(Sha256::digest(to));
                }
            }
            Ok(())
        })?;
        Ok(Store { digest: format!("{:x}", digest.finalize()), records, bytes, unusable: 0 })
    }

    /// Copies the store's files. Links are left out: they may point anywhere.
    pub fn copy(&self, to: &Path) -> io::Result<()> {
        self.walk(&mut |path, found| {
            if let Found::File(mut file) = found {
                let place = to.join(path);
                fs_err::create_dir_all(place.parent().unwrap_or(to))?;
                io::copy(&mut file, &mut fs_err::File::create(place)?)?;
            }
            Ok(())
        })
    }

    fn walk(&self, visit: &mut dyn FnMut(&Path, Found) -> io::Result<()>) -> io::Result<()> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let top = openat(CWD, self.state(), flags, Mode::empty())?;
        self.walk_in(&top, Path::new(""), &mut 0, visit)
    }

    /// By descriptors: a folder that is replaced by a link meanwhile leads nowhere.
    fn walk_in(
        &self,
        folder: &OwnedFd,
        at: &Path,
        seen: &mut u64,
        visit: &mut dyn FnMut(&Path, Found) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort();
        for name in names {
            let path = at.join(std::os::unix::ffi::OsStrExt::from_bytes(&name[..]) as &std::ffi::OsStr);
            if self.is_apart(&path) {
                continue;
            }
            *seen += 1;
            if *seen > MOST_FILES || path.components().count() > 64 {
                return Err(io::Error::other("the store holds too many files, or too deep folders"));
            }
            let stat = match rustix::fs::statat(folder, &name[..], AtFlags::SYMLINK_NOFOLLOW) {
                Err(rustix::io::Errno::NOENT) => continue,
                other => other?,
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
                    let below = openat(folder, &name[..], flags, Mode::empty())?;
                    self.walk_in(&below, &path, seen, visit)?;
                }
                FileType::RegularFile => {
                    // Not blocking: it may have become a pipe.
                    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::RDONLY;
                    let file = openat(folder, &name[..], flags, Mode::empty())?;
                    if FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile {
                        visit(&path, Found::File(File::from(file)))?;
                    }
                }
                FileType::Symlink => {
                    visit(&path, Found::Link(readlinkat(folder, &name[..], Vec::new())?.into_bytes()))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a path is no part of the store.
    fn is_apart(&self, path: &Path) -> bool {
        let named = |apart: &str| match apart.strip_prefix('*') {
            Some(end) => path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(end)),
            None => path.starts_with(apart),
        };
        path.starts_with("tmp") || self.not_store.iter().any(|apart| named(apart))
    }
}

/// What lies at a path.
enum Found {
    File(File),
    Link(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(folder: &Path) -> Home {
        Home::new(folder, "h-", vec!["cache".into(), "*.log".into()], 1 << 20).unwrap()
    }

    #[test]
    fn the_store_is_its_files_content_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (home(folder.path()), home(folder.path()));
        let digest = |home: &Home| home.store(0).unwrap().digest;
        for home in [&one, &two] {
            fs_err::create_dir_all(home.state().join("a/b")).unwrap();
            fs_err::write(home.state().join("a/b/x"), "1").unwrap();
        }
        assert_eq!(digest(&one), digest(&two));
        let before = digest(&one);
        for apart in ["tmp/t", "cache", "a/b/run.log"] {
            fs_err::write(one.state().join(apart), "noise").unwrap();
        }
        assert_eq!(digest(&one), before);
        fs_err::write(one.state().join("a/b/x"), "2").unwrap();
        assert_ne!(digest(&one), before);
        fs_err::rename(two.state().join("a/b/x"), two.state().join("a/x")).unwrap();
        assert_ne!(digest(&two), before, "the same content at another path");
        fs_err::write(two.state().join("big"), vec![0; (1 << 20) + 1]).unwrap();
        assert_eq!(two.store(0).unwrap_err().to_string(), "the store holds more than 1 MiB");
        two.wipe().unwrap();
        assert_eq!(two.store(3).unwrap().records, 3);
        assert_eq!(two.store(0).unwrap().bytes, 0);
    }

    #[test]
    fn links_are_neither_followed_nor_copied() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        fs_err::write(folder.path().join("secret"), "s").unwrap();
        fs_err::os::unix::fs::symlink(folder.path(), home.state().join("out")).unwrap();
        fs_err::write(home.state().join("mine"), "m").unwrap();
        let before = home.store(0).unwrap();
        assert_eq!(before.bytes, 1);
        let copy = tempfile::tempdir().unwrap();
        home.copy(copy.path()).unwrap();
        let names: Vec<_> = fs_err::read_dir(copy.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["mine"]);
        fs_err::remove_file(home.state().join("out")).unwrap();
        fs_err::os::unix::fs::symlink("/", home.state().join("out")).unwrap();
        assert_ne!(home.store(0).unwrap().digest, before.digest, "another target is another store");
    }
}
