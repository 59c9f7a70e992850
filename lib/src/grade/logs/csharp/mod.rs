//! C#.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "csharp", parsers: &[], aliases: &[] };
