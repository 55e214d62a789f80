//! Why an extraction ends without a result.

use fullstroke_contract::Extent;
use fullstroke_tracks::TrackError;
use fullstroke_units::Lbn;
use thiserror::Error;

/// Why an extraction ends without a result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExtractError {
    /// The device did not answer.
    #[error("{extent:?} was not answered: {reason}")]
    Device {
        /// What was asked for.
        extent: Extent,
        /// What it said instead.
        reason: String,
    },
    /// The device does not say where an address lies.
    #[error("the device does not translate {lbn}: {reason}")]
    Translation {
        /// The address.
        lbn: Lbn,
        /// What it said instead.
        reason: String,
    },
    /// What was seen leaves the answer open, and no answer is better than a
    /// wrong one.
    #[error("{what} cannot be told: {saw}")]
    CannotTell {
        /// What was looked for.
        what: &'static str,
        /// What was seen, and what may help.
        saw: String,
    },
    /// Tracks that no table holds.
    #[error("the tracks that were found make no table: {0}")]
    Tracks(#[from] TrackError),
}

impl ExtractError {
    /// `what` cannot be told.
    pub(crate) fn cannot_tell(what: &'static str, saw: impl Into<String>) -> ExtractError {
        ExtractError::CannotTell {
            what,
            saw: saw.into(),
        }
    }
}
