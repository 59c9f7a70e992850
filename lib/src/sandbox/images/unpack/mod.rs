//! From a layer's archive to a folder that an overlay can be made of.
//!
//! Layers come from strangers. Every path is resolved below the layer's own folder by the kernel (`openat2` with
//! `RESOLVE_IN_ROOT`), so that no `..`, absolute path or link of the layer reaches outside; device files are left out,
//! set-user-id bits dropped; bytes are counted while they are written, also those of sparse files.

#[cfg(test)]
mod tests;
mod tree;

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::path::Path;
use std::rc::Rc;

use sha2::{Digest, Sha256};
use tar::{Archive, Entry, EntryType};
use tree::{Attributes, Name, Tree};

/// A name, link or extended header longer than this is an attack.
const MOST_HEADER: u64 = 2 << 20;
/// More entries than any real layer has.
const MOST_ENTRIES: u64 = 8_000_000;
/// How often it is asked whether there is room.
const STEP: u64 = 1 << 20;
/// What a file takes on disk is rounded up to this.
const BLOCK: u64 = 4096;
/// What a layer takes besides its entries: its two folders and the file that holds its size.
const OWN: u64 = 3 * BLOCK;

/// Asked with the bytes on disk so far before more are written; an error ends the unpacking.
pub(in crate::sandbox) type Room<'a> = &'a mut dyn FnMut(u64) -> io::Result<()>;

/// What came of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox) struct Unpacked {
    /// The digest of the archive, without its compression.
    pub diff_id: String,
    /// Bytes on disk.
    pub bytes: u64,
}

/// Unpacks a layer (plain, gzip or zstd, told by its first bytes) into an empty folder. As root its owners are kept; for
/// an ordinary user everything is that user's, who is root in the sandbox.
///
/// # Errors
/// When it is no archive, would reach outside, or `room` says no.
pub(in crate::sandbox) fn unpack(layer: impl Read, folder: &Path, room: Room<'_>) -> io::Result<Unpacked> {
    let root = rustix::process::geteuid().is_root();
    let plain = decompress(layer)?;
    let allowance = Rc::new(Cell::new(MOST_HEADER));
    let metered = Metered { inner: plain, hash: Sha256::new(), allowance: allowance.clone() };
    let mut archive = Archive::new(metered);
    let mut work = Work { tree: Tree::open(folder, root)?, room, bytes: OWN, asked: 0 };
    let mut count = 0;
    for entry in archive.entries()? {
        let mut entry = entry?;
        count += 1;
        if count > MOST_ENTRIES {
            return Err(bad(format!("it holds more than {MOST_ENTRIES} entries")));
        }
        allowance.set(u64::MAX);
        work.entry(&mut entry)?;
        io::copy(&mut entry, &mut io::sink())?;
        allowance.set(MOST_HEADER);
    }
    // The digest is of everything, padding included.
    allowance.set(u64::MAX);
    let mut metered = archive.into_inner();
    io::copy(&mut metered, &mut io::sink())?;
    (work.room)(work.bytes)?;
    let digest = metered.hash.finalize();
    let diff_id = format!("sha256:{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    Ok(Unpacked { diff_id, bytes: work.bytes })
}

/// Undoes a layer's compression.
fn decompress<'a>(mut layer: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = Vec::new();
    layer.by_ref().take(4).read_to_end(&mut start)?;
    let gzip = start.starts_with(&[0x1f, 0x8b]);
    let zstd = start == [0x28, 0xb5, 0x2f, 0xfd];
    let whole = io::Cursor::new(start).chain(layer);
    Ok(match (gzip, zstd) {
        (true, _) => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        (_, true) => Box::new(zstd::stream::read::Decoder::new(whole)?),
        _ => Box::new(whole),
    })
}

fn bad(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// Counts and hashes what is read of an archive. Between entries only a little may be read: the archive reader keeps
/// names and extended headers in memory.
struct Metered<R> {
    inner: R,
    hash: Sha256,
    allowance: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let left = self.allowance.get().checked_sub(read as u64);
        self.allowance.set(left.ok_or_else(|| bad("a name or header in it is longer than 2 MiB"))?);
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

struct Work<'a> {
    tree: Tree,
    room: Room<'a>,
    bytes: u64,
    asked: u64,
}

impl Work<'_> {
    fn entry<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> io::Result<()> {
        let path = entry.path_bytes().into_owned();
        let placed = names(&path).and_then(|names| self.place(&names, entry));
        placed.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", shown(&path))))
    }

    fn place<R: Read>(&mut self, names: &[Name], entry: &mut Entry<'_, R>) -> io::Result<()> {
        let kind = entry.header().entry_type();
        let attributes = attributes(entry)?;
        let Some((name, parents)) = names.split_last() else {
            // The root folder itself.
            return if kind.is_dir() { self.tree.root(&attributes) } else { Ok(()) };
        };
        if let Some(hidden) = name.strip_prefix(b".wh.") {
            return match hidden {
                b".wh..opq" => self.tree.hide_all(parents),
                // Bookkeeping of an old storage driver.
                other if other.starts_with(b".wh.") => Ok(()),
                b"" | b"." | b".." => Err(bad("a whiteout without a name")),
                name => self.tree.hide(parents, name),
            };
        }
        match kind {
            EntryType::Directory => {
                self.grow(BLOCK)?;
                self.tree.folder(parents, name, &attributes)
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.grow(0)?;
                let file = self.tree.file(parents, name)?;
                self.fill(entry, &file)?;
                self.tree.finish_file(&file, &attributes)
            }
            EntryType::Symlink => {
                self.grow(0)?;
                let target = entry.link_name_bytes().ok_or_else(|| bad("a symbolic link to nothing"))?;
                self.tree.symlink(parents, name, &target, &attributes)
            }
            EntryType::Link => {
                let target = entry.link_name_bytes().ok_or_else(|| bad("a hard link to nothing"))?;
                let target = self::names(&target)?;
                self.tree.hard_link(parents, name, &target)
            }
            EntryType::Fifo => self.tree.fifo(parents, name, &attributes),
            // Device files are made by the sandbox, the few that it shows; other kinds are no files.
            _ => Ok(()),
        }
    }

    fn fill<R: Read>(&mut self, entry: &mut Entry<'_, R>, file: &std::fs::File) -> io::Result<()> {
        let mut out = file;
        let mut buffer = vec![0; 64 << 10];
        let mut written = 0_u64;
        loop {
            let read = entry.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            let before = written.div_ceil(BLOCK);
            written += read as u64;
            self.grow((written.div_ceil(BLOCK) - before) * BLOCK)?;
            out.write_all(&buffer[..read])?;
        }
    }

    /// Counts bytes that are about to be written.
    fn grow(&mut self, more: u64) -> io::Result<()> {
        self.bytes += more;
        if self.bytes >= self.asked {
            (self.room)(self.bytes)?;
            self.asked = self.bytes + STEP;
        }
        Ok(())
    }
}

fn attributes<R: Read>(entry: &mut Entry<'_, R>) -> io::Result<Attributes> {
    let header = entry.header();
    let number =
        |id: io::Result<u64>| id.ok().and_then(|id| u32::try_from(id).ok()).filter(|id| *id != u32::MAX);
    Ok(Attributes {
        mode: header.mode()?,
        uid: number(header.uid()),
        gid: number(header.gid()),
        mtime: i64::try_from(header.mtime().unwrap_or(0)).unwrap_or(0),
    })
}

/// The names of a path below the layer's root.
fn names(path: &[u8]) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(bad("it leads out of the layer")),
            part if part.contains(&0) => return Err(bad("its name holds a NUL")),
            part => names.push(part.to_vec()),
        }
    }
    Ok(names)
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).chars().take(200).collect()
}
