//! Where requests come from.

use crate::{Completion, Request};
use fullstroke_units::Time;
use std::fmt;

/// The top of a stack: a state machine that issues requests, by its own
/// timeline (open arrivals) or as earlier ones complete (closed).
///
/// - **Events in**: [`wake`](Source::wake), [`completed`](Source::completed).
/// - **Effects out**: requests, pushed into `out`. The driver numbers them in
///   this order ([`Request::origin`]) and records their arrival at `now`.
/// - **Getter**: [`next_wake`](Source::next_wake). It may lie in the past: then
///   the arrival belongs to that instant.
///
/// The run is over when `next_wake` is [`Time::NEVER`] and nothing is in flight.
pub trait Source: Send {
    /// The time that the source asked for has come.
    ///
    /// # Errors
    /// What the source reads from cannot be read further.
    fn wake(&mut self, now: Time, out: &mut Vec<Request>) -> Result<(), SourceError>;

    /// A request of this source has finished.
    fn completed(&mut self, now: Time, completion: &Completion, out: &mut Vec<Request>);

    /// When the source wants to be woken; [`Time::NEVER`] if it does not.
    fn next_wake(&self) -> Time;

    /// Whether what is issued, or when, depends on completions. If not,
    /// requests come by their own times, whatever becomes of earlier ones.
    fn heeds_completions(&self) -> bool {
        true
    }

    /// Whether some requests come by their own times, so that more may arrive
    /// than can be served.
    fn arrivals_are_open(&self) -> bool {
        !self.heeds_completions()
    }

    /// Damaged rows that were left out so far, as the user allowed.
    fn skipped_rows(&self) -> u64 {
        0
    }

    /// What is wrong with what was read so far that the requests do not tell,
    /// such as events that a trace has lost. A sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// How many requests there will be in all, if the source knows; for
    /// progress bars.
    fn expected_requests(&self) -> Option<u64> {
        None
    }
}

/// Why a source could not go on: a message for people that names the file and
/// the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError(pub String);

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SourceError {}
