//! The state of a repository as one hash, so that a resumed run can tell whether a re-executed command did the same.

use std::time::Duration;

use crate::sandbox::{Exec, OutputLimit, Place, Sandbox, SandboxError};

/// Everything that git would add, written as a tree: contents, names, modes and links of tracked and of new files.
/// A copy of the index keeps git's knowledge of unchanged files, so the cost is that of the changed ones; objects go
/// to a folder of their own and vanish with it. What holds time stamps is left out, since it differs between two runs
/// of the same command: caches, and commits but for their trees.
const SCRIPT: &str = r#"
set -e
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
index=$(git -c safe.directory='*' rev-parse --git-path index)
objects=$(git -c safe.directory='*' rev-parse --git-path objects)
mkdir "$scratch/objects"
if [ -f "$index" ]; then cp "$index" "$scratch/index"; fi
printf '%s\n' '__pycache__/' '*.py[co]' '.pytest_cache/' '.mypy_cache/' '.ruff_cache/' > "$scratch/exclude"
case $objects in /*) ;; *) objects=$PWD/$objects ;; esac
export GIT_INDEX_FILE="$scratch/index" GIT_OBJECT_DIRECTORY="$scratch/objects"
export GIT_ALTERNATE_OBJECT_DIRECTORIES="$objects" GIT_OPTIONAL_LOCKS=0
git -c safe.directory='*' -c core.fsmonitor=false -c core.compression=0 -c core.excludesFile="$scratch/exclude" \
    -c advice.addEmbeddedRepo=false add -A --ignore-errors . >/dev/null 2>&1 || true
git -c safe.directory='*' rm -r -q -f --cached --ignore-unmatch -- ':(glob)**/__pycache__/**' ':(glob)**/*.py[co]' \
    ':(glob)**/.pytest_cache/**' ':(glob)**/.mypy_cache/**' ':(glob)**/.ruff_cache/**' >/dev/null 2>&1 || true
tree=$(git -c safe.directory='*' write-tree)
head=$(git -c safe.directory='*' rev-parse -q --verify 'HEAD^{tree}' || echo none)
echo "$head $tree"
"#;

/// The hash, or nothing where the folder is no repository or git does not come to an end.
pub(super) async fn state(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    workdir: &str,
) -> Result<Option<String>, SandboxError> {
    let output = sandbox
        .exec(&Exec {
            argv: vec!["sh".into(), "-c".into(), SCRIPT.into()],
            cwd: workdir.to_owned(),
            env: place.env.clone(),
            stdin: Vec::new(),
            timeout: Duration::from_secs(60),
            output: OutputLimit { head: 4096, tail: 4096 },
        })
        .await?;
    let text = output.text();
    let line = text.lines().last().unwrap_or_default().trim();
    Ok((output.success() && !line.is_empty()).then(|| line.to_owned()))
}
