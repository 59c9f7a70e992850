//! PHP.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "php", parsers: &[], aliases: &[] };
