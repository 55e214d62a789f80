//! Arrays with gears: some members stop while the load is low.
//!
//! The layer above sees an array of all members, RAID 0 or RAID 5. The native data of the array
//! lies in the front of each member. The members that stop in the low gear are the *transient*
//! members. Their data is stored a second time on the active members, in space outside the native
//! data. This second copy is the **soft state**. The soft state is striped by the same RAID level;
//! a row of its chunks is a **soft row**. The low gear therefore survives the same failures as the
//! high gear. Native data never moves.
//!
//! The layout keeps a set of **stale** soft rows. In the high gear, a write of a transient member
//! makes the soft state stale. In the low gear, such a write makes the transient member stale. A
//! shift copies stale rows while requests are served. A write during a shift goes to both places,
//! unless its row is still to be copied. The set of stale rows therefore only shrinks, and the
//! shift ends.
//!
//! A shift down is the gear `falling`, and a shift up the gear `rising`. *Home* is the place of
//! native data on a transient member.
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

pub(crate) use layout::GearedLayout;
pub(crate) use map::GearMap;
pub use rows::GearedRows;

/// Conditions of a shift, and limit of the copy rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShiftRules {
    /// The array shifts down if the mean utilisation of the working members is below this share.
    pub down: f64,
    /// The array shifts up if the mean utilisation of the working members is above this share.
    pub up: f64,
    /// Period of the mean utilisation.
    pub window: Duration,
    /// Minimum time in a gear.
    pub stay: Duration,
    /// Maximum copy rate in bytes of the transient members per second; `None` means no limit.
    pub rate: Option<Bytes>,
    /// Maximum number of stops of the transient members in 24 hours; `None` means no limit.
    pub stops_a_day: Option<u32>,
}

impl ShiftRules {
    /// Returns the rules, or an error if they contradict each other.
    pub(crate) fn checked(self) -> Result<ShiftRules, ConfigError> {
        let ShiftRules { down, up, .. } = self;
        if !(down.is_finite() && up.is_finite() && down >= 0.0) {
            let message =
                format!("found utilisations {down} and {up}; expected shares of time, such as 0.1");
            return Err(ConfigError::new("shift_down", message));
        }
        if down >= up {
            let message = format!(
                "found shift_down {down} and shift_up {up}: the array would shift to and fro; `shift_down` must be well below `shift_up`, because the low gear has fewer members for the same load"
            );
            return Err(ConfigError::new("shift_down", message));
        }
        if self.window == Duration::ZERO {
            return Err(ConfigError::new(
                "window_s",
                "found 0; expected the length of the window in seconds, such as 60",
            ));
        }
        if self.rate == Some(Bytes(0)) {
            return Err(ConfigError::new(
                "copy_rate",
                "found 0; with this rate no shift would end. Remove the key for no limit",
            ));
        }
        Ok(self)
    }
}

/// The gears of a layout. The caller shifts as follows:
///
/// ```text
/// shift(Falling)                      or shift(Rising)
/// while plan_copy(most, plan) is some rows:
///     carry out plan; if that fails, again(rows)
/// settle()                            it is in the low, or the high, gear
/// ```
///
/// Requests may be planned between any two of these steps. Plans must then get their exclusive rows
/// in the order of planning.
pub trait Gears {
    /// Returns the conditions of a shift.
    fn rules(&self) -> ShiftRules;
    /// Returns the members in standby in the low gear.
    fn transient(&self) -> Range<usize>;
    /// Begins a shift: `Falling` from the high gear, `Rising` from the low gear. Returns true if
    /// the shift has begun. `Falling` needs all members alive.
    fn shift(&mut self, to: Gear) -> bool;
    /// Writes into `plan` the I/O that copies the next stale rows in the direction of the shift: at
    /// most `most` sectors, but at least one row. Returns `None` if no row is stale. Later plans
    /// for writes rely on the execution of this plan.
    fn plan_copy(&mut self, most: Sectors, plan: &mut Plan) -> Option<CopiedRows>;
    /// Marks these rows as stale again because their copy failed.
    fn again(&mut self, rows: CopiedRows);
    /// Ends the shift after all rows have been copied.
    fn settle(&mut self);
    /// Returns the number of stale soft rows.
    fn stale(&self) -> u64;
    /// Marks all rows as stale, because the stale rows are not known.
    fn mark_all_stale(&mut self);
    /// Sets the low gear of an array after a restart, if the array was in the low gear before. All
    /// data of the transient members counts as stale.
    fn found_low(&mut self);
    /// Keeps a soft row stale only if `is_stale` returns true for one of its native rows. The
    /// argument of `is_stale` is a run of members' addresses with native rows.
    fn narrow_stale(&mut self, is_stale: &dyn Fn(Extent) -> bool);
    /// Returns the groups of rows that must be changed together; `None` if no parity is shared.
    fn rows(&self) -> Option<GearedRows>;
    /// Returns keys with the values of the present defaults, where the user gave none. Without
    /// these keys, a later version of the program with other defaults would compute a different
    /// map.
    fn settled_keys(&self) -> Keys;
    /// Writes into `plan` a check of the redundancy of about `most` sectors of rows, in the present
    /// gear. The plan reads the data behind the redundancy. Its writes contain the correct
    /// redundancy for their places. All members must be alive. Rows are counted from 0. Returns the
    /// next row, or `None` at the end. A plan may be empty.
    fn plan_check(&mut self, from: u64, most: Sectors, plan: &mut Plan) -> Option<u64>;
    /// Writes into `plan` the I/O that computes a run of a member's sectors from the other members,
    /// in the present gear, and writes the run to the member. Returns false if the run cannot be
    /// computed.
    fn plan_mend(&mut self, member: usize, extent: Extent, plan: &mut Plan) -> bool;
}

/// The soft rows in one copy plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CopiedRows {
    /// First row.
    pub first: u64,
    /// Number of rows.
    pub count: u64,
    /// Number of copied sectors.
    pub sectors: Sectors,
}
