//! Signs of life: a file that changes, and how long a watcher has seen it unchanged.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::grade::files::OutError;
use crate::study::StudyError;

/// Beats a lease.
const BEATS: u32 = 6;

/// Changes a file for as long as it lives. A thread of its own: nothing that the process is busy with delays it.
pub(super) struct Heart {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heart {
    pub(super) fn start(path: PathBuf, lease: Duration) -> Result<Self, StudyError> {
        std::fs::write(&path, "0\n").map_err(|error| OutError::new(&path, error))?;
        let (stop, stopped) = channel();
        let beat = move || {
            let mut count = 0_u64;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(lease / BEATS) {
                count += 1;
                // a beat that cannot be written is missed: others may take over, which is right then
                let _ = std::fs::write(&path, format!("{count}\n"));
            }
        };
        let thread = std::thread::Builder::new().name("heartbeat".into()).spawn(beat);
        let thread =
            thread.map_err(|source| StudyError::Worker { reason: format!("no heartbeat: {source}") })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // it ends by itself
            let _ = thread.join();
        }
    }
}

/// How long ago a heartbeat was written, by the clocks of the file's machine and of this one: for people.
pub(super) fn age(path: &Path) -> Option<Duration> {
    let changed = std::fs::metadata(path).and_then(|file| file.modified()).ok()?;
    Some(changed.elapsed().unwrap_or_default())
}

/// What a watcher has seen of one heartbeat. Only its own monotonic clock counts, so clocks that differ or go back do
/// no harm.
#[derive(Debug, Default)]
pub(super) struct Watch {
    seen: Option<(Vec<u8>, Instant)>,
    unchanged: Duration,
}

/// What one look adds at most: a watcher that was suspended itself has not been watching.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

impl Watch {
    /// Looks, and says how long the file has been seen unchanged.
    pub(super) fn silent(&mut self, path: &Path) -> Duration {
        self.look(std::fs::read(path).unwrap_or_default(), Instant::now())
    }

    fn look(&mut self, content: Vec<u8>, now: Instant) -> Duration {
        self.unchanged = match &self.seen {
            Some((before, at)) if *before == content => {
                self.unchanged + now.saturating_duration_since(*at).min(LONGEST_LOOK)
            }
            _ => Duration::ZERO,
        };
        self.seen = Some((content, now));
        self.unchanged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_what_was_watched() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(watch.look(b"1".to_vec(), at(0)), Duration::ZERO);
        assert_eq!(watch.look(b"1".to_vec(), at(3)), Duration::from_secs(3));
        // an hour in which nobody looked counts as one look
        assert_eq!(watch.look(b"1".to_vec(), at(3603)), Duration::from_secs(8));
        assert_eq!(watch.look(b"2".to_vec(), at(3604)), Duration::ZERO);
    }

    #[test]
    fn a_heart_beats_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("heartbeat-1");
        let heart = Heart::start(path.clone(), Duration::from_millis(12)).unwrap();
        let began = Instant::now();
        while std::fs::read_to_string(&path).unwrap().trim().parse().unwrap_or(0) < 3 {
            assert!(began.elapsed() < Duration::from_secs(60), "no heartbeat");
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(heart);
        let last = std::fs::read(&path).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(std::fs::read(&path).unwrap(), last);
    }
}
