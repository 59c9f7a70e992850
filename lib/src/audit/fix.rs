//! Taking away what can be taken away.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::{AuditError, Finding, Remedy, Subject, listing};
use crate::sandbox::environment::history::{History, strip_command, taken};
use crate::sandbox::{Exec, Sandbox};

/// What was taken away, a line each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fixed {
    /// Of the repository's history.
    pub history: Vec<String>,
    /// Files and folders.
    pub files: Vec<String>,
}

/// Strips the repository's history in a sandbox and removes the files that findings name. The sandbox is to be kept as
/// a new layer.
///
/// # Errors
/// When the repository cannot be stripped, or the sandbox fails.
pub async fn fix(
    sandbox: &mut dyn Sandbox,
    subject: &Subject<'_>,
    findings: &[Finding],
) -> Result<Fixed, AuditError> {
    let mut fixed = Fixed::default();
    if findings.iter().any(|finding| finding.remedy == Remedy::Strip) {
        let mut history = History::new(&mut *sandbox, &subject.workdir, subject.timeout);
        fixed.history = history.strip(subject.base.as_deref().unwrap_or_default()).await?;
    }
    for path in removals(findings) {
        let argv = ["rm", "-rf", "--", path].map(str::to_owned).into();
        let output = sandbox.exec(&Exec { argv, ..Exec::bash("", "/") }).await?;
        if !output.success() {
            return Err(AuditError::Failed {
                action: "removing a file",
                reason: output.text().trim().to_owned(),
            });
        }
        fixed.files.push(path.to_owned());
    }
    Ok(fixed)
}

/// The same in a folder of the host, in place. `inside` is the folder's place in the findings.
///
/// Killed at any moment it leaves a usable repository, and the same call goes on.
///
/// # Errors
/// When the repository cannot be stripped; it is left as it was then.
pub async fn fix_folder(
    folder: &Path,
    inside: &str,
    base: Option<&str>,
    findings: &[Finding],
) -> Result<Fixed, AuditError> {
    let mut fixed = Fixed::default();
    if findings.iter().any(|finding| finding.remedy == Remedy::Strip) {
        let failed = |reason: String| AuditError::Failed { action: "stripping the history", reason };
        let mut command = Command::new("sh");
        command.args(strip_command(base.unwrap_or_default())).current_dir(folder);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(|error| failed(format!("sh: {error}")))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        fixed.history = taken(&String::from_utf8_lossy(&output.stdout));
    }
    for path in removals(findings).filter(|path| listing::is_under(path, inside) && *path != inside) {
        let place: PathBuf = folder.join(path.strip_prefix(inside).unwrap_or(path).trim_start_matches('/'));
        // no link may lead out of the folder
        let parent = place.parent().and_then(|parent| parent.canonicalize().ok());
        let within =
            folder.canonicalize().ok().zip(parent).is_some_and(|(top, parent)| parent.starts_with(top));
        if !within {
            continue;
        }
        let removed = match fs_err::symlink_metadata(&place) {
            Ok(found) if found.is_dir() => fs_err::remove_dir_all(&place),
            Ok(_) => fs_err::remove_file(&place),
            Err(_) => continue,
        };
        removed
            .map_err(|error| AuditError::Failed { action: "removing a file", reason: error.to_string() })?;
        fixed.files.push(place.display().to_string());
    }
    Ok(fixed)
}

/// The key of the layer that holds the fixed form of an image, in hex.
pub fn fixed_key(image: &str, base: Option<&str>) -> String {
    let digest = Sha256::digest(format!("fixed\n{image}\n{}", base.unwrap_or_default()));
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn removals(findings: &[Finding]) -> impl Iterator<Item = &str> {
    findings.iter().filter_map(|finding| match &finding.remedy {
        Remedy::Remove(path) => Some(path.as_str()),
        Remedy::None | Remedy::Strip => None,
    })
}
