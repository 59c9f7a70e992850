use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::*;

const LEASE: Duration = Duration::from_secs(60);

struct World {
    folder: tempfile::TempDir,
    layout: Layout,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path().join("study"));
        Self { folder, layout }
    }

    fn join(&self, name: &str) -> Worker {
        Worker::join(&self.layout, name, LEASE).unwrap()
    }

    fn result(&self) -> PathBuf {
        self.folder.path().join("verdict.json")
    }

    fn take(&self, worker: &Worker) -> Option<Claim> {
        worker.take(Path::new("trials/x"), &self.result()).unwrap()
    }

    /// Makes a claim of a worker on another machine whose heartbeat never changes.
    fn stranger(&self) -> Claim {
        let mut owner = Owner::here("stranger".into(), 1).with_run(1);
        owner.machine = "another machine".into();
        let log = Log::new(self.layout.claims().join("trials/x"));
        assert!(log.add(1, &entry(Deed::Claimed, &owner)).unwrap());
        Claim { log, number: 1, owner, before: None }
    }
}

/// Takes a claim from a worker that gives no sign of life.
fn takeover(world: &World, worker: &Worker) -> Claim {
    let began = Instant::now();
    loop {
        if let Some(claim) = world.take(worker) {
            return claim;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the claim is not taken over");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn of_many_workers_exactly_one_takes() {
    let world = World::new();
    let (taken, tried) = (AtomicUsize::new(0), std::sync::Barrier::new(8));
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (world, taken, tried) = (&world, &taken, &tried);
            scope.spawn(move || {
                let worker = world.join(&format!("w{number}"));
                let claim = world.take(&worker);
                tried.wait();
                if let Some(claim) = claim {
                    taken.fetch_add(1, Ordering::Relaxed);
                    assert!(claim.publish(&world.result(), b"{}").unwrap());
                }
            });
        }
    });
    assert_eq!(taken.load(Ordering::Relaxed), 1);
    assert_eq!(std::fs::read(world.result()).unwrap(), b"{}");
}

#[test]
fn what_is_given_back_is_free() {
    let world = World::new();
    let (a, b) = (world.join("a"), world.join("b"));
    let claim = world.take(&a).unwrap();
    assert!(world.take(&b).is_none() && claim.is_mine());
    claim.release().unwrap();
    assert_eq!(world.take(&b).unwrap().before, None);
}

#[test]
fn a_worker_that_has_left_holds_nothing() {
    let world = World::new();
    let gone = world.join("gone");
    let claim = world.take(&gone).unwrap();
    drop(gone);
    let next = world.take(&world.join("next")).unwrap();
    assert_eq!(next.before, None);
    assert!(!claim.is_mine());
    assert!(!claim.publish(&world.result(), b"late").unwrap());
    assert!(!world.result().exists());
}

#[test]
fn a_silent_worker_that_comes_back_publishes_nothing() {
    let world = World::new();
    let late = world.stranger();
    let worker = world.join("w");
    assert!(world.take(&worker).is_none(), "a first look tells nothing");
    let claim = takeover(&world, &worker);
    assert_eq!(
        claim.before.as_ref().map(|(number, owner)| (*number, owner.worker.as_str())),
        Some((1, "stranger"))
    );
    assert!(!late.publish(&world.result(), b"late").unwrap());
    assert!(claim.publish(&world.result(), b"right").unwrap());
    assert!(!late.publish(&world.result(), b"late").unwrap());
    assert_eq!(std::fs::read(world.result()).unwrap(), b"right");
    assert_eq!(std::fs::read_dir(world.folder.path()).unwrap().count(), 2, "only the study and the result");
}

#[test]
fn a_worker_held_up_before_its_last_rename_publishes_nothing() {
    let world = World::new();
    let late = world.stranger();
    // what `publish` does before the rename
    write(&unpublished(&world.result(), 1), b"late").unwrap();
    assert!(late.log.add(2, &entry(Deed::Finished, &late.owner)).unwrap());
    let worker = world.join("w");
    let claim = takeover(&world, &worker);
    let renamed = std::fs::rename(unpublished(&world.result(), 1), world.result());
    assert_eq!(renamed.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    assert!(claim.publish(&world.result(), b"right").unwrap());
    // nobody is left who could come back to the attempt: the stranger had finished with it
    assert_eq!(claim.before, None);
}

#[test]
fn a_name_serves_one_living_worker() {
    let world = World::new();
    let first = world.join("w");
    let error = Worker::join(&world.layout, "w", LEASE).err().unwrap().to_string();
    assert!(error.contains("is at work already"), "{error}");
    assert_eq!(joined(&world.layout).unwrap().len(), 1);
    drop(first);
    assert_eq!(joined(&world.layout).unwrap().len(), 0);
    assert_eq!(world.join("w").owner.run, 3);
}
