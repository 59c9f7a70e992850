//! `program`: a program of your own that speaks memtrial-memory/1 (see `plugged/`).

use serde_json::Value;

use crate::memory::plugged::{Plugged, ProgramSettings};
use crate::memory::registry::{About, Needs, Setting, read_known};
use crate::memory::{LearnsFrom, MemorySystem, Resources};

/// The settings of every system that is a program.
pub(super) const PROGRAM: &[Setting] = &[
    Setting {
        name: "command",
        value: "program and arguments",
        default: "(required)",
        what: "what is started",
    },
    Setting {
        name: "env",
        value: "a table",
        default: "{}",
        what: "variables; {{ state }} stands for the state folder",
    },
    Setting {
        name: "mounts",
        value: "paths",
        default: "[]",
        what: "more files and folders that it may read",
    },
    Setting { name: "name", value: "a text", default: "program", what: "its name in reports" },
    Setting {
        name: "version",
        value: "a text",
        default: "what it says",
        what: "a version that differs from the program's is an error",
    },
    Setting {
        name: "uses-outcome",
        value: "true or false",
        default: "false",
        what: "whether it is told how earlier runs went",
    },
    Setting {
        name: "reads-events",
        value: "true or false",
        default: "false",
        what: "whether it is told what happened in earlier runs",
    },
    Setting {
        name: "order-sensitive",
        value: "true or false",
        default: "true",
        what: "whether the order of ingestion matters",
    },
    Setting {
        name: "deterministic",
        value: "true or false",
        default: "false",
        what: "whether the same input gives the same delivery",
    },
    Setting {
        name: "not-store",
        value: "patterns",
        default: "[]",
        what: "paths below the state folder that are no part of the frozen store",
    },
    Setting { name: "start-seconds", value: "seconds", default: "120", what: "how long a start may take" },
    Setting {
        name: "ingest-seconds",
        value: "seconds",
        default: "600",
        what: "how long taking in a run may take",
    },
    Setting { name: "flush-seconds", value: "seconds", default: "3600", what: "how long a flush may take" },
    Setting {
        name: "retrieve-seconds",
        value: "seconds",
        default: "120",
        what: "how long an answer may take",
    },
    Setting { name: "reply-mib", value: "MiB", default: "32", what: "the longest line that it may answer" },
    Setting { name: "state-mib", value: "MiB", default: "4096", what: "the largest store" },
    Setting {
        name: "restarts",
        value: "a number",
        default: "2",
        what: "how often it is started again where it ends by itself",
    },
];

pub(in crate::memory) const ABOUT: About = About {
    name: "program",
    summary: "a program of your own that speaks memtrial-memory/1, sandboxed; its model calls go through the gateway and are its costs",
    needs: Needs::Nothing,
    learns_from: LearnsFrom::History,
    shared: PROGRAM,
    settings: &[],
    paper: "",
    deviations: &[],
    open,
};

fn open(settings: &Value, resources: &Resources) -> Result<Box<dyn MemorySystem>, String> {
    let settings: ProgramSettings = read_known(settings, &ProgramSettings::KEYS)?;
    settings.check()?;
    Ok(Box::new(Plugged::new(settings, resources.site.clone())))
}
