//! An instance of the kernel's tracer (Documentation/trace/ftrace.rst, "Instances").

use super::error::RecordError;
use fullstroke_units::Bytes;
use std::fs;
use std::path::{Path, PathBuf};

/// An instance with its own buffer, events and clock. Dropping the value removes the instance.
pub(super) struct Instance {
    folder: PathBuf,
}

/// Recorded events: arrival, issue to the driver, and completion of a request. The list covers
/// devices with a queue of requests and devices that pass bios on (md, dm).
const EVENTS: [&str; 5] = [
    "block_bio_queue",
    "block_rq_requeue",
    "block_rq_issue",
    "block_rq_complete",
    "block_bio_complete",
];

/// `MINORBITS` of `linux/kdev_t.h`.
const MINOR_BITS: u32 = 20;

/// Fill of the buffers of all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) entries: u64,
    /// Fill of the fullest buffer, in bytes.
    pub(super) bytes_max: u64,
    pub(super) lost: u64,
}

impl Instance {
    /// Creates an instance that takes the events of one device, and starts it.
    pub(super) fn create(
        (major, minor): (u32, u32),
        buffer: Bytes,
    ) -> Result<Instance, RecordError> {
        let tracefs = tracefs().ok_or(RecordError::NoTracer)?;
        let folder = tracefs.join(format!("instances/fullstroke-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|source| RecordError::NoInstance { tracefs, source })?;
        let instance = Instance { folder };
        instance.set("buffer_size_kb", &buffer.0.div_ceil(1024).to_string())?;
        // With this clock, the times of all processors can be compared.
        instance.set("trace_clock", "mono")?;
        for event in EVENTS {
            let number = u64::from(major) << MINOR_BITS | u64::from(minor);
            instance.set(
                &format!("events/block/{event}/filter"),
                &format!("dev == {number}"),
            )?;
            instance.set(&format!("events/block/{event}/enable"), "1")?;
        }
        Ok(instance)
    }

    /// Stops taking events. Events in the buffer can still be read.
    pub(super) fn end(&self) -> Result<(), RecordError> {
        self.set("tracing_on", "0")
    }

    pub(super) fn pipe(&self) -> PathBuf {
        self.folder.join("trace_pipe")
    }

    /// Returns the fill of the buffers.
    pub(super) fn fill(&self) -> Fill {
        let Ok(processors) = fs::read_dir(self.folder.join("per_cpu")) else {
            return Fill::default();
        };
        let stats = processors
            .filter_map(|processor| fs::read_to_string(processor.ok()?.path().join("stats")).ok());
        stats
            .map(|text| fill_of(&text))
            .fold(Fill::default(), |all, one| Fill {
                entries: all.entries + one.entries,
                bytes_max: all.bytes_max.max(one.bytes_max),
                lost: all.lost + one.lost,
            })
    }

    fn set(&self, name: &str, value: &str) -> Result<(), RecordError> {
        let path = self.folder.join(name);
        fs::write(&path, value).map_err(|source| RecordError::Set {
            path,
            value: value.to_owned(),
            source,
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The kernel removes the events with the instance. If the removal fails, only the buffer's
        // memory remains in use.
        let _ = self.end();
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Returns the mount point of tracefs.
fn tracefs() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    // Fields of a line: source, place, kind, ...
    let place = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        (fields.next()? == "tracefs").then(|| Path::new(place).to_owned())
    };
    mounts.lines().find_map(place)
}

/// Returns the fill of one processor's buffer.
fn fill_of(stats: &str) -> Fill {
    let value = |name: &str| {
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse::<u64>().ok())
            .unwrap_or(0)
    };
    Fill {
        entries: value("entries"),
        bytes_max: value("bytes"),
        lost: value("overrun") + value("dropped events"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_counts_are_understood() {
        let text = "entries: 33202\noverrun: 3\ncommit overrun: 0\nbytes: 2268540\noldest event ts: 63213.178983\n\
                    now ts: 89578.325020\ndropped events: 4\nread events: 0\n";
        assert_eq!(
            fill_of(text),
            Fill {
                entries: 33_202,
                bytes_max: 2_268_540,
                lost: 7
            }
        );
    }
}
