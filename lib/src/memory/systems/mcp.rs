//! `mcp`: an MCP server over standard streams, through a mapping of its tools (see `plugged/`).

use serde_json::Value;

use super::program::PROGRAM;
use crate::memory::plugged::{Mcp, McpSettings, ProgramSettings};
use crate::memory::registry::{About, Needs, Setting, read_known};
use crate::memory::{LearnsFrom, MemorySystem, Resources};

pub(in crate::memory) const ABOUT: About = About {
    name: "mcp",
    summary: "an MCP server over standard streams, through a mapping of its tools, sandboxed; its model calls go through the gateway and are its costs",
    needs: Needs::Nothing,
    learns_from: LearnsFrom::History,
    shared: PROGRAM,
    settings: &[
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
