//! Where the control groups are mounted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The mounted hierarchies.
#[derive(Debug, PartialEq, Eq)]
pub struct Hierarchies {
    /// Version 2.
    pub unified: Option<PathBuf>,
    /// Version 1: the folder of each controller.
    pub controllers: BTreeMap<String, PathBuf>,
}

/// Reads the lines of `/proc/self/mountinfo`; `top` stands before every path.
pub fn hierarchies(mounts: &str, top: &Path) -> Hierarchies {
    let mut found = Hierarchies { unified: None, controllers: BTreeMap::new() };
    for line in mounts.lines() {
        // ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [OPTIONAL…] - TYPE SOURCE SUPEROPTIONS
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let Some(place) = left.split(' ').nth(4) else { continue };
        let mut right = right.split(' ');
        let (kind, options) = (right.next().unwrap_or_default(), right.nth(1).unwrap_or_default());
        let place = top.join(place.replace("\\040", " ").trim_start_matches('/'));
        match kind {
            "cgroup2" => found.unified = Some(place),
            "cgroup" => found
                .controllers
                .extend(options.split(',').map(|controller| (controller.to_owned(), place.clone()))),
            _ => {}
        }
    }
    found
}

/// This process's own group of version 2, of the lines of `/proc/self/cgroup`.
pub fn own_unified(own: &str) -> PathBuf {
    let path = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    PathBuf::from(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found() {
        let mounts = "\
22 1 0:20 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
23 1 0:21 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
24 1 0:22 / /sys/fs/cgroup/uni\\040fied rw - cgroup2 cgroup2 rw,nsdelegate
25 1 8:1 / / rw - ext4 /dev/vda rw
";
        let found = hierarchies(mounts, Path::new("/top"));
        assert_eq!(found.unified.unwrap(), Path::new("/top/sys/fs/cgroup/uni fied"));
        assert_eq!(found.controllers["cpu"], Path::new("/top/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(found.controllers["memory"], Path::new("/top/sys/fs/cgroup/memory"));
    }

    #[test]
    fn the_own_group_is_found() {
        assert_eq!(own_unified("4:memory:/x\n0::/user.slice/a.scope\n"), Path::new("user.slice/a.scope"));
        assert_eq!(own_unified(""), Path::new(""));
    }
}
