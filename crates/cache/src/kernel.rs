//! The kernel's own page cache of a device, a file or a file system, made to do what
//! storage asks for.
//!
//! How much is dirty of a range of a file or device `cachestat` says (since Linux 6.5);
//! `sync_file_range` begins to write it. Of a file system neither can be asked, for its
//! dirty pages are those of its files: all of it is written, by `syncfs`.

use fullstroke_live::Said;
use fullstroke_units::SECTOR_BYTES;
use rustix::fs::{Advice, fadvise, syncfs};
use std::fs::File;
use std::io;
use std::num::NonZero;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Pages are written from runs of this many bytes or less, if there are too many dirty
/// ones in longer runs.
const RUN_LEAST: u64 = 64 << 10;

/// Its number, which libc does not have for every architecture: since 2019 they are the
/// same for all (but Alpha).
const SYS_CACHESTAT: libc::c_long = 451;

/// What the kernel keeps pages of.
pub(crate) enum Kept {
    /// A device or a file of so many bytes.
    Device(File, u64),
    /// The file system that this directory is of.
    FileSystem(File),
}

/// What has come of a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Bytes of which the writing has begun; `None` where the kernel does not say.
    pub(crate) written: Option<u64>,
    /// Bytes that it was told to fetch.
    pub(crate) fetched: u64,
}

impl Kept {
    /// What `path` is.
    pub(crate) fn open(path: &Path) -> io::Result<Kept> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Ok(Kept::FileSystem(file));
        }
        if !metadata.is_file() && !metadata.file_type().is_block_device() {
            let what = "expected a block device, a file or the directory of a file system";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let bytes = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))?;
        let kept = Kept::Device(file, bytes);
        kept.dirty(0, bytes)?;
        Ok(kept)
    }

    /// How much is dirty; `None` where the kernel does not say.
    pub(crate) fn dirty_bytes(&self) -> io::Result<Option<u64>> {
        match self {
            Kept::Device(_, bytes) => self.dirty(0, *bytes).map(Some),
            Kept::FileSystem(_) => Ok(None),
        }
    }

    /// Does what was said.
    pub(crate) fn heed(&self, said: Said) -> io::Result<Done> {
        match (said, self) {
            (Said::Pull { .. }, Kept::FileSystem(directory)) => {
                syncfs(directory)?;
                Ok(Done::default())
            }
            (Said::Pull { start: None, sectors }, Kept::Device(_, bytes)) => {
                self.written(0, *bytes, sectors * SECTOR_BYTES)
            }
            (Said::Pull { start: Some(start), sectors }, Kept::Device(_, bytes)) => {
                let begin = start.saturating_mul(SECTOR_BYTES).min(*bytes);
                let end = begin.saturating_add(sectors.saturating_mul(SECTOR_BYTES)).min(*bytes);
                self.written(begin, end, u64::MAX)
            }
            (Said::Push { start, sectors }, Kept::Device(file, bytes)) => {
                let begin = start.saturating_mul(SECTOR_BYTES).min(*bytes);
                let length = sectors.saturating_mul(SECTOR_BYTES).min(*bytes - begin);
                if let Some(length) = NonZero::new(length) {
                    fadvise(file, begin, Some(length), Advice::WillNeed)?;
                }
                Ok(Done { written: Some(0), fetched: length })
            }
            // Of which of its files it is nobody says.
            (Said::Push { .. }, Kept::FileSystem(_)) => Ok(Done { written: Some(0), fetched: 0 }),
        }
    }

    fn written(&self, begin: u64, end: u64, most: u64) -> io::Result<Done> {
        let left = self.write_back(begin, end, most)?;
        Ok(Done { written: Some(most - left), fetched: 0 })
    }

    /// Begins to write what is dirty from `begin` to `end`, the lowest first, until `left`
    /// of it is written or a run more; says how much of `left` is left then.
    fn write_back(&self, begin: u64, end: u64, left: u64) -> io::Result<u64> {
        let dirty = if left == 0 || begin >= end { 0 } else { self.dirty(begin, end)? };
        if dirty == 0 {
            return Ok(left);
        }
        if dirty <= left || end - begin <= RUN_LEAST {
            self.begin_writing(begin, end)?;
            return Ok(left.saturating_sub(dirty));
        }
        let middle = begin + (end - begin) / 2 / RUN_LEAST * RUN_LEAST;
        let middle = if middle == begin { begin + RUN_LEAST } else { middle };
        let left = self.write_back(begin, middle, left)?;
        self.write_back(middle, end, left)
    }

    /// Bytes that are dirty from `begin` to `end`.
    fn dirty(&self, begin: u64, end: u64) -> io::Result<u64> {
        let Kept::Device(file, _) = self else { return Ok(0) };
        let range = CachestatRange { offset: begin, length: end - begin };
        let mut found = Cachestat::default();
        cachestat(file, &range, &mut found)?;
        Ok(found.dirty * rustix::param::page_size() as u64)
    }

    #[expect(unsafe_code, reason = "rustix has no sync_file_range")]
    fn begin_writing(&self, begin: u64, end: u64) -> io::Result<()> {
        let Kept::Device(file, _) = self else { return Ok(()) };
        let (begin, length) = (begin as libc::off64_t, (end - begin) as libc::off64_t);
        // SAFETY: no memory is passed, and the file is open.
        match unsafe { libc::sync_file_range(file.as_raw_fd(), begin, length, libc::SYNC_FILE_RANGE_WRITE) } {
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

#[expect(unsafe_code, reason = "neither rustix nor libc has cachestat; the kernel takes addresses")]
fn cachestat(file: &File, range: &CachestatRange, found: &mut Cachestat) -> io::Result<()> {
    // SAFETY: the call reads a `cachestat_range` and writes a `cachestat`, which these are,
    // and which are borrowed until it returns.
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

    /// A file of 64 MiB of which 4 MiB are dirty, here and there; `None` where its file
    /// system writes nothing back, or the kernel does not say what is dirty.
    fn dirtied() -> Option<(tempfile::NamedTempFile, Kept)> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 20).unwrap();
        file.as_file().sync_all().unwrap();
        for piece in 0..64_u64 {
            file.seek(SeekFrom::Start(piece << 20)).unwrap();
            file.write_all(&[1; 64 << 10]).unwrap();
        }
        file.flush().unwrap();
        let kept = match Kept::open(file.path()) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return None,
            kept => kept.unwrap(),
        };
        kept.begin_writing(0, 64 << 10).unwrap();
        // On a file system in memory nothing is ever written.
        (kept.dirty(0, 64 << 10).unwrap() == 0).then_some((file, kept))
    }

    #[test]
    fn as_much_is_written_as_is_asked_for() {
        let Some((_file, kept)) = dirtied() else {
            eprintln!("skipped: no cachestat here, or files in memory");
            return;
        };
        let before = kept.dirty_bytes().unwrap().unwrap();
        let asked = (1 << 20) / SECTOR_BYTES;
        let done = kept.heed(Said::Pull { start: None, sectors: asked }).unwrap();
        let after = kept.dirty_bytes().unwrap().unwrap();
        assert_eq!(done, Done { written: Some(1 << 20), fetched: 0 });
        assert!(before - after >= 1 << 20, "{before} to {after}");
        // Of the last megabyte only.
        let start = Some((63 << 20) / SECTOR_BYTES);
        let done = kept.heed(Said::Pull { start, sectors: u64::MAX / SECTOR_BYTES }).unwrap();
        assert_eq!(done.written, Some(64 << 10));
        let done = kept.heed(Said::Pull { start: None, sectors: 1 << 40 >> 9 }).unwrap();
        assert!(done.written.unwrap() <= after, "{done:?} of {after}");
        assert_eq!(kept.dirty_bytes().unwrap(), Some(0));
    }

    #[test]
    fn what_is_offered_is_fetched_as_far_as_there_is_any() {
        let Some((_file, kept)) = dirtied() else { return };
        let push = |start, sectors| kept.heed(Said::Push { start, sectors }).unwrap().fetched;
        assert_eq!(push(0, 8), 4096);
        assert_eq!(push((64 << 20) / SECTOR_BYTES - 1, 8), 512);
        assert_eq!(push(u64::MAX, 8), 0);
    }

    #[test]
    fn what_keeps_no_pages_is_refused() {
        let error = Kept::open(Path::new("/dev/null")).err().unwrap();
        assert!(error.to_string().contains("block device, a file or the directory"), "{error}");
        assert!(Kept::open(Path::new("/nowhere")).is_err());
    }
}
