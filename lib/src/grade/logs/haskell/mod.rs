//! Haskell.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "haskell", parsers: &[], aliases: &[] };
