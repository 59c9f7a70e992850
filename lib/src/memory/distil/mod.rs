//! What a run is boiled down to: as text for prompts and chunks, by rules, and by a model.

mod ask;
mod card;
mod digest;
mod rules;

pub(super) use ask::{Asker, one_line};
pub(super) use card::FixCard;
pub(super) use digest::{chunks, digest};
pub(super) use rules::by_rules;
