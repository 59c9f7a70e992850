//! What the targets' published images are, held to the lock.

use std::collections::BTreeMap;

use futures::StreamExt;

use super::layout::{self, Layout};
use super::{Lock, StudyError};
use crate::grade::files::write_json;
use crate::sandbox::environment::Environments;
use crate::task::{InstanceId, Task};

/// Registries are asked for so many images at once.
const AT_ONCE: usize = 8;

/// Finds out what every target's image is, before the first trial: name, tag, digest, platform. Enters the digests into
/// the lock that is there, or compares them with those that it holds.
///
/// # Errors
/// When an image cannot be had, or is another one than when the study was begun; the text names the targets.
pub(super) async fn hold_to_lock(
    layout: &Layout,
    environments: &Environments,
    tasks: impl Iterator<Item = &Task>,
) -> Result<(), StudyError> {
    let (mut images, mut failed) = (BTreeMap::new(), Vec::new());
    let asked = tasks.map(|task| async { (task.id().clone(), environments.image_of(&task.solver).await) });
    let mut asked = futures::stream::iter(asked).buffered(AT_ONCE);
    while let Some((id, found)) = asked.next().await {
        match found {
            Ok(Some(image)) => drop(images.insert(id, format!("{}@{}", image.name, image.digest))),
            Ok(None) => {}
            Err(error) => failed.push(error.to_string()),
        }
    }
    if !failed.is_empty() {
        return Err(StudyError::Images(failed.join("\n")));
    }
    let path = layout.lock();
    match layout::read_json::<Lock>(&path)? {
        Some(lock) if lock.images.is_empty() && !images.is_empty() => {
            Ok(write_json(&path, &Lock { images, ..lock })?)
        }
        Some(lock) => match changes(&lock.images, &images) {
            changes if changes.is_empty() => Ok(()),
            changes => Err(StudyError::Locked { path, changes: changes.join(", ") }),
        },
        None => Ok(()),
    }
}

fn changes(begun: &BTreeMap<InstanceId, String>, now: &BTreeMap<InstanceId, String>) -> Vec<String> {
    let differing = begun.iter().filter_map(|(id, image)| Some((id, image, now.get(id)?)));
    differing
        .filter(|(_, image, other)| image != other)
        .map(|(id, image, other)| format!("the image of {id} ({image} is now {other})"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_digest_under_the_same_tag_is_named() {
        let of = |digest: &str| {
            let id = InstanceId::parse("acme__widget-7").unwrap();
            BTreeMap::from([(id, format!("docker.io/a/b:1@{digest}"))])
        };
        assert!(changes(&of("x"), &of("x")).is_empty());
        assert_eq!(
            changes(&of("x"), &of("y")),
            ["the image of acme__widget-7 (docker.io/a/b:1@x is now docker.io/a/b:1@y)"]
        );
    }
}
