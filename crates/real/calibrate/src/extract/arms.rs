//! The number of arms that share the addresses in equal parts.
//!
//! A drive of several actuators gives each actuator its own range of addresses (concurrent
//! positioning ranges, ACS-5 and SBC-4). A read far away moves only the arm of its own range. So a
//! read back at the first address finds the first arm where that arm was, if the far address
//! belongs to another arm.

use crate::extract::ExtractError;
use crate::extract::angles::Angles;
use fullstroke_units::{Random, Seed};
use std::ops::Range;

/// Largest number of arms tried by the search.
const ARMS_MAX: u64 = 8;

/// Number of returns of which the shortest counts. `RETURNS_TRIED` is the number of attempts,
/// because a return that the buffer answers does not count.
const RETURNS: u32 = 48;
const RETURNS_TRIED: u32 = 4 * RETURNS;

/// Fractions of the addresses. Home is the first of `HOME` parts. Reads close to a border lie
/// within one of `BORDER` parts.
const HOME: u64 = 512;
const BORDER: u64 = 4096;

/// Returns the number of arms that each have an equal, contiguous part of the addresses. Returns
/// `None` if the way to a far address and back takes too little time to tell. The caller must then
/// assume one arm.
///
/// # Errors
/// If a read fails, or several arms have unequal parts.
pub async fn arms(angles: &Angles, seed: Seed) -> Result<Option<u32>, ExtractError> {
    let capacity = angles.probe().capacity().0;
    let mut returns = Returns {
        angles,
        random: seed.stream("arms"),
        home: 0..(capacity / HOME).max(1),
    };
    let border = (capacity / BORDER).max(1);
    // This address belongs to the first arm even if the drive has `ARMS_MAX` arms.
    let own = capacity / (ARMS_MAX + 2);
    let stays = returns.least_ns(returns.home.clone()).await?;
    let goes = returns.least_ns(own..own + border).await?;
    let (Some(stays), Some(goes)) = (stays, goes) else {
        return Ok(None);
    };
    if goes <= stays {
        return Ok(None);
    }
    let moved = stays.midpoint(goes);
    let another = async |returns: &mut Returns<'_>, away| {
        Ok::<_, ExtractError>(returns.least_ns(away).await?.is_some_and(|ns| ns < moved))
    };
    if !another(&mut returns, capacity - border..capacity).await? {
        return Ok(Some(1));
    }
    for arms in 2..=ARMS_MAX {
        let end = capacity / arms;
        if another(&mut returns, end..end + border).await?
            && !another(&mut returns, end - border..end).await?
        {
            return Ok(Some(arms as u32));
        }
    }
    Err(ExtractError::cannot_tell(
        "the number of arms",
        format!(
            "the first addresses and the last are those of different arms, but not as equal parts of 2 to \
             {ARMS_MAX}"
        ),
    ))
}

/// Returns the number of addresses of the first of `arms` arms; `None` counts as one arm.
pub(crate) fn share(capacity: u64, arms: Option<u32>) -> u64 {
    capacity / u64::from(arms.unwrap_or(1))
}

/// Reads at home, elsewhere, and at home again.
struct Returns<'a> {
    angles: &'a Angles,
    random: Random,
    home: Range<u64>,
}

impl Returns<'_> {
    /// Returns the shortest time in ns of a read at home after a read in `away`. Returns `None` if
    /// the buffer answers too many reads.
    async fn least_ns(&mut self, away: Range<u64>) -> Result<Option<u64>, ExtractError> {
        let hit_ns = self.angles.rotation().hit_ns;
        let mut least = u64::MAX;
        let mut returns = 0;
        for tried in 0..RETURNS_TRIED {
            self.angles
                .probe()
                .progress("arms", u64::from(tried), u64::from(RETURNS_TRIED));
            let mut soonest = u64::MAX;
            let mut last = 0;
            for place in [&self.home, &away, &self.home] {
                let lbn = place.start + self.random.below(place.end - place.start);
                last = self.angles.probe().read(lbn, 1).await?.response_ns();
                soonest = soonest.min(last);
            }
            if soonest <= hit_ns {
                continue;
            }
            least = least.min(last);
            returns += 1;
            if returns == RETURNS {
                return Ok(Some(least));
            }
        }
        Ok(None)
    }
}
