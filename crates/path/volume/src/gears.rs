//! Arrays with gears: while little is asked of them, some members stop.
//!
//! Above is an array of all members, RAID 0 or RAID 5, with its native data in the front of each.
//! What the members hold that are to stop, the *transient* ones, lies a second time on those that go
//! on, in space that the native data leaves: the **soft state**, striped over these by the same RAID
//! level, so that the low gear survives what the high one does. Native data never moves.
//!
//! A set of soft rows is kept that are **stale**. In the high gear it is the soft state that is stale
//! where a transient member was written; in the low gear it is the transient member. A shift copies
//! stale rows while requests are served: what is written meanwhile goes to both places, unless the
//! row is still to be copied; so a shift ends.
//!
//! | gear | transient data is read from | a write goes to |
//! |---|---|---|
//! | high | its home | its home; the row becomes stale |
//! | falling | its home | its home, and the soft state unless stale |
//! | low | the soft state | the soft state; the row becomes stale |
//! | rising | the soft state | the soft state, and its home unless stale |
//!
//! Weddle et al., "PARAID: A Gear-Shifting Power-Aware RAID" (2007); two gears here.

use crate::plan::Plan;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{ConfigError, Extent, Gear};
use fullstroke_units::{Bytes, Duration, Sectors};
use std::ops::Range;

mod copies;
mod layout;
mod map;
mod rows;
mod stale;
#[cfg(test)]
mod tests;
mod transfers;
mod upkeep;

pub(crate) use layout::Geared;
pub(crate) use map::GearMap;
pub use rows::GearedRows;

/// When an array shifts, and how fast it copies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShiftRules {
    /// A mean utilisation of the working members below this shifts down.
    pub down: f64,
    /// One above this shifts up.
    pub up: f64,
    /// What the mean is taken over.
    pub window: Duration,
    /// The least time in a gear.
    pub stay: Duration,
    /// Bytes of the transient members that are copied in a second, at most.
    pub rate: Option<Bytes>,
    /// How often the transient members may be stopped in 24 hours.
    pub stops_a_day: Option<u32>,
}

impl ShiftRules {
    /// The same, if they can be followed.
    pub(crate) fn checked(self) -> Result<ShiftRules, ConfigError> {
        let ShiftRules { down, up, .. } = self;
        if !(down.is_finite() && up.is_finite() && down >= 0.0) {
            let message = format!(
                "utilisations of {down} and {up} are none; write shares of the time, such as 0.1"
            );
            return Err(ConfigError::new("shift_down", message));
        }
        if down >= up {
            let message = format!(
                "an array that shifts down below a utilisation of {down} and up above {up} would shift to and fro; \
                 `shift_down` must be below `shift_up`, and well below the share of it that the low gear's fewer members see"
            );
            return Err(ConfigError::new("shift_down", message));
        }
        if self.window == Duration::ZERO {
            return Err(ConfigError::new(
                "window_s",
                "a mean needs a time to be taken over; write for example 60",
            ));
        }
        if self.rate == Some(Bytes(0)) {
            return Err(ConfigError::new(
                "copy_rate",
                "at 0 bytes a second no shift ends; leave the key out for no bound",
            ));
        }
        Ok(self)
    }
}

/// The gears of a layout: what whoever carries plans out shifts by.
///
/// ```text
/// shift(Falling)                      or shift(Rising)
/// while plan_copy(most, plan) is some rows:
///     carry out plan; if that fails, again(rows)
/// settle()                            it is in the low, or the high, gear
/// ```
///
/// Requests may be planned between any two of these steps, if plans get the rows that they need for
/// themselves in the order in which they were made.
pub trait Gears {
    /// When to shift.
    fn rules(&self) -> ShiftRules;
    /// The gear.
    fn gear(&self) -> Gear;
    /// The members that stop in the low gear.
    fn transient(&self) -> Range<usize>;
    /// Begins to shift: falling from the high gear, rising from the low one. Answers whether it
    /// could: falling needs all members alive.
    fn shift(&mut self, to: Gear) -> bool;
    /// Writes into `plan` the I/O that copies the next stale rows, `most` sectors of them or one row,
    /// in the direction of the shift. `None`: no row is stale. Writes that are planned from now on
    /// count on its being carried out.
    fn plan_copy(&mut self, most: Sectors, plan: &mut Plan) -> Option<CopiedRows>;
    /// These rows were not copied.
    fn again(&mut self, rows: CopiedRows);
    /// All is copied, to the end: the shift is over.
    fn settle(&mut self);
    /// Soft rows that are stale.
    fn stale(&self) -> u64;
    /// It is not known which rows are stale: all count as such.
    fn distrust(&mut self);
    /// The array was left in the low gear. All that the transient members hold counts as stale.
    fn found_low(&mut self);
    /// Of what counts as stale, only that is of which `is_stale` says so: it is asked for runs of members'
    /// addresses in which native rows lie.
    fn narrow_stale(&mut self, is_stale: &dyn Fn(Extent) -> bool);
    /// Which rows are changed together; none where no parity is shared.
    fn rows(&self) -> Option<GearedRows>;
    /// Keys that say what was taken for granted where nothing was said: without them the map would follow from
    /// what a later program takes for granted.
    fn settled_keys(&self) -> Keys;
    /// Writes into `plan` what the redundancy of some rows should be, in this gear, about `most` sectors of them:
    /// what it reads is what redundancy follows from, and what it writes is where that should stand. All members
    /// must be alive. Rows are counted from 0; answers the next, or nothing at the end. A plan may be empty.
    fn plan_check(&mut self, from: u64, most: Sectors, plan: &mut Plan) -> Option<u64>;
    /// Writes into `plan` what computes a run of a member's sectors from the others, in this gear, and writes it
    /// there. Answers whether that can be done.
    fn plan_mend(&mut self, member: usize, extent: Extent, plan: &mut Plan) -> bool;
}

/// Soft rows that one plan copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CopiedRows {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// What is copied of them.
    pub sectors: Sectors,
}
