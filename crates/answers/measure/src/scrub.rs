//! Duration of a scrub of a pool.

use crate::number;
use serde::Serialize;

/// The scrub of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScrubReport {
    /// Duration of a scrub of all records, in hours.
    pub hours: f64,
    /// Half the width of the 95 % confidence interval of `hours`: 0 if the scrub ended in the run.
    pub hours_ci95_half_width: Option<f64>,
    /// Number of windows, at places all over the records, whose paces give `hours`; 0 if this run
    /// gives them alone.
    pub windows: usize,
    /// Share of the records that was read in this run or in the windows.
    pub simulated_share: f64,
}

impl ScrubReport {
    /// Returns the hours of the scrub, with their interval and the simulated share.
    pub fn hours_in_words(&self) -> String {
        let simulated = number(100.0 * self.simulated_share);
        match self.hours_ci95_half_width {
            _ if self.windows == 0 => format!("{} hours", number(self.hours)),
            Some(half_width) => format!(
                "between {} and {} hours, estimated ({simulated} % simulated, in {} windows all over the records)",
                number((self.hours - half_width).max(0.0)),
                number(self.hours + half_width),
                self.windows
            ),
            None => format!(
                "about {} hours, estimated without an interval ({simulated} % simulated)",
                number(self.hours)
            ),
        }
    }
}
