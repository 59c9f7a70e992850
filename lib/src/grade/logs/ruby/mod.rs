//! Ruby.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "ruby", parsers: &[], aliases: &[] };
