//! What a program changed in the repository, as a patch against the commit that it started from.

use std::time::Duration;

use crate::sandbox::{Exec, OutputLimit, Place, Sandbox, SandboxError};

/// The longest patch that is kept.
const LONGEST: u64 = 32 << 20;

/// Everything that git would add, against the first argument; the others are patterns of new files that do not count.
/// A fresh index takes no notice of what the program staged or left locked, and commits of its own do not matter. None
/// of the repository's settings may change what a patch looks like, nor run a program.
const SCRIPT: &str = r#"
set -e
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
base=$1 attributes=$2
shift 2
printf '%s\n' "$@" > "$scratch/exclude"
printf '%s\n' "$attributes" > "$scratch/attributes"
export GIT_INDEX_FILE="$scratch/index" GIT_OPTIONAL_LOCKS=0
here() {
  git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false -c advice.addEmbeddedRepo=false \
      -c core.excludesFile="$scratch/exclude" -c core.attributesFile="$scratch/attributes" -c diff.mnemonicPrefix=false "$@"
}
here read-tree "$base" 2>/dev/null
here add -A --ignore-errors . >/dev/null 2>&1 || true
here diff --cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames \
    --src-prefix=a/ --dst-prefix=b/ "$base" 2>/dev/null
"#;

/// The commit that the repository is at.
pub(super) async fn base(sandbox: &mut dyn Sandbox, place: &Place) -> Result<Option<String>, SandboxError> {
    let output = sandbox.exec(&exec(place, &["git", "-c", "safe.directory=*", "rev-parse", "HEAD"])).await?;
    Ok(output.success().then(|| output.text().trim().to_owned()))
}

/// The patch; the reason where there can be none.
pub(super) async fn since(
    base: &str,
    exclude: &[String],
    sandbox: &mut dyn Sandbox,
    place: &Place,
) -> Result<Result<String, String>, SandboxError> {
    // Where a changed file is no UTF-8, all are told as binary: nothing else keeps its bytes in a text.
    for attributes in ["", "* -diff"] {
        let mut argv = vec!["sh", "-c", SCRIPT, "memtrial", base, attributes];
        argv.extend(exclude.iter().map(String::as_str));
        let output = sandbox.exec(&exec(place, &argv)).await?;
        if !output.success() {
            return Ok(Err(format!("git cannot tell what was changed ({:?})", output.ended)));
        }
        if output.elided.is_some() {
            return Ok(Err(format!("what was changed takes more than {LONGEST} bytes")));
        }
        if let Ok(patch) = String::from_utf8(output.bytes) {
            return Ok(Ok(patch));
        }
    }
    Ok(Err("what was changed cannot be told in UTF-8".into()))
}

fn exec(place: &Place, argv: &[&str]) -> Exec {
    Exec {
        argv: argv.iter().map(|&part| part.to_owned()).collect(),
        cwd: place.workdir.clone(),
        env: place.env.clone(),
        stdin: Vec::new(),
        timeout: Duration::from_secs(300),
        output: OutputLimit { head: LONGEST, tail: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Backend, Image, Limits, Local, Network, Spec};

    async fn shell(sandbox: &mut dyn Sandbox, script: &str) -> String {
        let output = sandbox.exec(&Exec::bash(format!("set -e\n{script}"), "/repo")).await.unwrap();
        assert!(output.success(), "{}", output.text());
        output.text()
    }

    /// What a program did, as a patch, and whether it makes the same tree of the same start.
    async fn patch_of(program: &str, exclude: &[&str]) -> (String, bool) {
        let cache = tempfile::tempdir().unwrap();
        let spec = Spec {
            image: Image::Host,
            limits: Limits::default(),
            network: Network::None,
            mounts: Vec::new(),
            keep: false,
            gateway: None,
        };
        let mut sandbox = Local::new(cache.path().to_owned()).start(&spec).await.unwrap();
        let sandbox = sandbox.as_mut();
        sandbox.put("/repo/a.txt", b"one\n", 0o644).await.unwrap();
        sandbox.put("/repo/old.bin", b"\0\x01", 0o644).await.unwrap();
        sandbox.put("/repo/.gitignore", b"ignored/\n", 0o644).await.unwrap();
        let begin = "git init -q . && git config user.name t && git config user.email t@localhost && git add -A && \
                     git commit -qm base";
        shell(sandbox, begin).await;
        let place = Place { workdir: "/repo".into(), ..Place::default() };
        let base = base(sandbox, &place).await.unwrap().unwrap();
        shell(sandbox, program).await;
        let exclude: Vec<String> = exclude.iter().map(|&pattern| pattern.to_owned()).collect();
        let patch = since(&base, &exclude, sandbox, &place).await.unwrap().unwrap();
        // Applied to the base it gives the files that the program left.
        sandbox.put("/repo/.git/p", patch.as_bytes(), 0o644).await.unwrap();
        let again = "rm -f .git/index.lock; cp -r . ../left; git checkout -qf \"$1\" && git clean -qfdx && { test ! -s .git/p || git apply .git/p; }; \
                     diff -r -x .git -x patch.txt -x ignored . ../left > /dev/null && echo same || true";
        let again = again.replace("\"$1\"", &base);
        let same = shell(sandbox, &again).await.ends_with("same\n");
        (patch, same)
    }

    #[tokio::test]
    async fn whatever_a_program_did_to_git_the_patch_is_what_it_changed() {
        let program = "echo two >> a.txt; mkdir d; echo new > 'd/ü b'; git add a.txt; git commit -qm mine; rm old.bin
            echo three >> a.txt; chmod +x a.txt; echo x > patch.txt; mkdir ignored; echo y > ignored/z
            git config diff.noprefix true; git config diff.external false; git config color.ui always
            printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; : > .git/index.lock";
        let (patch, same) = patch_of(program, &["patch.txt"]).await;
        assert!(same, "{patch}");
        assert!(patch.contains("+two\n+three\n") && patch.contains("deleted file mode 100644"), "{patch}");
        assert!(
            !patch.contains("patch.txt") && !patch.contains("ignored/") && !patch.contains('\x1b'),
            "{patch}"
        );
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_survive() {
        let (patch, same) = patch_of("printf 'caf\\351\\n' > a.txt; printf '\\0\\377' > b", &[]).await;
        assert!(same && patch.contains("GIT binary patch"), "{patch}");
        assert_eq!(patch_of("true", &[]).await.0, "");
    }
}
