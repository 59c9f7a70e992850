//! Where a program runs and what it finds there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::settings::ProgramSettings;
use crate::sandbox::{Attached, Backend, Image, Limits, Mount, Network, Program, SandboxError, Spec};

/// Where plugged-in systems run.
#[derive(Clone)]
pub struct Site {
    /// The sandboxes. `local` isolates nothing: for programs that one trusts.
    pub backend: Arc<dyn Backend>,
    /// The folder for the systems' state while they live.
    pub state: PathBuf,
    /// What one program with all that it starts may use.
    pub limits: Limits,
    /// The way to a model; `None`: there is none, and no address of one in the environment.
    pub calls: Option<super::Calls>,
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("backend", &self.backend.name()).field("state", &self.state).finish()
    }
}

impl Site {
    /// Whether programs are kept from the rest of the machine.
    pub(super) fn isolates(&self) -> bool {
        self.backend.name() != "local"
    }

    /// The state folder as the program sees it: always the same, so that nothing of this machine enters the store.
    pub(super) fn state_inside(&self, state: &Path) -> PathBuf {
        if self.isolates() { PathBuf::from("/memory") } else { state.to_owned() }
    }
}

/// Starts a program.
pub(super) async fn start(
    settings: &ProgramSettings,
    site: &Site,
    state: &Path,
    gateway: Option<PathBuf>,
    more: BTreeMap<String, String>,
) -> Result<Attached, SandboxError> {
    let inside = site.state_inside(state);
    let text = inside.display().to_string();
    let (argv, shown) = command(&settings.command);
    let mut mounts: Vec<PathBuf> = shown.into_iter().chain(settings.mounts.iter().cloned()).collect();
    mounts.sort();
    // One below another is seen already.
    mounts.dedup_by(|next, kept| next.starts_with(&*kept));
    let mounts = mounts.into_iter().map(|path| Mount { inside: path.clone(), host: path });
    let mut env = BTreeMap::from([
        ("HOME".to_owned(), text.clone()),
        ("TMPDIR".to_owned(), format!("{text}/tmp")),
        ("XDG_CACHE_HOME".to_owned(), format!("{text}/tmp/cache")),
        ("PYTHONUNBUFFERED".to_owned(), "1".to_owned()),
        ("MEMTRIAL_STATE".to_owned(), text.clone()),
    ]);
    env.extend(more);
    env.extend(settings.env.iter().map(|(name, value)| (name.clone(), value.replace("{{ state }}", &text))));
    let program = Program { argv, cwd: text, env, writable: Mount { host: state.to_owned(), inside } };
    let spec = Spec {
        image: Image::Host,
        limits: site.limits.clone(),
        network: Network::None,
        mounts: if site.isolates() { mounts.collect() } else { Vec::new() },
        keep: false,
        gateway: gateway.filter(|_| site.isolates()),
    };
    site.backend.attach(&spec, &program).await
}

/// The command with absolute paths, and what of the host it needs to see.
fn command(words: &[String]) -> (Vec<String>, Vec<PathBuf>) {
    let mut shown = Vec::new();
    let mut word = |(place, word): (usize, &String)| {
        let path = Path::new(word);
        if !word.contains('/') || !path.is_file() {
            return word.clone();
        }
        let Ok(path) = std::path::absolute(path) else { return word.clone() };
        match environment(&path).filter(|_| place == 0) {
            Some(folders) => shown.extend(folders),
            None if is_there(&path) => {}
            None => shown.push(path.clone()),
        }
        path.display().to_string()
    };
    let argv = words.iter().enumerate().map(&mut word).collect();
    (argv, shown)
}

/// Whether sandboxes see this anyway.
fn is_there(path: &Path) -> bool {
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/dev", "/sys"]
        .iter()
        .any(|top| path.starts_with(top))
}

/// The Python environment that a program belongs to, and the installation that the environment was made from.
fn environment(program: &Path) -> Option<Vec<PathBuf>> {
    let bin = program.parent()?;
    let folder = bin.parent().filter(|folder| folder.join("pyvenv.cfg").is_file())?;
    let python = fs_err::canonicalize(bin.join("python")).ok();
    let base = python.as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned);
    Some([folder.to_owned()].into_iter().chain(base.filter(|base| !is_there(base))).collect())
}
