//! Counters of the controller.

use fullstroke_contract::LayerReadings;
use fullstroke_units::Sectors;

/// Totals since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControllerCounts {
    /// Number of reads of valid addresses.
    pub(crate) reads: u64,
    /// Number of reads answered from memory at once.
    pub(crate) hits: u64,
    /// Number of writes taken completely into memory.
    pub(crate) absorbed: u64,
    /// Number of read-ahead I/Os.
    pub(crate) read_aheads: u64,
    /// Number of I/Os with dirty data, and their sectors, finished or not.
    pub(crate) destages: u64,
    pub(crate) destaged: Sectors,
}

impl ControllerCounts {
    pub(crate) fn readings(&self) -> LayerReadings {
        let readings = [
            ("controller_reads", self.reads as f64),
            ("controller_read_hits", self.hits as f64),
            (
                "controller_read_hit_share",
                self.hits as f64 / self.reads.max(1) as f64,
            ),
            ("controller_writes_absorbed", self.absorbed as f64),
            ("controller_read_aheads", self.read_aheads as f64),
            ("controller_destages", self.destages as f64),
            (
                "controller_destaged_mb",
                self.destaged.bytes().0 as f64 / 1e6,
            ),
        ];
        LayerReadings::new("controller", &readings)
    }
}
