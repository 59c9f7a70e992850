//! Whose a container is: a label names the process that made it, so that what a dead process left can be told from
//! what a live one uses.

use fs_err as fs;

/// The label on every container.
pub(super) const LABEL: &str = "memtrial.owner";

/// A process: this boot of this machine, its process namespace, its number and when it started.
#[derive(Debug, PartialEq, Eq)]
struct Owner<'a> {
    place: &'a str,
    pid: u32,
    started: &'a str,
}

/// This process's label.
pub(super) fn own() -> String {
    let pid = std::process::id();
    format!("{}.{pid}.{}", place(), started(pid).unwrap_or_default())
}

/// Whether the label's process is known to be dead. One of another machine or namespace never is.
pub(super) fn is_dead(label: &str) -> bool {
    let place = place();
    parse(label).is_some_and(|owner| {
        owner.place == place && started(owner.pid).is_none_or(|started| started != owner.started)
    })
}

fn parse(label: &str) -> Option<Owner<'_>> {
    let mut parts = label.rsplitn(3, '.');
    let (started, pid, place) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Owner { place, pid: pid.parse().ok()?, started })
}

fn place() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace =
        fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string()).unwrap_or_default();
    let digits: String = namespace.chars().filter(char::is_ascii_digit).collect();
    format!("{}-{digits}", boot.trim())
}

/// When a process started, in ticks since boot: field 22 of its `stat`.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_of_this_place_that_is_gone_is_dead() {
        let own = own();
        assert!(!is_dead(&own));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let started = started(child.id()).unwrap();
        let label = format!("{}.{}.{started}", place(), child.id());
        child.wait().unwrap();
        assert!(is_dead(&label));
        assert!(!is_dead(&label.replacen(&place(), "elsewhere-1", 1)));
        assert!(!is_dead("garbage"));
        // The same number, but another process.
        assert!(is_dead(&format!("{}.{}.1", place(), std::process::id())));
    }
}
