//! Dart.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "dart", parsers: &[], aliases: &[] };
