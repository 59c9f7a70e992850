//! Whether the memory limit killed something.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Where a container sees the events of its own control group: version 1, version 2.
const INSIDE: [&str; 2] = ["/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"];

/// Counts kills by the memory limit of a control group. Both versions have a line `oom_kill N`.
pub struct OomCounter(Option<File>);

impl OomCounter {
    /// Counts by an open `memory.oom_control` or `memory.events`, or by what a container sees of its own.
    pub fn new(events: Option<File>) -> Self {
        Self(events.or_else(|| INSIDE.iter().find_map(|path| File::open(path).ok())))
    }

    /// Kills so far; 0 where nothing counts them.
    pub fn kills(&self) -> u64 {
        let mut bytes = [0; 1024];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut bytes, 0).ok()).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..read]);
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        for (text, kills) in [
            ("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3),
            ("low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n", 1),
            ("", 0),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(OomCounter::new(Some(file.reopen().unwrap())).kills(), kills);
        }
    }
}
