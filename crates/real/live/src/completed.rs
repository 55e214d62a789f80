//! A finished request of a served stack.

use fullstroke_engine::Finished;

/// A finished request of a served stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedRequest {
    pub(crate) finished: Finished,
    /// Number in the order of completion, from 0.
    pub(crate) completion: u64,
    /// Digest of all decisions up to this completion.
    pub(crate) decisions: u64,
}
