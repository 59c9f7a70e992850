//! The folder that a layer is unpacked into. Every path is resolved by the kernel with this folder as its root.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, XattrFlags, chownat,
    fchmod, fsetxattr, futimens, linkat, mkdirat, mknodat, open, openat, openat2, statat, symlinkat,
    unlinkat, utimensat,
};
use rustix::io::Errno;

use super::bad;

/// A name in a folder: bytes without `/`.
pub(super) type Name = Vec<u8>;

/// What an entry says of itself.
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    /// Seconds since 1970.
    pub(super) mtime: i64,
}

/// A folder that stands for `/`.
pub(super) struct Tree {
    root: Rc<OwnedFd>,
    /// Whether owners and overlay's trusted attributes can be set.
    is_root: bool,
    /// The folder that the last entry went into: most entries follow their sisters.
    last: Option<(Vec<Name>, Rc<OwnedFd>)>,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Tree {
    pub(super) fn open(path: &Path, is_root: bool) -> io::Result<Self> {
        Ok(Self { root: Rc::new(open(path, FOLDER, Mode::empty())?), is_root, last: None })
    }

    /// Sets the root folder's own attributes.
    pub(super) fn root(&self, attributes: &Attributes) -> io::Result<()> {
        self.own(self.root.as_fd(), b".", attributes)?;
        Ok(fchmod(&self.root, self.folder_mode(attributes.mode))?)
    }

    /// Makes a folder, or changes the one that is there.
    pub(super) fn folder(
        &mut self,
        parents: &[Name],
        name: &Name,
        attributes: &Attributes,
    ) -> io::Result<()> {
        let parent = self.parent(parents)?;
        let mut hides = false;
        match statat(&parent, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode).is_dir() => {}
            Ok(found) => {
                // What lies below stays hidden behind a folder in a whiteout's place.
                hides = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice;
                unlinkat(&parent, name.as_slice(), AtFlags::empty())?;
                mkdirat(&parent, name.as_slice(), Mode::from_raw_mode(0o755))?;
            }
            Err(Errno::NOENT) => mkdirat(&parent, name.as_slice(), Mode::from_raw_mode(0o755))?,
            Err(error) => return Err(error.into()),
        }
        self.own(parent.as_fd(), name, attributes)?;
        let folder = openat(&parent, name.as_slice(), FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        fchmod(&folder, self.folder_mode(attributes.mode))?;
        if hides { self.make_opaque(&folder) } else { Ok(()) }
    }

    /// Makes an empty file.
    pub(super) fn file(&mut self, parents: &[Name], name: &Name) -> io::Result<File> {
        let parent = self.clear(parents, name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&parent, name.as_slice(), flags, Mode::from_raw_mode(0o600))?))
    }

    /// Gives a written file its attributes. Nothing in a sandbox may gain rights by a file's mode, and the host's users
    /// must not either.
    pub(super) fn finish_file(&self, file: &File, attributes: &Attributes) -> io::Result<()> {
        if self.is_root {
            rustix::fs::fchown(file, attributes.uid.map(Uid::from_raw), attributes.gid.map(Gid::from_raw))?;
        }
        fchmod(file, Mode::from_raw_mode(attributes.mode & 0o1777))?;
        Ok(futimens(file, &times(attributes.mtime))?)
    }

    /// Makes a symbolic link, whatever it says: it is followed in sandboxes alone.
    pub(super) fn symlink(
        &mut self,
        parents: &[Name],
        name: &Name,
        target: &[u8],
        attributes: &Attributes,
    ) -> io::Result<()> {
        let parent = self.clear(parents, name)?;
        symlinkat(target, &parent, name.as_slice())?;
        self.own(parent.as_fd(), name, attributes)?;
        Ok(utimensat(&parent, name.as_slice(), &times(attributes.mtime), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Makes another name of a file of this layer.
    pub(super) fn hard_link(&mut self, parents: &[Name], name: &Name, target: &[Name]) -> io::Result<()> {
        let (target_name, folders) = target.split_last().ok_or_else(|| bad("a hard link to the root"))?;
        if (folders, target_name) == (parents, name) {
            return Ok(());
        }
        let from = self.existing(folders)?;
        let parent = self.clear(parents, name)?;
        linkat(&from, target_name.as_slice(), &parent, name.as_slice(), AtFlags::empty()).map_err(|error| {
            let target = String::from_utf8_lossy(&target.join(&b'/')).into_owned();
            io::Error::new(io::Error::from(error).kind(), format!("hard link to {target}: {error}"))
        })
    }

    pub(super) fn fifo(&mut self, parents: &[Name], name: &Name, attributes: &Attributes) -> io::Result<()> {
        let parent = self.clear(parents, name)?;
        let mode = Mode::from_raw_mode(attributes.mode & 0o777);
        mknodat(&parent, name.as_slice(), FileType::Fifo, mode, 0)?;
        self.own(parent.as_fd(), name, attributes)
    }

    /// Hides what lower layers have under a name.
    pub(super) fn hide(&mut self, parents: &[Name], name: &[u8]) -> io::Result<()> {
        let parent = self.parent(parents)?;
        match mknodat(&parent, name, FileType::CharacterDevice, Mode::empty(), 0) {
            // What this layer itself has there is not meant; but a folder no longer shows what is below.
            Err(Errno::EXIST) => match openat(&parent, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(folder) => self.make_opaque(&folder),
                Err(_) => Ok(()),
            },
            other => Ok(other?),
        }
    }

    /// Hides everything that lower layers have in a folder.
    pub(super) fn hide_all(&mut self, parents: &[Name]) -> io::Result<()> {
        let folder = self.parent(parents)?;
        self.make_opaque(&folder)
    }

    fn make_opaque(&self, folder: &OwnedFd) -> io::Result<()> {
        let name = if self.is_root { "trusted.overlay.opaque" } else { "user.overlay.opaque" };
        Ok(fsetxattr(folder, name, b"y", XattrFlags::empty())?)
    }

    /// The folder of a new entry, without what lay at its name before.
    fn clear(&mut self, parents: &[Name], name: &Name) -> io::Result<Rc<OwnedFd>> {
        let parent = self.parent(parents)?;
        match unlinkat(&parent, name.as_slice(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(parent),
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        self.last = None;
        let folder = openat(&parent, name.as_slice(), FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        empty(&folder, 0)?;
        unlinkat(&parent, name.as_slice(), AtFlags::REMOVEDIR)?;
        Ok(parent)
    }

    /// Opens a folder; one that has no entry of its own is made.
    fn parent(&mut self, names: &[Name]) -> io::Result<Rc<OwnedFd>> {
        if let Some((last, folder)) = &self.last
            && last == names
        {
            return Ok(folder.clone());
        }
        let mut folder = match self.existing(names) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut folder = self.root.clone();
                for depth in 1..=names.len() {
                    let made = mkdirat(&folder, names[depth - 1].as_slice(), Mode::from_raw_mode(0o755));
                    if !matches!(made, Ok(()) | Err(Errno::EXIST)) {
                        made?;
                    }
                    folder = self.existing(&names[..depth])?;
                }
                folder
            }
            Err(error) => return Err(error),
        };
        if names.is_empty() {
            folder = self.root.clone();
        }
        self.last = Some((names.to_vec(), folder.clone()));
        Ok(folder)
    }

    fn existing(&self, names: &[Name]) -> io::Result<Rc<OwnedFd>> {
        if names.is_empty() {
            return Ok(self.root.clone());
        }
        let path = names.join(&b'/');
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Ok(Rc::new(openat2(&self.root, path.as_slice(), FOLDER, Mode::empty(), resolve)?))
    }

    fn own(&self, parent: impl AsFd, name: &[u8], attributes: &Attributes) -> io::Result<()> {
        if !self.is_root {
            return Ok(());
        }
        let (uid, gid) = (attributes.uid.map(Uid::from_raw), attributes.gid.map(Gid::from_raw));
        Ok(chownat(parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// An ordinary user must be able to go on unpacking, and to remove it.
    fn folder_mode(&self, mode: u32) -> Mode {
        let own = if self.is_root { 0 } else { 0o700 };
        Mode::from_raw_mode(mode & 0o1777 | own)
    }
}

/// Removes what a folder holds, never through a link.
fn empty(folder: &OwnedFd, depth: usize) -> io::Result<()> {
    if depth > 1000 {
        return Err(bad("folders are nested too deeply"));
    }
    let entries: Vec<_> = rustix::fs::Dir::read_from(folder)?.collect::<Result<_, _>>()?;
    for entry in entries {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::ISDIR | Errno::PERM) => {
                empty(&openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?, depth + 1)?;
                unlinkat(folder, name, AtFlags::REMOVEDIR)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn times(seconds: i64) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}
