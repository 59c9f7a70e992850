//! The git program, with nothing of the user's configuration and fixed names and dates.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// A repository on disk.
pub(super) struct Repo {
    folder: PathBuf,
}

impl Repo {
    /// The repository in a folder, which need not exist yet.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Starts the repository with a copy of a tree.
    pub fn create(&self, tree: &Path) -> Result<()> {
        copy_tree(tree, &self.folder)?;
        self.text(&["init", "--quiet", "--template=", "--initial-branch=main", "."]).map(drop)
    }

    /// Commits all that there is.
    pub fn commit(&self, message: &str, date: &str) -> Result<()> {
        self.text(&["add", "--all"])?;
        let mut command = self.command(&["commit", "--quiet", "--no-verify", "--message", message]);
        command.env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
        output(command, b"").map(drop)
    }

    /// Tags the current commit.
    pub fn tag(&self, name: &str) -> Result<()> {
        self.text(&["tag", name]).map(drop)
    }

    /// The current commit's hash.
    pub fn head(&self) -> Result<String> {
        Ok(self.text(&["rev-parse", "HEAD"])?.trim().to_owned())
    }

    /// Applies a patch to the files and the index.
    pub fn apply(&self, patch: &str) -> Result<()> {
        output(self.command(&["apply", "--index", "-"]), patch.as_bytes()).map(drop)
    }

    /// Fails where a patch would not apply.
    pub fn check(&self, patch: &str) -> Result<()> {
        output(self.command(&["apply", "--check", "-"]), patch.as_bytes()).map(drop)
    }

    /// Drops all that is not committed.
    pub fn reset(&self) -> Result<()> {
        self.text(&["reset", "--quiet", "--hard"])?;
        self.text(&["clean", "--quiet", "-fdx"]).map(drop)
    }

    /// Writes a bare copy with everything in it and no trace of where it came from.
    pub fn publish(&self, bare: &Path) -> Result<()> {
        let mut command = self.command(&["clone", "--quiet", "--bare", "--template=", "--no-local", "."]);
        command.arg(bare);
        output(command, b"")?;
        Self::at(bare).text(&["remote", "remove", "origin"]).map(drop)
    }

    /// Runs a shell command in the repository; its exit status and what it wrote, both streams in one.
    pub fn shell(&self, command: &str) -> Result<(i32, String)> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("exec 2>&1\n{command}"));
        let done = isolate(&mut shell, &self.folder).output().context("cannot run sh")?;
        Ok((done.status.code().unwrap_or(-1), String::from_utf8(done.stdout)?))
    }

    /// What a git command prints.
    pub fn text(&self, arguments: &[&str]) -> Result<String> {
        output(self.command(arguments), b"")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(arguments);
        isolate(&mut command, &self.folder);
        command
    }
}

fn isolate<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.abbrev")
        .env("GIT_CONFIG_VALUE_0", "10")
        .env("GIT_PAGER", "cat")
        .env("GIT_AUTHOR_NAME", "Demo Author")
        .env("GIT_AUTHOR_EMAIL", "demo@memtrial.example")
        .env("GIT_COMMITTER_NAME", "Demo Author")
        .env("GIT_COMMITTER_EMAIL", "demo@memtrial.example")
}

fn output(mut command: Command, input: &[u8]) -> Result<String> {
    let shown = command.get_args().map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot run git; install it")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input)?;
    }
    let done = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "git {shown}: {}", errors.trim());
    Ok(String::from_utf8(done.stdout)?)
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs_err::create_dir_all(to)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            // Not fs::copy: the mode must not depend on how the source was checked out.
            fs_err::write(target, fs_err::read(entry.path())?)?;
        }
    }
    Ok(())
}
