//! Layers as builders make them, and as an attacker would.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use fs_err as fs;
use memtrial_testkit::image::{Compression, Layer, digest};
use tar::EntryType;

use super::*;

/// A folder to unpack into, beside a file that nothing may touch.
struct Place {
    top: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("layer")).unwrap();
        fs::write(top.path().join("secret"), "mine").unwrap();
        Self { top }
    }

    fn layer(&self) -> PathBuf {
        self.top.path().join("layer")
    }

    fn unpack(&self, layer: &Layer) -> io::Result<Unpacked> {
        let (bytes, _) = layer.blob().unwrap();
        let unpacked = unpack(bytes.as_slice(), &self.layer(), &mut |_| Ok(()));
        assert_eq!(fs::read_to_string(self.top.path().join("secret")).unwrap(), "mine");
        let beside: Vec<_> = fs::read_dir(self.top.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(beside.len(), 2, "{beside:?}");
        unpacked
    }
}

#[test]
fn a_layer_is_unpacked_whatever_its_compression() {
    for compression in [Compression::Gzip, Compression::Zstd, Compression::None] {
        let place = Place::new();
        let layer = Layer::new()
            .folder("./")
            .folder("usr/")
            .file("usr/run", b"#!/bin/sh\n", 0o4755)
            .symlink("bin", "usr")
            .hard_link("again", "usr/run")
            .file("bin/through", b"link", 0o644)
            .compressed(compression);
        let unpacked = place.unpack(&layer).unwrap();
        assert_eq!(unpacked.diff_id, digest(&layer.archive()));
        let run = fs::metadata(place.layer().join("usr/run")).unwrap();
        assert_eq!(run.permissions().mode() & 0o7777, 0o755, "no set-user-id bit is kept");
        assert_eq!((run.mtime(), run.nlink()), (1_700_000_000, 2));
        assert_eq!(fs::read_to_string(place.layer().join("usr/through")).unwrap(), "link");
        assert!(unpacked.bytes >= 3 * BLOCK, "{unpacked:?}");
    }
}

#[test]
fn nothing_is_written_outside() {
    let (top, link) = ("../secret", EntryType::Symlink);
    let hostile = [
        Layer::new().file("../secret", b"theirs", 0o644),
        Layer::new().file("a/../../secret", b"theirs", 0o644),
        Layer::new().hard_link("x", "../secret"),
        Layer::new().symlink("up", "..").hard_link("x", "up/secret"),
        Layer::new().file(".wh...", b"", 0o644),
    ];
    for layer in hostile {
        assert!(Place::new().unpack(&layer).is_err());
    }
    // These are harmless: what they name lies in the layer.
    let confined = [
        Layer::new().file("/secret", b"inside", 0o644),
        Layer::new().symlink("up", "..").file("up/secret", b"inside", 0o644),
        Layer::new().entry("up", link, 0o777, b"", Some("/")).file("up/secret", b"inside", 0o644),
        Layer::new().symlink("secret", top).file("secret", b"inside", 0o644),
    ];
    for layer in confined {
        let place = Place::new();
        place.unpack(&layer).unwrap();
        let inside = place.layer().join("secret");
        assert!(fs::symlink_metadata(&inside).unwrap().is_file());
        assert_eq!(fs::read_to_string(inside).unwrap(), "inside");
    }
}

#[test]
fn a_link_to_a_file_outside_is_replaced_and_a_folder_through_one_refused() {
    let place = Place::new();
    let outside = place.top.path().display().to_string();
    let error =
        place.unpack(&Layer::new().symlink("d", &outside).file("d/secret", b"theirs", 0o644)).unwrap_err();
    assert!(error.to_string().starts_with("d/secret: "), "{error}");
}

#[test]
fn devices_are_left_out_and_odd_kinds_harmless() {
    let place = Place::new();
    let layer = Layer::new()
        .entry("disk", EntryType::Block, 0o666, b"", None)
        .entry("zero", EntryType::Char, 0o666, b"", None)
        .entry("pipe", EntryType::Fifo, 0o644, b"", None)
        .file("after", b"1", 0o644);
    place.unpack(&layer).unwrap();
    let mut names: Vec<_> = fs::read_dir(place.layer()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["after", "pipe"]);
}

#[test]
fn whiteouts_become_the_overlays_own() {
    let place = Place::new();
    let layer = Layer::new()
        .folder("d")
        .file("d/.wh..wh..opq", b"", 0o644)
        .file("d/new", b"", 0o644)
        .file(".wh.gone", b"", 0o644)
        .file(".wh.again", b"", 0o644)
        .folder("again")
        .file(".wh..wh.plnk", b"", 0o644);
    place.unpack(&layer).unwrap();
    let gone = fs::symlink_metadata(place.layer().join("gone")).unwrap();
    assert_eq!((gone.mode() & 0o170_000, gone.rdev()), (0o020_000, 0));
    for (folder, opaque) in [("d", true), ("again", true), (".", false)] {
        let name = if rustix::process::geteuid().is_root() { "trusted" } else { "user" };
        let mut value = [0; 8];
        let path = place.layer().join(folder);
        let found = rustix::fs::getxattr(&path, format!("{name}.overlay.opaque"), &mut value);
        assert_eq!(found.is_ok(), opaque, "{folder}");
    }
    assert!(!place.layer().join(".wh..wh.plnk").exists());
}

#[test]
fn a_later_entry_takes_the_place_of_an_earlier_one() {
    let place = Place::new();
    let layer = Layer::new()
        .file("d/deep/file", b"1", 0o644)
        .file("d", b"now a file", 0o644)
        .symlink("e", "d")
        .folder("e")
        .file("e/file", b"2", 0o644);
    place.unpack(&layer).unwrap();
    assert_eq!(fs::read_to_string(place.layer().join("d")).unwrap(), "now a file");
    assert_eq!(fs::read_to_string(place.layer().join("e/file")).unwrap(), "2");
}

#[test]
fn bytes_are_asked_for_before_they_are_written() {
    let bomb = Layer::new().file("zeros", &vec![0; 32 << 20], 0o644);
    let (bytes, _) = bomb.blob().unwrap();
    assert!(bytes.len() < 1 << 20);
    let place = Place::new();
    let error = unpack(bytes.as_slice(), &place.layer(), &mut |bytes| match bytes {
        0..8_388_608 => Ok(()),
        _ => Err(io::Error::other("no room")),
    });
    assert!(error.unwrap_err().to_string().contains("no room"));
    assert!(fs::metadata(place.layer().join("zeros")).unwrap().len() <= 8 << 20);
}

#[test]
fn a_header_that_would_fill_the_memory_is_refused() {
    let long = vec![b'x'; 8 << 20];
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let layer = Layer::new().entry("././@LongLink", kind, 0o644, &long, None).file("f", b"", 0o644);
        let error = Place::new().unpack(&layer).unwrap_err().to_string();
        assert!(error.contains("longer than 2 MiB"), "{error}");
    }
}

#[test]
fn what_is_cut_or_no_archive_is_refused() {
    let (bytes, _) = Layer::new().file("f", &[7; 100_000], 0o644).blob().unwrap();
    let place = Place::new();
    assert!(unpack(&bytes[..bytes.len() / 2], &place.layer(), &mut |_| Ok(())).is_err());
    assert!(unpack([b'x'; 2000].as_slice(), &Place::new().layer(), &mut |_| Ok(())).is_err());
}
