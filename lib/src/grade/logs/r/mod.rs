//! R.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "r", parsers: &[], aliases: &[] };
