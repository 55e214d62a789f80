//! `fullstroke replay`: replays a trace on a real device.

use crate::options::{BeyondOption, PaceName, Selection};
use crate::output::{CommandFailure, CommandOutput};
use crate::outputs::{self, OutputKind, Target};
use clap::{Args, ValueEnum};
use fullstroke_contract::Reason;
use fullstroke_replay::{IoMethod, ReplayOptions, WriteTreatment, fio_beside, replay};
use fullstroke_trace::{FootprintPolicy, TraceOptions};
use fullstroke_units::Duration;
use fullstroke_workload::pace::{ReplayPace, Rules};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Each thread has a stack, and with --batch a buffer of 4 MiB, so the number is limited.
const THREADS_MAX: i64 = 256;

/// Replay a trace on a block device or a file, and report how faithful the replay was.
///
/// Requests bypass the page cache (O_DIRECT). One thread issues them through io_uring on an
/// absolute schedule; where io_uring is forbidden, several threads issue them. All errors of the
/// trace and the device are found before the first request. Ctrl-C ends the replay with a report.
/// See docs/replay.md.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Trace to replay.
    trace: PathBuf,

    /// Block device or file.
    #[arg(long, value_name = "DEVICE")]
    on: PathBuf,

    /// Property of the trace that the replay keeps: the arrival times, the number of outstanding
    /// requests, or only the order.
    #[arg(long, value_name = "PACE", default_value = "timing")]
    pace: PaceName,

    /// Number of outstanding requests with --pace closed. With --pace as-fast the number is an
    /// upper limit.
    #[arg(long, value_name = "NUMBER", required_if_eq("pace", "closed"))]
    outstanding: Option<NonZeroU32>,

    /// Treatment of requests that would change the device. Required if the trace has any.
    #[arg(long, value_name = "WHAT")]
    writes: Option<WritesName>,

    /// Treatment of addresses beyond the end of the device.
    #[arg(long, value_name = "WHAT", default_value = "reject")]
    beyond: BeyondOption,

    /// Places of the trace's addresses on the device: captured, a share of the device such as 60%,
    /// or spread for extents at random places.
    #[arg(long, value_name = "WHAT", default_value = "captured", value_parser = footprint)]
    footprint: FootprintPolicy,

    /// End the replay after this number of requests.
    #[arg(long, value_name = "NUMBER")]
    requests: Option<u64>,

    /// Submit several requests in one call if their gaps are below the ring's time per request.
    /// That time is measured beforehand.
    #[arg(long)]
    batch: bool,

    /// Interface to the kernel [default: io_uring, or threads where it is forbidden].
    #[arg(long, value_name = "WAY")]
    io: Option<IoName>,

    /// Number of threads that issue requests and wait for each completion, as programs do. A
    /// request waits while all threads are busy. Needs --pace timing. With --batch, a thread
    /// submits requests in one call if they follow sooner than a read returns.
    #[arg(long, value_name = "NUMBER", conflicts_with = "io", value_parser = clap::value_parser!(u32).range(1..=THREADS_MAX))]
    threads: Option<u32>,

    /// Use the page cache, for files without direct I/O. Such a replay is never called faithful.
    #[arg(long)]
    buffered: bool,

    /// Number of failed requests to tolerate and count.
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    tolerate_errors: u64,

    /// Write the replay to this file, as a trace in the native format.
    #[arg(long, value_name = "FILE.parquet")]
    log: Option<PathBuf>,

    /// Replay the same requests with fio afterwards, and compare the issue errors.
    #[arg(long)]
    fio: bool,

    /// Largest distance of an issue from its planned time. A replay by timing is faithful if 99 of
    /// 100 requests stay within it.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    issue_error_max: Duration,

    /// Maximum relative error of a faithful replay: of rates and gaps by timing, of outstanding
    /// requests by load.
    #[arg(long, value_name = "SHARE", default_value = "0.04")]
    error_share_max: f64,

    #[command(flatten)]
    selection: Selection,
}

fn footprint(text: &str) -> Result<FootprintPolicy, Reason> {
    FootprintPolicy::parse(text).map_err(Reason::new)
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WritesName {
    /// Leave writes out.
    Skip,
    /// Read the sectors that would be written.
    AsReads,
    /// Carry writes out. The data on the device are lost.
    Overwrite,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum IoName {
    /// One thread and a ring.
    #[value(name = "io_uring")]
    IoUring,
    /// Up to 64 threads with pread and pwrite, one per outstanding request.
    Threads,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let read = [arguments.trace.clone(), arguments.on.clone()];
    outputs::check(
        [Target::of("--log", &arguments.log, OutputKind::Other)],
        &read,
    )?;
    let options = arguments.options()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(CommandFailure::input)?;
    }
    let mut report = replay(&options, &stop).map_err(CommandFailure::input)?;
    // An interrupted replay has issued a part of the requests, so fio would be compared with
    // another load.
    if arguments.fio && !report.interrupted {
        match fio_beside(&options, report.requests) {
            Ok(fio) => report.fio = Some(fio),
            Err(reason) => report
                .notes
                .push(format!("no comparison with fio: {reason}")),
        }
    }
    output.show(&report, &report)
}

impl Arguments {
    /// Refuses options without effect and impossible numbers.
    fn check(&self) -> Result<(), CommandFailure> {
        let pace = self.pace.pace();
        let refuse = |message: String| Err(CommandFailure::Input(message));
        if self.outstanding.is_some() && matches!(pace, ReplayPace::Timing | ReplayPace::Load) {
            return refuse(format!(
                "--outstanding has no effect with --pace {}; remove the option",
                pace.name()
            ));
        }
        let scale = self.selection.time_scale();
        if scale != 1.0 && !pace.follows_times() {
            return refuse(format!(
                "--time-scale has no effect with --pace {}; remove the option",
                pace.name()
            ));
        }
        if !(scale.is_finite() && scale > 0.0) {
            return refuse(format!(
                "--time-scale is {scale}; expected a factor above 0"
            ));
        }
        // Closed paces issue one request for each completion, so there is nothing to submit
        // together.
        if self.batch && !matches!(pace, ReplayPace::Timing | ReplayPace::Load) {
            return refuse(format!(
                "--batch has no effect with --pace {}; remove the option",
                pace.name()
            ));
        }
        // The other paces set the number of outstanding requests, and a number of threads would set
        // another one.
        if self.threads.is_some() && pace != ReplayPace::Timing {
            return refuse(format!(
                "--threads has no effect with --pace {}, which sets the number of outstanding requests; remove the option",
                pace.name()
            ));
        }
        // fio replays a log by its times only (`read_iolog`, `replay_no_stall=0`).
        if self.fio && pace != ReplayPace::Timing {
            return refuse(format!(
                "--fio compares times of issue, which --pace {} does not keep",
                pace.name()
            ));
        }
        // NaN would pass every comparison, and each replay would count as faithful.
        if self.error_share_max.is_nan() || self.error_share_max < 0.0 {
            return refuse(format!(
                "--error-share-max is {}; expected a share such as 0.04",
                self.error_share_max
            ));
        }
        Ok(())
    }

    fn options(&self) -> Result<ReplayOptions, CommandFailure> {
        self.check()?;
        let (pace, scale) = (self.pace.pace(), self.selection.time_scale());
        Ok(ReplayOptions {
            trace: self.trace.clone(),
            selection: TraceOptions {
                footprint: self.footprint,
                ..self.selection.options()
            },
            requests: self.requests,
            target: self.on.clone(),
            beyond: self.beyond.kind(),
            // Writes are refused by default, because a replay on a device destroys the data there.
            writes: match self.writes {
                None => WriteTreatment::Refuse,
                Some(WritesName::Skip) => WriteTreatment::Skip,
                Some(WritesName::AsReads) => WriteTreatment::AsReads,
                Some(WritesName::Overwrite) => WriteTreatment::Overwrite,
            },
            rules: Rules {
                pace,
                scale,
                outstanding: self.outstanding.map(NonZeroU32::get),
                batch: Duration::ZERO,
            },
            batch: self.batch,
            io: self.io.map(|io| match io {
                IoName::IoUring => IoMethod::IoUring,
                IoName::Threads => IoMethod::Threads,
            }),
            threads: self.threads,
            buffered: self.buffered,
            tolerated_errors: self.tolerate_errors,
            log: self.log.clone(),
            issue_error_max: self.issue_error_max,
            error_share_max: self.error_share_max,
        })
    }
}
