//! Which trajectory format a file has, told from its content.

use regex::Regex;
use serde::Serialize;
use serde_json::{Map, Value};

/// The formats that memtrial reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Format {
    /// mini-swe-agent 2.x, `trajectory_format` "mini-swe-agent-1.1": tool calls, text actions or Responses-API items.
    #[serde(rename = "mini-swe-agent-1.1")]
    Mini1_1,
    /// mini-swe-agent 1.x, `trajectory_format` "mini-swe-agent-1".
    #[serde(rename = "mini-swe-agent-1")]
    Mini1,
    /// mini-swe-agent before it named its format: `info` and `messages`; read as version 1.
    #[serde(rename = "mini-swe-agent-unversioned")]
    MiniUnversioned,
    /// VibeMemBench's history: `messages` alone, in the 1.1 layout.
    #[serde(rename = "messages-only")]
    MessagesOnly,
}

impl Format {
    /// The format of an object with these top-level fields; `messages` must be among the keys.
    ///
    /// # Errors
    /// Says which key is missing or unknown, and which other tool the file looks like.
    pub fn detect(top: &Map<String, Value>) -> Result<Self, String> {
        if !top.contains_key("messages") {
            return Err(format!("no trajectory: the key `messages` is missing{}", looks_like(top)));
        }
        match top.get("trajectory_format") {
            Some(Value::String(name)) if name == "mini-swe-agent-1.1" => Ok(Self::Mini1_1),
            Some(Value::String(name)) if name == "mini-swe-agent-1" => Ok(Self::Mini1),
            None | Some(Value::Null) if top.contains_key("info") => Ok(Self::MiniUnversioned),
            None | Some(Value::Null) => Ok(Self::MessagesOnly),
            Some(other) => Err(format!(
                "trajectory_format is {other}; memtrial reads \"mini-swe-agent-1.1\", \"mini-swe-agent-1\" and files \
                 without the key"
            )),
        }
    }

    /// Whether messages are in the layout of mini-swe-agent 1.x: text actions, no `exit` role.
    pub fn is_v1(self) -> bool {
        matches!(self, Self::Mini1 | Self::MiniUnversioned)
    }
}

fn looks_like(top: &Map<String, Value>) -> &'static str {
    let has = |key| top.contains_key(key);
    if top.get("schema_version").and_then(Value::as_str).is_some_and(|v| v.starts_with("ATIF-v")) {
        " (this is an ATIF file; convert it first)"
    } else if top.get("trajectory").is_some_and(Value::is_array) {
        " (this is a SWE-agent .traj; convert it first)"
    } else if has("model_patch") || top.values().all(|v| v.get("model_patch").is_some()) && !top.is_empty() {
        " (these are predictions)"
    } else {
        "; expected an object with `info` and `messages` (mini-swe-agent) or `messages` alone (VibeMemBench)"
    }
}

/// How the command is found in a reply that is text only.
#[derive(Debug, Clone)]
pub struct ActionPattern(Regex);

impl ActionPattern {
    /// The `action_regex` of the run's configuration (`info.config.agent` in 1.x, `info.config.model` in 2.x), or the
    /// default of either.
    ///
    /// # Errors
    /// When the configured expression is none that memtrial can run.
    pub fn of(info: Option<&Value>) -> Result<Self, String> {
        let config = info.and_then(|info| info.get("config"));
        let configured =
            ["agent", "model"].iter().find_map(|section| config?.get(section)?.get("action_regex")?.as_str());
        // 1.x's fence and 2.x's; a reply holds one or the other.
        let source = configured.unwrap_or(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```");
        match Regex::new(&format!("(?s){source}")) {
            Ok(regex) => Ok(Self(regex)),
            Err(error) => Err(format!("action_regex {source:?} cannot be used: {error}")),
        }
    }

    /// The command of a reply: the one match, stripped. No match or several: the agent answered with a format error.
    pub fn command(&self, reply: &str) -> Option<String> {
        let mut matches = self.0.captures_iter(reply);
        let only = matches.next().filter(|_| matches.next().is_none())?;
        let group = only.get(1).or_else(|| only.get(0))?;
        Some(group.as_str().trim().to_owned())
    }

    /// What a reply says beside its command; the whole reply where it has none or several.
    pub fn beside(&self, reply: &str) -> String {
        let mut matches = self.0.find_iter(reply);
        match (matches.next(), matches.next()) {
            (Some(only), None) => {
                let (before, after) = (reply[..only.start()].trim_end(), reply[only.end()..].trim());
                if after.is_empty() { before.to_owned() } else { format!("{before}\n{after}") }
            }
            _ => reply.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn detect(top: Value) -> Result<Format, String> {
        Format::detect(top.as_object().unwrap())
    }

    #[test]
    fn tells_formats_by_content() {
        let messages = json!([]);
        assert_eq!(
            detect(json!({"messages": messages, "trajectory_format": "mini-swe-agent-1.1"})),
            Ok(Format::Mini1_1)
        );
        assert_eq!(
            detect(json!({"messages": messages, "trajectory_format": "mini-swe-agent-1"})),
            Ok(Format::Mini1)
        );
        assert_eq!(detect(json!({"messages": messages, "info": {}})), Ok(Format::MiniUnversioned));
        assert_eq!(detect(json!({"messages": messages})), Ok(Format::MessagesOnly));
    }

    #[test]
    fn says_what_a_foreign_file_is() {
        for (top, words) in [
            (json!({"messages": [], "trajectory_format": "other-2"}), "trajectory_format is \"other-2\""),
            (json!({"trajectory": [], "info": {}}), "SWE-agent .traj"),
            (json!({"schema_version": "ATIF-v1.8"}), "ATIF"),
            (json!({"a__b-1": {"model_patch": ""}}), "predictions"),
            (json!({}), "`messages` is missing"),
        ] {
            let error = detect(top).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn finds_the_one_command() {
        let pattern = ActionPattern::of(None).unwrap();
        assert_eq!(pattern.command("Look.\n```bash\nls -R\n```").as_deref(), Some("ls -R"));
        assert_eq!(
            pattern.command("```mswea_bash_command\ncat <<'X'\n\nX\n```").as_deref(),
            Some("cat <<'X'\n\nX")
        );
        assert_eq!(pattern.command("```bash\na\n```\n```bash\nb\n```"), None);
        assert_eq!(pattern.command("no command"), None);
        let own = json!({"config": {"agent": {"action_regex": "<run>(.*?)</run>"}}});
        assert_eq!(
            ActionPattern::of(Some(&own)).unwrap().command("<run>a\nb</run>").as_deref(),
            Some("a\nb")
        );
        let bad = json!({"config": {"model": {"action_regex": "(?<=x)("}}});
        assert!(ActionPattern::of(Some(&bad)).unwrap_err().contains("action_regex"));
    }
}
