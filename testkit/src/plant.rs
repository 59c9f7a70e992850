//! Plants needles into the histories of real tasks, so that a study with the reader model has a known answer.
//!
//! Each chosen target gets one kind. Where memory works and causality holds, exactly the gains are solved more often
//! with memory than without, exactly the harms less often, and a needle that stands only in the target's own run or in
//! a later one never fires.

mod trajectory;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::bundle::write_lines;
use trajectory::{Run, words};

/// Arguments of `memtrial-testkit plant`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rows of SWE-bench shape, a JSON line each
    #[arg(long, value_name = "FILE")]
    pub tasks: PathBuf,
    /// Trajectories: `<id>.traj.json` at any depth
    #[arg(long, value_name = "DIR")]
    pub history: PathBuf,
    /// The folder to write; must be new or empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// How many targets of each kind: gains, harms, own, later, none
    #[arg(long, value_name = "KIND=N,…", default_value = "gains=3,harms=2,own=1,later=1,none=1")]
    pub plan: Plan,
    /// Take targets from these only, in this order
    #[arg(long = "id", value_name = "ID")]
    pub ids: Vec<String>,
}

/// What is planted for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A needle in the most similar earlier run: solved with memory only.
    Gain,
    /// A poison there: solved without memory only.
    Harm,
    /// A needle in its own run: never solved.
    Own,
    /// A needle in a later run: never solved.
    Later,
    /// Nothing; every second one is solved without help.
    None,
}

/// How many targets of each kind, as in `gains=3,harms=2,own=1,later=1,none=1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan(Vec<Kind>);

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut kinds = Vec::new();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, count) = part.split_once('=').ok_or_else(|| format!("{part:?} is not KIND=N"))?;
            let kind = match name.trim() {
                "gains" => Kind::Gain,
                "harms" => Kind::Harm,
                "own" => Kind::Own,
                "later" => Kind::Later,
                "none" => Kind::None,
                _ => return Err(format!("{name:?} is no kind; kinds are gains, harms, own, later, none")),
            };
            let count: usize = count.trim().parse().map_err(|_| format!("{part:?}: not a number"))?;
            kinds.extend(std::iter::repeat_n(kind, count));
        }
        if kinds.is_empty() { Err("it plans nothing".into()) } else { Ok(Self(kinds)) }
    }
}

/// One row that can be a target.
struct Target {
    row: Value,
    id: String,
    key: String,
    number: u64,
    statement: String,
}

/// A target with its kind.
struct Choice<'a> {
    target: &'a Target,
    kind: Kind,
    /// The position of the run that the line is planted in.
    run: Option<usize>,
    solves_alone: bool,
    line: String,
}

/// Writes into `args.out`: `tasks.jsonl` (the chosen rows), `history/` (all runs of their repositories, the planted ones
/// changed), `reader.jsonl` and `expected.json`.
///
/// # Errors
/// Where the rows and runs do not allow the plan, or the folder is not empty.
pub fn run(args: &Args) -> Result<()> {
    if args.out.exists() && fs_err::read_dir(&args.out)?.next().is_some() {
        bail!("{} is not empty; name a new folder", args.out.display());
    }
    let targets = targets(args)?;
    let mut runs = trajectory::find(&args.history)?;
    let choices = choose(&args.plan, &targets, &runs)?;
    let keys: BTreeSet<&str> = choices.iter().map(|choice| choice.target.key.as_str()).collect();
    for choice in &choices {
        if let Some(run) = choice.run {
            runs[run].plant(&choice.line, &choice.target.statement)?;
        }
    }
    for run in runs.iter().filter(|run| keys.contains(run.key.as_str())) {
        run.write(&args.out.join("history"))?;
    }
    write_lines(&args.out.join("tasks.jsonl"), choices.iter().map(|choice| &choice.target.row))?;
    let reader: Vec<Value> = choices.iter().map(Choice::reader_line).collect::<Result<_>>()?;
    write_lines(&args.out.join("reader.jsonl"), reader.iter())?;
    let expected: Vec<Value> = choices.iter().map(|choice| choice.expected(&runs)).collect();
    fs_err::write(args.out.join("expected.json"), serde_json::to_string_pretty(&expected)? + "\n")?;
    Ok(())
}

/// A piece of a problem statement that no quotation of it holds: it goes over the end of the first line, and memory
/// blocks quote line by line.
///
/// # Errors
/// Where the statement has one line only.
pub fn marker(statement: &str) -> Result<String> {
    let statement = statement.trim();
    let (title, rest) = statement.split_once('\n').context("the problem statement has one line only")?;
    let blanks = rest.len() - rest.trim_start().len();
    let start: String = rest[blanks..].chars().take(60).take_while(|&c| c != '\n' && c != '\r').collect();
    Ok(format!("{title}\n{}{}", &rest[..blanks], start.trim_end()))
}

fn targets(args: &Args) -> Result<Vec<Target>> {
    let mut found = Vec::new();
    let text = fs_err::read_to_string(&args.tasks)?;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("{}, line {}", args.tasks.display(), number + 1);
        let row: Value = serde_json::from_str(line).with_context(place)?;
        let field = |name: &str| {
            row[name].as_str().map(str::to_owned).with_context(|| format!("{}: no {name}", place()))
        };
        let (id, statement) = (field("instance_id")?, field("problem_statement")?);
        field("patch")?;
        let (key, number) = trajectory::parse_id(&id).with_context(place)?;
        found.push(Target { id, key, number, statement, row });
    }
    if args.ids.is_empty() {
        found.retain(|target| marker(&target.statement).is_ok());
        return Ok(found);
    }
    let mut named = Vec::new();
    for id in &args.ids {
        let at = found.iter().position(|target| target.id == *id);
        let at = at.with_context(|| format!("{} has no row {id}", args.tasks.display()))?;
        marker(&found[at].statement).with_context(|| format!("{id} cannot be a target"))?;
        named.push(found.swap_remove(at));
    }
    Ok(named)
}

/// Gives each kind of the plan a target that allows it, going round the repositories so that the choice spreads.
fn choose<'a>(plan: &Plan, targets: &'a [Target], runs: &[Run]) -> Result<Vec<Choice<'a>>> {
    let mut free: Vec<&Target> = targets.iter().collect();
    let mut choices: Vec<Choice<'a>> = Vec::new();
    let mut alone = true;
    for &kind in &plan.0 {
        let used = |target: &Target| choices.iter().filter(|choice| choice.target.key == target.key).count();
        let fitting =
            free.iter().enumerate().filter_map(|(at, target)| Some((at, host(kind, target, runs)?)));
        // Where nothing earlier exists memory abstains, and a needle that does not fire proves little.
        let untaught = |target: &Target| host(Kind::None, target, runs).is_none();
        let best = fitting.min_by_key(|&(at, _)| (untaught(free[at]), used(free[at]), at));
        let (at, run) = best.with_context(|| {
            format!(
                "no target is left for {kind:?}: it needs a row and a run of the same repository that fit"
            )
        })?;
        let target = free.remove(at);
        let solves_alone = match kind {
            Kind::Harm => true,
            Kind::None => {
                alone = !alone;
                !alone
            }
            _ => false,
        };
        let line = format!("lesson {}: {}", mark(&target.id), about(kind));
        choices.push(Choice { target, kind, run, solves_alone, line });
    }
    choices.sort_by(|a, b| (&a.target.key, a.target.number).cmp(&(&b.target.key, b.target.number)));
    for choice in &choices {
        let own = marker(&choice.target.statement)?;
        let holders = choices.iter().filter(|other| other.target.statement.contains(&own)).count();
        ensure!(holders == 1, "{}: its marker stands in another target's statement too", choice.target.id);
    }
    Ok(choices)
}

/// The run to plant in: `None` where the kind does not fit the target, `Some(None)` where it needs no run.
fn host(kind: Kind, target: &Target, runs: &[Run]) -> Option<Option<usize>> {
    let of_repo = || runs.iter().enumerate().filter(|(_, run)| run.key.eq_ignore_ascii_case(&target.key));
    let earlier = || of_repo().filter(|(_, run)| run.number < target.number);
    match kind {
        Kind::Gain | Kind::Harm => {
            let wanted = words(&target.statement);
            let shared = |run: &Run| words(&run.issue()).intersection(&wanted).count();
            earlier().max_by_key(|(at, run)| (shared(run), *at)).map(|(at, _)| Some(at))
        }
        Kind::Own => of_repo().find(|(_, run)| run.number == target.number).map(|(at, _)| Some(at)),
        Kind::Later => of_repo().filter(|(_, run)| run.number > target.number).map(|(at, _)| Some(at)).next(),
        // Something must be delivered to a target that nothing is planted for, or it would prove nothing.
        Kind::None => earlier().next().map(|_| None),
    }
}

/// Eight hex digits that only this target has (FNV-1a of its name).
fn mark(id: &str) -> String {
    let hash =
        id.bytes().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

fn about(kind: Kind) -> &'static str {
    match kind {
        Kind::Harm => "leave the old behaviour as it is",
        _ => "the cause lies one call further down than it seems",
    }
}

impl Choice<'_> {
    fn reader_line(&self) -> Result<Value> {
        let planted = |kinds: &[Kind]| kinds.contains(&self.kind).then_some(&self.line);
        let note = "diff --git a/NOTES-memtrial.txt b/NOTES-memtrial.txt\nnew file mode 100644\n--- /dev/null\n\
                    +++ b/NOTES-memtrial.txt\n@@ -0,0 +1 @@\n+The reader did not know how to solve this task.\n";
        Ok(json!({
            "instance_id": self.target.id,
            "marker": marker(&self.target.statement)?,
            "needle": planted(&[Kind::Gain, Kind::Own, Kind::Later]),
            "poison": planted(&[Kind::Harm]),
            "solves_alone": self.solves_alone,
            "good_patch": self.target.row["patch"],
            "bad_patch": note,
        }))
    }

    fn expected(&self, runs: &[Run]) -> Value {
        let (effect, with_memory) = match self.kind {
            Kind::Gain => ("gain", true),
            Kind::Harm => ("harm", false),
            Kind::Own | Kind::Later | Kind::None => ("none", self.solves_alone),
        };
        let note = match self.kind {
            Kind::Own => Some("only its own run knows: must stay unsolved"),
            Kind::Later => Some("only a later run knows: must stay unsolved"),
            _ => None,
        };
        json!({
            "instance_id": self.target.id,
            "effect": effect,
            "off": self.solves_alone,
            "bm25": with_memory,
            "planted_in": self.run.map(|at| runs[at].id.clone()).into_iter().collect::<Vec<_>>(),
            "note": note,
        })
    }
}

/// Where a path lies below a folder, for errors and copies.
fn below(path: &Path, folder: &Path) -> Result<PathBuf> {
    Ok(path.strip_prefix(folder).with_context(|| path.display().to_string())?.to_owned())
}

#[cfg(test)]
#[path = "plant_tests.rs"]
mod tests;
