//! Removing what sandboxes left, whatever they did to its permissions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes a tree, whatever its folders' permissions.
pub fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_ok() || fs::remove_file(path).is_ok() {
        return;
    }
    open_up(path);
    let _ = fs::remove_dir_all(path);
}

/// Makes every folder of a tree one that its owner may change.
fn open_up(path: &Path) {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return;
    }
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_up(&entry.path());
    }
}
