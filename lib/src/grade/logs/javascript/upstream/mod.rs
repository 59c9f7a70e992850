//! The reference parsers' rules.

pub(super) mod eslint;
pub(super) mod jest;
pub(super) mod karma;
pub(super) mod marks;
pub(super) mod mocha;
pub(super) mod p5js;
pub(super) mod quarto;
pub(super) mod runs;
pub(super) mod tap;
pub(super) mod vitest;

use super::super::text::is_digit;

/// `text` without one or more digits at its end.
fn without_digits(text: &str) -> Option<&str> {
    let rest = text.trim_end_matches(is_digit);
    (rest.len() < text.len()).then_some(rest)
}

/// What follows one or more digits and `)` at the start.
fn behind_number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(is_digit);
    rest.strip_prefix(')').filter(|_| rest.len() < text.len())
}
