//! `mcp`: an MCP server over standard streams, through a mapping of its tools (see `plugged/`).

use serde_json::Value;

use crate::memory::plugged::{Mcp, McpSettings, ProgramSettings};
use crate::memory::registry::{About, Needs, Setting, read_known};
use crate::memory::{LearnsFrom, MemorySystem, Resources};

pub(in crate::memory) const ABOUT: About = About {
    name: "mcp",
    summary: "an MCP server over standard streams, through a mapping of its tools, sandboxed; its model calls go through the gateway and are its costs",
    needs: Needs::Nothing,
    learns_from: LearnsFrom::History,
    ranked: &[],
    settings: &[
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
        Setting {
            name: "start-seconds",
            value: "seconds",
            default: "120",
            what: "how long a start may take",
        },
        Setting {
            name: "ingest-seconds",
            value: "seconds",
            default: "600",
            what: "how long taking in a run may take",
        },
        Setting {
            name: "flush-seconds",
            value: "seconds",
            default: "3600",
            what: "how long a flush may take",
        },
        Setting {
            name: "retrieve-seconds",
            value: "seconds",
            default: "120",
            what: "how long an answer may take",
        },
        Setting {
            name: "reply-mib",
            value: "MiB",
            default: "32",
            what: "the longest line that it may answer",
        },
        Setting { name: "state-mib", value: "MiB", default: "4096", what: "the largest store" },
        Setting {
            name: "restarts",
            value: "a number",
            default: "2",
            what: "how often it is started again where it ends by itself",
        },
        Setting {
            name: "write",
            value: "a table",
            default: "(required)",
            what: "the tool that takes a run in, and its arguments",
        },
        Setting {
            name: "read",
            value: "a table",
            default: "(required)",
            what: "the tool that is asked, its arguments, and where in its answer the records are",
        },
        Setting { name: "reset", value: "a table", default: "none", what: "the tool that empties the store" },
        Setting {
            name: "write-tokens",
            value: "tokens",
            default: "see the guide",
            what: "how much of a run one write carries",
        },
        Setting {
            name: "settle-seconds",
            value: "seconds",
            default: "see the guide",
            what: "how long a write may take to be found",
        },
    ],
    paper: "",
    deviations: &[],
    open,
};

fn open(settings: &Value, resources: &Resources) -> Result<Box<dyn MemorySystem>, String> {
    let settings: McpSettings =
        read_known(settings, &[&ProgramSettings::KEYS[..], &McpSettings::KEYS].concat())?;
    settings.check()?;
    Ok(Box::new(Mcp::new(settings, resources.site.clone())))
}
