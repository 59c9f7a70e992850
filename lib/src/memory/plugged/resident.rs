//! A program that is kept running: asked, started again and told everything again where it ended by itself.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::door::Door;
use super::home::Home;
use super::program::{self, Site};
use super::settings::ProgramSettings;
use super::spool::{Spool, Told};
use super::talk::{Fault, Skipped, Talk, clipped};
use super::wire::SelfReported;
use crate::llm::Cost;
use crate::memory::{MemoryError, Scope, Store};

/// How much of a program's standard error a message quotes.
const LAST_WORDS: usize = 1500;

/// Whether a request is told again to a program that was started again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Keep {
    Again,
    Once,
}

/// What is noted of a program's life.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub restarts: u32,
    pub said: Vec<String>,
    pub skipped: Skipped,
    pub reported: SelfReported,
    /// What a program says went wrong though it went on.
    pub degraded: Vec<String>,
}

/// The program with all that belongs to it.
pub(super) struct Resident {
    name: String,
    settings: ProgramSettings,
    site: Site,
    pub home: Home,
    door: Option<Door>,
    talk: Option<Talk>,
    spool: Spool,
    pub ingested: u64,
    pub notes: Notes,
}

impl Resident {
    /// Starts it in an empty folder.
    pub async fn start(
        name: &str,
        settings: &ProgramSettings,
        site: &Site,
        scope: &Scope,
    ) -> Result<Self, MemoryError> {
        let failed =
            |reason: String| MemoryError::System { system: name.to_owned(), call: "prepare", reason };
        let label = format!("{}-", scope.target);
        let home = Home::new(&site.state, &label, settings.not_store.clone(), settings.state_mib << 20);
        let home = home.map_err(|error| failed(format!("no state folder: {error}")))?;
        let spool = Spool::new(home.beside("told.jsonl")).map_err(|error| failed(error.to_string()))?;
        let door = match &site.calls {
            Some(calls) => {
                let opened = Door::open(calls, scope, site.isolates(), &home.beside("calls")).await;
                Some(opened.map_err(|reason| failed(format!("no way to the model: {reason}")))?)
            }
            None => None,
        };
        let (settings, site) = (settings.clone(), site.clone());
        let (talk, ingested, notes) = (None, 0, Notes::default());
        let mut resident =
            Self { name: name.to_owned(), settings, site, home, door, talk, spool, ingested, notes };
        resident.begin().await.map_err(failed)?;
        Ok(resident)
    }

    /// The state folder as the program sees it.
    pub fn state_inside(&self) -> String {
        self.site.state_inside(&self.home.state()).display().to_string()
    }

    /// Whether it can ask a model.
    pub fn has_model(&self) -> bool {
        self.door.is_some()
    }

    async fn begin(&mut self) -> Result<(), String> {
        let gateway = self.door.as_ref().and_then(Door::socket);
        let env = self.door.as_ref().map(|door| door.env().into_iter().collect()).unwrap_or_default();
        let started = program::start(&self.settings, &self.site, &self.home.state(), gateway, env).await;
        let attached = started.map_err(|error| error.to_string())?;
        let longest = usize::try_from(self.settings.reply_mib << 20).unwrap_or(usize::MAX);
        self.talk = Some(Talk::new(attached, longest));
        Ok(())
    }

    /// Asks, and starts the program again where it ends by itself.
    pub async fn ask(
        &mut self,
        call: &'static str,
        method: &str,
        params: Value,
        within: Duration,
        keep: Keep,
    ) -> Result<Value, MemoryError> {
        let told = Told { method: method.to_owned(), params, seconds: Some(within.as_secs()) };
        self.ask_or_fault(call, &told, keep)
            .await?
            .map_err(|(code, message)| self.failure(call, format!("{message} (JSON-RPC error {code})")))
    }

    /// As [`Resident::ask`]; `None` where the program has no such method.
    pub async fn ask_if_known(
        &mut self,
        call: &'static str,
        method: &str,
        params: Value,
        within: Duration,
        keep: Keep,
    ) -> Result<Option<Value>, MemoryError> {
        let told = Told { method: method.to_owned(), params, seconds: Some(within.as_secs()) };
        match self.ask_or_fault(call, &told, keep).await? {
            Ok(value) => Ok(Some(value)),
            Err((super::talk::NO_METHOD, _)) => Ok(None),
            Err((code, message)) => Err(self.failure(call, format!("{message} (JSON-RPC error {code})"))),
        }
    }

    /// Tells what is not answered.
    pub async fn tell(&mut self, method: &str, params: Value) -> Result<(), MemoryError> {
        let told = Told { method: method.to_owned(), params, seconds: None };
        self.ask_or_fault("prepare", &told, Keep::Again).await.map(drop)
    }

    /// The outer error ends the program; the inner one is its own answer.
    async fn ask_or_fault(
        &mut self,
        call: &'static str,
        told: &Told,
        keep: Keep,
    ) -> Result<Result<Value, (i64, String)>, MemoryError> {
        let mut again = false;
        loop {
            let heard = if again { self.retell(told).await } else { self.say(told).await };
            match heard {
                Ok(value) => {
                    if keep == Keep::Again {
                        self.spool.push(told).map_err(|error| self.failure(call, error.to_string()))?;
                    }
                    return Ok(Ok(value));
                }
                Err(Fault::Refused { code, message }) => return Ok(Err((code, message))),
                Err(Fault::Ended) if self.talk.is_some() && self.notes.restarts < self.settings.restarts => {
                    self.notes.restarts += 1;
                    again = true;
                }
                Err(fault) => {
                    let reason = match fault {
                        Fault::Ended if self.talk.is_none() => "it was ended after an earlier failure".into(),
                        Fault::Ended => match self.notes.restarts {
                            0 => "it ended by itself".to_owned(),
                            times => {
                                format!("it ended by itself, also after it was started again {times} times")
                            }
                        },
                        Fault::Late(limit) => format!("no answer within {} s", limit.as_secs()),
                        Fault::Broken(reason) => reason,
                        Fault::Refused { message, .. } => message,
                    };
                    let words = self.halt().await;
                    return Err(self.failure(call, format!("{reason}{words}")));
                }
            }
        }
    }

    async fn say(&mut self, told: &Told) -> Result<Value, Fault> {
        let talk = self.talk.as_mut().ok_or(Fault::Ended)?;
        match told.seconds {
            Some(seconds) => talk.ask(&told.method, &told.params, Duration::from_secs(seconds)).await,
            None => talk.tell(&told.method, &told.params, Duration::from_secs(60)).await.map(|()| json!({})),
        }
    }

    /// Starts the program again on an empty state, tells it all that it knew, and asks again.
    async fn retell(&mut self, told: &Told) -> Result<Value, Fault> {
        let broken = |reason: String| Fault::Broken(format!("it could not be started again: {reason}"));
        self.halt().await;
        self.home.wipe().map_err(|error| broken(error.to_string()))?;
        self.begin().await.map_err(broken)?;
        let messages = self.spool.messages().map_err(|error| broken(error.to_string()))?;
        for message in messages {
            let message = message.map_err(|error| broken(error.to_string()))?;
            self.say(&message).await?;
        }
        self.say(told).await
    }

    /// Ends the program. Returns what a message says of its last words.
    async fn halt(&mut self) -> String {
        let Some(talk) = self.talk.take() else { return String::new() };
        let skipped = talk.skipped.clone();
        let said = talk.end().await;
        let mut words = String::new();
        if !said.is_empty() {
            let start = said.char_indices().rev().nth(LAST_WORDS).map_or(0, |(at, _)| at);
            words = format!("; its standard error ends: {}", said[start..].trim());
            self.notes.said.push(said);
        }
        if skipped.lines > 0 {
            let last = clipped(&skipped.last, 200);
            words.push_str(&format!(
                "; {} lines of its output were no JSON-RPC, the last: {last:?}",
                skipped.lines
            ));
        }
        self.notes.skipped.lines += skipped.lines;
        if !skipped.last.is_empty() {
            self.notes.skipped.last = skipped.last;
        }
        words
    }

    /// The failure of a call. A program may show the failure of a model call as one of its own.
    pub fn failure(&self, call: &'static str, reason: String) -> MemoryError {
        let trouble = self.door.as_ref().and_then(Door::trouble);
        let reason = match trouble {
            Some(trouble) => format!("{reason}; its last failed model call: {trouble}"),
            None => reason,
        };
        MemoryError::System { system: self.name.clone(), call, reason }
    }

    /// What its model calls cost since this was last asked.
    pub fn charge(&mut self) -> Cost {
        self.door.as_mut().map_or(Cost::ZERO, Door::charge)
    }

    /// The store as it lies there now.
    pub fn store(&self) -> Result<Store, MemoryError> {
        self.home.store(self.ingested).map_err(|error| self.failure("freeze", error.to_string()))
    }

    /// Copies the store, with a note of the program's life.
    pub fn keep(&self, folder: &Path, about: &Value) -> Result<(), MemoryError> {
        let mut skipped = self.notes.skipped.clone();
        if let Some(talk) = &self.talk {
            skipped.lines += talk.skipped.lines;
            skipped.last.clone_from(&talk.skipped.last);
        }
        let note = json!({
            "program": about,
            "restarts": self.notes.restarts,
            "skipped_lines": skipped.lines,
            "last_skipped_line": skipped.last,
            "self_reported": self.notes.reported,
            "degraded": self.notes.degraded,
            "last_failed_model_call": self.door.as_ref().and_then(Door::trouble),
            "last_words": self.notes.said,
            "isolated": self.site.isolates(),
        });
        let written = || {
            self.home.copy(&folder.join("state"))?;
            fs_err::write(folder.join("program.json"), format!("{note:#}\n"))
        };
        written().map_err(|error| self.failure("snapshot", error.to_string()))
    }

    /// Sends bytes that are no message.
    pub(super) fn send_raw(&mut self, bytes: &[u8]) {
        if let Some(talk) = &mut self.talk {
            talk.send_raw(bytes);
        }
    }

    /// Ends the program as a crash would, without a word to it. The next request starts it again.
    pub(super) fn crash(&mut self) {
        if let Some(talk) = &mut self.talk {
            talk.cut();
        }
    }

    /// Ends everything. Returns what its last model calls cost.
    pub async fn end(mut self) -> Cost {
        self.halt().await;
        match self.door.take() {
            Some(door) => door.shut().await,
            None => Cost::ZERO,
        }
    }
}
