//! A trace as a source of requests: at its own times, or closed.

use super::{Kind, Read, Workload, WorkloadError};
use crate::StackError;
use fullstroke_contract::registry::{Entry, Keys, read, schema_of};
use fullstroke_contract::{
    Completion, ConfigError, Counters, Cx, Hints, Node, Operation, Out, Port, Request, RequestId, Source,
    SourceError, Wake,
};
use fullstroke_trace::{Beyond, Options, Record, TraceReader};
use fullstroke_units::{Duration, Sectors, Seed, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) const ENTRY: Entry<Kind> = Entry {
    name: "trace",
    summary: "a block trace. Formats: [traces.md](traces.md)",
    schema: schema_of::<TraceConfig>,
    build: Kind {
        read: Read::Itself(read_trace),
        tables: &[],
        alone: false,
        example: "path = \"samples/pgbench.parquet\"\nbeyond = \"wrap\"",
    },
};

/// A trace as a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TraceConfig {
    /// The file; relative to the stack file.
    path: PathBuf,
    /// Its format; recognised unless said.
    format: Option<String>,
    /// Only these devices; all unless said.
    #[serde(default)]
    devices: Vec<u32>,
    /// Only these operations; all unless said.
    #[serde(default)]
    operations: Vec<Operation>,
    /// Only requests from this time after the first on.
    #[serde(default)]
    from: Duration,
    /// Only requests before this time after the first.
    to: Option<Duration>,
    /// Arrivals are multiplied by this: 0.5 is twice the load.
    #[serde(default = "unscaled")]
    time_scale: f64,
    /// What to do with addresses beyond the volume.
    #[serde(default)]
    beyond: BeyondConfig,
    /// Tolerate, and count, this many damaged rows.
    #[serde(default)]
    skip_bad: u64,
    /// End after this many requests.
    requests: Option<u64>,
    /// Replay closed, with so many requests outstanding, in place of the
    /// trace's own times.
    outstanding: Option<u32>,
}

/// What to do with addresses beyond the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BeyondConfig {
    /// It is an error.
    #[default]
    Reject,
    /// Modulo the capacity.
    Wrap,
    /// In proportion.
    Scale,
}

fn unscaled() -> f64 {
    1.0
}

impl TraceConfig {
    /// The reader's options, but for the volume's capacity.
    fn options(&self) -> Options {
        Options {
            format: self.format.clone(),
            devices: self.devices.clone(),
            operations: self.operations.clone(),
            from: self.from,
            to: self.to,
            time_scale: self.time_scale,
            beyond: match self.beyond {
                BeyondConfig::Reject => Beyond::Reject,
                BeyondConfig::Wrap => Beyond::Wrap,
                BeyondConfig::Scale => Beyond::Scale,
            },
            skip_bad: self.skip_bad,
            ..Options::default()
        }
    }
}

/// A trace in its place.
struct Trace {
    config: TraceConfig,
    file: PathBuf,
}

fn read_trace(keys: &Keys, folder: &Path) -> Result<Box<dyn Workload>, WorkloadError> {
    let config: TraceConfig = read(keys)?;
    if config.outstanding == Some(0) {
        let message = "found 0; expected at least 1, or leave it out";
        return Err(ConfigError::new("outstanding", message).into());
    }
    Ok(Box::new(Trace { file: folder.join(&config.path), config }))
}

impl Workload for Trace {
    /// The file is read as the run proceeds.
    fn source(&self, capacity: Sectors, _: Seed) -> Result<Box<dyn Source>, WorkloadError> {
        let options = Options { capacity: Some(capacity), ..self.config.options() };
        let reader = TraceReader::open(&self.file, &options).map_err(|error| StackError::trace(&error))?;
        let mut replay = Replay {
            reader,
            next: None,
            left: self.config.requests.unwrap_or(u64::MAX),
            limit: self.config.requests,
            outstanding: self.config.outstanding,
            in_flight: 0,
            number: 0,
        };
        replay.advance().map_err(|error| StackError::trace(&error))?;
        Ok(Box::new(replay))
    }

    fn identify(&self, keys: &mut Value) {
        keys["path"] = json!(self.file.file_name().map(|name| name.to_string_lossy()));
    }

    fn trace_file(&self) -> Option<PathBuf> {
        Some(self.file.clone())
    }
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
