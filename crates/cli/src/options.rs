//! Options that several subcommands share.

use clap::{Args, ValueEnum};
use fullstroke_contract::Operation;
use fullstroke_contract::Reason;
use fullstroke_lab::{Most, Search};
use fullstroke_stack::Overrides;
use fullstroke_trace::Options;
use fullstroke_units::Duration;
use fullstroke_workload::pace::Pace;
use serde_json::{Map, Value, json};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

/// Runs at a time: as many as there are cores, unless said.
pub(crate) fn jobs(said: Option<NonZeroUsize>) -> usize {
    said.or_else(|| available_parallelism().ok())
        .map_or(1, NonZeroUsize::get)
}

/// Which part of a trace is read, and how.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Trace options")]
pub(crate) struct Selection {
    /// The trace's format; recognised by its contents unless said.
    #[arg(long, value_name = "NAME")]
    format: Option<String>,

    /// Only this device, by number (may be repeated).
    #[arg(long = "device", value_name = "NUMBER", value_delimiter = ',')]
    devices: Vec<u32>,

    /// Only this operation (may be repeated).
    #[arg(long = "operation", value_name = "OPERATION", value_delimiter = ',')]
    operations: Vec<OperationName>,

    /// Only requests from this time after the trace's first on, such as 90s.
    #[arg(long, value_name = "TIME")]
    from: Option<Duration>,

    /// Only requests before this time after the trace's first, such as 2h.
    #[arg(long, value_name = "TIME")]
    to: Option<Duration>,

    /// Multiply arrival times: 0.5 is twice the load.
    #[arg(long, value_name = "FACTOR")]
    time_scale: Option<f64>,

    /// Tolerate, and count, this many damaged rows.
    #[arg(long, value_name = "ROWS")]
    skip_bad: Option<u64>,
}

/// What replaces keys of a stack file, whatever its workload.
#[derive(Clone, Debug, Args)]
pub(crate) struct Edits {
    /// Set a key of the stack file, as in volume.chunk=256KiB (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Use this drive throughout: a name of the library, a drive file, or a
    /// parameter file of DiskSim.
    #[arg(long, value_name = "DRIVE")]
    drive: Option<String>,
}

impl Edits {
    /// The same for the stack loader.
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            set: self.set.clone(),
            drive: self.drive.clone(),
            ..Overrides::default()
        }
    }
}

/// What replaces parts of a stack file.
#[derive(Clone, Debug, Args)]
pub(crate) struct Changes {
    #[command(flatten)]
    edits: Edits,

    /// The seed of all randomness.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// End the workload after this many requests.
    #[arg(long, value_name = "NUMBER")]
    requests: Option<u64>,

    /// Replay this trace in place of the stack's workload.
    #[arg(long, value_name = "FILE", help_heading = "Trace options")]
    trace: Option<PathBuf>,

    /// Run this job file of fio's in place of the stack's workload.
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    fio: Option<PathBuf>,

    /// What to do with addresses beyond the volume.
    #[arg(long, value_name = "WHAT", help_heading = "Trace options")]
    beyond: Option<Beyond>,

    /// What of the trace is kept: its times, its load (with as many requests
    /// outstanding as it had), or only its order.
    #[arg(long, value_name = "PACE", help_heading = "Trace options")]
    pace: Option<PaceName>,

    /// Replay closed, with this many requests outstanding, instead of at the
    /// trace's times; with --pace as-fast, no more than these.
    #[arg(long, value_name = "NUMBER", help_heading = "Trace options")]
    outstanding: Option<u32>,

    #[command(flatten)]
    selection: Selection,
}

/// A search for the most that a stack bears, in place of one run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Searches")]
pub(crate) struct Searching {
    /// Find the most of something that the stack bears, in place of one run.
    #[arg(long, value_name = "WHAT")]
    find: Option<Find>,

    /// The confidence with which --find streams states its result.
    #[arg(long, value_name = "SHARE", default_value = "0.95", requires = "find", value_parser = confidence)]
    confidence: f64,

    /// Runs of --find streams at each step, each with a seed of its own.
    #[arg(long, value_name = "NUMBER", default_value = "10", requires = "find")]
    replications: NonZeroU32,

    /// The load of --find load keeps the 99th percentile of response times
    /// within this, such as 50ms.
    #[arg(long, value_name = "TIME", requires = "find")]
    p99_max: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Find {
    /// Media streams that play without an underrun.
    Streams,
    /// How much faster requests may arrive before the queue grows without end.
    Load,
}

impl Searching {
    /// What is looked for, with `jobs` runs at a time.
    pub(crate) fn most(&self, jobs: usize) -> Option<Most> {
        let search = Search {
            confidence: self.confidence,
            replications: self.replications.get(),
            jobs,
        };
        self.find.map(|find| match find {
            Find::Streams => Most::Streams(search),
            Find::Load => Most::Load(self.p99_max),
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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Beyond {
    /// It is an error.
    Reject,
    /// Modulo the capacity.
    Wrap,
    /// In proportion.
    Scale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaceName {
    /// Each request at its time.
    Timing,
    /// With as many outstanding as the trace had.
    Load,
    /// As soon as what the trace had complete is complete.
    AsFast,
    /// With a fixed number outstanding.
    Closed,
}

impl PaceName {
    pub(crate) fn pace(self) -> Pace {
        match self {
            PaceName::Timing => Pace::Timing,
            PaceName::Load => Pace::Load,
            PaceName::AsFast => Pace::AsFast,
            PaceName::Closed => Pace::Closed,
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

impl Beyond {
    /// The same for the trace reader.
    pub(crate) fn kind(self) -> fullstroke_trace::Beyond {
        match self {
            Beyond::Reject => fullstroke_trace::Beyond::Reject,
            Beyond::Wrap => fullstroke_trace::Beyond::Wrap,
            Beyond::Scale => fullstroke_trace::Beyond::Scale,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Beyond::Reject => "reject",
            Beyond::Wrap => "wrap",
            Beyond::Scale => "scale",
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

    /// What arrival times are multiplied by.
    #[cfg(feature = "real")]
    pub(crate) fn time_scale(&self) -> f64 {
        self.time_scale.unwrap_or(1.0)
    }

    /// The same for the trace reader.
    pub(crate) fn options(&self) -> Options {
        let defaults = Options::default();
        Options {
            format: self.format.clone(),
            devices: self.devices.clone(),
            operations: self.operations(),
            from: self.from.unwrap_or(defaults.from),
            to: self.to,
            time_scale: self.time_scale.unwrap_or(defaults.time_scale),
            skip_bad: self.skip_bad.unwrap_or(defaults.skip_bad),
            ..defaults
        }
    }

    /// The same as keys of a stack's trace; only what was said.
    fn keys(&self) -> Map<String, Value> {
        let mut keys = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                keys.insert(key.to_owned(), value);
            }
        };
        put("format", self.format.as_ref().map(|format| json!(format)));
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

impl Changes {
    /// The job file that stands in place of the workload.
    pub(crate) fn job_file(&self) -> Option<&Path> {
        self.fio.as_deref()
    }

    /// The same for the stack loader.
    pub(crate) fn overrides(&self) -> Overrides {
        let mut trace_keys = self.selection.keys();
        if let Some(beyond) = self.beyond {
            trace_keys.insert("beyond".to_owned(), json!(beyond.name()));
        }
        if let Some(pace) = self.pace {
            trace_keys.insert("pace".to_owned(), json!(pace.pace()));
        }
        if let Some(outstanding) = self.outstanding {
            trace_keys.insert("outstanding".to_owned(), json!(outstanding));
        }
        Overrides {
            trace: self.trace.clone(),
            fio: self.fio.clone(),
            trace_keys,
            seed: self.seed,
            requests: self.requests,
            ..self.edits.overrides()
        }
    }
}
