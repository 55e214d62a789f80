//! A trace as a source of requests: at its own times, or closed.

use crate::StackError;
use crate::workload::TraceConfig;
use fullstroke_contract::{Completion, Hints, Request, RequestId, Source, SourceError};
use fullstroke_trace::{Options, Record, TraceReader};
use fullstroke_units::{Sectors, Time};
use std::path::Path;

/// The source for a trace on a volume of `capacity`. The file is read as the
/// run proceeds.
///
/// # Errors
/// What cannot be opened or recognised, or has no request.
pub fn replay(config: &TraceConfig, folder: &Path, capacity: Sectors) -> Result<Box<dyn Source>, StackError> {
    let path = folder.join(&config.path);
    let options = Options { capacity: Some(capacity), ..config.options() };
    let reader = TraceReader::open(&path, &options).map_err(|error| StackError::trace(&error))?;
    let mut replay = Replay {
        reader,
        next: None,
        left: config.requests.unwrap_or(u64::MAX),
        limit: config.requests,
        outstanding: config.outstanding,
        in_flight: 0,
        number: 0,
        failed: None,
    };
    replay.advance().map_err(|error| StackError::trace(&error))?;
    Ok(Box::new(replay))
}

struct Replay {
    reader: TraceReader,
    /// The request that is issued next.
    next: Option<Record>,
    left: u64,
    limit: Option<u64>,
    /// Closed: so many at once, the trace's times are ignored.
    outstanding: Option<u32>,
    in_flight: u32,
    number: u64,
    /// An error met where none can be reported; the next wake-up does.
    failed: Option<SourceError>,
}

impl Replay {
    fn advance(&mut self) -> Result<(), SourceError> {
        self.next = None;
        if self.left > 0 {
            self.left -= 1;
            self.next = self.reader.next().map_err(|error| SourceError(error.to_string()))?;
        }
        Ok(())
    }

    fn issue(&mut self, out: &mut Vec<Request>) -> Result<(), SourceError> {
        let Some(record) = self.next else { return Ok(()) };
        self.number += 1;
        self.in_flight += 1;
        out.push(Request {
            id: RequestId(self.number),
            operation: record.operation,
            extent: record.extent,
            hints: Hints { process: record.process, ..Hints::default() },
            ..Request::default()
        });
        self.advance()
    }

    /// Whether another request of a closed replay may be issued.
    fn has_room(&self) -> bool {
        self.next.is_some() && self.outstanding.is_some_and(|outstanding| self.in_flight < outstanding)
    }
}

impl Source for Replay {
    fn wake(&mut self, now: Time, out: &mut Vec<Request>) -> Result<(), SourceError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.outstanding.is_some() {
            while self.has_room() {
                self.issue(out)?;
            }
            return Ok(());
        }
        while self.next.is_some_and(|record| record.arrival <= now) {
            self.issue(out)?;
        }
        Ok(())
    }

    fn completed(&mut self, _: Time, _: &Completion, out: &mut Vec<Request>) {
        self.in_flight -= 1;
        if self.failed.is_none() && self.has_room() {
            self.failed = self.issue(out).err();
        }
    }

    fn next_wake(&self) -> Time {
        match (&self.failed, self.outstanding, self.next) {
            (Some(_), _, _) => Time::ZERO,
            (None, None, Some(record)) => record.arrival,
            (None, Some(_), _) if self.has_room() => Time::ZERO,
            _ => Time::NEVER,
        }
    }

    fn heeds_completions(&self) -> bool {
        self.outstanding.is_some()
    }

    fn skipped_rows(&self) -> u64 {
        self.reader.skipped()
    }

    fn notes(&self) -> Vec<String> {
        self.reader.notes()
    }

    fn expected_requests(&self) -> Option<u64> {
        self.limit
    }
}
