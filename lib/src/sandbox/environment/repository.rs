//! A task's repository with nothing of the future in it.
//!
//! It is made from its base commit: only the ancestors are fetched, with the tags that point at them;
//! [`super::history`] strips and proves inside the sandbox that nothing else is there.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::EnvironmentError;

/// Finds the bare clone of `owner/name` under `repos`: as `<owner>+<name>/repo`, `<owner>__<name>.git` or
/// `<owner>/<name>.git`.
///
/// # Errors
/// Where there is none; the text says how to make one.
pub fn find(repos: &Path, repo: &str) -> Result<PathBuf, EnvironmentError> {
    let missing = |reason: String| EnvironmentError::Repository { repo: repo.to_owned(), reason };
    let (owner, name) = repo
        .split_once('/')
        .filter(|(owner, name)| {
            [owner, name].iter().all(|part| !part.is_empty() && !part.contains(['/', '\0']) && *part != &"..")
        })
        .ok_or_else(|| missing("its name is not owner/name".into()))?;
    let places =
        [format!("{owner}+{name}/repo"), format!("{owner}__{name}.git"), format!("{owner}/{name}.git")];
    places.iter().map(|place| repos.join(place)).find(|path| path.is_dir()).ok_or_else(|| {
        missing(format!(
            "no clone under {}: expected {}; make one with `git clone --bare https://github.com/{repo} {}`",
            repos.display(),
            places.join(", "),
            repos.join(&places[1]).display()
        ))
    })
}

/// Packs the base commit with its ancestors and the tags on them as one git bundle in `scratch`. The branch is the
/// clone's default branch, moved to the base commit.
pub(super) async fn bundle(
    clone: &Path,
    repo: &str,
    base_commit: &str,
    scratch: &Path,
) -> Result<Bundle, EnvironmentError> {
    let git = Git { repo, dir: scratch.join("stripped.git") };
    let source = std::path::absolute(clone).unwrap_or_else(|_| clone.to_owned());
    let source = source.to_string_lossy().into_owned();
    let object = git.run(Some(clone), &["rev-parse", "--verify", &format!("{base_commit}^{{commit}}")]).await;
    let base = object.map_err(|_| EnvironmentError::Repository {
        repo: repo.to_owned(),
        reason: format!("the clone {source} has no commit {base_commit}: update it with `git fetch`"),
    })?;
    let base = base.trim().to_owned();
    let branch = git.run(Some(clone), &["symbolic-ref", "--short", "HEAD"]).await.unwrap_or_default();
    let branch = match branch.trim() {
        "" => "main",
        name => name,
    };
    git.run(None, &["init", "-q", "--bare", &git.dir.to_string_lossy()]).await?;
    let pick = format!("{base}:refs/heads/{branch}");
    git.fetch(&source, &[&pick]).await?;
    let tags = git
        .run(Some(clone), &["for-each-ref", "--merged", &base, "--format=%(refname)", "refs/tags"])
        .await
        .unwrap_or_default();
    let tags: Vec<String> = tags.lines().map(|tag| format!("{tag}:{tag}")).collect();
    for some in tags.chunks(500) {
        git.fetch(&source, &some.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    }
    let path = scratch.join("repository.bundle");
    git.run(Some(&git.dir), &["bundle", "create", "-q", &path.to_string_lossy(), "--all"]).await?;
    Ok(Bundle { path, branch: branch.to_owned(), commit: base })
}

/// A repository in one file.
pub(super) struct Bundle {
    pub(super) path: PathBuf,
    pub(super) branch: String,
    /// The base commit's full name.
    pub(super) commit: String,
}

/// git on the host, deaf to the user's configuration.
struct Git<'a> {
    repo: &'a str,
    dir: PathBuf,
}

impl Git<'_> {
    async fn fetch(&self, source: &str, refs: &[&str]) -> Result<String, EnvironmentError> {
        let serve = "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack";
        let fixed = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", serve, source];
        self.run(Some(&self.dir), &[&fixed, refs].concat()).await
    }

    async fn run(&self, dir: Option<&Path>, args: &[&str]) -> Result<String, EnvironmentError> {
        let mut command = Command::new("git");
        if let Some(dir) = dir {
            command.arg("--git-dir").arg(dir);
        }
        command
            .args(["-c", "safe.directory=*", "-c", "protocol.file.allow=always", "-c", "gc.auto=0"])
            .args(args)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let failed = |reason: String| EnvironmentError::Repository { repo: self.repo.to_owned(), reason };
        let output = command.output().await.map_err(|error| failed(format!("git cannot be run: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("git {}: {}", args.first().unwrap_or(&""), said.trim())));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(dir: &Path, script: &str) -> String {
        bash(dir, &["-ec", script])
    }

    fn bash(dir: &Path, args: &[&str]) -> String {
        let output = std::process::Command::new("bash")
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A clone with a past, a base commit, and a future on the branch, on another branch and under a tag.
    fn clone(dir: &Path) -> (PathBuf, String) {
        let base = sh(
            dir,
            "git init -qb trunk work; cd work; git config user.name a; git config user.email a@b
             echo 1 > f; git add f; git commit -qm one; git tag v1; git tag -a -m past v1.1
             echo 2 > f; git commit -qam two; base=$(git rev-parse HEAD)
             git checkout -qb side; echo side > f; git commit -qam side; git checkout -q trunk
             echo 3 > f; git commit -qam 'the fix'; git tag v2; git tag -a -m future v2.1
             cd ..; git clone -q --bare work acme__widget.git; echo $base",
        );
        (dir.join("acme__widget.git"), base)
    }

    #[tokio::test]
    async fn the_bundle_holds_the_past_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (bare, base) = clone(dir.path());
        let scratch = tempfile::tempdir().unwrap();
        let bundle = bundle(&bare, "acme/widget", &base[..12], scratch.path()).await.unwrap();
        assert_eq!((bundle.branch.as_str(), bundle.commit.as_str()), ("trunk", base.as_str()));
        sh(dir.path(), &format!("git clone -q --mirror {} got", bundle.path.display()));
        let objects = sh(&dir.path().join("got"), "git cat-file --batch-all-objects --batch-check | wc -l");
        let past = sh(&dir.path().join("got"), "git rev-list --objects trunk v1.1 | wc -l");
        assert_eq!(objects, past);
        assert_eq!(sh(&dir.path().join("got"), "git tag"), "v1\nv1.1");
        assert_eq!(sh(&dir.path().join("got"), "git log --all --format=%s"), "two\none");
    }

    #[tokio::test]
    async fn says_what_is_missing_and_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let (bare, _) = clone(dir.path());
        let error = find(dir.path(), "acme/gadget").unwrap_err().to_string();
        assert!(error.contains("acme__gadget.git") && error.contains("git clone --bare"), "{error}");
        assert!(find(dir.path(), "../acme").is_err());
        assert_eq!(find(dir.path(), "acme/widget").unwrap(), bare);
        let scratch = tempfile::tempdir().unwrap();
        let error =
            bundle(&bare, "acme/widget", &"0".repeat(40), scratch.path()).await.err().unwrap().to_string();
        assert!(error.contains("has no commit 000"), "{error}");
    }
}
