//! The device or file: its size, its alignment, and its other users.

use crate::{ReplayError, WriteTreatment};
use fullstroke_device::gate::share_bytes;
use fullstroke_device::{CacheUse, Claim, DeviceAccess, OpenError};
use fullstroke_units::{SECTOR_BYTES, Sectors};
use std::fs::File;
use std::path::Path;

/// The target of a replay.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) file: File,
    pub(crate) name: String,
    /// Capacity in whole blocks.
    pub(crate) capacity: Sectors,
    /// Alignment of requests in bytes.
    pub(crate) alignment_bytes: u64,
    /// Exclusive claim on an overwritten target.
    #[expect(dead_code, reason = "the claim ends when it is dropped")]
    pub(crate) claim: Option<Claim>,
}

impl Target {
    /// Opens the target; for writing if writes are permitted.
    pub(crate) fn open(
        path: &Path,
        writes: WriteTreatment,
        buffered: bool,
    ) -> Result<Target, ReplayError> {
        let name = path.display().to_string();
        let refuse = |reason: String| ReplayError::Target {
            device: name.clone(),
            reason,
        };
        let access = if writes == WriteTreatment::Overwrite {
            DeviceAccess::Write
        } else {
            DeviceAccess::Read
        };
        let cache = if buffered {
            CacheUse::Through
        } else {
            CacheUse::Past
        };
        let opened = fullstroke_device::open(path, access, cache)
            .map_err(|error| refuse(explain(&error)))?;
        let (bytes, alignment_bytes) = (opened.bytes, opened.block_bytes);
        let capacity = Sectors(bytes / alignment_bytes * (alignment_bytes / SECTOR_BYTES));
        if capacity == Sectors::ZERO {
            let reason = format!(
                "found {bytes} bytes; expected a device with a medium, or a file as large as the device that it \
                 stands for (`truncate --size 10G FILE`)"
            );
            return Err(refuse(reason));
        }
        Ok(Target {
            file: opened.file,
            name,
            capacity,
            alignment_bytes,
            claim: opened.claim,
        })
    }
}

impl Target {
    /// Returns an error if the target is written and holds the trace itself. The trace may have
    /// another name, or lie below or above a loop device.
    pub(crate) fn refuse_trace(
        &self,
        trace: &Path,
        writes: WriteTreatment,
    ) -> Result<(), ReplayError> {
        if writes != WriteTreatment::Overwrite {
            return Ok(());
        }
        let files = fullstroke_trace::files_of(trace)?;
        match files
            .iter()
            .find(|file| share_bytes(file, Path::new(&self.name)))
        {
            None => Ok(()),
            Some(file) => Err(ReplayError::Target {
                device: self.name.clone(),
                reason: format!(
                    "found the trace itself (`{}`), which would be overwritten; expected another file or device",
                    file.display()
                ),
            }),
        }
    }
}

fn explain(error: &OpenError) -> String {
    match error {
        OpenError::NoWayPast(_) => format!(
            "{error}; expected a device or another file system, or --buffered, with which the page cache is \
             measured"
        ),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn refused(path: &Path, writes: WriteTreatment) -> String {
        Target::open(path, writes, false).unwrap_err().to_string()
    }

    #[test]
    fn a_trace_is_not_written_over_under_any_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.csv");
        fs::write(&trace, [b'x'; 4096]).unwrap();
        let (soft, hard) = (folder.path().join("soft"), folder.path().join("hard"));
        std::os::unix::fs::symlink(&trace, &soft).unwrap();
        fs::hard_link(&trace, &hard).unwrap();
        for name in [&trace, &soft, &hard] {
            let target = Target::open(name, WriteTreatment::Overwrite, true).unwrap();
            let error = target
                .refuse_trace(&trace, WriteTreatment::Overwrite)
                .unwrap_err()
                .to_string();
            assert!(error.contains("found the trace itself"), "{error}");
            target
                .refuse_trace(&trace, WriteTreatment::AsReads)
                .unwrap();
        }
    }

    #[test]
    fn what_somebody_has_claimed_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("member");
        fs::write(&file, [0; 4096]).unwrap();
        let _held = Target::open(&file, WriteTreatment::Overwrite, true).unwrap();
        let error = Target::open(&file, WriteTreatment::Overwrite, true)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("in use by another process") && error.contains("member"),
            "{error}"
        );
        Target::open(&file, WriteTreatment::AsReads, true).unwrap();
    }

    #[test]
    fn what_is_no_device_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = refused(folder.path(), WriteTreatment::Refuse);
        assert!(
            error.contains("expected a block device or a file") && error.contains("`/"),
            "{error}"
        );
        let error = refused(&folder.path().join("gone"), WriteTreatment::Refuse);
        assert!(
            error.contains("gone") && error.contains("No such file"),
            "{error}"
        );
        let empty = folder.path().join("empty");
        fs::write(&empty, "").unwrap();
        let error = Target::open(&empty, WriteTreatment::Refuse, true)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("found 0 bytes") && error.contains("truncate"),
            "{error}"
        );
    }
}
