//! What bounds a sandbox, and the least that one can work with.

mod cpus;

use serde::{Deserialize, Serialize};

pub(super) use cpus::Lease;

/// Bounds on everything that runs in one sandbox together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Memory in bytes.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u32,
    /// CPUs, fractions allowed. A sandbox runs on as many, rounded up, and sees no more; a fraction bounds their time
    /// besides.
    pub cpus: f64,
    /// Bytes that may be written. They bound the files, folders and links written as well: [`Limits::entries`].
    pub disk: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 4 << 30, processes: 1024, cpus: 2.0, disk: 8 << 30 }
    }
}

/// Less memory does not hold a shell and the runner.
const LEAST_MEMORY: u64 = 16 << 20;
/// The runner, a shell and a pipe or two.
const LEAST_PROCESSES: u32 = 8;
/// The shortest share of a scheduling period that the kernel takes.
const LEAST_CPUS: f64 = 0.01;
/// What a system needs to write before a task writes anything.
const LEAST_DISK: u64 = 1 << 20;

/// On average a written file holds at least a block.
const BYTES_PER_ENTRY: u64 = 4096;
/// A small disk still holds the files of a small repository.
const LEAST_ENTRIES: u64 = 16_384;

impl Limits {
    /// How many files, folders and links may be written: one for every 4 KiB of [`Limits::disk`], and at least 16,384.
    #[must_use]
    pub fn entries(&self) -> u64 {
        (self.disk / BYTES_PER_ENTRY).max(LEAST_ENTRIES)
    }

    /// Whether a sandbox can work within these limits.
    ///
    /// # Errors
    /// The field, its value and the least that it may be, as a person reads it.
    pub fn check(&self) -> Result<(), String> {
        let too_small = |field: &str, value: &dyn std::fmt::Display, least: &dyn std::fmt::Display| {
            Err(format!("{field} = {value}: the least is {least}"))
        };
        if self.memory < LEAST_MEMORY {
            return too_small("memory", &self.memory, &format_args!("{LEAST_MEMORY} bytes (16 MiB)"));
        }
        if self.processes < LEAST_PROCESSES {
            return too_small("processes", &self.processes, &LEAST_PROCESSES);
        }
        if !self.cpus.is_finite() {
            return Err(format!("cpus = {}: it must be a number of at least {LEAST_CPUS}", self.cpus));
        }
        if self.cpus < LEAST_CPUS {
            return too_small("cpus", &self.cpus, &LEAST_CPUS);
        }
        if self.disk < LEAST_DISK {
            return too_small("disk", &self.disk, &format_args!("{LEAST_DISK} bytes (1 MiB)"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_nothing_can_work_within_are_named() {
        let with = |change: fn(&mut Limits)| {
            let mut limits = Limits::default();
            change(&mut limits);
            limits.check().err().unwrap_or_default()
        };
        insta::assert_snapshot!([
            with(|limits| limits.memory = (16 << 20) - 1),
            with(|limits| limits.processes = 7),
            with(|limits| limits.cpus = 0.0),
            with(|limits| limits.cpus = -1.0),
            with(|limits| limits.cpus = f64::NAN),
            with(|limits| limits.cpus = f64::INFINITY),
            with(|limits| limits.disk = (1 << 20) - 1),
        ].join("\n"), @r"
        memory = 16777215: the least is 16777216 bytes (16 MiB)
        processes = 7: the least is 8
        cpus = 0: the least is 0.01
        cpus = -1: the least is 0.01
        cpus = NaN: it must be a number of at least 0.01
        cpus = inf: it must be a number of at least 0.01
        disk = 1048575: the least is 1048576 bytes (1 MiB)
        ");
        let least = Limits { memory: 16 << 20, processes: 8, cpus: 0.01, disk: 1 << 20 };
        assert_eq!((least.check(), Limits::default().check()), (Ok(()), Ok(())));
    }
}
