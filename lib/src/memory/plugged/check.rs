//! Checks of a plugged-in program beyond those of every memory system: how it bears what a wire can bring.

use std::time::{Duration, Instant};

use serde_json::json;

use super::program::Site;
use super::resident::Keep;
use super::settings::ProgramSettings;
use super::system::Plugged;
use crate::memory::conformance::{check, example};
use crate::memory::{Budget, Experience, MemorySystem, Query, Retrieval, Scope};

/// How long a program may take to end when its input is closed.
const FAREWELL: Duration = Duration::from_secs(5);

/// Runs [`check`] and the checks of the wire over a program. Returns the failures, each a sentence that begins with the
/// check's name; none: the program conforms.
pub async fn program(settings: &ProgramSettings, site: &Site, delivers: bool) -> Vec<String> {
    let open = || {
        let system: Box<dyn MemorySystem> = Box::new(Plugged::new(settings.clone(), Some(site.clone())));
        Ok(system)
    };
    let mut failures = check(&open, delivers).await;
    let outcomes = [
        ("wire-garbage", garbage(settings, site).await),
        ("wire-unknown-method", unknown_method(settings, site).await),
        ("wire-crash", crash(settings, site).await),
        ("wire-end", end(settings, site).await),
    ];
    failures.extend(
        outcomes.into_iter().filter_map(|(name, outcome)| Some(format!("{name}: {}", outcome.err()?))),
    );
    failures
}

/// A system that has taken in two runs and is frozen, and the question that the second answers.
async fn frozen(settings: &ProgramSettings, site: &Site) -> Result<(Plugged, Query), String> {
    let (scope, runs, query): (Scope, Vec<Experience>, Query) = example()?;
    let mut system = Plugged::new(settings.clone(), Some(site.clone()));
    let failed = |error: crate::memory::MemoryError| error.to_string();
    system.prepare(&scope).await.map_err(failed)?;
    for run in &runs {
        let mut run = run.clone();
        if !settings.uses_outcome {
            run.outcome = None;
        }
        if !settings.reads_events {
            run.events.clear();
        }
        system.ingest(&run).await.map_err(failed)?;
    }
    system.flush().await.map_err(failed)?;
    system.freeze().await.map_err(failed)?;
    Ok((system, query))
}

async fn asked(system: &mut Plugged, query: &Query) -> Result<Retrieval, String> {
    let budget = Budget { records: 2, tokens: 1024 };
    system.retrieve(query, budget).await.map(|found| found.value).map_err(|error| error.to_string())
}

/// A line that is no message is refused or passed over; the next request is answered.
async fn garbage(settings: &ProgramSettings, site: &Site) -> Result<(), String> {
    let (mut system, query) = frozen(settings, site).await?;
    let live = system.live("retrieve").map_err(|error| error.to_string())?;
    live.send_raw(b"this is no message\n");
    let answer = asked(&mut system, &query).await;
    system.cleanup().await.map_err(|error| error.to_string())?;
    answer.map(drop).map_err(|error| format!("after a line that is no message: {error}"))
}

/// A method that is not there is refused with JSON-RPC's own code, so that optional ones can be left out.
async fn unknown_method(settings: &ProgramSettings, site: &Site) -> Result<(), String> {
    let (mut system, _) = frozen(settings, site).await?;
    let within = settings.retrieving();
    let live = system.live("retrieve").map_err(|error| error.to_string())?;
    let answer = live.ask_if_known("retrieve", "memtrial/none", json!({}), within, Keep::Once).await;
    system.cleanup().await.map_err(|error| error.to_string())?;
    match answer {
        Ok(None) => Ok(()),
        Ok(Some(value)) => Err(format!("a method that does not exist was answered with {value}")),
        Err(error) => Err(format!("expected JSON-RPC error -32601: {error}")),
    }
}

/// Ended between two requests it is started again, told all again, and answers as before; where it is not deterministic
/// it answers at all.
async fn crash(settings: &ProgramSettings, site: &Site) -> Result<(), String> {
    if settings.restarts == 0 {
        return Ok(());
    }
    let (mut system, query) = frozen(settings, site).await?;
    let before = asked(&mut system, &query).await?;
    system.live("retrieve").map_err(|error| error.to_string())?.crash();
    let after = asked(&mut system, &query).await?;
    system.cleanup().await.map_err(|error| error.to_string())?;
    if settings.deterministic && before != after {
        return Err("it calls itself deterministic and answers otherwise after it was started again".into());
    }
    Ok(())
}

/// It ends when its input does.
async fn end(settings: &ProgramSettings, site: &Site) -> Result<(), String> {
    let (mut system, _) = frozen(settings, site).await?;
    let began = Instant::now();
    system.cleanup().await.map_err(|error| error.to_string())?;
    if began.elapsed() > FAREWELL {
        return Err(format!("it took {:.1} s to end", began.elapsed().as_secs_f64()));
    }
    Ok(())
}
