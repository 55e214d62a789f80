//! What the nodes of a machine have counted, for reports and metrics.

use crate::{HostReadings, LayerReadings, MemberStatistics};
use fullstroke_units::Time;

/// How many instants of shifts an array keeps.
pub const SHIFTS_KEPT: usize = 256;

/// All counters since the beginning of a run, gathered node by node in the order
/// of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// One entry a drive.
    pub drives: Vec<MemberStatistics>,
    /// What other layers counted, by name.
    pub layers: Vec<LayerReadings>,
    /// What hosts with programs counted.
    pub hosts: Vec<HostReadings>,
    /// When arrays with gears began to shift, in the order of the tree: each array's first
    /// [`SHIFTS_KEPT`].
    pub gear_shifts: Vec<Time>,
    /// Damaged rows that workloads left out, as the user allowed.
    pub skipped_rows: u64,
    /// What is wrong with what workloads read that the requests do not tell, such
    /// as events that a trace has lost: a sentence each, none twice.
    pub notes: Vec<String>,
}

impl Counters {
    /// Adds a note, unless it is there already.
    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
