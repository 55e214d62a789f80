//! The storage of an array.

use crate::limit::Limit;
use crate::stop_control::Standby;
pub use fullstroke_device::ALIGNMENT_BYTES;
pub(crate) use fullstroke_device::Aligned;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;
use std::time::Duration;

/// Takes the end of a read that was [begun](Device::begin_read).
pub type TakeRead = Box<dyn FnOnce(EndedRead) + Send>;

/// A read that has ended.
pub struct EndedRead {
    /// The bytes in memory of their own, or the device's error.
    pub(crate) result: io::Result<Aligned>,
    /// Time of the read.
    pub(crate) took: Duration,
    /// True if the request no longer waits for the read.
    pub(crate) is_left: bool,
}

/// Size of a write of zeros, if the room cannot be given back: 1 MiB.
const ZEROED_AT_ONCE: u64 = 1 << 20;

/// A device that keeps bytes: a block device, a file, files of a folder, or memory. Several threads
/// call its functions.
///
/// **Guarantees**: a sector of 512 bytes is written whole or not at all. Data written before a
/// [`flush`](Device::flush) began is there after a loss of power, once the flush has returned
/// successfully. After a loss of power each other sector is old or new, independently of the
/// others.
pub trait Device: Send + Sync {
    /// Name of the device in errors: its path.
    fn name(&self) -> String;

    /// Size in bytes.
    fn bytes(&self) -> u64;

    /// Granularity of reads and writes, in bytes.
    fn block_bytes(&self) -> u64 {
        512
    }

    /// Reads from the byte `at` on.
    ///
    /// # Errors
    /// The device's; the buffer holds anything then.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes from the byte `at` on.
    ///
    /// # Errors
    /// The device's; any part may have been written then.
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()>;

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// The device's. Undurable writes may be lost then, and a second call may succeed nevertheless.
    fn flush(&self) -> io::Result<()>;

    /// True if the device can give room back (see [`trim`](Device::trim)).
    fn trims(&self) -> bool {
        false
    }

    /// Makes bytes zeros, from the byte `at` on, and gives their room back. For durability this
    /// counts as a write.
    ///
    /// # Errors
    /// The device's; `Unsupported` if the device cannot, and nothing has changed.
    fn trim(&self, _at: u64, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Allocates all room from the file system, so no later write fails for lack of room. A block
    /// device has its room already.
    ///
    /// # Errors
    /// There is too little room.
    fn allocate(&self) -> io::Result<()> {
        Ok(())
    }

    /// Makes bytes zeros, from the byte `at` on. With `hole` their room is given back if the device
    /// can. Without it the room is kept, so a later write there cannot run out of room.
    ///
    /// # Errors
    /// The device's; any part may be zeros then.
    fn zero(&self, at: u64, bytes: u64, hole: bool) -> io::Result<()> {
        if hole && self.trims() {
            match self.trim(at, bytes) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                done => return done,
            }
        }
        let mut zeros = Aligned::default();
        let zeros = zeros.of(bytes.min(ZEROED_AT_ONCE) as usize);
        zeros.fill(0);
        let mut done = 0;
        while done < bytes {
            let now = (bytes - done).min(zeros.len() as u64);
            self.write(at + done, &zeros[..now as usize])?;
            done += now;
        }
        Ok(())
    }

    /// Returns the first run of bytes that takes room, within `bytes` from `at` on. Bytes that take
    /// no room read as zeros. A device without this knowledge returns all bytes.
    ///
    /// # Errors
    /// The device's.
    fn next_data(&self, at: u64, bytes: u64) -> io::Result<Option<Range<u64>>> {
        Ok((bytes > 0).then(|| at..at + bytes))
    }

    /// Makes all bytes zeros, and gives their room back if the device can.
    ///
    /// # Errors
    /// The device's.
    fn clear(&self) -> io::Result<()> {
        self.zero(0, self.bytes(), true)
    }

    /// True if the bytes are lost with the process: then nothing is made durable.
    fn is_volatile(&self) -> bool {
        false
    }

    /// True if the device is known to have held only zeros when it was opened.
    fn is_zero(&self) -> bool {
        false
    }

    /// True if reads and writes go through a page cache. Then memory needs no alignment. A write is
    /// a copy, and no faster in another thread.
    fn is_cached(&self) -> bool {
        false
    }

    /// Descriptor for io_uring in place of the calls above.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// Control of the device's standby. A user of [`descriptor`](Device::descriptor) reports its
    /// requests there.
    fn standby(&self) -> Option<&Standby> {
        None
    }

    /// Begins a read of so many bytes from the byte `at` on, into memory of its own, and returns
    /// without waiting. `take` gets the end of the read on another thread. Returns the number of
    /// the read in the device's [`limit`](Device::limit), where the request can leave the read
    /// behind. `None` if the device has no threads for this; `take` is not called then.
    ///
    /// # Errors
    /// The device's; `take` is not called then.
    fn begin_read(&self, _at: u64, _bytes: usize, _take: TakeRead) -> io::Result<Option<u64>> {
        Ok(None)
    }

    /// Time limit of a request. A user of [`descriptor`](Device::descriptor) enforces the limit.
    fn limit(&self) -> Option<&Limit> {
        None
    }
}
