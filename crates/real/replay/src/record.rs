//! Records the requests that reach a device as a trace: the reverse of a replay.
//!
//! The kernel's block events go to a private instance of the kernel's tracer, filtered to the
//! device. So the recording does not disturb other users of the tracer. The instance's buffer is
//! bounded. The result names its highest fill and the number of lost events. The events are read as
//! they come, matched like the events of a block tracer (`fullstroke-trace`), and written in the
//! native format.

mod error;
mod instance;
mod pipe;

use crate::ReplayError;
use error::{ReaderCounts, RecordError};
use fullstroke_trace::{Conversion, TraceOptions, TraceReader, convert, output_for};
use fullstroke_units::{Bytes, Duration};
use instance::Instance;
use pipe::Pipe;
use serde::Serialize;
use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Path of a block device or a partition.
    pub device: PathBuf,
    /// Path of the file to write. The name selects the format.
    pub file: PathBuf,
    /// Length of the recording; `None` until `stop` is true.
    pub duration: Option<Duration>,
    /// Size of the kernel's buffer of events, for each processor.
    pub buffer: Bytes,
}

/// Result of a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recording {
    /// The device.
    pub device: String,
    /// Path of the file.
    pub file: String,
    /// Number of requests in the file.
    pub requests: u64,
    /// Length of the recording in s.
    pub seconds: f64,
    /// Number of events read.
    pub events: u64,
    /// Number of events for which the kernel had no room.
    pub lost_events: u64,
    /// Highest observed fill of the fullest processor's buffer, as a share of its size.
    pub high_water_share: f64,
    /// Notes on flaws of the trace.
    pub notes: Vec<String>,
}

/// Records until the time is over or `stop` is true. Everything recorded until then is kept.
///
/// # Errors
/// If the path is no device, the kernel's tracer cannot be used, the file cannot be written, or no
/// request reached the device.
pub fn record(options: &RecordOptions, stop: &Arc<AtomicBool>) -> Result<Recording, ReplayError> {
    let device = options.device.display().to_string();
    let refuse = |error: RecordError| ReplayError::Target {
        device: device.clone(),
        reason: error.to_string(),
    };
    let number = device_number(&options.device).map_err(&refuse)?;
    let written = output_for(&options.file, None)?;
    let instance = Instance::create(number, options.buffer).map_err(&refuse)?;
    let counts = Arc::new(Mutex::new(ReaderCounts::default()));
    let pipe = Pipe::open(
        instance,
        options.duration,
        Arc::clone(stop),
        Arc::clone(&counts),
    )
    .map_err(&refuse)?;
    let source = TraceReader::open_read(
        &device,
        Box::new(pipe),
        &TraceOptions::for_format("blkparse"),
    );
    let mut reader = match source {
        Err(fullstroke_trace::TraceError::Empty { .. }) => {
            return Err(refuse(RecordError::Nothing));
        }
        other => other?,
    };
    let conversion: Conversion = convert(&mut reader, written, &options.file)?;
    let counts = counts.lock().map(|counts| *counts).unwrap_or_default();
    let mut notes = conversion.notes;
    if stands_on(&options.file, number) {
        notes.push(
            "the trace was written to the recorded device, and is part of the record".to_owned(),
        );
    }
    Ok(Recording {
        device,
        file: options.file.display().to_string(),
        requests: conversion.requests,
        seconds: counts.seconds,
        events: counts.events,
        lost_events: counts.lost,
        high_water_share: counts.high_water_bytes as f64 / options.buffer.0.max(1) as f64,
        notes,
    })
}

/// Returns the device's major and minor number.
fn device_number(device: &Path) -> Result<(u32, u32), RecordError> {
    let found = fs::metadata(device).map_err(RecordError::Device)?;
    if !found.file_type().is_block_device() {
        let kind = fullstroke_device::kind_name(found.file_type());
        return Err(RecordError::NoDevice(kind));
    }
    Ok((
        rustix::fs::major(found.rdev()),
        rustix::fs::minor(found.rdev()),
    ))
}

/// Returns true if `file` is stored on the device, or on a partition of the device.
fn stands_on(file: &Path, (major, minor): (u32, u32)) -> bool {
    let Ok(found) = fs::metadata(file) else {
        return false;
    };
    let holder = format!(
        "{}:{}",
        rustix::fs::major(found.dev()),
        rustix::fs::minor(found.dev())
    );
    let path = |number: String| fs::canonicalize(format!("/sys/dev/block/{number}")).ok();
    let (holder, device) = (path(holder), path(format!("{major}:{minor}")));
    holder
        .zip(device)
        .is_some_and(|(holder, device)| holder.starts_with(device))
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recording {
            device,
            file,
            requests,
            seconds,
            events,
            lost_events,
            high_water_share,
            ..
        } = self;
        write!(
            f,
            "{file}: {requests} requests of {device} in {seconds:.1} s ({events} events; the kernel's buffer was "
        )?;
        write!(f, "{:.1} % full at most", high_water_share * 100.0)?;
        if *lost_events > 0 {
            write!(
                f,
                ", and {lost_events} events were lost: use a larger --buffer"
            )?;
        }
        f.write_str(")")?;
        self.notes
            .iter()
            .try_for_each(|note| write!(f, "\nnote: {note}"))
    }
}
