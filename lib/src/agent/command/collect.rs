//! A program's own files, taken out of the sandbox before it goes.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::{Exec, OutputLimit, Place, Sandbox, SandboxError};

/// Files at most.
const MOST: usize = 256;
/// Bytes of one at most.
const LONGEST: u64 = 16 << 20;
/// Bytes of all together at most.
const ALTOGETHER: u64 = 64 << 20;

/// The regular files that patterns name, each with a zero byte behind it.
const SCRIPT: &str = r#"
shopt -s globstar nullglob dotglob
IFS=
for pattern in "$@"; do
  for file in $pattern; do
    if [ -f "$file" ] && [ ! -L "$file" ]; then printf '%s\0' "$file"; fi
  done
done
"#;

/// Copies what the patterns name to `folder`, under the paths that it has inside. Returns a note of each file: what was
/// taken, and what was not and why.
pub(super) async fn files(
    patterns: &[String],
    home: &str,
    sandbox: &mut dyn Sandbox,
    place: &Place,
    folder: &Path,
) -> Result<Vec<Value>, CollectError> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let absolute = |pattern: &String| match pattern.strip_prefix('~') {
        Some(below) => format!("{home}{below}"),
        None => pattern.clone(),
    };
    let mut exec = Exec::bash(SCRIPT, "/").env(place.env.clone()).timeout(Duration::from_secs(60));
    exec.argv.push("memtrial".into());
    exec.argv.extend(patterns.iter().map(absolute));
    exec.output = OutputLimit { head: 1 << 20, tail: 0 };
    let listed = sandbox.exec(&exec).await?;
    let mut notes = Vec::new();
    let mut room = ALTOGETHER;
    let names = listed.bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    for (number, name) in names.enumerate() {
        let name = String::from_utf8_lossy(name).into_owned();
        let omitted = |reason: &str| json!({"file": name, "omitted": reason});
        let Some(below) = below(&name) else {
            notes.push(omitted("its name cannot be used"));
            continue;
        };
        if number >= MOST {
            notes.push(omitted("there are too many files"));
            break;
        }
        match sandbox.get(&name, LONGEST.min(room)).await {
            Ok(Some(bytes)) => {
                room -= bytes.len() as u64;
                let path = folder.join(below);
                let parent = path.parent().unwrap_or(folder);
                fs_err::create_dir_all(parent).and_then(|()| fs_err::write(&path, &bytes))?;
                notes.push(json!({"file": name, "bytes": bytes.len()}));
            }
            Ok(None) => {}
            Err(SandboxError::Failed { reason, .. }) => notes.push(omitted(&reason)),
            Err(lost) => return Err(lost.into()),
        }
    }
    Ok(notes)
}

/// Why files cannot be collected.
#[derive(Debug, thiserror::Error)]
pub(super) enum CollectError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The path below a folder that stands for the root; the sandbox chose the name.
fn below(name: &str) -> Option<PathBuf> {
    let parts = Path::new(name).components().filter(|part| *part != Component::RootDir);
    let plain = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        _ => None,
    };
    let path: PathBuf = parts.map(plain).collect::<Option<_>>()?;
    (!name.contains('\u{fffd}') && path.file_name().is_some()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_sandbox_leads_nowhere_else() {
        assert_eq!(below("/root/.x/a b.jsonl"), Some("root/.x/a b.jsonl".into()));
        for name in ["/root/../../etc/passwd", "/", "/a/\u{fffd}"] {
            assert_eq!(below(name), None, "{name}");
        }
    }
}
