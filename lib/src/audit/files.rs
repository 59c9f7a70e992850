//! Later copies of the package itself, by the files' names.

use super::packages::{self, Own};
use super::{AuditError, Past, Remedy, Report, Subject, View, listing};
use crate::sandbox::Sandbox;

/// Manifests larger than this are not read.
const MOST: u64 = 4 << 20;

/// What the package is called, and its version at the base commit.
pub(super) async fn own_package(
    sandbox: &mut dyn Sandbox,
    subject: &Subject<'_>,
    past: &Past,
) -> Result<Own, AuditError> {
    let mut own = Own::new(subject.task.map(|task| task.solver.repo.as_str()));
    for file in packages::MANIFESTS {
        if let Some(bytes) = sandbox.get(&format!("{}/{file}", subject.workdir), MOST).await? {
            own.read(file, &String::from_utf8_lossy(&bytes));
        }
    }
    for version in &past.versions {
        own.saw_version(Some(version.clone()));
    }
    Ok(own)
}

/// Looks for later copies.
pub(super) async fn look(
    sandbox: &mut dyn Sandbox,
    view: &View<'_>,
    own: &Own,
    report: &mut Report,
) -> Result<(), AuditError> {
    for entry in view.entries.iter().filter(|entry| !entry.folder) {
        let Some(mut copy) = own.copy_at(&entry.path) else { continue };
        let inside =
            entry.path.strip_prefix(view.subject.workdir.as_str()).and_then(|rest| rest.strip_prefix('/'));
        if inside.is_some_and(|inside| !view.past.is_changed(inside)) {
            continue;
        }
        if let Some(manifest) = &copy.manifest {
            let text = sandbox.get(manifest, MOST).await?.unwrap_or_default();
            let Some(version) = packages::version_of_json(&String::from_utf8_lossy(&text)) else { continue };
            copy.version = version;
        }
        if copy.installed && from_the_checkout(sandbox, &entry.path, &view.subject.workdir).await? {
            continue;
        }
        let version = &copy.version;
        match (own.is_later(version), &own.version) {
            (Some(false), _) => {}
            (Some(true), Some(base)) if copy.installed => {
                let what = format!(
                    "version {version} of the package itself is installed; the base commit is {base}"
                );
                report.add("installed-package", &entry.path, &what, Remedy::None);
            }
            (Some(true), Some(base)) => {
                let what = format!("version {version} of the package itself; the base commit is {base}");
                let detector = if listing::in_build(&entry.path) { "build-output" } else { "package-cache" };
                report.add(detector, &entry.path, &what, view.remedy(&entry.path));
            }
            _ => report.could_not(
                "versions of the package itself",
                &format!("{} is version {version}, and the base commit states none", entry.path),
            ),
        }
    }
    Ok(())
}

/// Whether pip installed a package from the checkout itself.
async fn from_the_checkout(sandbox: &mut dyn Sandbox, path: &str, workdir: &str) -> Result<bool, AuditError> {
    let Some(folder) = path.strip_suffix("/METADATA") else { return Ok(false) };
    let url = sandbox.get(&format!("{folder}/direct_url.json"), MOST).await?.unwrap_or_default();
    let url: serde_json::Value = serde_json::from_slice(&url).unwrap_or_default();
    Ok(url.get("url").and_then(|url| url.as_str()).is_some_and(|url| {
        url.strip_prefix("file://").is_some_and(|place| listing::is_under(place, workdir))
    }))
}
