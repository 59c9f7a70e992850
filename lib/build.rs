//! Builds the runner as a static program, so that memtrial can carry it into any root file system.

use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What of the outer build the inner one may see: where crates lie and whether the network may be asked.
const PASSED: [&str; 3] = ["CARGO_HOME", "CARGO_NET_OFFLINE", "CARGO_HTTP_PROXY"];

fn main() {
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("..");
    for path in ["runner/src", "runner/Cargo.toml", "Cargo.lock", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", workspace.join(path).display());
    }
    assert!(
        variable("CARGO_CFG_TARGET_OS") == "linux",
        "memtrial's sandboxes need Linux: build for a Linux target"
    );
    let program = build(&workspace, &variable("TARGET"), &PathBuf::from(variable("OUT_DIR")).join("runner"));
    println!("cargo::rustc-env=MEMTRIAL_RUNNER={}", program.display());
    println!("cargo::rustc-env=MEMTRIAL_RUNNER_DIGEST={:016x}", digest(&program));
}

fn build(workspace: &Path, target: &str, folder: &Path) -> PathBuf {
    let mut cargo = Command::new(variable("CARGO"));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let outer = text.starts_with("CARGO_") || text.starts_with("RUSTC") || text == "RUSTFLAGS";
        if outer && !PASSED.contains(&text.as_ref()) {
            cargo.env_remove(&name);
        }
    }
    cargo
        .args([
            "build",
            "--release",
            "--offline",
            "--locked",
            "--quiet",
            "--bin",
            "memtrial-runner",
            "--target",
            target,
        ])
        .arg("--manifest-path")
        .arg(workspace.join("runner/Cargo.toml"))
        .arg("--target-dir")
        .arg(folder)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s")
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    let status = cargo.status().unwrap_or_else(|error| panic!("cannot start cargo for the runner: {error}"));
    assert!(status.success(), "the runner does not build for {target}: {status}");
    folder.join(target).join("release/memtrial-runner")
}

/// Tells one build of the runner from another. Taken here, once: hashing the program at each start of a sandbox costs
/// more than the start.
fn digest(program: &Path) -> u64 {
    let bytes = std::fs::read(program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}
