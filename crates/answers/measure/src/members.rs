//! Measures of each drive.

use fullstroke_contract::{MemberStatistics, PowerState, PowerStatistics};
use fullstroke_counters::{Counter, ReportNumber};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// One drive over the whole run, including the warm-up: every number of [`Counter::all_reported`].
/// Means are over the I/Os that the drive served, and zero if the drive served none.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberReport {
    /// Place in the tree: `0`, or `2.0` in nested volumes.
    pub name: String,
    /// Counters of the drive.
    pub statistics: MemberStatistics,
    /// Length of the whole run, in seconds.
    pub seconds: f64,
}

impl MemberReport {
    /// Returns the value of `counter` in the report; NaN if the report has none.
    pub fn value(&self, counter: Counter) -> f64 {
        self.number(counter).map_or(f64::NAN, ReportNumber::value)
    }

    /// Returns the value as the report prints it: counts are whole numbers.
    pub fn number(&self, counter: Counter) -> Option<ReportNumber> {
        let reported = counter.reported?;
        Some((reported.number)(&self.statistics, self.seconds))
    }
}

impl Serialize for MemberReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        for reported in Counter::all_reported() {
            map.serialize_entry(
                reported.key,
                &(reported.number)(&self.statistics, self.seconds),
            )?;
        }
        if let Some(power) = &self.statistics.power {
            map.serialize_entry("power", &MemberPower(power))?;
        }
        map.end()
    }
}

/// One drive's seconds in each state, and its spin-ups and spin-downs.
struct MemberPower<'a>(&'a PowerStatistics);

impl Serialize for MemberPower<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for state in PowerState::ALL {
            map.serialize_entry(
                &format!("{}_s", state.name()),
                &self.0.time_in(state).as_secs_f64(),
            )?;
        }
        map.serialize_entry("spin_downs", &self.0.spin_downs())?;
        map.serialize_entry("spin_ups", &self.0.spin_ups())?;
        map.serialize_entry("wakes", &self.0.wakes())?;
        map.end()
    }
}

/// Returns one report for each drive; `seconds` is the length of the whole run.
pub(crate) fn member_reports(
    drives: &[MemberStatistics],
    names: &[String],
    seconds: f64,
) -> Vec<MemberReport> {
    let report = |(drive, name): (&MemberStatistics, &String)| MemberReport {
        name: name.clone(),
        statistics: *drive,
        seconds,
    };
    drives.iter().zip(names).map(report).collect()
}
