//! Checks that every memory system must pass, ours and third parties'.
//!
//! They run a system through the host over a small invented history, so that a system is tested as a study uses it.

use std::future::Future;

use super::host::{Experiences, Host, Injection, Outcome, Retrieved, Setup};
use super::{BlockTemplate, Budget, Experience, MemoryError, MemorySystem, Query, Scope, Target};
use crate::task::InstanceId;
use crate::trajectory::Event;

/// A line that only one record holds.
const NEEDLE: &str = "lesson qz81: close the reader before the retry";

/// Makes a fresh system.
pub type Open<'o> = dyn Fn() -> Result<Box<dyn MemorySystem>, MemoryError> + Sync + 'o;

/// Runs all checks on systems made by `open`, each on fresh ones. Returns the failures, each a sentence that begins with
/// the check's name; none: the system conforms. A system that always abstains conforms where `delivers` is false.
pub async fn check(open: &Open<'_>, delivers: bool) -> Vec<String> {
    let bench = Bench { open, delivers };
    let mut failures = Vec::new();
    note(&mut failures, "empty-store", bench.empty_store()).await;
    note(&mut failures, "needle", bench.needle()).await;
    note(&mut failures, "foreign-run", bench.foreign_run()).await;
    note(&mut failures, "namespaces", bench.namespaces()).await;
    note(&mut failures, "frozen", bench.frozen()).await;
    note(&mut failures, "records", bench.budget_of_records()).await;
    note(&mut failures, "tokens", bench.budget_of_tokens()).await;
    note(&mut failures, "restart", bench.restart()).await;
    note(&mut failures, "deterministic", bench.deterministic()).await;
    note(&mut failures, "large-run", bench.large_run()).await;
    failures
}

async fn note(failures: &mut Vec<String>, name: &str, outcome: impl Future<Output = Result<(), String>>) {
    if let Err(reason) = outcome.await {
        failures.push(format!("{name}: {reason}"));
    }
}

struct Bench<'a> {
    open: &'a Open<'a>,
    delivers: bool,
}

struct Runs {
    target: InstanceId,
    runs: Vec<Experience>,
}

impl Experiences for Runs {
    fn target(&self) -> &InstanceId {
        &self.target
    }

    fn eligible(&self) -> Vec<InstanceId> {
        self.runs.iter().map(|run| run.instance_id.clone()).collect()
    }

    fn read(&self, id: &InstanceId, _with_events: bool) -> Result<Experience, String> {
        let found = self.runs.iter().find(|run| run.instance_id == *id);
        found.cloned().ok_or_else(|| format!("no run of {id}"))
    }

    fn digest(&self, id: &InstanceId) -> Result<(String, Option<bool>), String> {
        self.read(id, true).map(|run| (run.issue, run.outcome))
    }
}

fn id(repo: &str, number: u64) -> Result<InstanceId, String> {
    InstanceId::parse(&format!("{repo}-{number}")).map_err(|error| error.to_string())
}

fn run(repo: &str, number: u64, issue: &str, line: &str) -> Result<Experience, String> {
    let patch = format!(
        "diff --git a/src/m{number}.py b/src/m{number}.py\n--- a/src/m{number}.py\n+++ b/src/m{number}.py\n\
         @@ -1 +1,2 @@\n import os\n+# {line}\n"
    );
    Ok(Experience {
        instance_id: id(repo, number)?,
        issue: issue.to_owned(),
        patch: Some(patch.clone()),
        exit_status: Some("Submitted".into()),
        outcome: Some(true),
        events: vec![
            Event::Issue { text: issue.to_owned() },
            Event::Submission { patch },
            Event::Ended { status: Some("Submitted".into()), resolved: None },
        ],
    })
}

const ISSUES: [(u64, &str); 4] = [
    (3, "Config loader ignores the environment\nA variable of the environment must win over the file."),
    (5, "Retry loses the open reader\nAfter a time-out the stream reader stays open and the retry fails."),
    (8, "Date parser takes the thirteenth month\nA month above twelve must be refused."),
    (9, "Table output breaks on wide characters\nColumns do not line up where a cell holds wide characters."),
];

/// Four runs of one repository; the one with the needle is number 5.
fn runs(repo: &str) -> Result<Vec<Experience>, String> {
    let line = |number| if number == 5 { NEEDLE } else { "another change" };
    ISSUES.iter().map(|&(number, issue)| run(repo, number, issue, line(number))).collect()
}

/// A scope, two runs and the question that the second answers: for checks of what lies below the host.
pub(super) fn example() -> Result<(Scope, Vec<Experience>, Query), String> {
    let target = id("acme__widget", 12)?;
    let mut runs = runs("acme__widget")?;
    runs.truncate(2);
    let question = query(&target, ISSUES[1].1);
    Ok((Scope { condition: "conformance".into(), target, seed: 1 }, runs, question))
}

fn query(target: &InstanceId, text: &str) -> Query {
    Query::at_start(Target {
        instance_id: target.clone(),
        repo: format!("{}/{}", target.owner(), target.name()),
        problem_statement: text.to_owned(),
        language: Some("python".into()),
    })
}

fn say(error: MemoryError) -> String {
    error.to_string()
}

fn injected(retrieved: Retrieved) -> Result<Injection, String> {
    match retrieved.outcome {
        Outcome::Injected(injection) => Ok(injection),
        Outcome::Abstained { reason } => Err(format!("abstained ({reason}) where a record fits")),
    }
}

fn shown(injection: &Injection) -> String {
    let files = injection.files.iter().map(|file| file.content.as_str());
    std::iter::once(injection.block.as_str()).chain(files).collect()
}

impl Bench<'_> {
    async fn host(&self, runs: Vec<Experience>, budget: Budget) -> Result<Host, String> {
        let history = Runs { target: id("acme__widget", 12)?, runs };
        let setup =
            Setup { condition: "conformance".into(), seed: 1, budget, template: BlockTemplate::default() };
        Host::build_from((self.open)().map_err(say)?, &history, setup, None).await.map_err(say)
    }

    async fn ask(&self, runs: Vec<Experience>, budget: Budget) -> Result<Retrieved, String> {
        let mut host = self.host(runs, budget).await?;
        host.retrieve(&query(&id("acme__widget", 12)?, ISSUES[1].1)).await.map_err(say)
    }

    /// An empty store abstains with a reason.
    async fn empty_store(&self) -> Result<(), String> {
        match self.ask(Vec::new(), Budget::default()).await?.outcome {
            Outcome::Abstained { reason } if !reason.trim().is_empty() => Ok(()),
            other => Err(format!("expected an abstention with a reason, got {other:?}")),
        }
    }

    /// A run is found by its own issue text, among five, and what it taught reaches the agent.
    async fn needle(&self) -> Result<(), String> {
        if !self.delivers {
            return Ok(());
        }
        let found = injected(self.ask(runs("acme__widget")?, Budget { records: 5, tokens: 4096 }).await?)?;
        if shown(&found).contains(NEEDLE) { Ok(()) } else { Err(format!("the needle is not in {found:?}")) }
    }

    /// Own runs and those of other repositories are refused before the system sees them.
    async fn foreign_run(&self) -> Result<(), String> {
        for (repo, number) in [("acme__widget", 12), ("other__widget", 3)] {
            let runs = vec![run(repo, number, "An issue", "a line")?];
            if self.host(runs, Budget::default()).await.is_ok() {
                return Err(format!("{repo}-{number} was ingested for acme__widget-12"));
            }
        }
        Ok(())
    }

    /// Two stores, alive together, do not see each other.
    async fn namespaces(&self) -> Result<(), String> {
        let budget = Budget { records: 5, tokens: 4096 };
        let mut with = self.host(runs("acme__widget")?, budget).await?;
        let others = runs("acme__widget")?.into_iter().filter(|run| run.instance_id.number() != 5).collect();
        let mut without = self.host(others, budget).await?;
        let question = query(&id("acme__widget", 12)?, ISSUES[1].1);
        with.retrieve(&question).await.map_err(say)?;
        match without.retrieve(&question).await.map_err(say)?.outcome {
            Outcome::Injected(found) if shown(&found).contains(NEEDLE) => {
                Err("a record of one store came out of another".into())
            }
            _ => Ok(()),
        }
    }

    /// Retrieval leaves the frozen store as it is (the host compares digests), and asking twice gives one answer.
    async fn frozen(&self) -> Result<(), String> {
        let mut host = self.host(runs("acme__widget")?, Budget::default()).await?;
        let question = query(&id("acme__widget", 12)?, ISSUES[1].1);
        let first = host.retrieve(&question).await.map_err(say)?.outcome;
        let second = host.retrieve(&question).await.map_err(say)?.outcome;
        if is_deterministic(&*(self.open)().map_err(say)?) && first != second {
            return Err("the second answer differs from the first".into());
        }
        Ok(())
    }

    /// No more records than asked for, and as many as there are (the host refuses too many).
    async fn budget_of_records(&self) -> Result<(), String> {
        for records in 1..=3 {
            self.ask(runs("acme__widget")?, Budget { records, tokens: 4096 }).await?;
        }
        Ok(())
    }

    /// A small budget is kept (the host refuses more); one of nothing is an abstention or an error, not a panic.
    async fn budget_of_tokens(&self) -> Result<(), String> {
        for tokens in [64, 200, 1024] {
            self.ask(runs("acme__widget")?, Budget { records: 2, tokens }).await?;
        }
        match self.ask(runs("acme__widget")?, Budget { records: 0, tokens: 0 }).await {
            Ok(Retrieved { outcome: Outcome::Injected(found), .. }) => Err(format!("{found:?} from nothing")),
            _ => Ok(()),
        }
    }

    /// `prepare` after an interrupted ingestion starts anew.
    async fn restart(&self) -> Result<(), String> {
        let target = id("acme__widget", 12)?;
        let mut system = (self.open)().map_err(say)?;
        let scope = Scope { condition: "conformance".into(), target: target.clone(), seed: 1 };
        system.prepare(&scope).await.map_err(say)?;
        system.ingest(&runs("acme__widget")?[1]).await.map_err(say)?;
        let history = Runs { target: target.clone(), runs: runs("acme__widget")?.split_off(2) };
        let setup = Setup {
            condition: "conformance".into(),
            seed: 1,
            budget: Budget { records: 5, tokens: 4096 },
            template: BlockTemplate::default(),
        };
        let mut host = Host::build_from(system, &history, setup, None).await.map_err(say)?;
        let answer = host.retrieve(&query(&target, ISSUES[1].1)).await;
        answer.map_err(|error| format!("remembers the interrupted ingestion: {error}")).map(drop)
    }

    /// What calls itself deterministic gives equal stores and answers for equal input.
    async fn deterministic(&self) -> Result<(), String> {
        if !is_deterministic(&*(self.open)().map_err(say)?) {
            return Ok(());
        }
        let budget = Budget { records: 3, tokens: 2048 };
        let first = self.ask(runs("acme__widget")?, budget).await?;
        let second = self.ask(runs("acme__widget")?, budget).await?;
        if (&first.outcome, &first.store) == (&second.outcome, &second.store) {
            return Ok(());
        }
        Err("two builds from the same history differ".into())
    }

    /// A run of two megabytes of text is taken in and delivered within the budget.
    async fn large_run(&self) -> Result<(), String> {
        let issue =
            format!("{}\n{}", ISSUES[1].1, "the reader stays open in line after line\n".repeat(50_000));
        let runs = vec![run("acme__widget", 5, &issue, NEEDLE)?];
        let answer = self.ask(runs, Budget::default()).await?;
        if self.delivers { injected(answer).map(drop) } else { Ok(()) }
    }
}

fn is_deterministic(system: &dyn MemorySystem) -> bool {
    system.describe().deterministic
}
