//! C and C++.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "c", parsers: &[], aliases: &[] };
