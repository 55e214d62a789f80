//! A device in memory. A granule exists once data other than zeros is written there.

use crate::Device;
use std::io;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Unit of allocation: a block of most file systems. A small write costs little more than its own
/// bytes.
const GRANULE_BYTES: usize = 4 << 10;
/// Granules in a page.
const GRANULES: usize = 16;
const PAGE_BYTES: usize = GRANULES * GRANULE_BYTES;
/// Pages in a directory: 64 MiB of a drive.
const PAGES: usize = 1024;
const DIRECTORY_BYTES: usize = PAGES * PAGE_BYTES;

type Granule = Box<[u8; GRANULE_BYTES]>;
type Page = Box<[Option<Granule>; GRANULES]>;
type Directory = Box<[Option<Page>]>;

/// A device in memory. A device of 24 TB takes no memory before the first write. Beside the
/// granules a device takes at most 3 MB, and 136 bytes for each 64 KiB with a granule.
#[derive(Debug, Default)]
pub struct MemoryDevice {
    bytes: u64,
    granules: RwLock<Granules>,
}

#[derive(Debug, Default)]
struct Granules {
    /// Directories up to the last one ever written.
    directories: Vec<Option<Directory>>,
}

/// True if all bytes are zeros.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    static ZEROS: [u8; 4 << 10] = [0; 4 << 10];
    bytes
        .chunks(ZEROS.len())
        .all(|chunk| *chunk == ZEROS[..chunk.len()])
}

/// Part of a run of bytes in one granule.
struct GranulePart {
    directory: usize,
    page: usize,
    granule: usize,
    /// Bytes within the granule.
    within: Range<usize>,
    /// Bytes within the run.
    run: Range<usize>,
}

/// Cuts `length` bytes from `start` at the borders of granules.
fn parts(start: u64, length: usize) -> impl Iterator<Item = GranulePart> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = (start + done as u64) as usize;
        let (directory, within) = (at / DIRECTORY_BYTES, at % GRANULE_BYTES);
        let bytes = (GRANULE_BYTES - within).min(length - done);
        let part = GranulePart {
            directory,
            page: at % DIRECTORY_BYTES / PAGE_BYTES,
            granule: at % PAGE_BYTES / GRANULE_BYTES,
            within: within..within + bytes,
            run: done..done + bytes,
        };
        done += bytes;
        (bytes > 0).then_some(part)
    })
}

impl MemoryDevice {
    /// Makes a device of zeros.
    pub fn new(bytes: u64) -> MemoryDevice {
        MemoryDevice {
            bytes,
            granules: RwLock::default(),
        }
    }

    #[inline]
    fn seen(&self) -> RwLockReadGuard<'_, Granules> {
        self.granules.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn changed(&self) -> RwLockWriteGuard<'_, Granules> {
        self.granules
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Granules {
    #[inline]
    fn granule(&self, part: &GranulePart) -> Option<&Granule> {
        self.directories.get(part.directory)?.as_ref()?[part.page].as_ref()?[part.granule].as_ref()
    }

    fn directory_mut(&mut self, index: usize) -> &mut Directory {
        if index >= self.directories.len() {
            self.directories.resize_with(index + 1, || None);
        }
        self.directories[index].get_or_insert_with(|| (0..PAGES).map(|_| None).collect())
    }

    fn granule_mut(&mut self, part: &GranulePart) -> &mut Granule {
        let page =
            self.directory_mut(part.directory)[part.page].get_or_insert_with(Default::default);
        page[part.granule].get_or_insert_with(|| Box::new([0; GRANULE_BYTES]))
    }

    /// Returns the granule's entry, if its page exists.
    fn existing(&mut self, part: &GranulePart) -> Option<&mut Option<Granule>> {
        Some(
            &mut self.directories.get_mut(part.directory)?.as_mut()?[part.page].as_mut()?
                [part.granule],
        )
    }

    /// Returns `Ok` if the granule exists. Otherwise returns the number of granules from this one
    /// on that lack for the same reason.
    fn has_granule(&self, number: u64) -> Result<(), u64> {
        let (page, granule) = (number / GRANULES as u64, number % GRANULES as u64);
        let Some(directory) = self.directories.get(page as usize / PAGES) else {
            return Err(u64::MAX);
        };
        let within = page % PAGES as u64;
        let Some(directory) = directory else {
            return Err((PAGES as u64 - within) * GRANULES as u64 - granule);
        };
        let Some(page) = &directory[within as usize] else {
            return Err(GRANULES as u64 - granule);
        };
        if page[granule as usize].is_some() {
            Ok(())
        } else {
            Err(1)
        }
    }

    /// Returns the first granule from `number` on, below `end`, that exists, or that does not exist
    /// if `exists` is false; `end` if there is none.
    fn seek(&self, mut number: u64, end: u64, exists: bool) -> u64 {
        while number < end {
            match self.has_granule(number) {
                Ok(()) if exists => return number,
                Ok(()) => number += 1,
                Err(_) if !exists => return number,
                // `u64::MAX` stands for "no directory from here on", and the sum stays at the top.
                Err(absent) => number = number.saturating_add(absent),
            }
        }
        end
    }
}

impl Device for MemoryDevice {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let granules = self.seen();
        for part in parts(at, into.len()) {
            match granules.granule(&part) {
                Some(granule) => into[part.run].copy_from_slice(&granule[part.within]),
                None => into[part.run].fill(0),
            }
        }
        Ok(())
    }

    #[inline]
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let mut granules = self.changed();
        for part in parts(at, from.len()) {
            let from = &from[part.run.clone()];
            // A granule that does not exist reads as zeros already.
            if is_zero(from) && granules.granule(&part).is_none() {
                continue;
            }
            granules.granule_mut(&part)[part.within].copy_from_slice(from);
        }
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn zero(&self, at: u64, bytes: u64, hole: bool) -> io::Result<()> {
        let mut granules = self.changed();
        let (mut at, end) = (at, at + bytes);
        while at < end {
            // Whole directories are dropped at once, because a drive may be large.
            let directory = (at / DIRECTORY_BYTES as u64 + 1) * DIRECTORY_BYTES as u64;
            let stop = end.min(directory);
            let existing = granules
                .directories
                .get_mut((at / DIRECTORY_BYTES as u64) as usize);
            let existing = existing.filter(|directory| directory.is_some());
            if hole && stop - at == DIRECTORY_BYTES as u64 {
                existing.into_iter().for_each(|directory| *directory = None);
            } else if !hole || existing.is_some() {
                granules.zero_parts(at, (stop - at) as usize, hole);
            }
            at = stop;
        }
        Ok(())
    }

    fn trims(&self) -> bool {
        true
    }

    fn trim(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.zero(at, bytes, true)
    }

    fn next_data(&self, at: u64, bytes: u64) -> io::Result<Option<Range<u64>>> {
        const GRANULE: u64 = GRANULE_BYTES as u64;
        let end = at + bytes;
        let granules = self.seen();
        let granules_end = end.div_ceil(GRANULE);
        let first = granules.seek(at / GRANULE, granules_end, true);
        if first == granules_end {
            return Ok(None);
        }
        let behind = granules.seek(first, granules_end, false);
        Ok(Some((first * GRANULE).max(at)..(behind * GRANULE).min(end)))
    }

    fn clear(&self) -> io::Result<()> {
        self.changed().directories.clear();
        Ok(())
    }

    fn is_volatile(&self) -> bool {
        true
    }

    fn is_zero(&self) -> bool {
        self.seen().directories.iter().all(Option::is_none)
    }

    fn is_cached(&self) -> bool {
        true
    }
}

impl Granules {
    fn zero_parts(&mut self, start: u64, length: usize, hole: bool) {
        for part in parts(start, length) {
            if hole && part.within.len() == GRANULE_BYTES {
                if let Some(granule) = self.existing(&part) {
                    *granule = None;
                }
            } else if !hole {
                self.granule_mut(&part)[part.within].fill(0);
            } else if let Some(Some(granule)) = self.existing(&part) {
                granule[part.within].fill(0);
            }
        }
    }
}
