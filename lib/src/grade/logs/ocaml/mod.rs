//! OCaml.

mod strict;
mod upstream;

use super::scan::each;
use super::table::{Family, Origin, Parser, Split};

pub(super) const FAMILY: Family = Family {
    parsers: &[
        Parser {
            name: "parse_log_ocaml",
            origin: Origin::SweRebench2,
            language: "OCaml",
            framework: "Alcotest",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| each(upstream::alcotest)),
            strict: || each(strict::alcotest),
        },
        Parser {
            name: "parse_log_ocaml_v2",
            origin: Origin::SweRebench2,
            language: "OCaml",
            framework: "dune log",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| Box::<upstream::Dune>::default()),
            strict: || Box::<strict::Programs>::default(),
        },
        Parser {
            name: "parse_log_ocaml_v3",
            origin: Origin::SweRebench2,
            language: "OCaml",
            framework: "[TOKEN] lines",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| each(upstream::bracketed)),
            strict: || each(strict::bracketed),
        },
        Parser {
            name: "parse_log_ocaml_v4",
            origin: Origin::SweRebench2,
            language: "OCaml",
            framework: "status-first lines",
            reads: &[],
            split: Split::Unicode,
            upstream: Some(|| each(upstream::status_first)),
            strict: || each(strict::status_first),
        },
    ],
    aliases: &[("parse_log_ocaml_v5", "parse_log_ocaml_v4")],
};
