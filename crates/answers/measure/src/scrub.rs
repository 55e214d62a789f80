//! Duration of a scrub of a pool.

use serde::Serialize;

/// The scrub of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScrubReport {
    /// Duration of a scrub of all records, in hours.
    pub hours: f64,
    /// Half the width of the 95 % confidence interval of `hours`: 0 if the scrub ended in the run.
    pub hours_ci95_half_width: f64,
    /// Number of windows, at places all over the records, whose paces give `hours`; 0 if this run
    /// gives them alone.
    pub windows: usize,
    /// Share of the records that was read in this run or in the windows.
    pub simulated_share: f64,
}
