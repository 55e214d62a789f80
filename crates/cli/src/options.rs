//! Options that several subcommands share.

use crate::standard_input;
use clap::{Args, ValueEnum};
use fullstroke_contract::Operation;
use fullstroke_contract::Reason;
use fullstroke_lab::{DEFAULT_BUDGET, LoadSearch, SearchGoal};
use fullstroke_stack::Overrides;
use fullstroke_trace::TraceOptions;
use fullstroke_units::Duration;
use fullstroke_workload::pace::ReplayPace;
use serde_json::{Map, Value, json};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

/// Returns the number of runs at a time. Without `said` that is the number of cores.
pub(crate) fn jobs(said: Option<NonZeroUsize>) -> usize {
    said.or_else(|| available_parallelism().ok())
        .map_or(1, NonZeroUsize::get)
}

/// Options that select a part of a trace.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Trace options")]
pub(crate) struct Selection {
    /// Format of the trace. Default: recognised by the contents.
    #[arg(long, value_name = "NAME")]
    format: Option<String>,

    /// Columns of a table: ROLE=COLUMN or ROLE=COLUMN:UNIT, with commas between. The roles are time, end, op,
    /// offset, size, latency, queue, device and process. Example:
    /// time=ts:us,op=rw,offset=lba:sectors,size=len:bytes.
    #[arg(long, value_name = "MAP")]
    columns: Option<String>,

    /// Read only requests of this device number (may be repeated).
    #[arg(long = "device", value_name = "NUMBER", value_delimiter = ',')]
    devices: Vec<u32>,

    /// Read only this operation (may be repeated).
    #[arg(long = "operation", value_name = "OPERATION", value_delimiter = ',')]
    operations: Vec<OperationName>,

    /// Skip requests before this time after the first request, such as 90s.
    #[arg(long, value_name = "TIME")]
    from: Option<Duration>,

    /// Skip requests at or after this time after the first request, such as 2h.
    #[arg(long, value_name = "TIME")]
    to: Option<Duration>,

    /// Factor of all arrival times. 0.5 doubles the load. Default 1.
    #[arg(long, value_name = "FACTOR")]
    time_scale: Option<f64>,

    /// Number of damaged rows to skip and count before an error. Default 0.
    #[arg(long, value_name = "ROWS")]
    skip_bad: Option<u64>,
}

/// Options that replace keys of a stack file, for any workload.
#[derive(Clone, Debug, Args)]
pub(crate) struct Edits {
    /// Set a key of the stack file, as in volume.chunk=256KiB (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Use this drive for all members: a name from the library, a drive file, or a parameter file
    /// of DiskSim.
    #[arg(long, value_name = "DRIVE")]
    drive: Option<String>,
}

impl Edits {
    /// Converts the options for the stack loader.
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            set: self.set.clone(),
            drive: self.drive.clone(),
            ..Overrides::default()
        }
    }
}

/// Options that replace parts of a stack file.
#[derive(Clone, Debug, Args)]
pub(crate) struct Changes {
    #[command(flatten)]
    edits: Edits,

    /// Seed of all random numbers. Default: the stack's seed.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// End the workload after this number of requests.
    #[arg(long, value_name = "NUMBER")]
    requests: Option<u64>,

    /// Replay this trace instead of the stack's workload. `-` is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Trace options", value_parser = standard_input::file)]
    trace: Option<PathBuf>,

    /// Run this fio job file instead of the stack's workload. The file may hold a command line of
    /// fio; - is standard input. Arguments of fio behind -- are a command line: --fio -- --name=a
    /// --rw=randread.
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "trace")]
    fio: Option<Option<PathBuf>>,

    /// Arguments of fio, as in --fio -- --name=a --rw=randread --bs=4k.
    #[arg(last = true, value_name = "FIO ARGUMENTS", requires = "fio")]
    fio_arguments: Vec<String>,

    /// Treatment of addresses beyond the end of the volume.
    #[arg(long, value_name = "WHAT", help_heading = "Trace options")]
    beyond: Option<BeyondOption>,

    /// Places of the trace's addresses in the volume: captured, a share of the volume such as 60%, or
    /// spread for extents at random places. Default: captured.
    #[arg(long, value_name = "WHAT", help_heading = "Trace options")]
    footprint: Option<String>,

    /// Property of the trace that the replay keeps: the arrival times, the number of outstanding
    /// requests, or only the order.
    #[arg(long, value_name = "PACE", help_heading = "Trace options")]
    pace: Option<PaceName>,

    /// Replay with this fixed number of outstanding requests instead of at the trace's times. With
    /// --pace as-fast the number is an upper limit.
    #[arg(long, value_name = "NUMBER", help_heading = "Trace options")]
    outstanding: Option<u32>,

    #[command(flatten)]
    selection: Selection,
}

/// Options of a search for the highest load that a stack carries.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Searches")]
pub(crate) struct LoadSearchOptions {
    /// Search the highest value that the stack carries, instead of a single run.
    #[arg(long, value_name = "WHAT")]
    find: Option<FindGoal>,

    /// Confidence level of the result of --find streams.
    #[arg(long, value_name = "SHARE", default_value = "0.95", requires = "find", value_parser = confidence)]
    confidence: f64,

    /// Number of runs at each step of --find streams. Each run has its own seed.
    #[arg(long, value_name = "NUMBER", default_value = "10", requires = "find")]
    replications: NonZeroU32,

    /// Upper limit of the 99th percentile of response times for --find load, such as 50ms.
    #[arg(long, value_name = "TIME", requires = "find")]
    p99_max: Option<Duration>,

    /// Largest number of requests that --find simulates for a candidate. The load is extended until
    /// two lengths give the same. Default 1,000,000; with --requests, the load has that length.
    #[arg(long, value_name = "REQUESTS", requires = "find")]
    budget: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FindGoal {
    /// Number of media streams that play without an underrun.
    Streams,
    /// Highest multiple of the request rate at which the queue stays bounded.
    Load,
}

impl LoadSearchOptions {
    /// Returns the search, with `jobs` runs at a time. Returns `None` without `--find`.
    pub(crate) fn search_goal(&self, jobs: usize, changes: &Changes) -> Option<SearchGoal> {
        // A length that the user chose stays, unless a budget says otherwise.
        let budget = self
            .budget
            .or((!changes.has_requests()).then_some(DEFAULT_BUDGET));
        let search = LoadSearch {
            confidence: self.confidence,
            replications: self.replications.get(),
            jobs,
            budget,
        };
        self.find.map(|find| match find {
            FindGoal::Streams => SearchGoal::Streams(search),
            FindGoal::Load => SearchGoal::Load {
                p99_max: self.p99_max,
                budget,
            },
        })
    }
}

pub(crate) fn confidence(text: &str) -> Result<f64, Reason> {
    let share = text
        .parse()
        .ok()
        .filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| Reason::new("expected a share above 0 and below 1, such as 0.95"))
}

pub(crate) fn above_zero(text: &str) -> Result<f64, Reason> {
    let number = text
        .parse()
        .ok()
        .filter(|number: &f64| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| Reason::new("expected a number above 0"))
}

/// Reads the factor of a slow member.
pub(crate) fn slow_factor(text: &str) -> Result<f64, Reason> {
    let factor = text.parse().ok();
    let factor = factor.filter(|factor: &f64| *factor > 1.0 && factor.is_finite());
    // 1 would be a drive that is not slow, and its row would repeat the row with all drives.
    factor.ok_or_else(|| Reason::new("expected a factor above 1, such as 2.5"))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BeyondOption {
    /// Stop with an error.
    Reject,
    /// Map modulo the capacity.
    Wrap,
    /// Scale all addresses to the capacity.
    Scale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaceName {
    /// Issue each request at its time in the trace.
    Timing,
    /// Keep the number of outstanding requests of the trace.
    Load,
    /// Issue a request as soon as all requests that had completed before it in the trace are
    /// complete.
    AsFast,
    /// Keep a fixed number of outstanding requests.
    Closed,
}

impl PaceName {
    pub(crate) fn pace(self) -> ReplayPace {
        match self {
            PaceName::Timing => ReplayPace::Timing,
            PaceName::Load => ReplayPace::Load,
            PaceName::AsFast => ReplayPace::AsFast,
            PaceName::Closed => ReplayPace::Closed,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OperationName {
    Read,
    Write,
    Flush,
    Discard,
}

impl OperationName {
    fn operation(self) -> Operation {
        match self {
            OperationName::Read => Operation::Read,
            OperationName::Write => Operation::Write,
            OperationName::Flush => Operation::Flush,
            OperationName::Discard => Operation::Discard,
        }
    }
}

impl BeyondOption {
    /// Converts the value for the trace reader.
    pub(crate) fn kind(self) -> fullstroke_trace::BeyondPolicy {
        match self {
            BeyondOption::Reject => fullstroke_trace::BeyondPolicy::Reject,
            BeyondOption::Wrap => fullstroke_trace::BeyondPolicy::Wrap,
            BeyondOption::Scale => fullstroke_trace::BeyondPolicy::Scale,
        }
    }

    fn name(self) -> &'static str {
        match self {
            BeyondOption::Reject => "reject",
            BeyondOption::Wrap => "wrap",
            BeyondOption::Scale => "scale",
        }
    }
}

impl Selection {
    fn operations(&self) -> Vec<Operation> {
        self.operations
            .iter()
            .map(|name| name.operation())
            .collect()
    }

    /// Returns the factor of the arrival times.
    #[cfg(feature = "real")]
    pub(crate) fn time_scale(&self) -> f64 {
        self.time_scale.unwrap_or(1.0)
    }

    /// Converts the options for the trace reader.
    pub(crate) fn options(&self) -> TraceOptions {
        let defaults = TraceOptions::default();
        TraceOptions {
            format: self.format.clone(),
            columns: self.columns.clone(),
            devices: self.devices.clone(),
            operations: self.operations(),
            from: self.from.unwrap_or(defaults.from),
            to: self.to,
            time_scale: self.time_scale.unwrap_or(defaults.time_scale),
            skip_bad: self.skip_bad.unwrap_or(defaults.skip_bad),
            ..defaults
        }
    }

    /// Returns the given options as keys of a stack's trace. Options that were not given are
    /// absent, so that the keys of the stack file remain.
    fn keys(&self) -> Map<String, Value> {
        let mut keys = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                keys.insert(key.to_owned(), value);
            }
        };
        put("format", self.format.as_ref().map(|format| json!(format)));
        put("columns", self.columns.as_ref().map(|map| json!(map)));
        put(
            "devices",
            (!self.devices.is_empty()).then(|| json!(self.devices)),
        );
        put(
            "operations",
            (!self.operations.is_empty()).then(|| json!(self.operations())),
        );
        put("from", self.from.map(|from| json!(from)));
        put("to", self.to.map(|to| json!(to)));
        put("time_scale", self.time_scale.map(|factor| json!(factor)));
        put("skip_bad", self.skip_bad.map(|rows| json!(rows)));
        keys
    }
}

/// Returns a word as a shell would need it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

impl Changes {
    /// Returns the job file that replaces the workload.
    pub(crate) fn job_file(&self) -> Option<&Path> {
        self.fio
            .as_ref()?
            .as_deref()
            .filter(|path| !standard_input::names(path))
    }

    /// Returns the text that `--fio` gives without a job file: a command line, or standard input.
    fn fio_text(&self) -> Option<String> {
        let file = self.fio.as_ref()?.as_deref();
        if self.fio_arguments.is_empty() {
            // Without a file and without arguments the text is empty, which is an error of its own.
            return match file {
                Some(path) if standard_input::names(path) => Some(standard_input::text()),
                Some(_) => None,
                None => Some(String::new()),
            };
        }
        let words = file.map(|path| path.display().to_string()).into_iter();
        let words = words.chain(self.fio_arguments.iter().cloned());
        // The reader of command lines divides at blanks as a shell does, and `--name='a b'` is one
        // word.
        Some(words.fold("fio".to_owned(), |line, word| line + " " + &quoted(&word)))
    }

    /// True if the user chose the number of requests.
    pub(crate) fn has_requests(&self) -> bool {
        self.requests.is_some()
    }

    /// Converts the options for the stack loader.
    pub(crate) fn overrides(&self) -> Overrides {
        let mut trace_keys = self.selection.keys();
        if let Some(beyond) = self.beyond {
            trace_keys.insert("beyond".to_owned(), json!(beyond.name()));
        }
        if let Some(footprint) = &self.footprint {
            trace_keys.insert("footprint".to_owned(), json!(footprint));
        }
        if let Some(pace) = self.pace {
            trace_keys.insert("pace".to_owned(), json!(pace.pace()));
        }
        if let Some(outstanding) = self.outstanding {
            trace_keys.insert("outstanding".to_owned(), json!(outstanding));
        }
        Overrides {
            trace: self.trace.clone(),
            fio: self
                .job_file()
                .filter(|_| self.fio_arguments.is_empty())
                .map(Path::to_owned),
            fio_text: self.fio_text(),
            trace_keys,
            seed: self.seed,
            requests: self.requests,
            ..self.edits.overrides()
        }
    }
}
