//! A whole run in memory; reading and writing keeps every field and its order.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::error::TrajectoryError;
use super::format::{ActionPattern, Format};
use super::json::{Lenient, Spelling, to_bytes};
use super::message::{Action, Message, kind};
use super::stream::parse_error;

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// Where it was read from; for messages.
    name: PathBuf,
    /// Every top-level field in order; `messages` marks its place.
    top: Map<String, Value>,
    messages: Vec<Message>,
    format: Format,
    spelling: Spelling,
    repaired: u64,
}

impl Trajectory {
    /// A new run in mini-swe-agent's current format. `info` is mini-swe-agent's (`model_stats`, `config`,
    /// `mini_version`, `exit_status`, `submission`); the last message of a finished run has the role `exit`.
    pub fn new_v1_1(
        info: Map<String, Value>,
        messages: Vec<Message>,
        instance_id: impl Into<String>,
    ) -> Self {
        let top = [
            ("info", Value::Object(info)),
            ("messages", Value::Null),
            ("trajectory_format", Value::String("mini-swe-agent-1.1".to_owned())),
            ("instance_id", Value::String(instance_id.into())),
        ];
        Self {
            name: PathBuf::new(),
            top: top.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            messages,
            format: Format::Mini1_1,
            spelling: Spelling::MINI,
            repaired: 0,
        }
    }

    /// Reads a file of any format that memtrial knows.
    ///
    /// # Errors
    /// When the file cannot be read, is no valid JSON or no trajectory.
    pub fn read(path: &Path) -> Result<Self, TrajectoryError> {
        let bytes =
            std::fs::read(path).map_err(|cause| TrajectoryError::Read { path: path.to_owned(), cause })?;
        Self::from_bytes(&bytes, path)
    }

    /// Reads from memory; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Trajectory::read`].
    pub fn from_bytes(bytes: &[u8], name: &Path) -> Result<Self, TrajectoryError> {
        let mut filter = Lenient::new(bytes, None);
        let counts = filter.counts();
        let mut text = Vec::with_capacity(bytes.len());
        filter
            .read_to_end(&mut text)
            .map_err(|cause| TrajectoryError::Read { path: name.to_owned(), cause })?;
        let value = serde_json::from_slice(&text).map_err(|error| parse_error(error, name, counts.get()))?;
        let format_error = |reason| TrajectoryError::Format { path: name.to_owned(), reason };
        let Value::Object(mut top) = value else {
            return Err(format_error(format!(
                "{}, where an object with `messages` is expected",
                kind(&value)
            )));
        };
        let format = Format::detect(&top).map_err(format_error)?;
        let messages = match top.get_mut("messages").map(Value::take) {
            Some(Value::Array(messages)) => messages,
            other => {
                let found = kind(&other.unwrap_or(Value::Null));
                return Err(format_error(format!("`messages` is {found}, expected a list")));
            }
        };
        let numbered = messages.into_iter().enumerate().map(|(index, raw)| {
            Message::from_value(raw).map_err(|reason| TrajectoryError::Message {
                path: name.to_owned(),
                number: index + 1,
                reason,
            })
        });
        Ok(Self {
            name: name.to_owned(),
            top,
            messages: numbered.collect::<Result<_, _>>()?,
            format,
            spelling: Spelling::of(bytes),
            repaired: counts.get().repaired,
        })
    }

    /// The format it was read from.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The messages in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The run's facts: `info`.
    pub fn info(&self) -> Option<&Value> {
        self.top.get("info")
    }

    /// The task's id, where the file states it.
    pub fn instance_id(&self) -> Option<&str> {
        self.top.get("instance_id")?.as_str()
    }

    /// Any other top-level field.
    pub fn field(&self, key: &str) -> Option<&Value> {
        self.top.get(key).filter(|_| key != "messages")
    }

    /// Lone surrogates that became U+FFFD while reading: so many characters differ from the file.
    pub fn repaired(&self) -> u64 {
        self.repaired
    }

    /// How commands are found in replies that are text only.
    ///
    /// # Errors
    /// When the run's `action_regex` cannot be used.
    pub fn action_pattern(&self) -> Result<ActionPattern, TrajectoryError> {
        ActionPattern::of(self.info())
            .map_err(|reason| TrajectoryError::Format { path: self.name.clone(), reason })
    }

    /// Every command with the place of its message, in order.
    ///
    /// # Errors
    /// As [`Trajectory::action_pattern`].
    pub fn commands(&self) -> Result<Vec<(usize, Action)>, TrajectoryError> {
        let pattern = self.action_pattern()?;
        let of = |(index, message): (usize, &Message)| {
            message.actions(&pattern).into_iter().map(move |action| (index, action)).collect::<Vec<_>>()
        };
        Ok(self.messages.iter().enumerate().flat_map(of).collect())
    }

    /// Adds a message at the end.
    pub fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Sets a key of `info`.
    pub fn set_info(&mut self, key: &str, value: Value) {
        let info = self.top.entry("info").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(info) = info {
            info.insert(key.to_owned(), value);
        }
    }

    /// The file's bytes, spelled as the file it was read from, or as mini-swe-agent for a new run.
    ///
    /// # Errors
    /// Never for what was read or built here; serde's interface demands it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TrajectoryError> {
        to_bytes(self, self.spelling)
            .map_err(|error| TrajectoryError::Write { path: self.name.clone(), cause: error.into() })
    }

    /// Writes the file in one step: whoever reads it sees the old file or the new one, whole.
    ///
    /// # Errors
    /// When the folder cannot be written; the old file is untouched then.
    pub fn write(&self, path: &Path) -> Result<(), TrajectoryError> {
        write_atomic(path, &self.to_bytes()?)
            .map_err(|cause| TrajectoryError::Write { path: path.to_owned(), cause })
    }
}

impl Serialize for Trajectory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.top.len()))?;
        for (key, value) in &self.top {
            match key.as_str() {
                "messages" => map.serialize_entry(key, &self.messages)?,
                _ => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

/// Writes a file in one step: a temporary file in the same folder, flushed to disk, then renamed.
///
/// # Errors
/// When the folder cannot be written; a file that was there before is untouched then.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, folder) = temporary(path, bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    std::fs::File::open(folder)?.sync_all()
}

/// Writes a file in one step where there is none of this name: of several processes exactly one gets `true`.
///
/// # Errors
/// When the folder cannot be written.
pub fn create_atomic(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let (file, folder) = temporary(path, bytes)?;
    match file.persist_noclobber(path) {
        Ok(_) => std::fs::File::open(folder)?.sync_all().map(|()| true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}

/// A temporary file beside `path` with this content, on disk, and the folder of both.
fn temporary<'a>(path: &'a Path, bytes: &[u8]) -> io::Result<(tempfile::NamedTempFile, &'a Path)> {
    use std::os::unix::fs::PermissionsExt;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The umask narrows this as for any other file; a temporary file would else be the owner's alone.
    let permissions = std::fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().prefix(".tmp-").permissions(permissions).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok((file, folder))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
