//! What is asked for while an array is quiet, and whose writes answer.

use crate::Site;
use fullstroke_contract::{ConfigError, Operation, Request, Signal};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors};

/// What is asked for at a time, in sectors.
///
/// # Errors
/// Nothing, no whole sectors, or more than any host could have, at `flush`.
pub(crate) fn granule(flush: Bytes, site: &Site) -> Result<Sectors, ConfigError> {
    let sectors = whole_sectors("flush", flush)?;
    if flush > site.page_cache {
        let held = site.page_cache;
        let message = format!(
            "found {flush}; the largest page cache of a host holds {held}, and no more is ever dirty"
        );
        return Err(ConfigError::new("flush", message));
    }
    Ok(sectors)
}

/// A size in sectors.
///
/// # Errors
/// Nothing, or no whole sectors, at `key`.
pub(crate) fn whole_sectors(key: &str, size: Bytes) -> Result<Sectors, ConfigError> {
    if size.0 == 0 || !size.0.is_multiple_of(SECTOR_BYTES) {
        let message =
            format!("found {size}; expected whole sectors of {SECTOR_BYTES} bytes, at least one");
        return Err(ConfigError::new(key, message));
    }
    Ok(Sectors(size.0 / SECTOR_BYTES))
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

/// A time for which nothing must come.
///
/// # Errors
/// None, or none that the run has, at `key`.
pub(crate) fn quiet_time(key: &str, time: Duration, site: &Site) -> Result<Duration, ConfigError> {
    match site.lasts {
        Some(lasts) if time >= lasts => {
            let message =
                format!("found {time}; the run lasts {lasts}, and is never quiet for so long");
            Err(ConfigError::new(key, message))
        }
        _ => Ok(time),
    }
}

/// The host chooses what it writes.
pub(crate) fn any(sectors: Sectors) -> Signal {
    Signal::Pull {
        extent: None,
        sectors,
    }
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
