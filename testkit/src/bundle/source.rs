//! The source material of the bundled study, as it lies in `studies/bundled/`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

/// One repository: a tree and the pull requests that change it, in order.
pub(super) struct Repository {
    /// `owner__name`.
    pub key: String,
    pub language: String,
    pub install_config: Value,
    /// The folder of the tree before the first pull request.
    pub base: PathBuf,
    pub pulls: Vec<PullRequest>,
}

/// One pull request.
pub(super) struct PullRequest {
    pub number: u64,
    issue: String,
    pub fix: String,
    pub test: String,
    /// What the scripted run submitted, where that is not the fix itself.
    pub run_patch: Option<String>,
    /// A plausible change that fixes nothing; every target has one.
    pub bad_patch: Option<String>,
    pub merged_at: String,
    pub fail_to_pass: Vec<String>,
    pub pass_to_pass: Vec<String>,
}

impl PullRequest {
    /// The issue text, its title first.
    pub fn problem_statement(&self) -> String {
        self.issue.trim_end().to_owned()
    }

    /// Its first line.
    pub fn title(&self) -> &str {
        self.issue.lines().next().unwrap_or_default()
    }
}

/// What is planned for one target.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Planned {
    pub instance_id: String,
    pub effect: Effect,
    /// Whether the reader solves it with no memory.
    pub solves_alone: bool,
    pub needle: Option<String>,
    pub poison: Option<String>,
    /// The runs that hold the needle or the poison.
    #[serde(default)]
    pub planted_in: Vec<String>,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Effect {
    Gain,
    Harm,
    None,
}

impl Planned {
    /// Its line of `expected.json`: whether it must be solved under `off` and under `bm25`.
    pub fn expected(&self) -> Value {
        let (name, with_memory) = match self.effect {
            Effect::Gain => ("gain", true),
            Effect::Harm => ("harm", false),
            Effect::None => ("none", self.solves_alone),
        };
        json!({
            "instance_id": self.instance_id,
            "effect": name,
            "off": self.solves_alone,
            "bm25": with_memory,
            "planted_in": self.planted_in,
            "note": self.note,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepositoryMeta {
    language: String,
    install_config: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PullMeta {
    merged_at: String,
    fail_to_pass: Vec<String>,
    pass_to_pass: Vec<String>,
}

/// Where the source lies in a checkout of memtrial.
pub(super) fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/bundled")
}

/// Reads the plan and checks that its parts agree.
pub(super) fn plan(source: &Path) -> Result<Vec<Planned>> {
    let path = source.join("plan.json");
    let plan: Vec<Planned> = read_json(&path)?;
    for planned in &plan {
        let fits = match planned.effect {
            Effect::Gain => planned.needle.is_some() && !planned.solves_alone,
            Effect::Harm => planned.poison.is_some() && planned.solves_alone,
            Effect::None => planned.needle.is_none() || !planned.solves_alone,
        };
        ensure!(fits, "{}: {} cannot have the effect that it states", path.display(), planned.instance_id);
    }
    Ok(plan)
}

/// Reads every repository, in the order of names.
pub(super) fn repositories(source: &Path) -> Result<Vec<Repository>> {
    let names = subfolders(&source.join("repos"))?;
    names.into_iter().map(|(key, folder)| repository(key, &folder)).collect()
}

fn repository(key: String, folder: &Path) -> Result<Repository> {
    let meta: RepositoryMeta = read_json(&folder.join("repo.json"))?;
    let mut pulls = Vec::new();
    for (name, folder) in subfolders(&folder.join("prs"))? {
        let number = name.parse().with_context(|| format!("{}: not a number", folder.display()))?;
        pulls.push(pull(number, &folder)?);
    }
    pulls.sort_by_key(|pull| pull.number);
    let RepositoryMeta { language, install_config } = meta;
    Ok(Repository { key, language, install_config, base: folder.join("base"), pulls })
}

fn pull(number: u64, folder: &Path) -> Result<PullRequest> {
    let meta: PullMeta = read_json(&folder.join("meta.json"))?;
    let read = |name: &str| Ok::<_, anyhow::Error>(fs_err::read_to_string(folder.join(name))?);
    let maybe = |name: &str| folder.join(name).exists().then(|| read(name)).transpose();
    Ok(PullRequest {
        number,
        issue: read("issue.md")?,
        fix: read("fix.patch")?,
        test: read("test.patch")?,
        run_patch: maybe("run.patch")?,
        bad_patch: maybe("bad.patch")?,
        merged_at: meta.merged_at,
        fail_to_pass: meta.fail_to_pass,
        pass_to_pass: meta.pass_to_pass,
    })
}

/// The first of the month of a date, early in the morning: before whatever happens in that month.
pub(super) fn month_start(date: &str) -> Result<String> {
    let month = date.get(..8).with_context(|| format!("{date:?} is no date"))?;
    Ok(format!("{month}01T06:00:00+00:00"))
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_str(&fs_err::read_to_string(path)?).with_context(|| path.display().to_string())
}

fn subfolders(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    found.sort();
    Ok(found)
}
