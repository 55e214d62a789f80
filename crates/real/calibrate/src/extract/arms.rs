//! How many arms share the addresses, each an equal part of them.
//!
//! A drive of several actuators gives each its own range of addresses (concurrent
//! positioning ranges, ACS-5 and SBC-4). A read far away moves the arm that is asked
//! for it, and no other: who comes back to where it was then finds it as it left it.

use crate::extract::ExtractError;
use crate::extract::angles::Angles;
use fullstroke_units::{Random, Seed};
use std::ops::Range;

/// Arms that are looked for, at most.
const ARMS_MAX: u64 = 8;

/// Returns of which the shortest counts, and those tried for as many that no buffer
/// answers.
const RETURNS: u32 = 48;
const RETURNS_TRIED: u32 = 4 * RETURNS;

/// Parts of the addresses: among one of the first is home; those of the second lie close
/// to a border.
const HOME: u64 = 512;
const BORDER: u64 = 4096;

/// Arms that have an equal, contiguous part of the addresses each; `None` where way
/// and return take too little to tell, and of one arm must be thought.
///
/// # Errors
/// If a read fails, or several arms have parts that are not equal.
pub async fn arms(angles: &Angles, seed: Seed) -> Result<Option<u32>, ExtractError> {
    let capacity = angles.probe().capacity().0;
    let mut returns = Returns {
        angles,
        random: seed.stream("arms"),
        home: 0..(capacity / HOME).max(1),
    };
    let border = (capacity / BORDER).max(1);
    // On an arm's own part, were there as many as are looked for.
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

/// What the first of `arms` has of `capacity` addresses; unless told, of one.
pub(crate) fn share(capacity: u64, arms: Option<u32>) -> u64 {
    capacity / u64::from(arms.unwrap_or(1))
}

/// From home to elsewhere, and back.
struct Returns<'a> {
    angles: &'a Angles,
    random: Random,
    home: Range<u64>,
}

impl Returns<'_> {
    /// The shortest time of the read at home after one among `away`, in ns; `None` if the
    /// buffer answers too many.
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
