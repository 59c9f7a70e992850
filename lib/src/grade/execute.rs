//! Running a task's tests in a sandbox, and the log that it leaves.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::logs::text::universal_newlines;
use super::patch::directives;
use crate::sandbox::{Ended, Exec, Output, Place, Sandbox, SandboxError};
use crate::task::Task;

/// One command and what it left.
#[derive(Debug, Clone)]
pub struct Ran {
    /// As written in the recipe.
    pub command: String,
    /// How it ended, and its output: both streams in the order written.
    pub output: Output,
}

/// Variables that keep the outcome of tests from depending on the host, and pip from printing progress. tqdm
/// is left alone: projects test what it prints.
const STEADY: [(&str, &str); 6] = [
    ("TZ", "UTC"),
    ("LANG", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("PYTHONHASHSEED", "0"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_PROGRESS_BAR", "off"),
];

/// The environment of builds and tests: steady defaults, then the place's, then the recipe's own.
fn environment(place: &Place, task: &Task) -> BTreeMap<String, String> {
    let steady = STEADY.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let own = task.solver.recipe.env.clone();
    steady.chain(place.env.clone()).chain(own).collect()
}

/// Runs the recipe's build commands in one shell that stops at the first failure. `None`: there are none.
///
/// # Errors
/// When the sandbox fails.
pub async fn build(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    task: &Task,
    timeout: Duration,
) -> Result<Option<Ran>, SandboxError> {
    let commands = &task.solver.recipe.build;
    if commands.is_empty() {
        return Ok(None);
    }
    let command = commands.join("\n");
    let exec = Exec::bash(format!("set -e\n{command}"), &place.workdir)
        .timeout(timeout)
        .env(environment(place, task));
    let output = sandbox.exec(&exec).await?;
    Ok(Some(Ran { command, output }))
}

/// Runs every test command, also behind one that fails; `timeout` bounds them together.
///
/// # Errors
/// When the sandbox fails.
pub async fn tests(
    sandbox: &mut dyn Sandbox,
    place: &Place,
    task: &Task,
    timeout: Duration,
) -> Result<Vec<Ran>, SandboxError> {
    let began = Instant::now();
    let mut ran = Vec::new();
    for command in commands(task) {
        let left = timeout.saturating_sub(began.elapsed());
        let exec = Exec::bash(command.script, &place.workdir)
            .timeout(left.max(Duration::from_millis(1)))
            .env(environment(place, task));
        let output = sandbox.exec(&exec).await?;
        let timed_out = output.ended == Ended::TimedOut;
        ran.push(Ran { command: command.text, output });
        if timed_out {
            break;
        }
    }
    Ok(ran)
}

struct Command {
    text: String,
    script: String,
}

/// The test commands. Each runs in a shell of its own, so that one that fails or exits does not keep the next
/// from running; commands that only set a shell up (`cd`, `export`, …) are repeated before each later one.
fn commands(task: &Task) -> Vec<Command> {
    const SETUP: [&str; 8] = ["cd", "export", "source", ".", "set", "unset", "ulimit", "alias"];
    let recipe = &task.solver.recipe;
    let files = if recipe.tests_as_arguments { directives(&task.evaluator.test_patch) } else { Vec::new() };
    let arguments: String = files.iter().map(|file| format!(" {}", quoted(file))).collect();
    let last = recipe.test_cmd.iter().rposition(|command| !command.trim().is_empty());
    let mut setup = String::new();
    let mut commands = Vec::new();
    for (at, command) in recipe.test_cmd.iter().enumerate().filter(|(_, command)| !command.trim().is_empty())
    {
        let first = command.split_whitespace().next().unwrap_or_default();
        let only_setup = SETUP.contains(&first) && !command.contains(['&', ';', '|', '\n']);
        if only_setup && Some(at) != last {
            setup.push_str(command);
            setup.push('\n');
            continue;
        }
        let text = if Some(at) == last { format!("{command}{arguments}") } else { command.clone() };
        commands.push(Command { script: format!("{setup}{text}"), text });
    }
    commands
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The log of several commands: before each its text, behind each how it ended.
#[derive(Debug, Default)]
pub struct Log {
    /// What `test_output.txt` holds.
    pub bytes: Vec<u8>,
    /// Lines so far, counted as parsers count them.
    lines: usize,
}

impl Log {
    /// A log that goes on behind these bytes.
    pub fn after(bytes: Vec<u8>) -> Self {
        let lines = universal_newlines(&String::from_utf8_lossy(&bytes)).matches('\n').count();
        Self { bytes, lines }
    }

    /// Adds a command; returns the number of lines before its output.
    pub fn push(&mut self, ran: &Ran) -> usize {
        self.add(&format!("$ {}\n", ran.command.replace('\n', "\n> ")));
        let before = self.lines;
        let text = ran.output.text();
        self.add(&text);
        if !text.is_empty() && !text.ends_with('\n') {
            self.add("\n");
        }
        self.add(&match ran.output.ended {
            Ended::Exited(code) => format!("[exit status {code}]\n"),
            Ended::Signaled(signal) => format!("[killed by signal {signal}]\n"),
            Ended::TimedOut => "[time limit reached: killed]\n".to_owned(),
        });
        before
    }

    fn add(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.lines += universal_newlines(text).matches('\n').count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::fixture;

    #[test]
    fn repeats_set_up_and_appends_test_files_to_the_last_command() {
        let mut task = fixture::task();
        task.solver.recipe.test_cmd =
            ["cd sub dir", "pytest -rA", "  ", "cd x && make check"].map(str::to_owned).to_vec();
        task.solver.recipe.tests_as_arguments = true;
        task.evaluator.test_patch = "--- /dev/null\n+++ b/it's.py\n@@ -0,0 +1 @@\n+a\n".to_owned();
        let scripts: Vec<_> = commands(&task).into_iter().map(|command| command.script).collect();
        assert_eq!(scripts, ["cd sub dir\npytest -rA", "cd sub dir\ncd x && make check 'it'\\''s.py'"]);
    }

    #[test]
    fn the_log_tells_commands_and_how_they_ended() {
        let output = |text: &str, ended| Output {
            ended,
            bytes: text.as_bytes().to_vec(),
            elided: None,
            wall: Duration::ZERO,
            out_of_memory: false,
        };
        let mut log = Log::default();
        let one = log.push(&Ran { command: "a".into(), output: output("x\r\ny", Ended::Exited(1)) });
        let two = log.push(&Ran { command: "b".into(), output: output("", Ended::TimedOut) });
        assert_eq!((one, two), (1, 5));
        assert_eq!(
            String::from_utf8(log.bytes).unwrap(),
            "$ a\nx\r\ny\n[exit status 1]\n$ b\n[time limit reached: killed]\n"
        );
    }
}
