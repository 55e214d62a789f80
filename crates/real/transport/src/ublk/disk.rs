//! One device, from its beginning to its end.

use crate::ublk::UblkError;
use crate::ublk::control::Control;
use crate::ublk::queue::{self, DEPTH, Serves, Shared};
use crate::ublk::wire::{FEATURES, Info, Parameters};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// No request is longer. Of more the kernel makes several.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// No zeroing is longer.
const ZEROED_BYTES_MAX: u32 = 64 << 20;
/// Requests at multiples of this are served best: a page.
const PREFERRED_BYTES: u32 = 4096;
/// Blocks of a device, to the kernel.
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 512..=4096;
/// For a file to appear that the kernel has promised.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// What a device is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Its size, whole blocks.
    pub size_bytes: u64,
    /// No request begins or ends within a block.
    pub block_bytes: u32,
    /// Whether it says that it rotates.
    pub rotates: bool,
    /// No discard is longer, whole blocks; 0 if none is asked of it. Of more the kernel makes
    /// several, one behind the other.
    pub discarded_bytes_max: u32,
    /// What it is called among devices of ublk. Those that are called so already are taken
    /// away first: what a server left behind that was killed. Not 0.
    pub label: u64,
}

/// A device. It goes when this is dropped.
pub struct Disk {
    control: Control,
    number: u32,
    path: PathBuf,
    shared: Option<Arc<Shared>>,
    thread: Option<JoinHandle<()>>,
}

impl Form {
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

impl Disk {
    /// Makes a device whose requests `serves` carries out, from now on.
    ///
    /// # Errors
    /// The kernel has no ublk, or refuses this device; or no device can be like this.
    pub fn open(form: &Form, serves: Arc<dyn Serves>) -> Result<Disk, UblkError> {
        form.check()?;
        let mut control = Control::open()?;
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
        // From now on it goes again if anything fails.
        let mut disk = Disk {
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
        let shared = Shared::new(file).map_err(UblkError::refused("serve"))?;
        self.shared = Some(Arc::clone(&shared));
        let (ready, begun) = mpsc::channel();
        let thread = thread::Builder::new().name("ublk".into());
        let thread = thread.spawn(move || queue::run(shared, serves, &ready));
        self.thread = Some(thread.map_err(UblkError::refused("serve"))?);
        begun
            .recv()
            .unwrap_or_else(|_| Err(UblkError::refused("serve")(io::ErrorKind::Other.into())))
    }

    /// The block device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is served no more: somebody else has taken it away, or the kernel has failed.
    pub fn is_over(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.is_over())
    }

    /// Takes it away. What is asked of it is answered before, also what a file system that is
    /// mounted from it has yet to write.
    fn close(&mut self) -> io::Result<()> {
        let stopped = self.control.stop(self.number);
        if let Some(thread) = self.thread.take() {
            // It ends when the kernel has its tags; a panic in it has been reported.
            let _ = thread.join();
        }
        self.shared = None;
        stopped.and(self.control.delete(self.number))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            let path = self.path.display();
            crate::complain(&format!("`{path}` could not be taken away: {error}"));
        }
    }
}

/// Tells the kernel that this thread, and those that it begins from now on, carry out what
/// others have written: it does not have them wait for memory that only they can make free, nor
/// slows them down by the pages of their own device. It may be refused; then that may happen,
/// where memory is short.
pub fn carry_out_for_others() {
    // PR_SET_IO_FLUSHER of prctl(2), of Linux 5.6.
    let _ = rustix::process::configure_io_flusher_behavior(true);
}

/// The file appears a little later where a daemon makes it.
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

/// A server that was killed has left the entry of its device, which the kernel has stopped.
fn delete_leftovers(control: &mut Control, label: u64) {
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
            // One that is stopped, or goes in this moment, is what is wanted.
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
        let good = Form {
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
                Form {
                    block_bytes: 8192,
                    ..good
                },
            ),
            (
                "block_bytes",
                Form {
                    block_bytes: 1000,
                    ..good
                },
            ),
            (
                "size_bytes",
                Form {
                    size_bytes: 1000,
                    ..good
                },
            ),
            (
                "size_bytes",
                Form {
                    size_bytes: 0,
                    ..good
                },
            ),
            (
                "discarded_bytes_max",
                Form {
                    discarded_bytes_max: 1000,
                    ..good
                },
            ),
            ("label", Form { label: 0, ..good }),
        ];
        for (expected, form) in cases {
            match form.check() {
                Err(UblkError::Form { key, .. }) => assert_eq!(key, expected),
                other => panic!("{expected}: {other:?}"),
            }
        }
    }
}
