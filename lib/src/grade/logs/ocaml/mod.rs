//! OCaml.

use super::table::Family;

pub(super) const FAMILY: Family = Family { name: "ocaml", parsers: &[], aliases: &[] };
