//! Questions to hosts while an array is quiet, and the recognition of answers.

use crate::OpportunitySite;
use fullstroke_contract::{ConfigError, Operation, Request, Signal};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors};

/// Returns the size of one PULL in sectors.
///
/// # Errors
/// Names `flush` if the size is 0, is not a whole number of sectors, or exceeds the largest page
/// cache.
pub(crate) fn granule(flush: Bytes, site: &OpportunitySite) -> Result<Sectors, ConfigError> {
    let sectors = whole_sectors("flush", flush)?;
    if flush > site.page_cache {
        let held = site.page_cache;
        let message =
            format!("found {flush}; expected at most {held}, the largest page cache of a host");
        return Err(ConfigError::new("flush", message));
    }
    Ok(sectors)
}

/// Returns a size in sectors.
///
/// # Errors
/// Names `key` if the size is 0 or is not a whole number of sectors.
pub(crate) fn whole_sectors(key: &str, size: Bytes) -> Result<Sectors, ConfigError> {
    if size.0 == 0 || !size.0.is_multiple_of(SECTOR_BYTES) {
        let message =
            format!("found {size}; expected whole sectors of {SECTOR_BYTES} bytes, at least one");
        return Err(ConfigError::new(key, message));
    }
    Ok(Sectors(size.0 / SECTOR_BYTES))
}

/// Checks that a time is not 0.
///
/// # Errors
/// Names `key` if the time is 0.
pub(crate) fn some(key: &str, time: Duration) -> Result<Duration, ConfigError> {
    if time == Duration::ZERO {
        return Err(ConfigError::new(key, "found 0; expected a time above 0"));
    }
    Ok(time)
}

/// Checks a time without requests.
///
/// # Errors
/// Names `key` if the time is at least as long as the run.
pub(crate) fn quiet_time(
    key: &str,
    time: Duration,
    site: &OpportunitySite,
) -> Result<Duration, ConfigError> {
    match site.lasts {
        Some(lasts) if time >= lasts => {
            let message =
                format!("found {time}; expected less than {lasts}, the length of the run");
            Err(ConfigError::new(key, message))
        }
        _ => Ok(time),
    }
}

/// Returns a PULL for which the host chooses the pages.
pub(crate) fn any(sectors: Sectors) -> Signal {
    Signal::Pull {
        extent: None,
        sectors,
    }
}

/// Sectors of a PULL that have not come yet. Any writes count as the answer, because a request does
/// not tell why the host sent the request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PulledSectors {
    left: Sectors,
}

impl PulledSectors {
    pub(crate) fn ask(&mut self, sectors: Sectors) {
        self.left = sectors;
    }

    /// True if a request is part of the answer.
    pub(crate) fn answers(&mut self, request: &Request) -> bool {
        let answers = request.operation == Operation::Write && self.left > Sectors::ZERO;
        // A host may write more than was asked, because hosts write whole pages or larger extents.
        // The rest of the answer is then 0.
        if answers {
            self.left = Sectors(self.left.0.saturating_sub(request.extent.sectors.0));
        }
        answers
    }

    /// Ends the answer; later writes do not count.
    pub(crate) fn forget(&mut self) {
        self.left = Sectors::ZERO;
    }
}
