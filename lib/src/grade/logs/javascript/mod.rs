//! JavaScript and TypeScript.

mod any;
mod ava;
mod deno;
mod jasmine;
mod jest;
mod karma;
mod mocha;
mod node;
mod playwright;
mod rows;
mod rule;
mod tally;
mod tap;
#[cfg(test)]
mod tests;
mod tree;
mod upstream;
mod vitest;

use super::table::Family;

pub(super) const FAMILY: Family = Family { parsers: rows::PARSERS, aliases: &[] };
