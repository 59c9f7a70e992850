//! Julia.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "julia", parsers: &[], aliases: &[] };
