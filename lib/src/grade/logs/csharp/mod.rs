//! C#: `dotnet test`.

use super::scan::each;
use super::structured::dotnet;
use super::structured::junit::JUNIT;
use super::table::{Family, Origin, Parser, Split};

mod strict;
#[cfg(test)]
mod tests;
mod upstream;

pub(super) const FAMILY: Family = Family {
    parsers: &[Parser {
        name: "parse_log_csharp",
        origin: Origin::SweRebench2,
        language: "C#",
        framework: "dotnet test",
        reads: &[dotnet::XML, JUNIT],
        split: Split::Unicode,
        upstream: Some(|| each(upstream::csharp)),
        strict: strict::dotnet,
    }],
    aliases: &[],
};
