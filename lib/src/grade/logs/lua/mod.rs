//! Lua.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "lua", parsers: &[], aliases: &[] };
