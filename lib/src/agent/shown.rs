//! What the last call showed: the next view grows from it.

use crate::context::View;

/// The last view, where it was given back: the next one grows from it. It can always be computed again.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    pub(super) view: Option<View>,
    /// How long the log was when it was made.
    pub(super) seen: usize,
}

impl PartialEq for Shown {
    /// It says nothing that the log does not say.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
