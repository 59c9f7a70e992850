//! The program as demonstrations start it.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

struct Program {
    child: Child,
    address: String,
}

impl Program {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_memtrial-testkit"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap().to_owned();
        Self { child, address }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn say(&self, messages: Value) -> Value {
        self.ask("POST", "/v1/chat/completions", &json!({"model": "m", "messages": messages}).to_string())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_reader_answers_counts_and_ends_with_its_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let (tasks, port) = (folder.path().join("reader.jsonl"), folder.path().join("port"));
    let patch = "--- a/w.py\n+++ b/w.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n";
    let task = json!({"instance_id": "a", "marker": "MARK", "needle": "NEEDLE", "good_patch": patch});
    fs_err::write(&tasks, task.to_string()).unwrap();
    let arguments = ["--tasks", tasks.to_str().unwrap(), "--port-file", port.to_str().unwrap()];
    let mut program =
        Program::start(&[&["reader", "--until-stdin-closes", "--delay-ms", "1"], &arguments[..]].concat());
    assert!(program.address.ends_with(&format!(":{}", fs_err::read_to_string(&port).unwrap())));
    let second_turn = |prompt: &str| {
        program.say(json!([
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": "look"},
            {"role": "user", "content": "seen"},
        ]))["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(second_turn("MARK NEEDLE").contains("+x = 2"));
    assert!(second_turn("MARK").contains(": > patch.txt"));
    assert!(program.say(json!([{"role": "user", "content": "?"}]))["error"]["message"].is_string());
    program.say(json!([{"role": "exit", "content": "?"}]));
    let stats = program.ask("GET", "/stats", "");
    assert_eq!((stats["requests"].as_u64(), stats["violations"].as_array().unwrap().len()), (Some(4), 1));
    drop(program.child.stdin.take());
    assert!(program.child.wait().unwrap().success());
}

#[test]
fn garbage_is_never_usable_and_sigterm_ends_it() {
    let mut program = Program::start(&["garbage"]);
    let mut messages = vec![];
    for n in 0..6 {
        messages.push(json!({"role": "user", "content": n.to_string()}));
        let content = program.say(json!(messages))["choices"][0]["message"]["content"].clone();
        let text = content.as_str().unwrap_or_default();
        let blocks =
            text.split("```mswea_bash_command\n").skip(1).filter(|rest| rest.contains("\n```")).count();
        assert_ne!(blocks, 1, "{text}");
    }
    let pid = program.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(program.child.wait().unwrap().success());
}

#[test]
fn a_plan_that_cannot_be_read_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_memtrial-testkit"))
        .args(["reader", "--tasks", "/nonexistent/reader.jsonl"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/reader.jsonl"));
}
