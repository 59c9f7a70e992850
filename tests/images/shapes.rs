//! Images of SWE-bench's, SWE-rebench V2's and v1's shapes, with the future planted in each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use memtrial::dataset::read_tasks;
use memtrial::sandbox::environment::{Base, Environments, Naming, Settings};
use memtrial::sandbox::{Exec, Mount};
use memtrial_testkit::image::{Image, Layer, host_programs};
use memtrial_testkit::{FakeServer, ImageRegistry, Reader, bundle};
use serde_json::{Value, json};

use super::{backend, backends, block_on, settings};
use crate::memtrial;

const SWEBENCH: &str = "quillon__tabletalk-21";
const V2: &str = "ostler__spanwise-9";
const V1: &str = "brindle__globlet-5";

/// A folder with `tasks.jsonl` (the three tasks with their images' names) and a registry that has these images.
struct Published {
    folder: tempfile::TempDir,
    registry: ImageRegistry,
    /// Each task's fix, which its image holds until it is stripped.
    fixes: Vec<(String, String)>,
}

impl Published {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/bundled");
        bundle::run(&bundle::Args { out: data.clone(), source }).unwrap();
        let mut published = Self { folder, registry: ImageRegistry::start().unwrap(), fixes: Vec::new() };
        let rows: Vec<Value> = ["tasks.jsonl", "earlier-tasks.jsonl"]
            .iter()
            .flat_map(|name| {
                let text = fs::read_to_string(data.join(name)).unwrap();
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()
            })
            .collect();
        let mut lines = String::new();
        for id in [SWEBENCH, V2, V1] {
            let mut row = rows.iter().find(|row| row["instance_id"] == id).unwrap().clone();
            published.publish(&data, &mut row);
            lines += &format!("{row}\n");
        }
        fs::write(published.folder.path().join("tasks.jsonl"), lines).unwrap();
        published
    }

    /// Builds and pushes the image of a task in its shape, and names it in the row.
    fn publish(&mut self, data: &Path, row: &mut Value) {
        let id = row["instance_id"].as_str().unwrap().to_owned();
        let base = row["base_commit"].as_str().unwrap().to_owned();
        let fix = row["meta"]["merge_commit"].as_str().unwrap().to_owned();
        let (key, number) = id.rsplit_once('-').unwrap();
        let clone = data.join("repos").join(format!("{key}.git"));
        let work = self.folder.path().join("work").join(&id);
        fs::create_dir_all(&work).unwrap();
        plant(&clone, &work, &base, &id);
        let name = key.split_once("__").unwrap().1;
        let at = if id == V2 { format!("/{name}") } else { "/testbed".to_owned() };
        let (repository, tag) = match id.as_str() {
            SWEBENCH => {
                (format!("swebench/sweb.eval.x86_64.{}", id.replace("__", "_1776_")), "latest".to_owned())
            }
            V2 => (format!("swerebenchv2/{}", key.replace("__", "-")), format!("{number}-{}", &base[..7])),
            _ => (format!("swerebench/sweb.eval.x86_64.{}", id.replace("__", "_1776_")), "latest".to_owned()),
        };
        let mut image = Image::new(vec![host_programs(), Layer::new().tree(&work, &at).unwrap()]);
        if id == SWEBENCH {
            image.layers.insert(1, conda());
            row["install_config"]["test_cmd"] =
                json!("python -m pytest -rA --tb=short --color=no -p no:cacheprovider");
        } else {
            row["image_name"] = json!(format!("docker.io/{repository}:{tag}"));
        }
        image.workdir = if id == V2 { at } else { String::new() };
        self.registry.push(&repository, &tag, &image).unwrap();
        self.fixes.push((id, fix));
    }

    fn memtrial(&self, cache: &Path, args: &[&str]) -> (i32, String, String) {
        let (registry, cache) = (self.registry.host(), cache.display().to_string());
        memtrial(self.folder.path(), &[args, &["--registry", &registry, "--cache", &cache]].concat())
    }

    fn mounts(&self) -> Vec<Mount> {
        // Debian's links from /usr/bin lead through the second.
        let shown = ["/usr", "/etc/alternatives"].map(PathBuf::from).into_iter().filter(|path| path.is_dir());
        let mut mounts: Vec<_> = shown.map(|path| Mount { host: path.clone(), inside: path }).collect();
        let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
        let host = PathBuf::from(String::from_utf8(sysroot.stdout).unwrap().trim());
        if !host.starts_with("/usr") {
            mounts.push(Mount { host, inside: "/opt/rust".into() });
        }
        mounts
    }
}

/// What stands for conda: an environment whose `python` is found only where it is activated.
fn conda() -> Layer {
    let activate = "conda() { [ \"$1\" = activate ] || return 2\n\
        export CONDA_DEFAULT_ENV=$2 CONDA_PREFIX=/opt/miniconda3/envs/$2 PATH=/opt/miniconda3/envs/$2/bin:$PATH\n}\n";
    Layer::new().file("opt/miniconda3/bin/activate", activate.as_bytes(), 0o644).file(
        "opt/miniconda3/envs/testbed/bin/python",
        b"#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n",
        0o755,
    )
}

/// A clone as builders leave it: later commits on the branch's remote, in the reflog, under tags, in notes, stash, a
/// replace ref, another worktree and loose, the work folder at the base commit.
fn plant(clone: &Path, work: &Path, base: &str, id: &str) {
    let own =
        if id == SWEBENCH { "git commit -q --allow-empty -m SWE-bench" } else { "echo built > build.log" };
    let script = format!(
        "set -e; export HOME={work} GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
         git clone -q {clone} . && chmod -R 777 .
         git notes add -m 'the fix' HEAD
         git replace {base} HEAD
         git worktree add -q ../{id}-other HEAD && rm -rf ../{id}-other
         echo x >> README.md && git stash -q
         git branch later && git tag -a -m future v99
         GIT_NO_REPLACE_OBJECTS=1 git reset -q --hard {base}
         git fetch -q origin HEAD
         {own}",
        clone = clone.display(),
        work = work.display(),
    );
    let status = Command::new("bash").args(["-c", &script]).current_dir(work).status().unwrap();
    assert!(status.success(), "{id}");
}

#[test]
fn gold_is_resolved_in_every_shape_and_the_empty_patch_is_not() {
    let published = Published::new();
    for name in backends() {
        let cache = tempfile::tempdir().unwrap();
        let mut common =
            vec!["grade", "--tasks", "tasks.jsonl", "--base", "published:swe-bench", "--sandbox", name];
        let mounts: Vec<String> = published
            .mounts()
            .iter()
            .map(|mount| format!("--mount={}:{}", mount.host.display(), mount.inside.display()))
            .collect();
        common.extend(mounts.iter().map(String::as_str));
        let (gold, empty) = (format!("{name}-gold"), format!("{name}-empty"));
        let run = |more: &[&str]| published.memtrial(cache.path(), &[&common, more].concat());
        let (code, out, err) = run(&["--gold", "--out", &gold]);
        assert!(code == 0 && out.contains("3 of 3 resolved"), "{code} {out} {err}");
        let (code, out, err) = run(&["--empty", "--out", &empty]);
        assert!(code == 0 && out.contains("0 of 3 resolved, 3 unresolved"), "{code} {out} {err}");
        let verdict =
            fs::read_to_string(published.folder.path().join(&gold).join(V2).join("verdict.json")).unwrap();
        let verdict: Value = serde_json::from_str(&verdict).unwrap();
        let image = verdict["image"].as_str().unwrap();
        assert!(
            image.starts_with("docker.io/swerebenchv2/ostler-spanwise:9-") && image.contains("@sha256:"),
            "{image}"
        );

        let (code, out, _) =
            published.memtrial(cache.path(), &["image", "list", "--json", "--sandbox", name]);
        let listed: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, listed["images"].as_array().unwrap().len()), (0, 3), "{out}");
        assert!(listed["images"].as_array().unwrap().iter().all(|image| image["own"] == true), "{out}");
        let (code, out, err) =
            published.memtrial(cache.path(), &["image", "prune", "--json", "--sandbox", name]);
        let pruned: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, pruned["dropped"].as_array().unwrap().len()), (0, 3), "{out} {err}");
        let (_, out, _) = published.memtrial(cache.path(), &["image", "list", "--json", "--sandbox", name]);
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["used_bytes"], 0, "{out}");
    }
}

#[test]
fn the_future_is_gone_and_commands_run_in_the_images_environment() {
    let published = Published::new();
    let tasks = read_tasks(&published.folder.path().join("tasks.jsonl")).unwrap().tasks;
    for name in backends() {
        let cache = tempfile::tempdir().unwrap();
        let (images, _) = settings(&published.registry);
        let mut rooms = Settings::new("/no/clones".into(), Base::Published(Naming::SweBench));
        rooms.mounts = published.mounts();
        let rooms = Environments::new(backend(name, cache.path(), images), rooms);
        for task in &tasks {
            block_on(async {
                let environment = Arc::new(rooms.prepare(&task.solver).await.unwrap());
                let place = environment.place().clone();
                let mut sandbox = environment.start().await.unwrap();
                let mut said = async |script: &str| {
                    let exec = Exec::bash(script, &place.workdir).env(place.env.clone());
                    sandbox.exec(&exec).await.unwrap().text().trim().to_owned()
                };
                let id = task.id().as_str();
                let workdir = if id == V2 { "/spanwise" } else { "/testbed" };
                assert_eq!(said("pwd").await, workdir);
                let fix = &published.fixes.iter().find(|(of, _)| of == id).unwrap().1;
                assert!(
                    said(&format!("git cat-file -t {fix} 2>&1")).await.contains("could not get object info")
                );
                assert_eq!(
                    said("git for-each-ref --format='%(refname)' | grep -v ^refs/tags/v0").await,
                    "refs/heads/main"
                );
                assert_eq!(said("git status --porcelain").await, "");
                assert_eq!(said("git rev-parse HEAD").await, task.solver.base_commit);
                assert_eq!(
                    said("git remote; git stash list; git reflog; git worktree list | tail -n +2").await,
                    ""
                );
                let conda =
                    if id == SWEBENCH { "testbed /opt/miniconda3/envs/testbed/bin/python" } else { "" };
                assert_eq!(
                    said("echo ${CONDA_DEFAULT_ENV:+$CONDA_DEFAULT_ENV $(command -v python)}").await,
                    conda
                );
                sandbox.close().await.unwrap();
            });
        }
    }
}

#[test]
fn an_image_of_another_commit_is_refused() {
    let published = Published::new();
    let cache = tempfile::tempdir().unwrap();
    let mut tasks = read_tasks(&published.folder.path().join("tasks.jsonl")).unwrap().tasks;
    let (images, _) = settings(&published.registry);
    let mut rooms = Settings::new("/no/clones".into(), Base::Published(Naming::SweBench));
    rooms.mounts = published.mounts();
    let rooms = Environments::new(backend("namespaces", cache.path(), images), rooms);
    let task = &mut tasks[1].solver;
    let fix = published.fixes[1].1.clone();
    task.base_commit = fix.clone();
    let error = block_on(rooms.prepare(task)).err().unwrap().to_string();
    assert!(error.contains("stands at") && error.contains(&fix), "{error}");
    task.base_commit = "0".repeat(40);
    let error = block_on(rooms.prepare(task)).err().unwrap().to_string();
    assert!(error.contains("/spanwise has no commit 0000"), "{error}");
}

#[test]
fn a_study_holds_the_digests_of_its_images() {
    let published = Published::new();
    let folder = published.folder.path();
    let mounts: Vec<String> = published
        .mounts()
        .iter()
        .map(|mount| format!("{{ host = {:?}, inside = {:?} }}", mount.host, mount.inside))
        .collect();
    let study = include_str!("../../studies/bundled/study.toml")
        .replace("data/tasks.jsonl", "tasks.jsonl")
        .replace("replicates = 1", &format!("replicates = 1\ntargets = [{V2:?}]"))
        .replace("base = \"host\"", &format!("base = \"published\"\nmounts = [{}]", mounts.join(", ")));
    fs::write(folder.join("study.toml"), study).unwrap();
    let reader = FakeServer::start(Reader::from_file(&folder.join("data/reader.jsonl")).unwrap()).unwrap();
    let endpoint = format!("reader={}", reader.url());
    let run = || {
        let cache = folder.join("cache");
        published.memtrial(&cache, &["study", "run", "study.toml", "--endpoint", &endpoint])
    };
    let (code, _, err) = run();
    assert_eq!(code, 0, "{err}");
    let lock =
        || -> Value { serde_json::from_slice(&fs::read(folder.join("study.lock.json")).unwrap()).unwrap() };
    let begun = lock();
    let image = begun["images"][V2].as_str().unwrap();
    let (name, digest) = image.split_once('@').unwrap();
    assert!(name.starts_with("docker.io/swerebenchv2/ostler-spanwise:9-"), "{image}");
    let (code, _, err) = run();
    assert_eq!((code, lock()), (0, begun.clone()), "{err}");

    let (repository, tag) = name.trim_start_matches("docker.io/").rsplit_once(':').unwrap();
    let moved = published.registry.push(repository, tag, &Image::new(vec![host_programs()])).unwrap();
    let (code, _, err) = run();
    assert_eq!((code, lock()), (3, begun.clone()), "{err}");
    assert!(
        err.contains(&format!("the image of {V2}")) && err.contains(digest) && err.contains(&moved),
        "{err}"
    );

    // One that is gone ends the study before anything is begun.
    let row = fs::read_to_string(folder.join("tasks.jsonl")).unwrap().replace(tag, "nowhere");
    fs::write(folder.join("tasks.jsonl"), row).unwrap();
    let cache = folder.join("cache");
    let again = ["study", "run", "study.toml", "--endpoint", &endpoint, "--out", "again"];
    let (code, _, err) = published.memtrial(&cache, &again);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("ostler-spanwise:nowhere is missing"), "{err}");
}
