//! Lua.

mod upstream;

use super::found::Found;
use super::scan::each;
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    parsers: &[Parser {
        name: "parse_lue_nvim",
        origin: Origin::SweRebench2,
        language: "Lua",
        framework: "plenary",
        reads: &[],
        split: Split::Unicode,
        upstream: Some(|| each(upstream::plenary)),
        strict: || each(strict),
    }],
    aliases: &[("parse_lua_nvim", "parse_lue_nvim"), ("parse_log_lua_nvim", "parse_lue_nvim")],
};

/// plenary's lines; of several results the worst counts.
fn strict(line: &str, found: &mut Found) {
    if let Some((name, status)) = upstream::result_line(line) {
        found.test(name, status);
    }
}
