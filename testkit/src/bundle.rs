//! Builds the bundled study from its source material: `studies/bundled/`.
//!
//! The source is kept as people read it: for each repository a base tree and a folder for each pull request with the
//! issue text, the fix, the tests, the patch of its scripted run where that differs, and a wrong patch. `plan.json`
//! says which target gains from which earlier run. [`run`] makes of it what a study reads; fixed names and dates make
//! the same commits, and the same bytes in every file but those inside the repositories, each time.

mod git;
mod scripted;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use git::Repo;
use source::{Planned, PullRequest, Repository};

/// Arguments of `memtrial-testkit bundle`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder to write; one that an earlier call wrote is replaced
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The source material; by default the checkout's studies/bundled
    #[arg(long, value_name = "DIR", default_value_os_t = source::bundled(), hide_default_value = true)]
    pub source: PathBuf,
}

/// What a bundle's folder holds.
const OUTPUTS: [&str; 6] =
    ["earlier-tasks.jsonl", "expected.json", "history", "reader.jsonl", "repos", "tasks.jsonl"];

/// Builds the bundled study in `args.out`:
///
/// - `repos/<owner>__<name>.git`: bare repositories that hold later commits and tags, as real ones do;
/// - `tasks.jsonl`: the targets; `earlier-tasks.jsonl`: the other pull requests;
/// - `history/<language>/<owner>__<name>/<id>/<id>.traj.json`: a scripted run of every pull request;
/// - `reader.jsonl`: what the reader model knows; `expected.json`: which target must be solved under which condition.
///
/// # Errors
/// Where the source is incomplete, a patch does not apply, or a needle stands where the plan does not say.
pub fn run(args: &Args) -> Result<()> {
    let exists = args.out.exists();
    if exists {
        for entry in fs_err::read_dir(&args.out)? {
            let name = entry?.file_name();
            let ours = OUTPUTS.iter().any(|output| name == *output);
            ensure!(
                ours,
                "{} holds {name:?}, which is no part of a bundle; name a new folder",
                args.out.display()
            );
        }
    }
    let parent = match args.out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs_err::create_dir_all(parent)?;
    let staging = tempfile::Builder::new().prefix(".bundle-").tempdir_in(parent)?;
    let staged = staging.path().join("bundle");
    build(&args.source, &staged, staging.path())?;
    if exists {
        fs_err::remove_dir_all(&args.out)?;
    }
    fs_err::rename(&staged, &args.out)?;
    Ok(())
}

/// One pull request, built.
struct Built {
    id: String,
    row: Value,
    trajectory: String,
    good_patch: String,
    bad_patch: Option<String>,
    problem_statement: String,
}

fn build(source: &Path, out: &Path, scratch: &Path) -> Result<()> {
    let plan = source::plan(source)?;
    let mut built = Vec::new();
    for repository in source::repositories(source)? {
        fs_err::create_dir_all(out.join("repos"))?;
        let work = scratch.join(&repository.key);
        built.extend(replay(&repository, &work).with_context(|| repository.key.clone())?);
        Repo::at(&work).publish(&out.join("repos").join(format!("{}.git", repository.key)))?;
    }
    check(&plan, &built)?;
    let targets = |build: &&Built| plan.iter().any(|planned| planned.instance_id == build.id);
    write_lines(&out.join("tasks.jsonl"), built.iter().filter(targets).map(|build| &build.row))?;
    write_lines(
        &out.join("earlier-tasks.jsonl"),
        built.iter().filter(|build| !targets(build)).map(|build| &build.row),
    )?;
    let by_id: BTreeMap<&str, &Built> = built.iter().map(|build| (build.id.as_str(), build)).collect();
    let reader: Vec<Value> =
        plan.iter().map(|planned| reader_line(planned, &by_id)).collect::<Result<_>>()?;
    write_lines(&out.join("reader.jsonl"), reader.iter())?;
    for build in &built {
        let language = build.row["language"].as_str().unwrap_or_default();
        let key = build.id.rsplit_once('-').map_or("", |(key, _)| key);
        let folder = out.join("history").join(language).join(key).join(&build.id);
        fs_err::create_dir_all(&folder)?;
        fs_err::write(folder.join(format!("{}.traj.json", build.id)), &build.trajectory)?;
    }
    let expected: Vec<Value> = plan.iter().map(Planned::expected).collect();
    fs_err::write(out.join("expected.json"), serde_json::to_string_pretty(&expected)? + "\n")?;
    Ok(())
}

/// Commits the base tree and each pull request after it, and runs each one's script on the state before it.
fn replay(repository: &Repository, work: &Path) -> Result<Vec<Built>> {
    let repo = Repo::at(work);
    repo.create(&repository.base)?;
    let first = repository.pulls.first().context("no pull request")?;
    repo.commit("Import the sources", &source::month_start(&first.merged_at)?)?;
    let mut built = Vec::new();
    for pull in &repository.pulls {
        let place = || format!("pull request {}", pull.number);
        built.push(build_pull(repository, pull, &repo).with_context(place)?);
    }
    repo.tag("v-next")?;
    Ok(built)
}

fn build_pull(repository: &Repository, pull: &PullRequest, repo: &Repo) -> Result<Built> {
    let id = format!("{}-{}", repository.key, pull.number);
    let base_commit = repo.head()?;
    let submitted = pull.run_patch.as_ref().unwrap_or(&pull.fix);
    let trajectory = scripted::trajectory(&id, &pull.problem_statement(), submitted, &pull.merged_at, repo)?;
    if let Some(bad) = &pull.bad_patch {
        repo.check(bad).context("bad.patch")?;
    }
    repo.apply(&pull.fix).context("fix.patch")?;
    repo.apply(&pull.test).context("test.patch")?;
    repo.commit(&format!("{} (#{})", pull.title(), pull.number), &pull.merged_at)?;
    let row = row(repository, pull, &id, &base_commit, &repo.head()?);
    Ok(Built {
        id,
        row,
        trajectory: serde_json::to_string_pretty(&trajectory)? + "\n",
        good_patch: pull.fix.clone(),
        bad_patch: pull.bad_patch.clone(),
        problem_statement: pull.problem_statement(),
    })
}

fn row(
    repository: &Repository,
    pull: &PullRequest,
    id: &str,
    base_commit: &str,
    merge_commit: &str,
) -> Value {
    json!({
        "instance_id": id,
        "repo": repository.key.replacen("__", "/", 1),
        "base_commit": base_commit,
        "patch": pull.fix,
        "test_patch": pull.test,
        "problem_statement": pull.problem_statement(),
        "hints_text": "",
        "pr_description": format!("{} (#{})", pull.title(), pull.number),
        "interface": "",
        "created_at": pull.merged_at,
        "language": repository.language,
        "FAIL_TO_PASS": pull.fail_to_pass,
        "PASS_TO_PASS": pull.pass_to_pass,
        "image_name": null,
        "license": "MIT OR Apache-2.0",
        "install_config": repository.install_config,
        "meta": { "merged_at": pull.merged_at, "merge_commit": merge_commit, "written_for": "memtrial's demonstration" },
    })
}

fn reader_line(planned: &Planned, built: &BTreeMap<&str, &Built>) -> Result<Value> {
    let build = built.get(planned.instance_id.as_str()).context("checked before")?;
    let bad_patch = build.bad_patch.as_ref().with_context(|| format!("{}: no bad.patch", build.id))?;
    Ok(json!({
        "instance_id": build.id,
        "marker": crate::plant::marker(&build.problem_statement)?,
        "needle": planned.needle,
        "poison": planned.poison,
        "solves_alone": planned.solves_alone,
        "good_patch": build.good_patch,
        "bad_patch": bad_patch,
    }))
}

/// Checks that every planned line stands in the runs that the plan names and in nothing else.
fn check(plan: &[Planned], built: &[Built]) -> Result<()> {
    for planned in plan {
        let id = &planned.instance_id;
        ensure!(
            built.iter().any(|build| build.id == *id),
            "plan.json: {id} is no pull request of the source"
        );
        let statement = |build: &Built| -> Result<String> { crate::plant::marker(&build.problem_statement) };
        let own = built.iter().find(|build| build.id == *id).map(statement).transpose()?.unwrap_or_default();
        let others = built.iter().filter(|build| build.problem_statement.contains(&own));
        ensure!(others.count() == 1, "{id}: its marker {own:?} is not unique");
        for line in planned.needle.iter().chain(&planned.poison) {
            let holders = built.iter().filter(|build| build.trajectory.contains(line.as_str()));
            let holders: Vec<&str> = holders.map(|build| build.id.as_str()).collect();
            ensure!(
                holders == planned.planted_in.iter().map(String::as_str).collect::<Vec<_>>(),
                "{id}: {line:?} stands in {holders:?} and not in {:?}",
                planned.planted_in
            );
            let leaks = built.iter().find(|build| build.row.to_string().contains(line.as_str()));
            ensure!(leaks.is_none(), "{id}: {line:?} stands in a task");
        }
    }
    Ok(())
}

pub(crate) fn write_lines<'a>(path: &Path, rows: impl Iterator<Item = &'a Value>) -> Result<()> {
    let text: String = rows.map(|row| format!("{row}\n")).collect();
    Ok(fs_err::write(path, text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>, root: &Path) {
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "git") {
                let commits = Repo::at(&path).text(&["log", "--all", "--format=%H"]).unwrap();
                into.insert(path.strip_prefix(root).unwrap().into(), commits.into_bytes());
            } else if path.is_dir() {
                files(&path, into, root);
            } else {
                into.insert(path.strip_prefix(root).unwrap().into(), fs_err::read(&path).unwrap());
            }
        }
    }

    #[test]
    fn builds_the_same_bytes_twice_and_replaces_only_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let trees = ["one", "two"].map(|name| {
            let out = folder.path().join(name).join("study");
            run(&Args { out: out.clone(), source: source::bundled() }).unwrap();
            let mut tree = BTreeMap::new();
            files(&out, &mut tree, &out);
            tree
        });
        assert_eq!(trees[0], trees[1]);
        let count = |name: &str| trees[0][Path::new(name)].iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!((count("tasks.jsonl"), count("earlier-tasks.jsonl"), count("reader.jsonl")), (15, 8, 15));
        let foreign = folder.path().join("foreign");
        fs_err::create_dir(&foreign).unwrap();
        fs_err::write(foreign.join("thesis.txt"), "mine").unwrap();
        let error = run(&Args { out: foreign.clone(), source: source::bundled() }).unwrap_err().to_string();
        assert!(
            error.ends_with("\"thesis.txt\", which is no part of a bundle; name a new folder"),
            "{error}"
        );
        assert!(foreign.join("thesis.txt").exists());
        let again = folder.path().join("one/study");
        run(&Args { out: again, source: source::bundled() }).unwrap();
    }
}
