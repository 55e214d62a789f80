//! A trace as a source of requests: at the times of the trace, with its load, or faster.

use super::{Workload, WorkloadError, WorkloadKind, WorkloadReader};
use crate::StackError;
use crate::folder::Folder;
use fullstroke_contract::registry::{Keys, PolicyEntry, read, schema_of};
use fullstroke_contract::{
    Completion, ConfigError, Counters, Effects, Hints, LayerReadings, Node, NodeContext, Operation,
    Port, Request, RequestId, Source, SourceError, Wake,
};
use fullstroke_trace::{
    BeyondPolicy, FileSource, FootprintPolicy, SharedReader, TraceOptions, TraceRecord,
};
use fullstroke_units::{Duration, Sectors, Seed, Time};
use fullstroke_workload::pace::{Conformity, Dispatcher, IssueTurn, ReplayPace, Rules, Traced};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) const ENTRY: PolicyEntry<WorkloadKind> = PolicyEntry {
    name: "trace",
    summary: "a block trace. Formats: [traces.md](traces.md)",
    schema: schema_of::<TraceConfig>,
    build: WorkloadKind {
        read: WorkloadReader::Itself(read_trace),
        tables: &[],
        alone: false,
        example: "path = \"samples/pgbench.parquet\"\nbeyond = \"wrap\"",
    },
};

/// A trace as a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TraceConfig {
    /// Path of the trace, relative to the stack file.
    path: PathBuf,
    /// Format of the trace. Default: recognised from the contents.
    format: Option<String>,
    /// Columns of a table, as `time=ts:us,op=rw,offset=off:bytes,size=len:bytes`. Default: by their
    /// names.
    columns: Option<String>,
    /// Devices to replay. Several devices lie side by side. Default: all.
    #[serde(default)]
    devices: Vec<u32>,
    /// Operations to replay. Default: all.
    #[serde(default)]
    operations: Vec<Operation>,
    /// Start of the replayed part, counted from the first request.
    #[serde(default)]
    from: Duration,
    /// End of the replayed part, counted from the first request. Requests at this time are
    /// excluded.
    to: Option<Duration>,
    /// Factor for arrival times: 0.5 is twice the load.
    #[serde(default = "unscaled")]
    time_scale: f64,
    /// Treatment of addresses beyond the volume.
    #[serde(default)]
    beyond: BeyondConfig,
    /// Places of the trace's addresses in the volume: `captured`, a share of the volume such as `60%`
    /// to which all addresses are scaled, `spread` for extents of 128 MiB at random places, or
    /// `spread:16MiB` for extents of this length. Default: captured.
    footprint: Option<String>,
    /// Number of damaged rows that are skipped and counted. One more is an error.
    #[serde(default)]
    skip_bad: u64,
    /// Number of requests after which the workload ends.
    requests: Option<u64>,
    /// Property of the trace that the replay keeps: times, load or order. Default: the times, or
    /// `closed` if `outstanding` is set. If the key is set, reports compare the outstanding
    /// requests of the trace and of the replay.
    pace: Option<ReplayPace>,
    /// Largest number of outstanding requests. With the pace `closed`, which is the default with
    /// this key, exactly this number is outstanding.
    outstanding: Option<u32>,
    /// Largest gap between requests that are issued together: a request that follows the previous
    /// one in less than this time is issued with it.
    #[serde(default)]
    batch: Duration,
}

/// Treatment of addresses beyond the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BeyondConfig {
    /// An address beyond the volume is an error.
    #[default]
    Reject,
    /// Addresses are taken modulo the capacity.
    Wrap,
    /// Addresses are scaled to the capacity.
    Scale,
}

fn unscaled() -> f64 {
    1.0
}

impl TraceConfig {
    /// Returns the reader's options without the capacity of the volume. Times are scaled after the
    /// reader, because the outstanding requests of the trace follow from the original times.
    fn options(&self) -> TraceOptions {
        TraceOptions {
            format: self.format.clone(),
            columns: self.columns.clone(),
            devices: self.devices.clone(),
            operations: self.operations.clone(),
            from: self.from,
            to: self.to,
            beyond: match self.beyond {
                BeyondConfig::Reject => BeyondPolicy::Reject,
                BeyondConfig::Wrap => BeyondPolicy::Wrap,
                BeyondConfig::Scale => BeyondPolicy::Scale,
            },
            // `check` has refused other texts.
            footprint: self.footprint().unwrap_or_default(),
            skip_bad: self.skip_bad,
            ..TraceOptions::default()
        }
    }

    fn footprint(&self) -> Result<FootprintPolicy, String> {
        let text = self.footprint.as_deref();
        text.map_or(Ok(FootprintPolicy::default()), FootprintPolicy::parse)
    }

    fn rules(&self) -> Rules {
        let unsaid = if self.outstanding.is_some() {
            ReplayPace::Closed
        } else {
            ReplayPace::Timing
        };
        Rules {
            pace: self.pace.unwrap_or(unsaid),
            scale: self.time_scale,
            outstanding: self.outstanding,
            batch: self.batch,
        }
    }

    /// Refuses keys that contradict each other, so that no key is silently ignored.
    fn check(&self) -> Result<(), ConfigError> {
        let pace = self.rules().pace;
        let name = pace.name();
        let footprint = self
            .footprint()
            .map_err(|message| ConfigError::new("footprint", message))?;
        if footprint != FootprintPolicy::Captured && self.beyond != BeyondConfig::Reject {
            let message = "footprint moves all addresses into the volume; leave one of the two out";
            return Err(ConfigError::new("beyond", message));
        }
        if self.outstanding == Some(0) {
            return Err(ConfigError::new(
                "outstanding",
                "found 0; expected at least 1, or no key",
            ));
        }
        if self.outstanding.is_some() && matches!(pace, ReplayPace::Timing | ReplayPace::Load) {
            let message = format!(
                "a replay with pace = \"{name}\" has no limit; remove this key, or set another pace"
            );
            return Err(ConfigError::new("outstanding", message));
        }
        if self.outstanding.is_none() && pace == ReplayPace::Closed {
            let message = "pace = \"closed\" needs the number of requests: set outstanding";
            return Err(ConfigError::new("pace", message));
        }
        if !(self.time_scale.is_finite() && self.time_scale > 0.0) {
            let message = format!("found {}; expected a factor above 0", self.time_scale);
            return Err(ConfigError::new("time_scale", message));
        }
        if self.time_scale != 1.0 && matches!(pace, ReplayPace::Load | ReplayPace::AsFast) {
            let message = format!(
                "pace = \"{name}\" takes the number of outstanding requests from the trace; remove this key"
            );
            return Err(ConfigError::new("time_scale", message));
        }
        if self.batch > Duration::ZERO && matches!(pace, ReplayPace::AsFast | ReplayPace::Closed) {
            let message =
                format!("pace = \"{name}\" issues without regard to time; leave this out");
            return Err(ConfigError::new("batch", message));
        }
        Ok(())
    }
}

/// A trace with the path of its file.
struct Trace {
    config: TraceConfig,
    file: PathBuf,
    files: FileSource,
}

fn read_trace(keys: &Keys, folder: &Folder) -> Result<Box<dyn Workload>, WorkloadError> {
    let config: TraceConfig = read(keys)?;
    config.check()?;
    Ok(Box::new(Trace {
        file: folder.join(&config.path),
        files: folder.files().clone(),
        config,
    }))
}

impl Trace {
    /// Returns the reader's options; see [`TraceConfig::options`].
    fn options(&self) -> TraceOptions {
        TraceOptions {
            files: self.files.clone(),
            ..self.config.options()
        }
    }

    /// Returns the arrival time of each request after the trace's first request, as in `from` and
    /// `to`.
    fn arrivals(&self) -> Result<Vec<Duration>, StackError> {
        let error = |error| StackError::trace(&error);
        // The keys `from` and `to` count in the time of the trace.
        let options = TraceOptions {
            time_scale: 1.0,
            ..self.options()
        };
        let mut reader = SharedReader::open(&self.file, &options).map_err(error)?;
        let mut arrivals = Vec::new();
        let limit = self.config.requests.unwrap_or(u64::MAX);
        while (arrivals.len() as u64) < limit
            && let Some(record) = reader.next().map_err(error)?
        {
            // The reader counts times from `from` on.
            arrivals.push(self.config.from + record.arrival.since(Time::ZERO));
        }
        Ok(arrivals)
    }
}

/// Returns the start and end of each part. A part extends from its first arrival to the first
/// arrival of the next part; the last part ends behind the last arrival. Parts without arrivals are
/// left out.
pub(crate) fn parts_of(arrivals: &[Duration], parts: usize) -> Vec<[Duration; 2]> {
    let Some(&last) = arrivals.last() else {
        return Vec::new();
    };
    // Behind the last arrival, because the end of a part does not belong to the part.
    let end = last + Duration::from_nanos(1);
    let begin = |part: usize| {
        arrivals
            .get(part * arrivals.len() / parts)
            .copied()
            .unwrap_or(end)
    };
    let each = (0..parts).map(|part| {
        [
            begin(part),
            if part + 1 == parts {
                end
            } else {
                begin(part + 1)
            },
        ]
    });
    each.filter(|[from, to]| from < to).collect()
}

impl Workload for Trace {
    /// The source reads the file while the run proceeds. From the second run of a process on, the
    /// source takes the records from memory.
    fn source(&self, capacity: Sectors, seed: Seed) -> Result<Box<dyn Source>, WorkloadError> {
        let options = TraceOptions {
            capacity: Some(capacity),
            seed: seed.0,
            ..self.options()
        };
        let reader =
            SharedReader::open(&self.file, &options).map_err(|error| StackError::trace(&error))?;
        let dispatcher = Dispatcher::new(self.config.rules());
        let mut replay = TraceReplay {
            reader,
            next: None,
            left: self.config.requests.unwrap_or(u64::MAX),
            limit: self.config.requests,
            pace: self.config.rules().pace,
            dispatcher: if self.config.pace.is_some() {
                dispatcher.counting()
            } else {
                dispatcher
            },
        };
        replay
            .advance(Time::ZERO)
            .map_err(|error| StackError::trace(&error))?;
        Ok(Box::new(replay))
    }

    fn identify(&self, keys: &mut Value) {
        keys["path"] = json!(self.file.file_name().map(|name| name.to_string_lossy()));
    }

    fn trace_file(&self) -> Option<PathBuf> {
        Some(self.file.clone())
    }

    fn arrival_times(&self) -> Option<Result<Vec<Duration>, StackError>> {
        Some(self.arrivals())
    }

    fn time_scale(&self) -> f64 {
        self.config.time_scale
    }
}

struct TraceReplay {
    reader: SharedReader,
    /// Request that is issued next.
    next: Option<TraceRecord>,
    left: u64,
    limit: Option<u64>,
    pace: ReplayPace,
    dispatcher: Dispatcher,
}

impl TraceReplay {
    /// Reads the next request.
    fn advance(&mut self, now: Time) -> Result<(), SourceError> {
        self.next = None;
        if self.left > 0 {
            self.left -= 1;
            self.next = self
                .reader
                .next()
                .map_err(|error| SourceError(error.to_string()))?;
        }
        let Some(TraceRecord {
            arrival, completed, ..
        }) = self.next
        else {
            return Ok(());
        };
        let offered = self.dispatcher.offer(now, Traced { arrival, completed });
        offered.map_err(|error| SourceError(format!("{}: {error}", self.reader.file())))
    }

    /// Issues all requests that are due.
    fn issue_due(&mut self, now: Time, out: &mut Effects) {
        while let IssueTurn::At(due) = self.dispatcher.turn()
            && due <= now
            && let Some(record) = self.next
        {
            let request = Request {
                id: RequestId(self.dispatcher.issued()),
                operation: record.operation,
                extent: record.extent,
                hints: Hints {
                    process: record.process,
                    ..Hints::default()
                },
                ..Request::default()
            };
            out.issue(0, request);
            if let Err(error) = self.advance(now) {
                out.stop(error);
            }
        }
    }
}

impl Node for TraceReplay {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.issue_due(now, cx.out);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        let response = completion.finished.since(completion.submitted);
        self.dispatcher.completed(now, completion.id.0, response);
        // With other paces, a completion may allow the next request.
        if self.pace != ReplayPace::Timing {
            self.issue_due(now, cx.out);
        }
    }

    fn next_wake(&self) -> Wake {
        match self.dispatcher.turn() {
            IssueTurn::At(due) if self.next.is_some() => due.into(),
            _ => Wake::NEVER,
        }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        counters.skipped_rows += self.reader.skipped();
        self.reader
            .notes()
            .into_iter()
            .for_each(|note| counters.note(note));
        counters.layers.extend(
            self.dispatcher
                .conformity()
                .map(|conformity| readings(self.pace, conformity)),
        );
    }
}

impl Source for TraceReplay {
    fn depends_on_completions(&self) -> bool {
        self.pace != ReplayPace::Timing
    }

    fn expected_requests(&self) -> Option<u64> {
        self.limit
    }
}

/// Returns the comparison of the replay with the trace.
fn readings(pace: ReplayPace, conformity: &Conformity) -> LayerReadings {
    let mut readings = Vec::new();
    if conformity.trace_span() > Duration::ZERO {
        let ratio = conformity.span().as_secs_f64() / conformity.trace_span().as_secs_f64();
        readings.push(("replay_duration_ratio", ratio));
    }
    if let Some(outstanding) = conformity.outstanding() {
        readings.extend([
            ("replay_outstanding_trace_mean", outstanding.trace_mean),
            ("replay_outstanding_mean", outstanding.mean),
            ("replay_outstanding_trace_p90", outstanding.trace_p90 as f64),
            ("replay_outstanding_p90", outstanding.p90 as f64),
            ("replay_outstanding_error_mean", outstanding.error_mean),
            ("replay_outstanding_bias", outstanding.bias),
            ("replay_outstanding_error_max", outstanding.error_max as f64),
            ("replay_outstanding_distance", outstanding.distance),
        ]);
    }
    LayerReadings::new(format!("replay by {}", pace.name()), &readings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Completion, CounterReading};
    use std::collections::VecDeque;
    use std::fs;

    /// Six requests in three pairs. The requests of a pair arrive together; pairs are 10 ms apart;
    /// each request takes 4 ms (MSR's columns count 100 ns).
    const PAIRS: &str = "1000000,a,0,Read,0,4096,40000\n1000000,a,0,Read,40960,4096,40000\n\
        1100000,a,0,Write,81920,4096,40000\n1100000,a,0,Read,4096,4096,40000\n\
        1200000,a,0,Read,8192,4096,40000\n1200000,a,0,Read,12288,4096,40000\n";
    /// A trace without completions.
    const UNKNOWN: &str = "0.0 0 0 8 1\n10.0 0 80 8 1\n";

    fn source(name: &str, trace: &str, keys: &str) -> Result<Box<dyn Source>, WorkloadError> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), trace).unwrap();
        let keys = toml::from_str(&format!("path = \"{name}\"\n{keys}")).unwrap();
        read_trace(
            &keys,
            &Folder::of(&folder.path().join(name), &FileSource::default()),
        )?
        .source(Sectors(1 << 20), Seed(1))
    }

    /// Replays the trace on a device that serves one request at a time and takes `takes_ms` for
    /// each. Returns the arrival times in ms and the readings.
    fn replayed(keys: &str, takes_ms: u64) -> (Vec<u64>, Vec<CounterReading>) {
        let mut source =
            source("pairs.csv", PAIRS, keys).unwrap_or_else(|error| panic!("{error:?}"));
        let (mut out, mut times, mut flying) = (
            Effects::new(),
            Vec::new(),
            VecDeque::<(Time, Time, RequestId)>::new(),
        );
        loop {
            let due = source.next_wake().at();
            let landing = flying.front().map_or(Time::NEVER, |&(at, ..)| at);
            let now = due.min(landing);
            if now == Time::NEVER {
                break;
            }
            if due <= landing {
                source.wake(now, &mut NodeContext::alone(&mut out));
            } else if let Some((finished, submitted, id)) = flying.pop_front() {
                let completion = Completion {
                    id,
                    submitted,
                    finished,
                    ..Completion::default()
                };
                source.completed(
                    now,
                    Port::FIRST,
                    completion,
                    &mut NodeContext::alone(&mut out),
                );
            }
            for request in out.requests() {
                let free = flying.back().map_or(now, |&(at, ..)| at);
                flying.push_back((free + Duration::from_millis(takes_ms), now, request.id));
                times.push(now.since(Time::ZERO).as_nanos() / 1_000_000);
            }
        }
        let mut counters = Counters::default();
        source.count(Time::ZERO, &mut counters);
        (
            times,
            counters
                .layers
                .pop()
                .map(|layer| layer.readings)
                .unwrap_or_default(),
        )
    }

    fn reading(readings: &[CounterReading], name: &str) -> f64 {
        readings
            .iter()
            .find(|reading| reading.name == name)
            .unwrap()
            .value
    }

    #[test]
    fn a_slow_device_gets_the_traces_load_or_its_times() {
        let (times, readings) = replayed("pace = \"timing\"", 20);
        assert_eq!(times, [0, 0, 10, 10, 20, 20]);
        assert_eq!(reading(&readings, "replay_outstanding_trace_mean"), 0.5);
        assert!(reading(&readings, "replay_outstanding_mean") > 2.0);
        let (times, readings) = replayed("pace = \"load\"", 20);
        assert_eq!(times, [0, 0, 40, 40, 80, 80]);
        assert_eq!(reading(&readings, "replay_outstanding_error_mean"), 0.0);
        assert_eq!(reading(&readings, "replay_duration_ratio"), 4.0);
        let (times, _) = replayed("pace = \"as-fast\"", 1);
        assert_eq!(times, [0, 0, 2, 2, 4, 4]);
        let (times, _) = replayed("pace = \"as-fast\"\noutstanding = 1", 1);
        assert_eq!(times, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_scaled_replay_is_held_against_the_unscaled_trace() {
        let (times, readings) = replayed("pace = \"timing\"\ntime_scale = 2.0", 1);
        assert_eq!(times, [0, 0, 20, 20, 40, 40]);
        assert_eq!(reading(&readings, "replay_duration_ratio"), 2.0);
        assert_eq!(reading(&readings, "replay_outstanding_trace_mean"), 0.5);
    }

    #[test]
    fn without_a_pace_nothing_is_reported_of_it() {
        assert_eq!(replayed("", 20), (vec![0, 0, 10, 10, 20, 20], vec![]));
        assert_eq!(
            replayed("outstanding = 1", 20),
            (vec![0, 20, 40, 60, 80, 100], vec![])
        );
    }

    #[test]
    fn keys_that_mean_nothing_together_are_refused_by_name() {
        for (keys, key) in [
            ("outstanding = 0", "outstanding"),
            ("pace = \"load\"\noutstanding = 4", "outstanding"),
            ("pace = \"closed\"", "pace"),
            ("pace = \"load\"\ntime_scale = 2.0", "time_scale"),
            ("time_scale = 0.0", "time_scale"),
            ("footprint = \"half\"", "footprint"),
            ("footprint = \"50%\"\nbeyond = \"wrap\"", "beyond"),
            ("pace = \"as-fast\"\nbatch = \"1ms\"", "batch"),
        ] {
            let Err(WorkloadError::Key(error)) = source("pairs.csv", PAIRS, keys) else {
                panic!("{keys}")
            };
            assert!(
                error.to_string().starts_with(&format!("`{key}`: ")),
                "{keys}: {error}"
            );
        }
    }

    #[test]
    fn a_load_needs_completions_and_names_the_request_that_has_none() {
        let Err(WorkloadError::File(error)) = source("late.disksim", UNKNOWN, "pace = \"load\"")
        else {
            panic!("a trace without completions has no load")
        };
        let error = error.to_string();
        assert!(
            error.contains("late.disksim: request 1 has no known completion"),
            "{error}"
        );
        assert!(
            source(
                "late.disksim",
                UNKNOWN,
                "pace = \"as-fast\"\noutstanding = 2"
            )
            .is_ok()
        );
    }
}
