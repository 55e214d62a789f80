//! The log that a stripe passes before its data and parity are written: the partial parity log or
//! the journal.

mod steps;

use super::journal::Journal;
use super::ppl::PartialParityLog;

/// The log of an array.
#[derive(Debug)]
pub(super) enum WriteLog {
    PartialParity(PartialParityLog),
    Journal(Journal),
}
