//! `task audit --image`, with a real engine: `MEMTRIAL_DOCKER_IMAGE` names an image with git.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::super::memtrial;
use super::{Fixture, checkout, sh};

/// Images that are removed when this is dropped.
struct Images {
    engine: String,
    names: Vec<String>,
}

impl Images {
    fn run(&self, folder: &Path, args: &[&str]) {
        let mut command = Command::new(&self.engine);
        let output = command.args(args).env("DOCKER_BUILDKIT", "0").current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn build(&mut self, folder: &Path, name: &str, recipe: &str) -> String {
        let name = format!("localhost/memtrial/audit-test-{name}:{}", std::process::id());
        std::fs::write(folder.join("Dockerfile"), recipe).unwrap();
        self.names.push(name.clone());
        self.run(folder, &["build", "-q", "-t", &name, "."]);
        name
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        for name in self.names.iter().rev() {
            let _ = Command::new(&self.engine).args(["rmi", "-f", name]).output();
        }
    }
}

#[expect(clippy::print_stderr, reason = "what a test tells a person")]
fn say(line: &str) {
    eprintln!("{line}");
}

/// Detector and place of each finding, for the places that hold this text.
fn found<'a>(all: &'a Value, text: &str) -> Vec<(&'a str, &'a str)> {
    let findings = all[0]["findings"].as_array().unwrap().iter();
    let pairs = findings.map(|it| (it["detector"].as_str().unwrap(), it["where"].as_str().unwrap()));
    pairs.filter(|(_, place)| place.contains(text)).collect()
}

#[test]
fn a_published_image_is_audited_and_its_fixed_form_is_clean() {
    let Ok(base) = std::env::var("MEMTRIAL_DOCKER_IMAGE") else {
        say("skipped: MEMTRIAL_DOCKER_IMAGE names no image");
        return;
    };
    let engine = std::env::var("MEMTRIAL_ENGINE").unwrap_or_else(|_| "docker".to_owned());
    let mut images = Images { engine: engine.clone(), names: Vec::new() };
    let fixture = Fixture::new();
    let home = fixture.home.path();
    std::fs::write(home.join("tasks.jsonl"), fixture.row()).unwrap();
    checkout(&fixture);
    sh(home, "mkdir context; mv clone context/testbed; cp gold.patch test.patch context");
    let context = home.join("context");
    let leaky = images.build(
        &context,
        "leaky",
        &format!("FROM {base}\nCOPY testbed /testbed\nCOPY gold.patch test.patch /opt/\n"),
    );
    let audit = |image: &str, more: &[&str]| {
        let args =
            ["task", "audit", "tasks.jsonl", "--sandbox", "docker", "--engine", &engine, "--cache", "cache"];
        let (code, said, told) = memtrial(home, &[&args[..], &["--json", "--image", image], more].concat());
        (code, serde_json::from_str::<Value>(&said).unwrap_or_else(|_| panic!("{said} {told}")))
    };
    let (code, all) = audit(&leaky, &[]);
    assert_eq!(code, 1, "{all:#}");
    for pair in [
        ("branch", "/testbed/.git refs/heads/later"),
        ("tag", "/testbed/.git refs/tags/v1.3.0"),
        ("patch-file", "/testbed/notes.patch"),
        ("patch-file", "/opt/gold.patch"),
        ("patch-file", "/opt/test.patch"),
    ] {
        assert!(found(&all, "").contains(&pair), "{pair:?} in {all:#}");
    }
    // the image stays as it is; the fixed one is another
    let (code, all) = audit(&leaky, &["--fix"]);
    assert_eq!((code, found(&all, "").len()), (0, 0), "{all:#}");
    let fixed = all[0]["fixed_image"].as_str().unwrap().to_owned();
    images.names.push(fixed.clone());
    assert_eq!(audit(&leaky, &[]).0, 1);
    let (code, all) = audit(&fixed, &[]);
    assert_eq!((code, found(&all, "").len()), (0, 0), "{all:#}");
    // what an image says of itself: seen, and not ours to take away
    let lines = fixture.task.evaluator.patch.lines().filter_map(|line| line.strip_prefix('+'));
    let lines: Vec<&str> = lines.filter(|line| !line.contains(['"', '+'])).map(str::trim).collect();
    let recipe = format!(
        "FROM {fixed}\nENV SOLUTION=\"{}\"\nLABEL task=\"acme__widget-7 FAIL_TO_PASS\"\n",
        lines.join("; ")
    );
    let telling = images.build(&context, "telling", &recipe);
    let (code, all) = audit(&telling, &["--fix"]);
    assert_eq!(code, 1, "{all:#}");
    assert_eq!(
        found(&all, "SOLUTION"),
        [("environment-variable", "SOLUTION"), ("image-metadata", &*format!("{telling} variable SOLUTION")),]
    );
    let name = format!("{telling} label task");
    assert_eq!(found(&all, "label"), [("image-metadata", &*name)]);
    let steps = found(&all, " step ");
    assert!(steps.len() == 2 && steps.iter().all(|(detector, _)| *detector == "image-metadata"), "{all:#}");
    assert!(all[0]["findings"].as_array().unwrap().iter().all(|it| it["fixable"] == false), "{all:#}");
    assert!(all[0].get("fixed_image").is_none(), "{all:#}");
}
