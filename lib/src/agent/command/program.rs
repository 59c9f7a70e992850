//! What the program is, and how it is told what to do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::agent::template::{self, TemplateError};
use crate::context;
use crate::sandbox::{GATEWAY_PORT, Mount};

/// Where the prompt lies for a program that reads it from a file.
const PROMPT_FILE: &str = "/tmp/memtrial-prompt.md";

/// What a program is told unless the study says otherwise.
const PROMPT: &str = "Solve the issue below in the repository in {{ workdir }}. Change its source files, in the way the \
    code base would do it itself; leave existing tests and configuration alone unless the issue is about them. Hidden \
    tests decide. The environment is installed, and there is no network. Do not commit, and do not ask back: nobody \
    answers.\n\n<issue>\n{{ task }}\n</issue>";

/// Another program as the fixed agent. Texts are Jinja2 templates: see [`Program::prompt`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Program and arguments. Besides the prompt's variables they know `prompt` and `prompt_file`.
    pub command: Vec<String>,
    /// What it is told. Variables: `task` (the problem statement), `memory` (what memory adds; empty without), `instance_id`,
    /// `model`, `workdir`, `seed`. Where no template names `memory`, it stands at the prompt's end.
    pub prompt: String,
    /// How it is handed over.
    pub prompt_by: PromptBy,
    /// Environment variables, over those that name the gateway by default.
    pub env: BTreeMap<String, String>,
    /// Read-only folders of the host that hold it; the `bin` of each is put at the end of the path.
    pub mounts: Vec<Mount>,
    /// A script that installs it, with the network open, once for each environment.
    pub install: Option<String>,
    /// Files that it writes of its own, as patterns inside the sandbox (`~` is its home folder, `**` any folders).
    pub logs: Vec<String>,
    /// New files in the repository that are no part of its work, in the manner of .gitignore.
    pub exclude: Vec<String>,
}

/// How a prompt is handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptBy {
    /// Where the command says `{{ prompt }}`, else as its last argument.
    #[default]
    Argument,
    /// On standard input.
    Stdin,
    /// In a file outside the repository: `{{ prompt_file }}`.
    File,
}

/// What the templates are rendered with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variables<'a> {
    pub task: &'a str,
    pub memory: Option<&'a str>,
    pub instance_id: &'a str,
    pub model: &'a str,
    pub workdir: &'a str,
    pub seed: Option<u64>,
    /// What the gateway takes for a key.
    pub token: &'a str,
}

/// The templates rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Started {
    pub prompt: String,
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub stdin: Vec<u8>,
    pub file: Option<&'static str>,
}

impl Program {
    /// This command with the defaults.
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command,
            prompt: PROMPT.into(),
            prompt_by: PromptBy::Argument,
            env: BTreeMap::new(),
            mounts: Vec::new(),
            install: None,
            logs: Vec::new(),
            exclude: Vec::new(),
        }
    }

    /// Whether it can be started.
    ///
    /// # Errors
    /// What is wrong, and under which key.
    pub fn check(&self) -> Result<(), String> {
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return Err("agent.command: name a program".into());
        }
        if let Some(name) = self.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(format!("agent.env: {name:?} is no name of a variable"));
        }
        let usable = |pattern: &&String| pattern.starts_with(['/', '~']) && !pattern.contains("..");
        if let Some(pattern) = self.logs.iter().find(|pattern| !usable(pattern)) {
            return Err(format!("agent.logs: {pattern:?} must begin with / or ~ and hold no `..`"));
        }
        let sample = Variables {
            task: "task",
            memory: None,
            instance_id: "id",
            model: "model",
            workdir: "/",
            seed: Some(1),
            token: "token",
        };
        self.start(&sample).map(drop).map_err(|error| error.to_string())
    }

    pub(super) fn start(&self, variables: &Variables<'_>) -> Result<Started, TemplateError> {
        let mut known = variables.map();
        let rendered = template::render("agent.prompt", &self.prompt, &known)?;
        // The one difference between conditions, wherever it stands.
        let prompt = match self.names("memory") {
            true => rendered,
            false => context::pin(&rendered, variables.memory),
        };
        known.insert("prompt".into(), json!(prompt));
        known.insert("prompt_file".into(), json!(PROMPT_FILE));
        let argv = self.command.iter().enumerate();
        let argv = argv.map(|(n, part)| template::render(&format!("agent.command[{n}]"), part, &known));
        let mut argv = argv.collect::<Result<Vec<_>, _>>()?;
        let by = self.prompt_by;
        let placed = self.command.iter().any(|part| template::names(part, "prompt"));
        if by == PromptBy::Argument && !placed {
            argv.push(prompt.clone());
        }
        let mut env = doors(variables.token);
        for (name, value) in &self.env {
            env.insert(name.clone(), template::render(&format!("agent.env.{name}"), value, &known)?);
        }
        let stdin = if by == PromptBy::Stdin { prompt.clone().into_bytes() } else { Vec::new() };
        let file = (by == PromptBy::File).then_some(PROMPT_FILE);
        Ok(Started { prompt, argv, env, stdin, file })
    }

    /// Whether any template names a variable.
    fn names(&self, variable: &str) -> bool {
        let all = self.command.iter().chain(self.env.values()).chain([&self.prompt]);
        all.into_iter().any(|text| template::names(text, variable))
    }
}

impl Variables<'_> {
    fn map(&self) -> Map<String, Value> {
        let map = json!({
            "task": self.task,
            "memory": context::memory_section(self.memory),
            "instance_id": self.instance_id,
            "model": self.model,
            "workdir": self.workdir,
            "seed": self.seed,
        });
        map.as_object().cloned().unwrap_or_default()
    }
}

/// The variables by which programs find their endpoint, as its different clients call them.
fn doors(token: &str) -> BTreeMap<String, String> {
    let base = format!("http://127.0.0.1:{GATEWAY_PORT}");
    let v1 = format!("{base}/v1");
    let pairs = [
        ("OPENAI_BASE_URL", v1.as_str()),
        ("OPENAI_API_BASE", &v1),
        ("OPENAI_API_KEY", token),
        ("ANTHROPIC_BASE_URL", &base),
        ("ANTHROPIC_API_KEY", token),
        ("LLM_BASE_URL", &v1),
        ("LLM_API_KEY", token),
        // No proxy of an image's environment stands between.
        ("NO_PROXY", "127.0.0.1,localhost"),
        ("no_proxy", "127.0.0.1,localhost"),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(memory: Option<&str>) -> Variables<'_> {
        Variables {
            task: "It fails.",
            memory,
            instance_id: "a__b-1",
            model: "m",
            workdir: "/testbed",
            seed: Some(2),
            token: "key",
        }
    }

    fn program(command: &[&str]) -> Program {
        Program {
            prompt: "Fix: {{ task }}".into(),
            ..Program::new(command.iter().map(|&s| s.into()).collect())
        }
    }

    #[test]
    fn memory_is_all_that_differs_and_stands_where_it_is_named() {
        let plain = program(&["tool", "-m", "{{ model }}", "--in", "{{workdir}}"]);
        let off = plain.start(&variables(None)).unwrap();
        assert_eq!(off.argv, ["tool", "-m", "m", "--in", "/testbed", "Fix: It fails."]);
        assert_eq!(plain.start(&variables(Some("\n"))).unwrap(), off);
        let on = plain.start(&variables(Some("<earlier/>"))).unwrap();
        assert_eq!(on.prompt, "Fix: It fails.\n\n<earlier/>");
        assert_eq!((&on.argv[..5], &on.env), (&off.argv[..5], &off.env));
        let placed = Program { prompt: "A{{ memory }}\nB {{ task }}".into(), ..program(&["tool"]) };
        assert_eq!(placed.start(&variables(None)).unwrap().prompt, "A\nB It fails.");
        assert_eq!(placed.start(&variables(Some("<e/>"))).unwrap().prompt, "A\n\n<e/>\nB It fails.");
        let apart = program(&["tool", "--system", "{{ memory }}", "--task={{ prompt }}"]);
        let apart = apart.start(&variables(Some("<e/>"))).unwrap();
        assert_eq!(apart.argv, ["tool", "--system", "\n\n<e/>", "--task=Fix: It fails."]);
    }

    #[test]
    fn a_prompt_goes_by_each_way() {
        let by =
            |prompt_by| Program { prompt_by, ..program(&["t", "{{ prompt_file }}"]) }.start(&variables(None));
        let (stdin, file) = (by(PromptBy::Stdin).unwrap(), by(PromptBy::File).unwrap());
        assert_eq!((stdin.stdin, stdin.file, stdin.argv.len()), (b"Fix: It fails.".to_vec(), None, 2));
        assert_eq!(
            (file.stdin, file.file, &file.argv[1]),
            (Vec::new(), Some(PROMPT_FILE), &PROMPT_FILE.to_owned())
        );
    }

    #[test]
    fn every_client_is_shown_the_gateway_and_the_study_may_say_otherwise() {
        let mut program = program(&["t"]);
        program.env =
            BTreeMap::from([("OPENAI_API_KEY".into(), String::new()), ("SEED".into(), "{{ seed }}".into())]);
        let env = program.start(&variables(None)).unwrap().env;
        assert_eq!(env["ANTHROPIC_BASE_URL"], "http://127.0.0.1:24117");
        assert_eq!(env["OPENAI_BASE_URL"], "http://127.0.0.1:24117/v1");
        assert_eq!(
            (env["LLM_API_KEY"].as_str(), env["OPENAI_API_KEY"].as_str(), env["SEED"].as_str()),
            ("key", "", "2")
        );
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        let wrong = |change: fn(&mut Program)| {
            let mut program = program(&["t"]);
            change(&mut program);
            program.check().unwrap_err()
        };
        assert!(wrong(|p| p.command = Vec::new()).contains("agent.command: name a program"));
        assert!(wrong(|p| p.command.push("{{ tsk }}".into())).contains("agent.command[1]"));
        assert!(wrong(|p| p.prompt = "{{ task".into()).contains("agent.prompt"));
        assert!(wrong(|p| p.logs = vec!["logs/*".into()]).contains("agent.logs"));
        assert!(wrong(|p| p.logs = vec!["~/../etc/*".into()]).contains("agent.logs"));
        assert!(wrong(|p| drop(p.env.insert("A=B".into(), String::new()))).contains("agent.env"));
        Program::new(vec!["t".into()]).check().unwrap();
    }
}
