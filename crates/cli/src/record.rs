//! `fullstroke record`: the requests that reach a device, as a trace.

use crate::output::{Failure, Output};
use crate::outputs::{self, Kind, Target};
use clap::Args;
use fullstroke_replay::{RecordOptions, record};
use fullstroke_units::{Bytes, Duration};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Record the requests that reach a block device, with their completions, as a trace.
///
/// The kernel's tracer tells them (root, tracefs), into a bounded buffer of this
/// command's own. Ctrl-C, or --duration, ends it and keeps what there is. See
/// docs/replay.md.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The block device, or a partition.
    device: PathBuf,

    /// The file to write; its name tells the format, and native is the one that keeps
    /// completions.
    #[arg(value_name = "FILE.parquet")]
    file: PathBuf,

    /// End after this time, such as 60s.
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,

    /// The kernel's buffer for events, for each processor.
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    buffer: Bytes,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let target = Target::to("the output", &arguments.file, Kind::Trace);
    outputs::check([Some(target)], std::slice::from_ref(&arguments.device))?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::input)?;
    }
    let options = RecordOptions {
        device: arguments.device.clone(),
        file: arguments.file.clone(),
        duration: arguments.duration,
        buffer: arguments.buffer,
    };
    let recording = record(&options, &stop).map_err(Failure::input)?;
    output.show(&recording, &recording)
}
