//! Any readable device or file, under the real clock.

use crate::extract::ExtractError;
use crate::extract::machine::{ExtractedDevice, PhysicalPlace, RequestAnswer};
use crate::extract::scsi::{self, Transport};
use fullstroke_contract::Extent;
use fullstroke_device::{Aligned, CacheUse, Claim, DeviceAccess, OpenError};
use fullstroke_units::{Duration, Lbn, SECTOR_BYTES, Sectors, Time};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

/// A device or file, read past the page cache with one request outstanding.
pub struct BlockDevice {
    file: File,
    capacity: Sectors,
    began: Instant,
    buffer: Aligned,
    translator: Option<Box<dyn Transport>>,
    /// Exclusive claim on the device while the extraction writes.
    _claim: Option<Claim>,
}

impl BlockDevice {
    /// Opens a device or file for reading, past the page cache.
    ///
    /// # Errors
    /// An error of the operating system. A file system without `O_DIRECT` refuses.
    pub fn open(path: &Path) -> io::Result<BlockDevice> {
        BlockDevice::open_with(path, false)
    }

    /// Opens a device or file for reading and writing. Writes only repeat the data that were read.
    ///
    /// # Errors
    /// As for [`BlockDevice::open`].
    pub fn open_for_writing(path: &Path) -> io::Result<BlockDevice> {
        BlockDevice::open_with(path, true)
    }

    /// Returns the device as a SCSI disk of 512-byte blocks. `transport` carries the commands for
    /// address translation.
    #[must_use]
    pub fn translated_by(self, transport: Box<dyn Transport>) -> BlockDevice {
        BlockDevice {
            translator: Some(transport),
            ..self
        }
    }

    fn open_with(path: &Path, write: bool) -> io::Result<BlockDevice> {
        let access = if write {
            DeviceAccess::Write
        } else {
            DeviceAccess::Read
        };
        let opened =
            fullstroke_device::open(path, access, CacheUse::Past).map_err(|error| match error {
                OpenError::Host(error) | OpenError::NoWayPast(error) => error,
                error => io::Error::other(error.to_string()),
            })?;
        let (file, capacity) = (opened.file, Sectors(opened.bytes / SECTOR_BYTES));
        if capacity == Sectors::ZERO {
            return Err(io::Error::other(
                "found no sectors; expected a block device, or a file with content",
            ));
        }
        Ok(BlockDevice {
            file,
            capacity,
            began: Instant::now(),
            buffer: Aligned::default(),
            translator: None,
            _claim: opened.claim,
        })
    }

    fn now(&self) -> Time {
        since(self.began)
    }
}

fn since(began: Instant) -> Time {
    Time::from_nanos(began.elapsed().as_nanos() as u64)
}

/// Reads `extent` and returns the times of issue and completion since `began`.
fn read_at(
    file: &File,
    extent: Extent,
    buffer: &mut Aligned,
    began: Instant,
) -> Result<RequestAnswer, ExtractError> {
    let bytes = buffer.of(extent.sectors.bytes().0 as usize);
    let issued = since(began);
    let read = file.read_exact_at(bytes, extent.start.0 * SECTOR_BYTES);
    let completed = since(began);
    match read {
        Ok(()) => Ok(RequestAnswer {
            issued,
            completed,
            place: PhysicalPlace::default(),
        }),
        Err(error) => Err(ExtractError::Device {
            extent,
            reason: error.to_string(),
        }),
    }
}

impl ExtractedDevice for BlockDevice {
    fn capacity(&self) -> Sectors {
        self.capacity
    }

    fn read(&mut self, extent: Extent) -> Result<RequestAnswer, ExtractError> {
        read_at(&self.file, extent, &mut self.buffer, self.began)
    }

    /// Reads each extent in a thread of its own. The barrier opens when all threads are ready, so
    /// that the system chooses the order of issue.
    fn burst(&mut self, extents: &[Extent]) -> Result<Vec<RequestAnswer>, ExtractError> {
        let (file, began) = (&self.file, self.began);
        let gate = Barrier::new(extents.len());
        std::thread::scope(|scope| {
            let reads: Vec<_> = extents
                .iter()
                .map(|&extent| {
                    let gate = &gate;
                    scope.spawn(move || {
                        let mut buffer = Aligned::default();
                        // Allocated before the barrier, so that no allocation delays the read.
                        buffer.of(extent.sectors.bytes().0 as usize);
                        gate.wait();
                        read_at(file, extent, &mut buffer, began)
                    })
                })
                .collect();
            let ended =
                |read: std::thread::ScopedJoinHandle<'_, Result<RequestAnswer, ExtractError>>| {
                    read.join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
            reads.into_iter().map(ended).collect()
        })
    }

    fn rewrite(&mut self, extent: Extent) -> Result<RequestAnswer, ExtractError> {
        self.read(extent)?;
        let bytes = self.buffer.of(extent.sectors.bytes().0 as usize);
        let issued = since(self.began);
        let written = self.file.write_all_at(bytes, extent.start.0 * SECTOR_BYTES);
        let completed = since(self.began);
        match written {
            Ok(()) => Ok(RequestAnswer {
                issued,
                completed,
                place: PhysicalPlace::default(),
            }),
            Err(error) => Err(ExtractError::Device {
                extent,
                reason: error.to_string(),
            }),
        }
    }

    fn translate(&mut self, lbn: Lbn) -> Result<RequestAnswer, ExtractError> {
        let issued = self.now();
        let fail = |reason: String| ExtractError::Translation { lbn, reason };
        let Some(transport) = &mut self.translator else {
            return Err(fail("nothing carries SCSI commands to it".into()));
        };
        let place = scsi::ask(&mut **transport, lbn).map_err(|error| fail(error.to_string()))?;
        Ok(RequestAnswer {
            issued,
            completed: self.now(),
            place,
        })
    }

    fn idle(&mut self, span: Duration) -> RequestAnswer {
        let issued = self.now();
        std::thread::sleep(std::time::Duration::from_nanos(span.as_nanos()));
        RequestAnswer {
            issued,
            completed: self.now(),
            place: PhysicalPlace::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::{Extraction, run, translate};
    use fullstroke_device::scsi::CommandError;
    use std::io::Write as _;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Answers like a disk with two tracks per cylinder, of 7 and 5 sectors. Page 40h has the
    /// layout of the manuals' tables.
    struct RecordedDisk(u64);

    impl Transport for RecordedDisk {
        fn send_diagnostic(&mut self, parameters: &[u8]) -> Result<(), CommandError> {
            self.0 = u64::from(u32::from_be_bytes([
                parameters[6],
                parameters[7],
                parameters[8],
                parameters[9],
            ]));
            Ok(())
        }
        fn receive_diagnostic(&mut self, _: u16) -> Result<Vec<u8>, CommandError> {
            let (cylinder, within) = (self.0 / 12, self.0 % 12);
            let (head, sector) = if within < 7 {
                (0, within)
            } else {
                (1, within - 7)
            };
            let place = [0, 0, cylinder as u8, head, 0, 0, 0, sector as u8];
            Ok([&[0x40, 0, 0, 0x0a, 0, 0b101][..], &place[..]].concat())
        }
    }

    /// Returns a file of 48 sectors, or `None` if the folder does not support `O_DIRECT`.
    fn small(folder: &Path) -> Option<BlockDevice> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("fullstroke-extract-{}-{made}", std::process::id()));
        std::fs::File::create(&path)
            .unwrap()
            .write_all(&[0; 48 * 512])
            .unwrap();
        let opened = BlockDevice::open(&path);
        std::fs::remove_file(&path).unwrap();
        if opened.is_err() {
            eprintln!("skipped: {} knows no O_DIRECT", folder.display());
        }
        opened.ok()
    }

    #[test]
    fn a_scsi_disk_is_translated_by_what_carries_its_commands() {
        let Some(device) = small(&std::env::temp_dir()) else {
            return;
        };
        let mut device = device.translated_by(Box::new(RecordedDisk(0)));
        let (found, effort) = run(
            &mut device,
            Extraction::new(Sectors(48), translate),
            &mut |_, _| {},
        )
        .unwrap();
        let tracks: Vec<u64> = found
            .table
            .tracks_from(Lbn(0))
            .map(|track| track.sectors.0)
            .collect();
        assert_eq!(tracks, [7, 5, 7, 5, 7, 5, 7, 5]);
        assert!(effort.translations > 0);
    }

    #[test]
    fn a_device_without_scsi_says_that_nothing_translates() {
        let Some(mut device) = small(&std::env::temp_dir()) else {
            return;
        };
        let error = device.translate(Lbn(3)).unwrap_err().to_string();
        assert!(error.contains("nothing carries SCSI commands"), "{error}");
    }
}
