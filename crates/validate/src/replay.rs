//! Closed replay of a validation trace on a drive.

use crate::{FoundDrive, ValidateError};
use fullstroke_contract::{Completion, Cx, Node, Port, Request, RequestId, Source, Wake};
use fullstroke_drive::Model;
use fullstroke_engine::{Engine, Finished, Observer};
use fullstroke_trace::{Options, TraceReader, ValidateReader, ValidateRow};
use fullstroke_units::{Duration, Sectors, Time};
use std::path::Path;

/// The requests of a trace with the times that the real disk took and those
/// that the model takes.
#[derive(Clone, Debug)]
pub struct Replay {
    rows: Vec<ValidateRow>,
    simulated_ms: Vec<f64>,
}

impl Replay {
    /// Replays the trace at `path` on `drive`: one request outstanding, the
    /// next is issued the row's think time after it completed.
    ///
    /// # Errors
    /// Names file and line of a trace that is damaged, empty, or reaches beyond
    /// the drive.
    pub fn run(path: &Path, drive: &FoundDrive) -> Result<Replay, ValidateError> {
        let model = &drive.model;
        let rows = read(path, model.config().capacity_sectors)
            .map_err(|error| ValidateError::from_trace(error, &drive.name))?;
        let (completed, simulated_ms) = simulate(model, rows.clone())
            .map_err(|source| ValidateError::Model { drive: drive.name.clone(), source })?;
        if completed < rows.len() as u64 {
            let file = path.display().to_string();
            return Err(ValidateError::ClockEnded { file, completed, requests: rows.len() });
        }
        Ok(Replay { rows, simulated_ms })
    }

    /// Each request as the trace has it, and the time in ms that the model
    /// takes for it.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = (&ValidateRow, f64)> {
        self.rows.iter().zip(self.simulated_ms.iter().copied())
    }
}

/// The rows of a trace, all within `capacity`.
pub(crate) fn read(path: &Path, capacity: Sectors) -> Result<Vec<ValidateRow>, fullstroke_trace::TraceError> {
    check(path, capacity)?;
    let mut reader = ValidateReader::open(path)?;
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row()? {
        rows.push(row);
    }
    Ok(rows)
}

/// Reads the trace as any other: that names the line of a request that is empty
/// or does not fit, and refuses a trace without requests.
fn check(path: &Path, capacity: Sectors) -> Result<(), fullstroke_trace::TraceError> {
    let options =
        Options { capacity: Some(capacity), sort_window: 0, ..Options::for_format("disksim-validate") };
    let mut reader = TraceReader::open(path, &options)?;
    while reader.next()?.is_some() {}
    Ok(())
}

/// How many of the rows a drive of this model completes before the clock ends,
/// and the time that each takes, in ms.
pub(crate) fn simulate(
    model: &Model,
    rows: Vec<ValidateRow>,
) -> Result<(u64, Vec<f64>), fullstroke_contract::ConfigError> {
    let drive = model.branch()?;
    let mut times = ServiceTimes(vec![f64::NAN; rows.len()]);
    let outcome = Engine::new(drive, Box::new(Closed::new(rows)))
        .run(&mut times)
        .unwrap_or_else(|_| unreachable!("rows in memory cannot break off"));
    Ok((outcome.completed, times.0))
}

/// Issues one row after the other.
struct Closed {
    rows: Vec<ValidateRow>,
    next: usize,
    due: Time,
}

impl Closed {
    fn new(rows: Vec<ValidateRow>) -> Closed {
        Closed { rows, next: 0, due: Time::ZERO }
    }

    /// The time that was spent thinking before the row that is next.
    fn think(&self) -> Duration {
        self.next.checked_sub(1).map_or(Duration::ZERO, |last| self.rows[last].think)
    }
}

impl Node for Closed {
    fn wake(&mut self, now: Time, cx: &mut Cx<'_>) {
        if now < self.due {
            return;
        }
        self.due = Time::NEVER;
        if let Some(row) = self.rows.get(self.next) {
            let id = RequestId(self.next as u64);
            let request = Request { id, operation: row.operation, extent: row.extent, ..Request::default() };
            cx.out.issue(0, request);
            self.next += 1;
        }
    }

    fn completed(&mut self, now: Time, _: Port, _: Completion, _: &mut Cx<'_>) {
        if self.next < self.rows.len() {
            self.due = now + self.think();
        }
    }

    fn next_wake(&self) -> Wake {
        self.due.into()
    }
}

impl Source for Closed {
    fn expected_requests(&self) -> Option<u64> {
        Some(self.rows.len() as u64)
    }
}

/// Writes down how long each request took.
struct ServiceTimes(Vec<f64>);

impl Observer for ServiceTimes {
    fn finished(&mut self, finished: &Finished) {
        if let Some(time) = self.0.get_mut(finished.origin as usize) {
            *time = finished.completion.finished.since(finished.arrived).as_millis_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Extent, Operation, Out};
    use fullstroke_stack::drives;
    use fullstroke_trace::CacheOutcome;

    fn row(lbn: u64, think_us: u64) -> ValidateRow {
        ValidateRow {
            operation: Operation::Read,
            outcome: CacheOutcome::Miss,
            extent: Extent::new(lbn, 8),
            service: Duration::from_millis(9),
            think: Duration::from_micros(think_us),
        }
    }

    #[test]
    fn the_next_request_is_issued_a_think_time_after_the_last_completed() {
        let mut closed = Closed::new(vec![row(0, 700), row(800, 0)]);
        let mut out = Out::new();
        closed.wake(Time::ZERO, &mut Cx::alone(&mut out));
        assert_eq!((out.len(), closed.next_wake()), (1, Wake::NEVER));
        let done = Time::from_nanos(4_000_000);
        closed.completed(done, Port::FIRST, Completion::default(), &mut Cx::alone(&mut out));
        let due = closed.next_wake().at();
        assert_eq!(due, done + Duration::from_micros(700));
        closed.wake(done, &mut Cx::alone(&mut out));
        assert_eq!(out.len(), 1, "waking early is harmless");
        closed.wake(due, &mut Cx::alone(&mut out));
        let later = done + Duration::from_millis(9);
        closed.completed(later, Port::FIRST, Completion::default(), &mut Cx::alone(&mut out));
        assert_eq!((out.len(), closed.next_wake()), (2, Wake::NEVER));
    }

    #[test]
    fn think_times_turn_the_platter() {
        let model = drives::load("ibm-ultrastar-xp-4.51gb").unwrap();
        let wait = |think_us| simulate(&model, vec![row(0, think_us), row(64, 0)]).unwrap().1[1];
        let (soon, later) = (wait(0), wait(100));
        assert!((soon - later - 0.1).abs() < 1e-5, "{soon} {later}");
    }

    #[test]
    fn a_clock_that_ends_is_noticed() {
        let model = drives::load("ibm-ultrastar-xp-4.51gb").unwrap();
        let endless = ValidateRow { think: Duration::MAX, ..row(0, 0) };
        assert_eq!(simulate(&model, vec![endless, row(0, 0)]).unwrap().0, 1);
    }
}
