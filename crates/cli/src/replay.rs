//! `fullstroke replay`: a trace on a real device.

use crate::options::{Beyond, PaceName, Selection};
use crate::output::{Failure, Output};
use crate::outputs::{self, Kind, Target};
use clap::{Args, ValueEnum};
use fullstroke_replay::{Io, ReplayOptions, Writes, fio_beside, replay};
use fullstroke_units::Duration;
use fullstroke_workload::pace::{Pace, Rules};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Each has a stack, and with --batch buffers of 4 MiB.
const THREADS_MAX: i64 = 256;

/// Replay a trace on a block device or a file, and say how true to the trace that was.
///
/// Requests go past the page cache (O_DIRECT) through io_uring, from one thread on
/// an absolute schedule; where io_uring is forbidden through threads. Everything that
/// is wrong with the trace or does not fit is found before the first request. Ctrl-C
/// ends it and reports what there is. See docs/replay.md.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The trace.
    trace: PathBuf,

    /// The block device or file.
    #[arg(long, value_name = "DEVICE")]
    on: PathBuf,

    /// What of the trace is kept: its times, its load (with as many requests
    /// outstanding as it had), or only its order.
    #[arg(long, value_name = "PACE", default_value = "timing")]
    pace: PaceName,

    /// With --pace closed, so many requests are outstanding; with as-fast, no more
    /// than these.
    #[arg(long, value_name = "NUMBER", required_if_eq("pace", "closed"))]
    outstanding: Option<NonZeroU32>,

    /// What becomes of requests that would change the device; without this word they
    /// are an error.
    #[arg(long, value_name = "WHAT")]
    writes: Option<WritesName>,

    /// What to do with addresses beyond the device.
    #[arg(long, value_name = "WHAT", default_value = "reject")]
    beyond: Beyond,

    /// End after this many requests.
    #[arg(long, value_name = "NUMBER")]
    requests: Option<u64>,

    /// Issue together what follows sooner than the ring issues one by one, as
    /// calibrated beforehand.
    #[arg(long)]
    batch: bool,

    /// How requests reach the kernel [default: io_uring, or threads where it is
    /// forbidden].
    #[arg(long, value_name = "WAY")]
    io: Option<IoName>,

    /// So many threads issue, and each waits for its request to return before it takes
    /// the next, as programs do: a request for which none is free goes late. At the
    /// trace's times alone; with --batch, what follows sooner than a read returns goes
    /// with it in one call.
    #[arg(long, value_name = "NUMBER", conflicts_with = "io", value_parser = clap::value_parser!(u32).range(1..=THREADS_MAX))]
    threads: Option<u32>,

    /// Go through the page cache, where a file cannot be read past it. Such a replay
    /// is never called faithful.
    #[arg(long)]
    buffered: bool,

    /// Tolerate, and count, this many requests that fail.
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    tolerate_errors: u64,

    /// Write the replay to this file, as a trace in the native format.
    #[arg(long, value_name = "FILE.parquet")]
    log: Option<PathBuf>,

    /// Have fio replay the same requests afterwards, and show how late it was beside.
    #[arg(long)]
    fio: bool,

    /// A replay by timing is called faithful if 99 of 100 requests are issued within
    /// this of their time.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    issue_error_max: Duration,

    /// A replay is called faithful if rates and gaps (by timing) or what is outstanding
    /// (by load) are off by no more than this share.
    #[arg(long, value_name = "SHARE", default_value = "0.04")]
    error_share_max: f64,

    #[command(flatten)]
    selection: Selection,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WritesName {
    /// They are left out.
    Skip,
    /// They read what they would have written over.
    AsReads,
    /// They are carried out: what stands on the device is lost.
    Overwrite,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum IoName {
    /// One thread and a ring.
    #[value(name = "io_uring")]
    IoUring,
    /// Up to 64 threads with pread and pwrite, one for each request outstanding.
    Threads,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let read = [arguments.trace.clone(), arguments.on.clone()];
    outputs::check([Target::of("--log", &arguments.log, Kind::Other)], &read)?;
    let options = arguments.options()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::input)?;
    }
    let mut report = replay(&options, &stop).map_err(Failure::input)?;
    if arguments.fio && !report.interrupted {
        match fio_beside(&options, report.requests) {
            Ok(fio) => report.fio = Some(fio),
            Err(reason) => report
                .notes
                .push(format!("nothing of fio beside: {reason}")),
        }
    }
    output.show(&report, &report)
}

impl Arguments {
    /// Refuses options that have no effect together, and numbers that cannot be.
    fn check(&self) -> Result<(), Failure> {
        let pace = self.pace.pace();
        let refuse = |message: String| Err(Failure::Input(message));
        if self.outstanding.is_some() && matches!(pace, Pace::Timing | Pace::Load) {
            return refuse(format!(
                "--outstanding has no effect with --pace {}; leave it out",
                pace.name()
            ));
        }
        let scale = self.selection.time_scale();
        if scale != 1.0 && !pace.heeds_times() {
            return refuse(format!(
                "--time-scale has no effect with --pace {}; leave it out",
                pace.name()
            ));
        }
        if !(scale.is_finite() && scale > 0.0) {
            return refuse(format!(
                "--time-scale is {scale}; expected a factor above 0"
            ));
        }
        if self.batch && !matches!(pace, Pace::Timing | Pace::Load) {
            return refuse(format!(
                "--batch has no effect with --pace {}; leave it out",
                pace.name()
            ));
        }
        if self.threads.is_some() && pace != Pace::Timing {
            return refuse(format!(
                "--threads has no effect with --pace {}, which says itself how many are outstanding; leave it out",
                pace.name()
            ));
        }
        if self.fio && pace != Pace::Timing {
            return refuse(format!(
                "--fio compares times of issue, which --pace {} does not keep",
                pace.name()
            ));
        }
        if self.error_share_max.is_nan() || self.error_share_max < 0.0 {
            return refuse(format!(
                "--error-share-max is {}; expected a share such as 0.04",
                self.error_share_max
            ));
        }
        Ok(())
    }

    fn options(&self) -> Result<ReplayOptions, Failure> {
        self.check()?;
        let (pace, scale) = (self.pace.pace(), self.selection.time_scale());
        Ok(ReplayOptions {
            trace: self.trace.clone(),
            selection: self.selection.options(),
            requests: self.requests,
            target: self.on.clone(),
            beyond: self.beyond.kind(),
            writes: match self.writes {
                None => Writes::Refuse,
                Some(WritesName::Skip) => Writes::Skip,
                Some(WritesName::AsReads) => Writes::AsReads,
                Some(WritesName::Overwrite) => Writes::Overwrite,
            },
            rules: Rules {
                pace,
                scale,
                outstanding: self.outstanding.map(NonZeroU32::get),
                batch: Duration::ZERO,
            },
            batch: self.batch,
            io: self.io.map(|io| match io {
                IoName::IoUring => Io::IoUring,
                IoName::Threads => Io::Threads,
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
