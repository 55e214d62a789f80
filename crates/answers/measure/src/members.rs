//! Measures of each drive.

use fullstroke_contract::{MemberStatistics, PowerState, PowerStatistics};
use fullstroke_counters::{Counter, ReportNumber};
use fullstroke_units::SECTOR_BYTES;
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

/// Writes of a load, in sectors, below which a run says nothing about writes in memory: 1 MB.
const WRITTEN_LEAST: u64 = 2_000;

/// Returns a sentence if the drives have taken less than half of the sectors that the load wrote. Memory
/// takes the first writes at once, so a short run shows the speed of memory.
pub(crate) fn in_memory(written: u64, drives: &[MemberStatistics]) -> Option<String> {
    let taken: u64 = drives.iter().map(|drive| drive.sectors_written.0).sum();
    if written < WRITTEN_LEAST || taken.saturating_mul(2) >= written {
        return None;
    }
    let megabytes = |sectors: u64| sectors as f64 * SECTOR_BYTES as f64 / 1e6;
    Some(format!(
        "The load wrote {:.1} MB, and the drives {:.1} MB: the rest is in memory, was replaced there, or was compressed. A longer load shows the rate of the drives.",
        megabytes(written),
        megabytes(taken)
    ))
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

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Sectors;

    #[test]
    fn writes_that_the_drives_have_not_taken_are_named() {
        let drive = |sectors: u64| MemberStatistics {
            sectors_written: Sectors(sectors),
            ..MemberStatistics::default()
        };
        // Half of the data is on the drives.
        assert_eq!(in_memory(4_000, &[drive(1_000), drive(1_000)]), None);
        let note = in_memory(4_000, &[drive(1_000), drive(500)]).unwrap();
        assert!(
            note.starts_with("The load wrote 2.0 MB, and the drives 0.8 MB"),
            "{note}"
        );
        // A load that writes nothing, or little.
        assert_eq!(in_memory(0, &[drive(0)]), None);
        assert_eq!(in_memory(1_999, &[drive(0)]), None);
    }
}
