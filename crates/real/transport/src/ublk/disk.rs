//! One device, from its beginning to its end.

use crate::ublk::UblkError;
use crate::ublk::control::ControlRing;
use crate::ublk::queue::{self, DEPTH, QueueShared, Serves};
use crate::ublk::wire::{FEATURES, Info, Parameters};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Longest request in bytes. The kernel splits longer requests.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Longest zeroing in bytes.
const ZEROED_BYTES_MAX: u32 = 64 << 20;
/// Alignment of the fastest requests in bytes: a page.
const PREFERRED_BYTES: u32 = 4096;
/// Block sizes accepted by the kernel.
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 512..=4096;
/// Longest wait for a device file that the kernel has promised.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval of the checks for the file.
const LOOK: Duration = Duration::from_millis(10);

/// Properties of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceProperties {
    /// Size in bytes; whole blocks.
    pub size_bytes: u64,
    /// Block size in bytes. Requests begin and end at block boundaries.
    pub block_bytes: u32,
    /// True if the device reports that it rotates.
    pub rotates: bool,
    /// Longest discard in bytes; whole blocks; 0 for no discards. The kernel splits longer
    /// discards.
    pub discarded_bytes_max: u32,
    /// Label of the device; not 0. An existing device with the same label is removed first, because
    /// a killed server left it behind.
    pub label: u64,
}

/// A device, removed on drop.
pub struct UblkDisk {
    control: ControlRing,
    number: u32,
    path: PathBuf,
    shared: Option<Arc<QueueShared>>,
    thread: Option<JoinHandle<()>>,
}

impl DeviceProperties {
    fn check(&self) -> Result<(), UblkError> {
        let block = self.block_bytes;
        let fault = |key, found, expected| {
            Err(UblkError::Form {
                key,
                found,
                expected,
            })
        };
        if !block.is_power_of_two() || !BLOCK_BYTES.contains(&block) {
            return fault(
                "block_bytes",
                block.into(),
                "a power of two from 512 to 4096",
            );
        }
        if self.size_bytes == 0 || !self.size_bytes.is_multiple_of(block.into()) {
            return fault("size_bytes", self.size_bytes, "whole blocks, at least one");
        }
        if !self.discarded_bytes_max.is_multiple_of(block) {
            let found = self.discarded_bytes_max.into();
            return fault("discarded_bytes_max", found, "whole blocks, or 0");
        }
        if self.label == 0 {
            return fault(
                "label",
                0,
                "another number: 0 is what devices of others have",
            );
        }
        Ok(())
    }

    fn parameters(&self) -> Parameters {
        Parameters {
            size_bytes: self.size_bytes,
            block_bytes: self.block_bytes,
            preferred_bytes: self.block_bytes.max(PREFERRED_BYTES),
            request_bytes_max: REQUEST_BYTES_MAX,
            rotates: self.rotates,
            discarded_bytes_max: self.discarded_bytes_max,
            zeroed_bytes_max: ZEROED_BYTES_MAX,
        }
    }
}

impl UblkDisk {
    /// Creates a device whose requests go to `serves` from now on.
    ///
    /// # Errors
    /// If the kernel has no ublk or refuses this device, or if `form` is invalid.
    pub fn open(form: &DeviceProperties, serves: Arc<dyn Serves>) -> Result<UblkDisk, UblkError> {
        form.check()?;
        let mut control = ControlRing::open()?;
        delete_leftovers(&mut control, form.label);
        let info = Info {
            device: Info::ANY,
            depth: DEPTH,
            request_bytes_max: REQUEST_BYTES_MAX,
            features: FEATURES,
            label: form.label,
        };
        let number = control.add(info).map_err(UblkError::refused("add"))?;
        let path = PathBuf::from(format!("/dev/ublkb{number}"));
        // From here on the device is removed again if anything fails.
        let mut disk = UblkDisk {
            control,
            number,
            path,
            shared: None,
            thread: None,
        };
        disk.control
            .set(number, form.parameters())
            .map_err(UblkError::refused("describe"))?;
        disk.serve(serves)?;
        disk.control
            .start(number)
            .map_err(UblkError::refused("start"))?;
        wait_for(|| disk.path.exists());
        Ok(disk)
    }

    fn serve(&mut self, serves: Arc<dyn Serves>) -> Result<(), UblkError> {
        let file = open_character(self.number).map_err(UblkError::refused("serve"))?;
        let shared = QueueShared::new(file).map_err(UblkError::refused("serve"))?;
        self.shared = Some(Arc::clone(&shared));
        let (ready, begun) = mpsc::channel();
        let thread = thread::Builder::new().name("ublk".into());
        let thread = thread.spawn(move || queue::run(shared, serves, &ready));
        self.thread = Some(thread.map_err(UblkError::refused("serve"))?);
        begun
            .recv()
            .unwrap_or_else(|_| Err(UblkError::refused("serve")(io::ErrorKind::Other.into())))
    }

    /// Returns the path of the block device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the device is no longer served, because it was removed from outside or the
    /// kernel failed.
    pub fn is_over(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.is_over())
    }

    /// Removes the device. All requests are answered before, including late writes of a mounted
    /// file system.
    fn close(&mut self) -> io::Result<()> {
        let stopped = self.control.stop(self.number);
        if let Some(thread) = self.thread.take() {
            // The thread ends when the kernel has taken back all tags. A panic in it has been
            // reported.
            let _ = thread.join();
        }
        self.shared = None;
        stopped.and(self.control.delete(self.number))
    }
}

impl Drop for UblkDisk {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            let path = self.path.display();
            crate::print_error(&format!("`{path}` could not be taken away: {error}"));
        }
    }
}

/// Tells the kernel that this thread, and threads started later by it, carry out writes for others.
/// Then the kernel does not make the thread wait for memory that only the thread itself can free.
/// The kernel also does not throttle the thread by dirty pages of the thread's own device. If the
/// kernel refuses, both may happen when memory is short.
pub fn carry_out_for_others() {
    // PR_SET_IO_FLUSHER of prctl(2), since Linux 5.6.
    let _ = rustix::process::configure_io_flusher_behavior(true);
}

/// Opens the character device. If a daemon creates the file, it appears a little later.
fn open_character(number: u32) -> io::Result<File> {
    let path = format!("/dev/ublkc{number}");
    let open = || OpenOptions::new().read(true).write(true).open(&path);
    wait_for(|| open().is_ok());
    open()
}

fn wait_for(is_there: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_there() && began.elapsed() < PATIENCE {
        sleep(LOOK);
    }
}

/// Deletes devices with this label. The kernel has stopped the device of a killed server, but its
/// entry is left.
fn delete_leftovers(control: &mut ControlRing, label: u64) {
    let Ok(entries) = fs::read_dir("/dev") else {
        return;
    };
    let number = |entry: io::Result<fs::DirEntry>| {
        entry
            .ok()?
            .file_name()
            .to_str()?
            .strip_prefix("ublkc")?
            .parse::<u32>()
            .ok()
    };
    for number in entries.filter_map(number) {
        if control.info(number).is_ok_and(|info| info.label == label) {
            // An error is ignored: the device may be stopped already, or disappear just now.
            let _ = control.stop(number);
            let _ = control.delete(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_no_device_can_have_is_refused_by_the_name_of_the_field() {
        let good = DeviceProperties {
            size_bytes: 1 << 20,
            block_bytes: 512,
            rotates: true,
            discarded_bytes_max: 0,
            label: 1,
        };
        assert!(good.check().is_ok());
        let cases = [
            (
                "block_bytes",
                DeviceProperties {
                    block_bytes: 8192,
                    ..good
                },
            ),
            (
                "block_bytes",
                DeviceProperties {
                    block_bytes: 1000,
                    ..good
                },
            ),
            (
                "size_bytes",
                DeviceProperties {
                    size_bytes: 1000,
                    ..good
                },
            ),
            (
                "size_bytes",
                DeviceProperties {
                    size_bytes: 0,
                    ..good
                },
            ),
            (
                "discarded_bytes_max",
                DeviceProperties {
                    discarded_bytes_max: 1000,
                    ..good
                },
            ),
            ("label", DeviceProperties { label: 0, ..good }),
        ];
        for (expected, form) in cases {
            match form.check() {
                Err(UblkError::Form { key, .. }) => assert_eq!(key, expected),
                other => panic!("{expected}: {other:?}"),
            }
        }
    }
}
