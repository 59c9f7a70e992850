//! `memtrial gateway`: what it prints, serves, refuses and leaves behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use memtrial_testkit::{FakeServer, tool_user};
use serde_json::{Value, json};

const CANARY: &str = "sk-canary-0123456789";

struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
    token: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended by itself where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(folder: &Path, server: &FakeServer, more: &[&str]) -> Running {
    let url = server.url();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("memtrial"))
        .current_dir(folder)
        .args(["gateway", "--endpoint", &url, "--model", "fake-model", "--json", "--api-key-env", "THE_KEY"])
        .args(more)
        .env("THE_KEY", CANARY)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let first: Value = serde_json::from_str(&line).unwrap();
    let text = |key: &str| first[key].as_str().unwrap().to_owned();
    let address = text("listening").replace("http://", "");
    Running { child, stdout, address, token: text("token") }
}

impl Running {
    fn ask(&self, path: &str, body: &Value) -> (u16, Value) {
        let (body, token) = (body.to_string(), &self.token);
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.0\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    /// Ends it in good order: the exit code, the summary, and what it told people.
    fn end(mut self) -> (i32, Value, String) {
        let ended = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(ended.success());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        (self.child.wait().unwrap().code().unwrap(), serde_json::from_str(&text).unwrap(), told)
    }
}

fn question(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}]})
}

#[test]
fn serves_counts_caps_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(tool_user::play).unwrap();
    let more = ["--cap-calls", "2", "--journal", "j", "--port-file", "port"];
    let gateway = start(folder.path(), &server, &more);
    let port = fs_err::read_to_string(folder.path().join("port")).unwrap();
    assert!(gateway.address.ends_with(&format!(":{port}")));
    let (status, answer) = gateway.ask("/v1/chat/completions", &question("a"));
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("You said: a")));
    let messages = json!({"max_tokens": 9, "messages": [{"role": "user", "content": "b"}]});
    let (status, answer) = gateway.ask("/v1/messages", &messages);
    assert_eq!((status, &answer["content"][0]["text"]), (200, &json!("You said: b")));
    let (status, refusal) = gateway.ask("/v1/chat/completions", &question("c"));
    assert_eq!(status, 402);
    assert!(
        refusal["error"]["message"].as_str().unwrap().starts_with("cap reached: this trial may make 2 calls")
    );
    let (code, summary, told) = gateway.end();
    assert_eq!(
        (code, &summary["spent"]["cost"]["calls"], &summary["journal"]),
        (0, &json!(2), &json!("j/calls.jsonl"))
    );

    let again = start(folder.path(), &server, &["--journal", "j"]);
    assert_eq!(again.ask("/v1/chat/completions", &question("a")).0, 200);
    let (_, summary, _) = again.end();
    assert_eq!((server.count(), &summary["spent"]["cost"]["calls"]), (2, &json!(2)), "nothing is paid again");
    assert_eq!(server.requests()[0].headers["authorization"], format!("Bearer {CANARY}"));
    let journal = fs_err::read_to_string(folder.path().join("j/calls.jsonl")).unwrap();
    assert!(!format!("{told}{journal}{summary}").contains(CANARY));
}

#[test]
fn what_cannot_work_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("prices.toml"), "[other]\ninput = 1\noutput = 1\n").unwrap();
    let common = ["gateway", "--endpoint", "http://127.0.0.1:1/v1", "--model", "m"];
    for (more, code, words) in [
        (&["--cap-usd", "1"][..], 3, "the price of m is not known"),
        (&["--cap-usd", "1", "--prices", "prices.toml"], 3, "the price of m is not known"),
        (&["--prices", "nowhere.toml"], 3, "nowhere.toml"),
        (&["--listen", "0.0.0.0:0"], 4, "can be reached from outside"),
        (&["--unix", "no/such/folder/s"], 4, "no/such/folder/s"),
        (&["--api-key-env", "NO_SUCH_VARIABLE"], 4, "NO_SUCH_VARIABLE is not set"),
        (&["--api", "gemini"], 2, "anthropic"),
    ] {
        let args: Vec<&str> = common.iter().chain(more).copied().collect();
        let (got, _, stderr) = super::memtrial(folder.path(), &args);
        assert!(got == code && stderr.contains(words), "{more:?}: {got} {stderr}");
    }
}
