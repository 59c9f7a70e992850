//! Files that may hold runs.

use std::io;
use std::path::{Path, PathBuf};

/// The endings of files in a folder that are looked at; a file that is named itself is, whatever its ending.
const ENDINGS: [&str; 4] = [".traj.json", ".traj", ".atif.json", ".jsonl"];

/// The file itself, or every file below a folder that may hold runs, in the order of their names.
pub fn find(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if path.is_dir() {
        walk(path, &mut files)?;
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), files)?;
        } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// A file's name without the ending that says what it is.
pub fn stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = ENDINGS.iter().chain(&[".json"]).find_map(|ending| name.strip_suffix(ending));
    stem.unwrap_or(&name).to_owned()
}
