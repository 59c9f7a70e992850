//! Elixir.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "elixir", parsers: &[], aliases: &[] };
