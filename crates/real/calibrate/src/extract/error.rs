//! Reasons for an extraction without a result.

use fullstroke_contract::Extent;
use fullstroke_tracks::TrackError;
use fullstroke_units::Lbn;
use thiserror::Error;

/// Reason for an extraction without a result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExtractError {
    /// The device did not answer.
    #[error("{extent:?} was not answered: {reason}")]
    Device {
        /// The requested extent.
        extent: Extent,
        /// Message of the device or the system.
        reason: String,
    },
    /// The device does not translate an address.
    #[error("the device does not translate {lbn}: {reason}")]
    Translation {
        /// The address.
        lbn: Lbn,
        /// Message of the device or the system.
        reason: String,
    },
    /// The observations leave the answer open. No answer is better than a wrong answer.
    #[error("{what} cannot be told: {saw}")]
    CannotTell {
        /// The unknown quantity.
        what: &'static str,
        /// The observations, with advice.
        saw: String,
    },
    /// The tracks fit in no table.
    #[error("the tracks that were found make no table: {0}")]
    Tracks(#[from] TrackError),
}

impl ExtractError {
    /// Returns an error: `what` cannot be told.
    pub(crate) fn cannot_tell(what: &'static str, saw: impl Into<String>) -> ExtractError {
        ExtractError::CannotTell {
            what,
            saw: saw.into(),
        }
    }
}
