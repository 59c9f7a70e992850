//! Swift.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "swift", parsers: &[], aliases: &[] };
