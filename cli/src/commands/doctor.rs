//! `memtrial doctor`.

use std::path::Path;
use std::time::Duration;

use memtrial::llm::{Secret, probe};
use memtrial::sandbox::{BACKENDS, Health, open};
use serde::Serialize;
use tokio::process::Command;
use tokio::time::timeout;

use super::rooms::CacheArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// The oldest git that is known to work.
const GIT: (u32, u32) = (2, 30);
/// Less free space than this is called little: environments of a few repositories fill it.
const ROOM: u64 = 10 << 30;
/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(20);

/// Shows what works here, and the command that mends what does not.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also ask the model endpoint at this base URL for its models.
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// The environment variable that holds the endpoint's key.
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    api_key_env: Option<String>,
    #[command(flatten)]
    cache: CacheArgs,
}

/// One thing looked at.
#[derive(Debug, Serialize)]
struct Finding {
    name: String,
    works: bool,
    notes: Vec<String>,
    mend: Option<String>,
}

/// Everything looked at.
#[derive(Debug, Serialize)]
struct Report {
    /// Whether trials can be run: a back end that isolates works.
    usable: bool,
    sandboxes: Vec<Finding>,
    programs: Vec<Finding>,
    disk: Finding,
    endpoint: Option<Finding>,
}

pub async fn run(args: Args) -> Outcome {
    let settings = args.cache.settings()?;
    let mut sandboxes = Vec::new();
    for name in BACKENDS {
        let health = open(name, &settings).map_err(Failure::environment)?.check().await;
        sandboxes.push(finding(name, health));
    }
    let endpoint = match &args.endpoint {
        Some(url) => Some(endpoint(url, args.api_key_env.as_deref()).await),
        None => None,
    };
    let usable = sandboxes.iter().any(|found| found.works && found.name != "local");
    let report =
        Report { usable, sandboxes, programs: programs().await, disk: disk(&settings.cache), endpoint };
    if args.json {
        ui::json(&report)?;
    } else {
        text(&report).iter().for_each(|line| ui::data(line));
    }
    Ok(if usable { Exit::Done } else { Exit::Environment })
}

fn finding(name: &str, health: Health) -> Finding {
    Finding { name: name.to_owned(), works: health.works, notes: health.notes, mend: health.mend }
}

async fn endpoint(url: &str, key: Option<&str>) -> Finding {
    let key = key.and_then(|name| std::env::var(name).ok()).map(Secret::new);
    match probe(url, key.as_ref()).await {
        Ok(found) => Finding {
            name: "endpoint".to_owned(),
            works: true,
            notes: vec![format!("{url}: {} models in {:.2} s", found.models.len(), found.seconds)],
            mend: None,
        },
        Err(error) => Finding {
            name: "endpoint".to_owned(),
            works: false,
            notes: vec![error.to_string()],
            mend: Some(format!("curl -sS {}/models", url.trim_end_matches('/'))),
        },
    }
}

/// git, which memtrial itself needs, and the tool chains that the host base of sandboxes offers.
async fn programs() -> Vec<Finding> {
    let mut found = vec![git(version("git", "--version").await)];
    let chains = [
        ("python3", "--version", "python3 python3-venv python3-pytest"),
        ("go", "version", "golang-go"),
        ("cargo", "--version", "cargo"),
        ("node", "--version", "nodejs npm"),
    ];
    for (name, flag, packages) in chains {
        let version = version(name, flag).await;
        let mend = version.is_none().then(|| format!("sudo apt-get install {packages}"));
        let missing = format!("not found: tasks that need {name} cannot run on the host base");
        let notes = match &version {
            Some(version) => vec![version.clone(), place(name)],
            None => vec![missing],
        };
        found.push(Finding { name: name.to_owned(), works: version.is_some(), notes, mend });
    }
    found
}

fn git(version: Option<String>) -> Finding {
    let works = version.as_deref().and_then(numbers).is_some_and(|found| found >= GIT);
    let note = version.unwrap_or_else(|| "not found".to_owned());
    let needed = format!("{}.{} or newer is needed", GIT.0, GIT.1);
    let notes = if works { vec![note] } else { vec![note, needed] };
    let mend = (!works).then(|| "sudo scripts/install-packages.sh".to_owned());
    Finding { name: "git".to_owned(), works, notes, mend }
}

/// The first two numbers of a version.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let version = text.split(' ').find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    let mut parts = version.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// Where a program lies. What lies outside `/usr` is not part of the host base: it must be mounted.
fn place(program: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file());
    match found {
        Some(path) if path.starts_with("/usr") || path.starts_with("/bin") => path.display().to_string(),
        Some(path) => format!("{}, outside the host base", path.display()),
        None => String::new(),
    }
}

/// The first line that a program prints about itself; `None`: it cannot be started.
async fn version(program: &str, flag: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg(flag).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

/// How much room there is where the cache lies or will lie.
fn disk(cache: &Path) -> Finding {
    let existing = cache.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let free = memtrial::sandbox::free_space(existing);
    let (works, note) = match free {
        Ok(free) => (free >= ROOM, format!("{:.1} GB free at {}", free as f64 / 1e9, cache.display())),
        Err(error) => (false, format!("{}: {error}", existing.display())),
    };
    let mend = (!works).then(|| {
        format!(
            "du -xsh {}/* (remove what is not needed, or name another folder with --cache)",
            cache.display()
        )
    });
    Finding { name: "disk".to_owned(), works, notes: vec![note], mend }
}

fn text(report: &Report) -> Vec<String> {
    let rows = report.sandboxes.iter().chain(&report.programs).chain([&report.disk]).chain(&report.endpoint);
    let mut lines = Vec::new();
    for found in rows {
        let state = if found.works { "works" } else { "MISSING" };
        lines.push(format!("{:<11} {state:<8} {}", found.name, found.notes.join("; ")));
        lines.extend(found.mend.iter().map(|mend| format!("{:<20} mend: {mend}", "")));
    }
    lines.push(if report.usable {
        "Trials can be run here.".to_owned()
    } else {
        "No back end that isolates works here: mend one of namespaces and docker.".to_owned()
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_must_be_new_enough() {
        assert!(git(Some("git version 2.39.2".into())).works);
        assert!(git(Some("git version 2.30.0.rc1 (Apple)".into())).works);
        for old in
            [Some("git version 2.29.9".into()), Some("git version 1.99".into()), Some("git".into()), None]
        {
            let found = git(old);
            assert!(!found.works && found.mend.is_some());
        }
    }

    #[test]
    fn what_does_not_work_is_followed_by_what_mends_it() {
        let found = |name: &str, works: bool| Finding {
            name: name.into(),
            works,
            notes: vec!["a".into(), "b".into()],
            mend: (!works).then(|| "do it".into()),
        };
        let report = Report {
            usable: false,
            sandboxes: vec![found("namespaces", false), found("local", true)],
            programs: vec![found("git", true)],
            disk: found("disk", true),
            endpoint: None,
        };
        insta::assert_snapshot!(text(&report).join("\n"), @r"
        namespaces  MISSING  a; b
                             mend: do it
        local       works    a; b
        git         works    a; b
        disk        works    a; b
        No back end that isolates works here: mend one of namespaces and docker.
        ");
    }
}
