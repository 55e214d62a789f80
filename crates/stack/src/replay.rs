//! A trace as a source of requests: at its own times, or closed.

use crate::StackError;
use crate::workload::TraceConfig;
use fullstroke_contract::{
    Completion, Counters, Cx, Hints, Node, Out, Port, Request, RequestId, Source, SourceError, Wake,
};
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

    fn issue(&mut self, out: &mut Out) {
        let Some(record) = self.next else { return };
        self.number += 1;
        self.in_flight += 1;
        let request = Request {
            id: RequestId(self.number),
            operation: record.operation,
            extent: record.extent,
            hints: Hints { process: record.process, ..Hints::default() },
            ..Request::default()
        };
        out.issue(0, request);
        if let Err(error) = self.advance() {
            out.stop(error);
        }
    }

    /// Whether the next request of an open replay comes by `now`.
    fn is_due(&self, now: Time) -> bool {
        self.outstanding.is_none() && self.next.is_some_and(|record| record.arrival <= now)
    }

    /// Whether another request of a closed replay may be issued.
    fn has_room(&self) -> bool {
        self.next.is_some() && self.outstanding.is_some_and(|outstanding| self.in_flight < outstanding)
    }
}

impl Node for Replay {
    fn wake(&mut self, now: Time, cx: &mut Cx<'_>) {
        while self.has_room() || self.is_due(now) {
            self.issue(cx.out);
        }
    }

    fn completed(&mut self, _: Time, _: Port, _: Completion, cx: &mut Cx<'_>) {
        self.in_flight -= 1;
        if self.has_room() {
            self.issue(cx.out);
        }
    }

    fn next_wake(&self) -> Wake {
        match (self.outstanding, self.next) {
            (None, Some(record)) => record.arrival.into(),
            (Some(_), _) if self.has_room() => Time::ZERO.into(),
            _ => Wake::NEVER,
        }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        counters.skipped_rows += self.reader.skipped();
        self.reader.notes().into_iter().for_each(|note| counters.note(note));
    }
}

impl Source for Replay {
    fn heeds_completions(&self) -> bool {
        self.outstanding.is_some()
    }

    fn expected_requests(&self) -> Option<u64> {
        self.limit
    }
}
