//! `kill -9` at every step boundary of a trial and at random moments of a study, with commands that never print the
//! same twice.

use std::path::{Path, PathBuf};
use std::time::Duration;

use memtrial_testkit::{Act, Player, Reader};
use serde_json::Value;

use crate::study::{FEW, Study, told};

/// A reader whose first command is another one each time it is executed.
struct Restless {
    reader: Reader,
    command: &'static str,
    delay: Duration,
}

/// Prints what is never the same twice, and always as long: token counts stay.
const PRINTS: &str = "printf '%05d %s\\n' $RANDOM $(date +%s%N)";

/// Leaves it in a file of the repository.
const WRITES: &str = "echo $RANDOM $(date +%s%N) > noise.txt";

impl Player for Restless {
    fn play(&self, request: &Value) -> Act {
        let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let act = match messages.iter().position(|message| message["role"] == "assistant") {
            None => Act::bash("I throw dice.", self.command, 99),
            Some(first) => {
                let mut rest = request.clone();
                rest["messages"].as_array_mut().unwrap().drain(first..first + 2);
                self.reader.play(&rest)
            }
        };
        Act::Stall(self.delay, Box::new(act))
    }
}

fn restless(targets: &[&str], command: &'static str, delay: u64) -> Study {
    Study::played(targets, |reader| Restless { reader, command, delay: Duration::from_millis(delay) })
}

/// What a trial writes, in order: a line of a file, or a file as a whole.
fn writes(trial: &Path, id: &str) -> Vec<(String, usize)> {
    let count = |name: &str| std::fs::read_to_string(trial.join(name)).unwrap().matches('\n').count();
    let calls = count("calls.jsonl");
    // run, started, and a reply and a command a call; two prompts, and a reply and an observation a call
    assert_eq!((count("events.jsonl"), count("messages.jsonl")), (2 + 2 * calls, 2 + 2 * calls));
    let line = |name: &str, number: usize| (format!("{name}.jsonl"), number);
    let mut writes = vec![line("events", 1), line("events", 2), line("messages", 1), line("messages", 2)];
    for call in 1..=calls {
        writes.extend([
            line("calls", call),
            line("events", 1 + 2 * call),
            line("messages", 1 + 2 * call),
            line("events", 2 + 2 * call),
            line("messages", 2 + 2 * call),
        ]);
    }
    let whole = [
        format!("{id}.traj.json").as_str(),
        "finished.json",
        "prediction.json",
        "test_output.txt",
        "graded.json",
    ]
    .map(|name| (name.to_owned(), 0));
    writes.extend(whole);
    writes
}

/// Brings a trial's folder to what a kill after so many of its writes leaves.
fn cut_back(full: &Path, trial: &Path, writes: &[(String, usize)]) {
    let _ = std::fs::remove_dir_all(trial);
    std::fs::create_dir_all(trial).unwrap();
    for (name, number) in writes {
        let text = std::fs::read_to_string(full.join(name)).unwrap();
        let kept = match number {
            0 => text,
            lines => text.split_inclusive('\n').take(*lines).collect(),
        };
        std::fs::write(trial.join(name), kept).unwrap();
    }
}

#[test]
fn a_trial_killed_between_any_two_writes_ends_as_if_it_had_not_been() {
    let study = restless(&FEW[..1], PRINTS, 0);
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let (id, whole) = (FEW[0], study.records(&FEW[..1]));
    let trial = study.path(&format!("trials/bm25/reader/1/{id}"));
    let claims = study.path(&format!("claims/trials/bm25/reader/1/{id}"));
    let full = study.path("full");
    std::fs::rename(&trial, &full).unwrap();
    std::fs::rename(&claims, study.path("full-claims")).unwrap();
    let writes = writes(&full, id);
    let calls = whole[&("bm25", id.to_owned())]["steps"].as_u64().unwrap() as usize;
    for kept in 0..=writes.len() {
        cut_back(&full, &trial, &writes[..kept]);
        let _ = std::fs::remove_dir_all(&claims);
        std::fs::create_dir_all(&claims).unwrap();
        std::fs::copy(study.path("full-claims/000001.json"), claims.join("000001.json")).unwrap();
        if kept % 2 == 1 {
            // a power cut may leave a line torn as well
            for name in ["events.jsonl", "calls.jsonl", "messages.jsonl"].map(|name| trial.join(name)) {
                if let Ok(text) = std::fs::read_to_string(&name) {
                    std::fs::write(&name, text + "{\"torn").unwrap();
                }
            }
        }
        let before = study.reader.count();
        let output = study.run(&[]);
        assert_eq!(output.status.code(), Some(0), "after {kept} writes: {}", told(&output));
        let answered = writes[..kept].iter().filter(|(name, _)| name == "calls.jsonl").count();
        assert_eq!(study.reader.count() - before, calls - answered, "after {kept} writes");
        assert_eq!(study.records(&FEW[..1]), whole, "after {kept} writes");
        if kept == writes.len() {
            let graded = |trial: &Path| std::fs::read(trial.join("graded.json")).unwrap();
            assert_eq!(graded(&trial), graded(&full), "what was graded is not graded again");
        }
    }
    // a damaged record is named, and what to do
    std::fs::write(trial.join("verdict.json"), "").unwrap();
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(told(&output).contains("remove the file to have it made again"), "{}", told(&output));
    // so is one whose process was killed between the end's entry and the record's place
    std::fs::remove_file(trial.join("verdict.json")).unwrap();
    let before = study.reader.count();
    assert_eq!(study.run(&[]).status.code(), Some(0));
    assert_eq!((study.records(&FEW[..1]), study.reader.count()), (whole, before));

    // a line that is whole and no event: what it stood for is lost, so the attempt is, and its cost is kept
    cut_back(&full, &trial, &writes[..14]);
    std::fs::write(trial.join("events.jsonl"), "nonsense\n").unwrap();
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let record = &study.records(&FEW[..1])[&("bm25", id.to_owned())];
    assert_eq!((&record["attempts"], &record["abandoned_cost"]["calls"]), (&2.into(), &2.into()), "{record}");
}

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Every record that is there, by its path.
fn finished(study: &Study) -> Vec<(PathBuf, Vec<u8>)> {
    let trials =
        FEW.iter().flat_map(|id| ["off", "bm25"].map(|c| format!("trials/{c}/reader/1/{id}/verdict.json")));
    trials
        .map(|path| study.path(&path))
        .filter_map(|path| Some((path.clone(), std::fs::read(&path).ok()?)))
        .collect()
}

/// Kills a study at random moments until it is finished. Returns the kills, and the calls that were under way then.
fn killed_at_random(study: &Study, dice: &mut Dice, most: usize) -> (usize, usize) {
    let (mut kills, mut lost) = (0, 0);
    while kills < most && finished(study).len() < 6 {
        let before = finished(study);
        let mut child = study.start(&[]);
        // a moment after so many more calls; after none: while it begins, grades gold, executes again
        let (asked, more) = (study.reader.count(), dice.below(8) as usize);
        crate::workers::until("the study", || {
            study.reader.count() >= asked + more || child.try_wait().unwrap().is_some()
        });
        std::thread::sleep(Duration::from_millis(dice.below(if more == 0 { 1000 } else { 150 })));
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        let unanswered = study.reader.count() - study.journalled();
        assert!(unanswered - lost <= 2, "{} calls lost by one kill, two trials at a time", unanswered - lost);
        lost = unanswered;
        for (path, bytes) in before {
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "{} was finished", path.display());
        }
    }
    let output = study.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert_eq!(study.reader.count() - study.journalled(), lost, "an answered call was paid twice");
    assert_eq!(study.reader.violations(), Vec::<String>::new());
    (kills, lost)
}

/// `MEMTRIAL_KILLS` says how often; the seed is fixed.
fn kills() -> usize {
    std::env::var("MEMTRIAL_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(25)
}

#[test]
#[expect(clippy::print_stdout, reason = "figures for whoever runs it by hand with --nocapture")]
fn kills_at_random_moments_lose_nothing() {
    let undisturbed = restless(&FEW, PRINTS, 0);
    let output = undisturbed.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let (mut dice, mut killed, mut lost, mut studies) = (Dice(7), 0, 0, 0);
    while killed < kills() {
        let study = restless(&FEW, PRINTS, 60);
        let (more, calls) = killed_at_random(&study, &mut dice, kills() - killed);
        (killed, lost, studies) = (killed + more, lost + calls, studies + 1);
        assert_eq!(study.records(&FEW), undisturbed.records(&FEW));
        let needed = undisturbed.reader.count();
        assert_eq!(study.journalled(), needed, "{calls} calls were under way at {more} kills");
    }
    println!("{killed} kills of {studies} studies: {lost} calls were under way, none paid twice");
}

#[test]
fn a_command_that_leaves_chance_in_a_file_makes_a_new_attempt() {
    let study = restless(&FEW[..1], WRITES, 150);
    let mut child = study.start(&["--jobs", "1"]);
    crate::workers::until("the study", || study.journalled() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let paid = study.journalled();
    let output = study.run(&["--jobs", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("left its record"), "{}", told(&output));
    let records = study.records(&FEW[..1]);
    let again: Vec<_> = records.iter().filter(|(_, record)| record["attempts"] == 2).collect();
    let [((condition, id), record)] = again[..] else { panic!("one trial was in flight: {records:?}") };
    let abandoned = study.json(&format!("trials/{condition}/reader/1/{id}/abandoned.json"));
    assert!(abandoned["reason"].as_str().unwrap().contains("repository"), "{abandoned}");
    assert_eq!(record["abandoned_cost"]["calls"], abandoned["spent"]["calls"], "{record}");
    assert!((3..=paid as u64).contains(&abandoned["spent"]["calls"].as_u64().unwrap()), "{abandoned}");
    let total = record["abandoned_cost"]["calls"].as_u64().unwrap() + record["steps"].as_u64().unwrap();
    assert_eq!(record["solver_cost"]["calls"], total, "both costs are kept");
    let report = study.json("report/report.json");
    assert_eq!(report["spent"]["abandoned"]["calls"], record["abandoned_cost"]["calls"]);
    let text = std::fs::read_to_string(study.path("report/report.txt")).unwrap();
    assert!(text.contains("in attempts that were given up") || text.contains("given up"), "{text}");
}
