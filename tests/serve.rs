//! `memtrial memory serve`: an agent's questions, as JSON-RPC lines and over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::memtrial;

/// An index of two repositories.
fn index(folder: &Path) {
    let runs = folder.join("runs");
    std::fs::create_dir(&runs).unwrap();
    for (id, issue) in [
        ("acme__widget-1", "parse_date loses the time zone: compare with UTC"),
        ("acme__widget-2", "The settings page reads its theme once"),
        ("acme__gadget-7", "A date without a zone is local time"),
    ] {
        let run = json!({"messages": [
            {"role": "user", "content": format!("<pr_description>\n{issue}\n</pr_description>")},
            {"role": "exit", "content": "", "extra": {"exit_status": "Submitted", "submission": ""}},
        ]});
        std::fs::write(runs.join(format!("{id}.traj.json")), run.to_string()).unwrap();
    }
    let built = memtrial(folder, &["memory", "build", "bm25", "--history", "runs", "--out", "index"]);
    assert_eq!(built.0, 0, "{}", built.2);
}

struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    asked: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended by itself where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("memtrial"))
            .current_dir(folder)
            .args(["memory", "serve", "index", "--mcp"])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { stdin: child.stdin.take(), child, stdout, asked: 0 }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The response to a request.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let response: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(self.asked)));
        response
    }

    fn initialize(&mut self) -> Value {
        let hello = self.ask("initialize", hello());
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        hello["result"].clone()
    }

    /// What a tool gives; a refusal's words where it gives nothing.
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        let response = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &response["result"];
        let text = result["content"][0]["text"].as_str();
        match (&response["error"], &result["isError"]) {
            (Value::Null, Value::Bool(true)) => Err(text.unwrap().to_owned()),
            (Value::Null, _) => {
                let value = result["structuredContent"].clone();
                assert_eq!(serde_json::from_str::<Value>(text.unwrap()).unwrap(), value);
                Ok(value)
            }
            (error, _) => Err(format!("{}: {}", error["code"], error["message"].as_str().unwrap())),
        }
    }

    fn end(mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().unwrap().code()
    }
}

fn hello() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

#[test]
fn an_agent_searches_reads_and_reports_over_standard_streams() {
    let folder = tempfile::tempdir().unwrap();
    index(folder.path());
    let mut server = Server::start(folder.path(), &[]);
    let hello = server.initialize();
    assert_eq!(
        (&hello["protocolVersion"], &hello["serverInfo"]["name"]),
        (&json!("2025-06-18"), &json!("memtrial"))
    );
    assert!(hello["instructions"].as_str().unwrap().contains("Repositories: acme/gadget, acme/widget."));
    let listed = server.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["search", "read", "report"]);
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["query"]));
    let found = server.call("search", json!({"query": "wrong time zone of a date", "k": 2})).unwrap();
    let records = found["records"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    let found = server.call("search", json!({"query": "time zone", "repo": "acme/widget"})).unwrap();
    let record = &found["records"][0];
    assert_eq!(
        (&record["id"], &record["source_instance_id"], &record["why"]),
        (
            &json!("acme__widget-1#1"),
            &json!("acme__widget-1"),
            &json!("words: rank 1, BM25 1.298, 1.000 of the query")
        )
    );
    assert!(record["score"].as_f64().unwrap() > 0.0 && record["text"].as_str().unwrap().contains("UTC"));
    let text = "Issue: parse_date loses the time zone: compare with UTC\n\nNo patch was submitted.";
    let whole = json!({"id": "acme__widget-1#1", "repo": "acme/widget",
        "source_instance_ids": ["acme__widget-1"], "text": text});
    assert_eq!(server.call("read", json!({"id": "acme__widget-1#1"})), Ok(whole));
    let helped = json!({"id": "acme__widget-1#1", "helped": true, "note": "the cause\nwas the same"});
    assert_eq!(server.call("report", helped), Ok(json!({"noted": "acme__widget-1#1"})));
    server.call("report", json!({"id": "acme__gadget-7#1", "helped": false})).unwrap();
    assert_eq!(server.end(), Some(0));
    let text = std::fs::read_to_string(folder.path().join("index/feedback.jsonl")).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        lines.iter_mut().all(|line| line.as_object_mut().unwrap().remove("at").unwrap().as_f64() > Some(1e9))
    );
    let first = json!({"id": "acme__widget-1#1", "helped": true, "note": "the cause\nwas the same"});
    assert_eq!(lines, [first, json!({"id": "acme__gadget-7#1", "helped": false})]);
}

#[test]
fn bad_arguments_are_answered_in_words() {
    let folder = tempfile::tempdir().unwrap();
    index(folder.path());
    let mut server = Server::start(folder.path(), &[]);
    server.initialize();
    for (tool, arguments, words) in [
        ("search", json!({}), "arguments of search: missing field `query`; it takes query (text)"),
        ("search", json!({"query": 5}), "invalid type: integer `5`, expected a string"),
        ("search", json!({"query": " "}), "query is empty"),
        ("search", json!({"query": "x", "k": 0}), "k is 0, not 1 to 50"),
        ("search", json!({"query": "x", "k": -1}), "invalid value: integer `-1`"),
        ("search", json!({"query": "x", "repos": "a"}), "unknown field `repos`"),
        ("search", json!({"query": "x".repeat(20_001)}), "query has 20001 characters, more than 20000"),
        (
            "search",
            json!({"query": "x", "repo": "a/b"}),
            "repository \"a/b\" is not in the index; it holds acme/gadget, acme/widget",
        ),
        ("read", json!({"id": "none"}), "no record has the id \"none\": take one that search gave"),
        ("report", json!({"id": "none", "helped": true}), "no record has the id \"none\""),
        (
            "report",
            json!({"id": "acme__widget-1#1", "helped": "yes"}),
            "expected a boolean; it takes id (text), helped",
        ),
        ("forget", json!({}), "-32602: there is no tool \"forget\": there are search, read and report"),
    ] {
        let refused = server.call(tool, arguments).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
    assert!(!folder.path().join("index/feedback.jsonl").exists());
    assert_eq!(server.call("search", json!({"query": "nothing of that"})), Ok(json!({"records": []})));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_same_over_http_on_loopback_alone() {
    let folder = tempfile::tempdir().unwrap();
    index(folder.path());
    let mut server = Server::start(folder.path(), &["--http", "127.0.0.1:0"]);
    let mut line = String::new();
    server.stdout.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").unwrap().strip_suffix("/mcp").unwrap();
    let post = |more: &str, body: &Value| {
        let body = body.to_string();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{more}content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str::<Value>(body).unwrap_or_default())
    };
    let own = format!("host: {address}\r\n");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello()});
    let (status, answer) = post(&own, &hello);
    assert_eq!((status, &answer["result"]["serverInfo"]["name"]), (200, &json!("memtrial")));
    let search = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "theme"}}});
    let (status, answer) = post(&own, &search);
    assert_eq!(
        (status, &answer["result"]["structuredContent"]["records"][0]["id"]),
        (200, &json!("acme__widget-2#1"))
    );
    // a page of another host, and a name that was made to point here
    assert_eq!(post(&format!("{own}origin: https://example.com\r\n"), &search).0, 403);
    assert_eq!(post("host: example.com\r\n", &search).0, 403);
    let (code, _, said) =
        memtrial(folder.path(), &["memory", "serve", "index", "--mcp", "--http", "0.0.0.0:0"]);
    assert_eq!((code, said.contains("say --beyond-loopback")), (2, true), "{said}");
}

#[test]
fn what_is_no_index_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, said) = memtrial(folder.path(), &["memory", "serve", ".", "--mcp"]);
    assert_eq!((code, out.as_str()), (3, ""));
    assert!(said.contains("index.json"), "{said}");
    assert_eq!(memtrial(folder.path(), &["memory", "serve", "."]).0, 2, "the protocol must be named");
}
