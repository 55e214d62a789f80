//! `fullstroke record`: records the requests of a block device as a trace.

use crate::output::{CommandFailure, CommandOutput};
use crate::outputs::{self, OutputKind, Target};
use clap::Args;
use fullstroke_replay::{RecordOptions, record};
use fullstroke_units::{Bytes, Duration};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Record the requests of a block device with their completions as a trace.
///
/// The kernel's tracer reports the requests (needs root and tracefs). The events go into a bounded
/// buffer of this command. Ctrl-C or --duration ends the recording and keeps the recorded requests.
/// See docs/replay.md.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Block device or partition.
    device: PathBuf,

    /// File to write. The name gives the format; only the native format (.parquet) keeps
    /// completions.
    #[arg(value_name = "FILE.parquet")]
    file: PathBuf,

    /// Length of the recording, such as 60s. Default: until Ctrl-C.
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,

    /// Size of the kernel's event buffer per processor.
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    buffer: Bytes,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let target = Target::to("the output", &arguments.file, OutputKind::Trace);
    // The device is named as read, so that the record is not written over the disk itself.
    outputs::check([Some(target)], std::slice::from_ref(&arguments.device))?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(CommandFailure::input)?;
    }
    let options = RecordOptions {
        device: arguments.device.clone(),
        file: arguments.file.clone(),
        duration: arguments.duration,
        buffer: arguments.buffer,
    };
    let recording = record(&options, &stop).map_err(CommandFailure::input)?;
    output.show(&recording, &recording)
}
