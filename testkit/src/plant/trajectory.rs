//! The runs that needles are planted in.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// One trajectory of a history.
pub(super) struct Run {
    pub id: String,
    /// `owner__name`.
    pub key: String,
    pub number: u64,
    /// Its path below the history's folder.
    place: PathBuf,
    content: Value,
}

/// Splits `owner__name-7` into `owner__name` and 7.
pub(super) fn parse_id(id: &str) -> Result<(String, u64)> {
    let (key, number) = id.rsplit_once('-').with_context(|| format!("{id:?} has no -NUMBER at its end"))?;
    ensure!(key.contains("__"), "{id:?} has no __ between owner and name");
    Ok((key.to_owned(), number.parse().with_context(|| format!("{id:?} has no -NUMBER at its end"))?))
}

/// Reads every `<id>.traj.json` below a folder, in the order of ids.
pub(super) fn find(folder: &Path) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs_err::read_dir(next)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else if let Some(id) = name.strip_suffix(".traj.json") {
                runs.push(read(id, &path, folder).with_context(|| path.display().to_string())?);
            }
        }
    }
    ensure!(!runs.is_empty(), "{} holds no .traj.json", folder.display());
    runs.sort_by(|a, b| (&a.key, a.number, &a.place).cmp(&(&b.key, b.number, &b.place)));
    Ok(runs)
}

fn read(id: &str, path: &Path, folder: &Path) -> Result<Run> {
    let (key, number) = parse_id(id)?;
    let content: Value = serde_json::from_str(&fs_err::read_to_string(path)?)?;
    let run = Run { id: id.to_owned(), key, number, place: super::below(path, folder)?, content };
    run.task_message()?;
    Ok(run)
}

/// Lower-case words of three letters and more.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.chars().count() > 2).collect()
}

impl Run {
    /// The issue text as the prompt shows it, with what stands round it where the prompt has no such frame.
    pub fn issue(&self) -> String {
        let content =
            self.task_message().ok().and_then(|at| self.content["messages"][at]["content"].as_str());
        let content = content.unwrap_or_default();
        content.split_once("</pr_description>").map_or(content, |(issue, _)| issue).to_owned()
    }

    /// Plants a line into the issue text and the submission, and words of `statement` beside it, so that search finds
    /// this run for that statement. The words are sorted: the statement itself is nowhere quoted.
    pub fn plant(&mut self, line: &str, statement: &str) -> Result<()> {
        let related = words(statement).into_iter().take(60).collect::<Vec<_>>().join(" ");
        let added = format!("# {line}\nRelated words: {related}");
        let at = self.task_message()?;
        let content = &mut self.content["messages"][at]["content"];
        let text = content.as_str().context("its task message is no text")?;
        *content = insert_after_title(text, &added).into();
        let submission = |text: &mut Value| {
            if let Some(patch) = text.as_str().filter(|patch| !patch.is_empty()) {
                *text = format!("# {line}\n{patch}").into();
            }
        };
        if let Some(text) = self.content.get_mut("info").and_then(|info| info.get_mut("submission")) {
            submission(text);
        }
        let last = self.content["messages"].as_array_mut().and_then(|messages| messages.last_mut());
        if let Some(last) = last.filter(|last| last["role"] == "exit") {
            submission(&mut last["content"]);
            if let Some(text) = last.get_mut("extra").and_then(|extra| extra.get_mut("submission")) {
                submission(text);
            }
        }
        Ok(())
    }

    /// Writes it to its place below another folder.
    pub fn write(&self, history: &Path) -> Result<()> {
        let path = history.join(&self.place);
        fs_err::create_dir_all(path.parent().unwrap_or(history))?;
        Ok(fs_err::write(path, serde_json::to_string_pretty(&self.content)? + "\n")?)
    }

    /// The position of the first user message with text: the task.
    fn task_message(&self) -> Result<usize> {
        let messages = self.content["messages"].as_array().context("it has no messages")?;
        let task = |message: &Value| message["role"] == "user" && message["content"].is_string();
        messages.iter().position(task).context("it has no user message with text")
    }
}

/// Puts lines behind the first line of the issue text, where no cut at the end reaches them.
fn insert_after_title(content: &str, added: &str) -> String {
    let lines: Vec<&str> = content.split('\n').collect();
    let opens = lines.iter().position(|line| line.trim() == "<pr_description>").map_or(0, |at| at + 1);
    let leads =
        |line: &str| line.trim().is_empty() || line.starts_with("Consider the following PR description");
    let title = lines[opens..].iter().position(|line| !leads(line)).map_or(opens, |skipped| opens + skipped);
    let split = (title + 1).min(lines.len());
    let (head, tail) = lines.split_at(split);
    [head, &[added], tail].concat().join("\n")
}
