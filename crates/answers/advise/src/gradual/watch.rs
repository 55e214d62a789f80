//! A layout at work, for drawings: heads, queues and response times over time.

use super::GradualAdvice;
use crate::{AdviseError, Condition};
use fullstroke_lab::run;
use fullstroke_measure::{Stop, TimelineReport};

/// Requests of a run for drawings. Chosen: some requests of each drive in each column of the timeline.
const WATCHED: u64 = 600;

impl GradualAdvice {
    /// Returns the events of a layout, such as `raid6 of 6`, over time, on the first requests of the
    /// load. `None` is a layout without this condition. The advice itself does not change.
    ///
    /// # Errors
    /// No layout has this name, or the run fails.
    pub fn timeline(
        &self,
        name: &str,
        condition: Condition,
        stop: &Stop,
        progress: &dyn Fn(u64, Option<u64>),
    ) -> Result<Option<TimelineReport>, AdviseError> {
        let requests = WATCHED.max(self.load.least());
        let requests = requests.min(self.load.total.unwrap_or(u64::MAX));
        let candidates = self.candidates_of(self.index(name)?, condition, requests)?;
        let Some(mut candidate) = candidates.into_iter().next() else {
            return Ok(None);
        };
        candidate.stop = stop.clone();
        candidate.timeline = true;
        Ok(run(&candidate, None, progress)?
            .measured
            .report
            .over_time
            .timeline)
    }
}
