//! The kernel's own page cache of a device, a file or a file system, made to follow storage's
//! signals.
//!
//! `cachestat` reports the dirty pages in a range of a file or device (since Linux 6.5), and
//! `sync_file_range` starts to write them. For a file system neither call works, because dirty
//! pages belong to the files of the file system. So `syncfs` writes the whole file system.

use crate::SignalExtent;
use fullstroke_units::SECTOR_BYTES;
use rustix::fs::{Advice, fadvise, syncfs};
use std::fs::File;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Length in bytes of the written runs of pages, if longer runs have too many dirty pages.
const RUN_LEAST: u64 = 64 << 10;

/// Number of the system call, which libc lacks for some architectures. Since 2019 new numbers are
/// the same on all architectures except Alpha.
const SYS_CACHESTAT: libc::c_long = 451;

/// The object whose pages the kernel keeps.
pub(crate) enum PageObject {
    /// A device or file.
    Device(SizedDevice),
    /// The file system of this directory.
    FileSystem(File),
}

/// A device or file with its size.
pub(crate) struct SizedDevice {
    file: File,
    bytes: u64,
}

/// Result of a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SignalResult {
    /// Bytes whose writing has begun; `None` if the kernel does not report the number.
    pub(crate) written: Option<u64>,
    /// Bytes requested from the kernel.
    pub(crate) fetched: u64,
}

impl PageObject {
    /// Opens `path` and determines its kind.
    pub(crate) fn open(path: &Path) -> io::Result<PageObject> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Ok(PageObject::FileSystem(file));
        }
        if !metadata.is_file() && !metadata.file_type().is_block_device() {
            let what = "expected a block device, a file or the directory of a file system";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let bytes = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))?;
        let device = SizedDevice { file, bytes };
        // An attempt at the start: a kernel without cachestat is reported before the session
        // begins.
        device.dirty(0..bytes)?;
        Ok(PageObject::Device(device))
    }

    /// Returns true if the kernel reports the dirty pages of the object.
    pub(crate) fn is_counted(&self) -> bool {
        matches!(self, PageObject::Device(_))
    }

    /// Carries out a signal.
    pub(crate) fn heed(&self, said: SignalExtent) -> io::Result<SignalResult> {
        let device = match (self, said) {
            (PageObject::Device(device), _) => device,
            (PageObject::FileSystem(directory), SignalExtent::Pull { .. }) => {
                // The kernel tells neither the dirty pages of a file system nor the number that it
                // writes.
                syncfs(directory)?;
                return Ok(SignalResult::default());
            }
            // The file of this range is unknown.
            (PageObject::FileSystem(_), SignalExtent::Push { .. }) => {
                return Ok(SignalResult {
                    written: Some(0),
                    fetched: 0,
                });
            }
        };
        match said {
            SignalExtent::Pull {
                start: None,
                sectors,
            } => device.pull(0..device.bytes, bytes_of(sectors)),
            SignalExtent::Pull {
                start: Some(start),
                sectors,
            } => device.pull(device.range(start, sectors), u64::MAX),
            SignalExtent::Push { start, sectors } => device.push(device.range(start, sectors)),
        }
    }
}

fn bytes_of(sectors: u64) -> u64 {
    sectors.saturating_mul(SECTOR_BYTES)
}

impl SizedDevice {
    /// Returns the bytes of an extent within the device.
    fn range(&self, start: u64, sectors: u64) -> Range<u64> {
        let begin = bytes_of(start).min(self.bytes);
        begin..begin.saturating_add(bytes_of(sectors)).min(self.bytes)
    }

    fn pull(&self, range: Range<u64>, most: u64) -> io::Result<SignalResult> {
        let left = self.write_back(range, most)?;
        Ok(SignalResult {
            written: Some(most - left),
            fetched: 0,
        })
    }

    fn push(&self, range: Range<u64>) -> io::Result<SignalResult> {
        let fetched = range.end - range.start;
        if let Some(length) = NonZero::new(fetched) {
            fadvise(&self.file, range.start, Some(length), Advice::WillNeed)?;
        }
        Ok(SignalResult {
            written: Some(0),
            fetched,
        })
    }

    /// Starts to write the dirty pages of a range, the lowest first, until `left` bytes or one run
    /// more are being written. Returns the rest of `left`.
    fn write_back(&self, range: Range<u64>, left: u64) -> io::Result<u64> {
        let dirty = if left == 0 || range.is_empty() {
            0
        } else {
            self.dirty(range.clone())?
        };
        if dirty == 0 {
            return Ok(left);
        }
        let length = range.end - range.start;
        // A range is written as a whole if all of it is wanted, or if halving would make runs
        // shorter than `RUN_LEAST`.
        if dirty <= left || length <= RUN_LEAST {
            self.begin_writing(range)?;
            return Ok(left.saturating_sub(dirty));
        }
        let middle = range.start + (length / 2 / RUN_LEAST).max(1) * RUN_LEAST;
        let left = self.write_back(range.start..middle, left)?;
        self.write_back(middle..range.end, left)
    }

    /// Returns the number of dirty bytes of a range.
    fn dirty(&self, range: Range<u64>) -> io::Result<u64> {
        let range = CachestatRange {
            offset: range.start,
            length: range.end - range.start,
        };
        let mut found = Cachestat::default();
        cachestat(&self.file, &range, &mut found)?;
        Ok(found.dirty * rustix::param::page_size() as u64)
    }

    #[expect(unsafe_code, reason = "rustix has no sync_file_range")]
    fn begin_writing(&self, range: Range<u64>) -> io::Result<()> {
        let (begin, length) = (
            range.start as libc::off64_t,
            (range.end - range.start) as libc::off64_t,
        );
        // SYNC_FILE_RANGE_WRITE begins to write and does not wait. Waiting would delay the next
        // signal.
        let (file, flags) = (self.file.as_raw_fd(), libc::SYNC_FILE_RANGE_WRITE);
        // SAFETY: no memory is passed, and the file is open.
        match unsafe { libc::sync_file_range(file, begin, length, flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// `struct cachestat_range` (cachestat(2)).
#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat`, in pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writing: u64,
    evicted: u64,
    recently_evicted: u64,
}

#[expect(
    unsafe_code,
    reason = "neither rustix nor libc has cachestat; the kernel takes addresses"
)]
fn cachestat(file: &File, range: &CachestatRange, found: &mut Cachestat) -> io::Result<()> {
    // SAFETY: the call reads a `cachestat_range` and writes a `cachestat`. Both arguments have
    // these layouts, and are borrowed until the call returns.
    let said = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            std::ptr::from_ref(range),
            std::ptr::from_mut(found),
            0_u32,
        )
    };
    if said == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::ENOSYS) => {
            let what = "the kernel has no cachestat, which came with Linux 6.5; a mounted file system can \
                        be given by its directory";
            io::Error::new(io::ErrorKind::Unsupported, what)
        }
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek as _, SeekFrom, Write as _};

    /// Returns a file of 64 MiB with 4 MiB of scattered dirty pages. Returns `None` if its file
    /// system writes nothing back, or if the kernel does not report dirty pages.
    fn dirtied() -> Option<(tempfile::NamedTempFile, PageObject)> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 20).unwrap();
        file.as_file().sync_all().unwrap();
        for piece in 0..64_u64 {
            file.seek(SeekFrom::Start(piece << 20)).unwrap();
            file.write_all(&[1; 64 << 10]).unwrap();
        }
        file.flush().unwrap();
        let kept = match PageObject::open(file.path()) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return None,
            kept => kept.unwrap(),
        };
        device(&kept).begin_writing(0..64 << 10).unwrap();
        // A file system in memory never writes pages.
        (device(&kept).dirty(0..64 << 10).unwrap() == 0).then_some((file, kept))
    }

    fn device(kept: &PageObject) -> &SizedDevice {
        let PageObject::Device(device) = kept else {
            panic!("a file is no file system")
        };
        device
    }

    fn dirty_bytes(kept: &PageObject) -> u64 {
        device(kept).dirty(0..device(kept).bytes).unwrap()
    }

    #[test]
    fn as_much_is_written_as_is_asked_for() {
        let Some((_file, kept)) = dirtied() else {
            eprintln!("skipped: no cachestat here, or files in memory");
            return;
        };
        let before = dirty_bytes(&kept);
        let asked = (1 << 20) / SECTOR_BYTES;
        let done = kept
            .heed(SignalExtent::Pull {
                start: None,
                sectors: asked,
            })
            .unwrap();
        let after = dirty_bytes(&kept);
        assert_eq!(
            done,
            SignalResult {
                written: Some(1 << 20),
                fetched: 0
            }
        );
        assert!(before - after >= 1 << 20, "{before} to {after}");
        // A PULL of only the last megabyte.
        let start = Some((63 << 20) / SECTOR_BYTES);
        let done = kept
            .heed(SignalExtent::Pull {
                start,
                sectors: u64::MAX / SECTOR_BYTES,
            })
            .unwrap();
        assert_eq!(done.written, Some(64 << 10));
        let done = kept
            .heed(SignalExtent::Pull {
                start: None,
                sectors: 1 << 40 >> 9,
            })
            .unwrap();
        assert!(done.written.unwrap() <= after, "{done:?} of {after}");
        assert_eq!(dirty_bytes(&kept), 0);
    }

    #[test]
    fn what_is_offered_is_fetched_as_far_as_there_is_any() {
        let Some((_file, kept)) = dirtied() else {
            return;
        };
        let push = |start, sectors| {
            kept.heed(SignalExtent::Push { start, sectors })
                .unwrap()
                .fetched
        };
        assert_eq!(push(0, 8), 4096);
        assert_eq!(push((64 << 20) / SECTOR_BYTES - 1, 8), 512);
        assert_eq!(push(u64::MAX, 8), 0);
    }

    #[test]
    fn what_keeps_no_pages_is_refused() {
        let error = PageObject::open(Path::new("/dev/null")).err().unwrap();
        assert!(
            error
                .to_string()
                .contains("block device, a file or the directory"),
            "{error}"
        );
        assert!(PageObject::open(Path::new("/nowhere")).is_err());
    }
}
