//! Bounds on a sandbox as a whole: control groups of version 2 or 1, else resource limits.

mod cpus;
mod rlimits;
mod tree;
mod v1;
mod v2;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use memtrial_runner::enter::Bounds;

pub use cpus::{list as cpu_list, pin};
pub use rlimits::apply as apply_rlimits;

/// A way to bound a group of processes.
pub trait Limiter {
    /// What a person calls it.
    fn name(&self) -> &'static str;

    /// Makes a group with these bounds, and with these CPUs where the kernel lets it have CPUs of its own. Nothing is
    /// left behind where it fails.
    fn make(&self, id: &str, bounds: &Bounds, cpus: &[u32]) -> io::Result<Group>;
}

/// A group of processes with bounds.
#[derive(Debug)]
pub struct Group {
    /// Its folders, one a hierarchy.
    folders: Vec<PathBuf>,
    /// The file in each folder that a process enters by.
    entrance: &'static str,
    /// The file that counts kills by the memory limit.
    events: PathBuf,
}

impl Group {
    /// Moves this process in.
    pub fn enter(&self) -> io::Result<()> {
        self.folders.iter().try_for_each(|folder| fs::write(folder.join(self.entrance), "0"))
    }

    /// The folder that a process can be started in.
    pub fn unified(&self) -> Option<File> {
        (self.entrance == v2::ENTRANCE).then(|| File::open(self.folders.first()?).ok())?
    }

    /// The open counter of kills by the memory limit.
    pub fn events(&self) -> io::Result<File> {
        File::open(&self.events)
    }

    /// Its folders, for whoever clears up after a killed runner.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Removes the group once its processes are gone: the kernel may need a moment to see it empty.
    pub fn remove(&self) {
        for folder in &self.folders {
            for _ in 0..200 {
                match fs::remove_dir(folder) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Makes a group by the first way that works here; `None`: no control group can be written.
pub fn make(id: &str, bounds: &Bounds, cpus: &[u32]) -> Option<(&'static str, Group)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limiters = limiters(&mounts, &own, Path::new("/"));
    limiters.iter().find_map(|limiter| Some((limiter.name(), limiter.make(id, bounds, cpus).ok()?)))
}

/// What `/proc/self/mountinfo` and `/proc/self/cgroup` offer. `top` stands before every path.
fn limiters(mounts: &str, own: &str, top: &Path) -> Vec<Box<dyn Limiter>> {
    let hierarchies = tree::hierarchies(mounts, top);
    let mut found: Vec<Box<dyn Limiter>> = Vec::new();
    if let Some(root) = hierarchies.unified {
        found.push(Box::new(v2::V2 { root, own: tree::own_unified(own) }));
    }
    found.push(Box::new(v1::V1 { roots: hierarchies.controllers }));
    found
}

/// Removes what was made when a later step fails.
fn undo_on_error<T>(folders: &[PathBuf], made: io::Result<T>) -> io::Result<T> {
    if made.is_err() {
        for folder in folders {
            let _ = fs::remove_dir(folder);
        }
    }
    made
}
