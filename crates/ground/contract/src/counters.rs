//! The counters of all nodes of a machine, for reports and metrics.

use crate::{HostReadings, LayerReadings, MemberStatistics};
use fullstroke_units::Time;

/// Largest number of shift times that an array keeps.
pub const SHIFTS_KEPT: usize = 256;

/// All counters since the beginning of a run. They are collected node by node in the order of the
/// graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Counters of each drive.
    pub drives: Vec<MemberStatistics>,
    /// Counters of the other layers, by name.
    pub layers: Vec<LayerReadings>,
    /// Counters of the hosts that run programs.
    pub hosts: Vec<HostReadings>,
    /// Times when arrays with gears began to shift, in the order of the tree. Each array
    /// contributes its first [`SHIFTS_KEPT`] shifts.
    pub gear_shifts: Vec<Time>,
    /// Number of damaged rows that workloads skipped with the user's permission.
    pub skipped_rows: u64,
    /// Problems of the input of workloads, one sentence each without duplicates. An example is
    /// events lost by a trace, of which the requests show nothing.
    pub notes: Vec<String>,
}

impl Counters {
    /// Adds a note unless the same note is present.
    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
