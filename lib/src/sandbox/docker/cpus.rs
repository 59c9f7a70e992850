//! The CPUs of the engine's machine, and how a container is told its own.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::engine::Engine;
use crate::sandbox::limits::Lease;
use crate::sandbox::namespaces::unique;

/// Where the C library counts CPUs: there Docker shows those of the host, whatever a container may run on.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// What an engine's machine has.
pub(super) struct Cpus {
    /// Numbered from zero.
    count: u32,
    /// Whether it is this machine, so that files of it can be shown.
    pub local: bool,
}

impl Cpus {
    /// Asks the engine: Docker and Podman name things differently.
    pub(super) async fn of(engine: &Engine) -> Option<Self> {
        for format in ["{{.NCPU}} {{.Name}}", "{{.Host.CPUs}} {{.Host.Hostname}}"] {
            let Ok(answer) = engine.run("ask for its CPUs", &["info", "--format", format]).await else {
                continue;
            };
            let parsed = answer.split_once(' ').and_then(|(count, name)| Some((count.parse().ok()?, name)));
            if let Some((count, name)) = parsed {
                let own = rustix::system::uname();
                return Some(Self { count, local: own.nodename().to_str() == Ok(name) });
            }
        }
        None
    }

    /// Lends as many as a limit needs.
    pub(super) fn lend(&self, limit: f64) -> Lease {
        Lease::of(&(0..self.count).collect::<Vec<_>>(), limit)
    }

    /// The flags that keep a container to these; none where it has them all.
    pub(super) fn flags(&self, lease: &Lease, cache: &Path) -> io::Result<Vec<String>> {
        let cpus = lease.cpus();
        if cpus.is_empty() || u32::try_from(cpus.len()) == Ok(self.count) {
            return Ok(Vec::new());
        }
        let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut flags = vec![format!("--cpuset-cpus={list}")];
        if self.local {
            let shown = shown(&list, cache)?;
            flags.push(format!("--mount=type=bind,\"source={}\",target={ONLINE},readonly", shown.display()));
        }
        Ok(flags)
    }
}

/// A file that holds this list, made once.
fn shown(list: &str, cache: &Path) -> io::Result<PathBuf> {
    let folder = cache.join("cpus");
    let path = folder.join(list);
    if !path.exists() {
        fs::create_dir_all(&folder)?;
        let new = folder.join(unique());
        fs::write(&new, format!("{list}\n"))?;
        fs::rename(&new, &path)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_kept_to_its_cpus_and_told_so() {
        let cache = tempfile::tempdir().unwrap();
        let cpus = Cpus { count: 4, local: true };
        let flags = cpus.flags(&Lease::of(&[2, 3], 2.0), cache.path()).unwrap();
        assert_eq!(flags[0], "--cpuset-cpus=2,3");
        assert!(
            flags[1].ends_with("/cpus/2,3\",target=/sys/devices/system/cpu/online,readonly"),
            "{flags:?}"
        );
        assert_eq!(fs::read_to_string(cache.path().join("cpus/2,3")).unwrap(), "2,3\n");
        let away = Cpus { count: 4, local: false };
        assert_eq!(away.flags(&Lease::of(&[1], 1.0), cache.path()).unwrap(), ["--cpuset-cpus=1"]);
        assert!(cpus.flags(&cpus.lend(9.0), cache.path()).unwrap().is_empty());
    }
}
