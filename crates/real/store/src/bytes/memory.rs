//! A drive's bytes in memory: granules that exist once something other than zeros
//! is written there.

use crate::bytes::medium::{Durable, Medium, byte_of, is_zero};
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, SECTOR_BYTES};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// What is kept or not as a whole: a block of most file systems, so that a small
/// write costs little more than itself.
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

/// Bytes in memory. A drive of 24 TB takes nothing until it is written, and at
/// most 3 MB beside the granules that are and 136 bytes for each 64 KiB with one.
#[derive(Debug, Default)]
pub struct MemoryMedium {
    /// Up to the last that was ever written.
    directories: Vec<Option<Directory>>,
}

/// The part of one granule that belongs to a run of bytes.
struct Part {
    directory: usize,
    page: usize,
    granule: usize,
    /// Within the granule.
    within: Range<usize>,
    /// Within the run.
    run: Range<usize>,
}

/// Cuts `length` bytes from `start` at the borders of granules.
fn parts(start: u64, length: usize) -> impl Iterator<Item = Part> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = (start + done as u64) as usize;
        let (directory, within) = (at / DIRECTORY_BYTES, at % GRANULE_BYTES);
        let bytes = (GRANULE_BYTES - within).min(length - done);
        let part = Part {
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

impl MemoryMedium {
    /// Nothing written.
    pub fn new() -> MemoryMedium {
        MemoryMedium::default()
    }

    #[inline]
    fn granule(&self, part: &Part) -> Option<&Granule> {
        self.directories.get(part.directory)?.as_ref()?[part.page].as_ref()?[part.granule].as_ref()
    }

    fn directory_mut(&mut self, index: usize) -> &mut Directory {
        if index >= self.directories.len() {
            self.directories.resize_with(index + 1, || None);
        }
        self.directories[index].get_or_insert_with(|| (0..PAGES).map(|_| None).collect())
    }

    fn granule_mut(&mut self, part: &Part) -> &mut Granule {
        let page =
            self.directory_mut(part.directory)[part.page].get_or_insert_with(Default::default);
        page[part.granule].get_or_insert_with(|| Box::new([0; GRANULE_BYTES]))
    }

    /// The granule's place, if there is such a page.
    fn existing(&mut self, part: &Part) -> Option<&mut Option<Granule>> {
        Some(
            &mut self.directories.get_mut(part.directory)?.as_mut()?[part.page].as_mut()?
                [part.granule],
        )
    }

    /// Whether the granule exists, and if not, how many from it on do not for the
    /// same reason.
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

    /// The first granule from `number` on, below `end`, that exists or does not,
    /// as asked; `end` if there is none.
    fn seek(&self, mut number: u64, end: u64, exists: bool) -> u64 {
        while number < end {
            match self.has_granule(number) {
                Ok(()) if exists => return number,
                Ok(()) => number += 1,
                Err(_) if !exists => return number,
                Err(absent) => number = number.saturating_add(absent),
            }
        }
        end
    }
}

impl Medium for MemoryMedium {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    #[inline]
    fn read(&self, lbn: Lbn, into: &mut [u8]) -> io::Result<()> {
        for part in parts(byte_of(lbn), into.len()) {
            match self.granule(&part) {
                Some(granule) => into[part.run].copy_from_slice(&granule[part.within]),
                None => into[part.run].fill(0),
            }
        }
        Ok(())
    }

    #[inline]
    fn write(&mut self, lbn: Lbn, from: &[u8]) -> io::Result<()> {
        for part in parts(byte_of(lbn), from.len()) {
            let from = &from[part.run.clone()];
            // Zeros where nothing is are there already.
            if is_zero(from) && self.granule(&part).is_none() {
                continue;
            }
            self.granule_mut(&part)[part.within].copy_from_slice(from);
        }
        Ok(())
    }

    fn zero(&mut self, extent: Extent, hole: bool) -> io::Result<()> {
        let (mut at, end) = (byte_of(extent.start), byte_of(extent.end()));
        while at < end {
            // Whole directories at once: a drive may be large.
            let directory = (at / DIRECTORY_BYTES as u64 + 1) * DIRECTORY_BYTES as u64;
            let stop = end.min(directory);
            let existing = self
                .directories
                .get_mut((at / DIRECTORY_BYTES as u64) as usize);
            let existing = existing.filter(|directory| directory.is_some());
            if hole && stop - at == DIRECTORY_BYTES as u64 {
                existing.into_iter().for_each(|directory| *directory = None);
            } else if !hole || existing.is_some() {
                self.zero_parts(at, (stop - at) as usize, hole);
            }
            at = stop;
        }
        Ok(())
    }

    fn next_data(&self, extent: Extent) -> io::Result<Option<Extent>> {
        const SECTORS: u64 = GRANULE_BYTES as u64 / SECTOR_BYTES;
        let (start, end) = (extent.start.0, extent.end().0);
        let granules_end = end.div_ceil(SECTORS);
        let first = self.seek(start / SECTORS, granules_end, true);
        if first == granules_end {
            return Ok(None);
        }
        let behind = self.seek(first, granules_end, false);
        let (from, to) = ((first * SECTORS).max(start), (behind * SECTORS).min(end));
        Ok(Some(Extent::new(from, to - from)))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.directories.clear();
        Ok(())
    }

    fn files(&self) -> Vec<Arc<dyn Durable>> {
        Vec::new()
    }
}

impl MemoryMedium {
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
