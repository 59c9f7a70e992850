//! `memtrial memory retrieve`.

use std::path::PathBuf;

use memtrial::dataset::{MergeDates, read_tasks};
use memtrial::memory::host::{Injection, Outcome as Answer, Retrieved, Setup};
use memtrial::memory::index::Index;
use memtrial::memory::{Budget, Query, Record};
use memtrial::task::InstanceId;
use serde_json::{Value, json};

use super::asked::EmbedArgs;
use super::failure;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// Who asks.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The index
    index: PathBuf,
    /// Task files that hold the target
    #[arg(long, value_name = "FILE", required = true)]
    tasks: Vec<PathBuf>,
    /// The target
    #[arg(long, value_name = "ID", value_parser = InstanceId::parse)]
    target: InstanceId,
    /// Words to search with instead of the target's problem statement
    #[arg(long, value_name = "WORDS")]
    query: Option<String>,
    /// Records, at most
    #[arg(short, default_value_t = 1, value_name = "K")]
    k: usize,
    /// Tokens of all records together, at most
    #[arg(long, default_value_t = 1024, value_name = "N")]
    tokens: u64,
    #[command(flatten)]
    embed: EmbedArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let mut tasks = Vec::new();
    for path in &args.tasks {
        tasks.extend(read_tasks(path)?.tasks);
    }
    let Some(task) = tasks.iter().find(|task| *task.id() == args.target) else {
        return Err(Failure::input(anyhow::anyhow!("task {} is in none of the files", args.target)));
    };
    let dates = MergeDates::from_tasks(&tasks);
    let index = Index::open(&args.index).map_err(failure)?;
    let setup = Setup::plain(Budget { records: args.k, tokens: args.tokens });
    let merged_at = dates.merged_at(&args.target);
    let mut host =
        index.host(&args.target, merged_at, &args.embed.resources()?, setup).await.map_err(failure)?;
    let query = Query { text: args.query.clone(), ..Query::at_start((&task.solver).into()) };
    let retrieved = host.retrieve(&query).await.map_err(failure)?;
    if args.json {
        ui::json(&as_json(&args.target, &retrieved))?;
        return Ok(Exit::Done);
    }
    match &retrieved.outcome {
        Answer::Abstained { reason } => ui::data(&format!("abstained: {reason}")),
        Answer::Injected(injection) => print(injection),
    }
    Ok(Exit::Done)
}

fn as_json(target: &InstanceId, retrieved: &Retrieved) -> Value {
    let record = |record: &Record| {
        json!({
            "id": record.id,
            "source_instance_id": record.source,
            "score": record.score,
            "why": record.why,
            "tokens": record.tokens,
            "text": record.text,
        })
    };
    let mut answer = json!({ "target": target, "eligible": retrieved.eligible, "cost": retrieved.retrieve });
    let found = match &retrieved.outcome {
        Answer::Abstained { reason } => json!({ "abstained": reason }),
        Answer::Injected(injection) => json!({
            "records": injection.records.iter().map(record).collect::<Vec<_>>(),
            "block": injection.block,
            "injected_tokens": injection.injected_tokens,
            "sources": injection.sources,
            "files": injection.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
        }),
    };
    if let (Value::Object(answer), Value::Object(found)) = (&mut answer, found) {
        answer.extend(found);
    }
    answer
}

fn print(injection: &Injection) {
    for record in &injection.records {
        let (id, why) = (record.id.as_deref().unwrap_or("-"), record.why.as_deref().unwrap_or("-"));
        ui::data(&format!("{id}  ({why}; {} tokens)", record.tokens));
        record.text.lines().for_each(|line| ui::data(&format!("  {line}")));
    }
    if injection.records.is_empty() {
        ui::data(injection.block.trim_end());
    }
    for file in &injection.files {
        ui::data(&format!("file {} ({} bytes)", file.path, file.content.len()));
    }
}
