//! The runner's program, carried inside memtrial and laid into the cache folder once.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fs_err as fs;

/// Built by `build.rs`: static, so that it runs on any root file system.
pub(super) static RUNNER: &[u8] = include_bytes!(env!("MEMTRIAL_RUNNER"));

/// The path of the runner under `cache`, written there if it is not yet, under a name that tells its content.
pub fn runner(cache: &Path) -> io::Result<PathBuf> {
    let folder = cache.join("runner");
    let path = folder.join(env!("MEMTRIAL_RUNNER_DIGEST"));
    if fs::metadata(&path).is_ok_and(|found| found.len() == RUNNER.len() as u64) {
        return Ok(path);
    }
    fs::create_dir_all(&folder)?;
    let mut file = tempfile::NamedTempFile::new_in(&folder)?;
    file.write_all(RUNNER)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o755))?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_is_laid_out_once_and_runs() {
        let cache = tempfile::tempdir().unwrap();
        let path = runner(cache.path()).unwrap();
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(runner(cache.path()).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
        assert_eq!(fs::read_dir(cache.path().join("runner")).unwrap().count(), 1);
        let output = std::process::Command::new(path).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage: memtrial-runner"));
    }
}
