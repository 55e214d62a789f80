//! How long an array has been quiet, what it asks for then, and whose writes answer.

use fullstroke_contract::{ConfigError, Operation, Request, Signal};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Time};

/// What is asked for at a time, in sectors.
///
/// # Errors
/// Nothing, or no whole sectors, at `flush`.
pub(crate) fn granule(flush: Bytes) -> Result<Sectors, ConfigError> {
    if flush.0 == 0 || !flush.0.is_multiple_of(SECTOR_BYTES) {
        let message = format!("found {flush}; expected whole sectors of {SECTOR_BYTES} bytes, at least one");
        return Err(ConfigError::new("flush", message));
    }
    Ok(Sectors(flush.0 / SECTOR_BYTES))
}

/// A time that something takes.
///
/// # Errors
/// None, at `key`.
pub(crate) fn some(key: &str, time: Duration) -> Result<Duration, ConfigError> {
    if time == Duration::ZERO {
        return Err(ConfigError::new(key, "found 0; expected some time"));
    }
    Ok(time)
}

/// The host chooses what it writes.
pub(crate) fn any(sectors: Sectors) -> Signal {
    Signal::Pull { extent: None, sectors }
}

/// What has been asked for and not come yet: writes are taken for it as they come,
/// for nothing in a request says why it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    left: Sectors,
}

impl Asked {
    pub(crate) fn ask(&mut self, sectors: Sectors) {
        self.left = sectors;
    }

    /// Whether a request is (the rest of) an answer.
    pub(crate) fn answers(&mut self, request: &Request) -> bool {
        let answers = request.operation == Operation::Write && self.left > Sectors::ZERO;
        if answers {
            self.left = Sectors(self.left.0.saturating_sub(request.extent.sectors.0));
        }
        answers
    }

    /// Nothing more is taken for an answer.
    pub(crate) fn forget(&mut self) {
        self.left = Sectors::ZERO;
    }
}

/// Time since requests came last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quiet {
    pub(crate) since: Time,
}

impl Quiet {
    pub(crate) fn lasts(&self, now: Time, wait: Duration) -> bool {
        now >= self.since + wait
    }
}
