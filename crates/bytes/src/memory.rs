//! A drive's bytes in memory: pages that exist once they are written.

use crate::medium::{Durable, Medium, byte_of};
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, SECTOR_BYTES};
use std::io;
use std::ops::Range;
use std::sync::Arc;

const PAGE_BYTES: usize = 64 << 10;
/// Pages in a directory: 64 MiB of a drive.
const PAGES: usize = 1024;
const DIRECTORY_BYTES: usize = PAGES * PAGE_BYTES;

type Page = Box<[u8]>;
type Directory = Box<[Option<Page>]>;

/// Bytes in memory. A drive of 24 TB takes nothing until it is written, and at
/// most 3 MB beside the pages that are.
#[derive(Debug, Default)]
pub struct MemoryMedium {
    /// Up to the last that was ever written.
    directories: Vec<Option<Directory>>,
}

/// The part of one page that belongs to a run of bytes.
struct Part {
    directory: usize,
    page: usize,
    /// Within the page.
    within: Range<usize>,
    /// Within the run.
    run: Range<usize>,
}

/// Cuts `length` bytes from `start` at the borders of pages.
fn parts(start: u64, length: usize) -> impl Iterator<Item = Part> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = (start + done as u64) as usize;
        let (directory, within) = (at / DIRECTORY_BYTES, at % PAGE_BYTES);
        let bytes = (PAGE_BYTES - within).min(length - done);
        let part = Part {
            directory,
            page: at % DIRECTORY_BYTES / PAGE_BYTES,
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
    fn page(&self, part: &Part) -> Option<&Page> {
        self.directories.get(part.directory)?.as_ref()?[part.page].as_ref()
    }

    fn directory_mut(&mut self, index: usize) -> &mut Directory {
        if index >= self.directories.len() {
            self.directories.resize_with(index + 1, || None);
        }
        self.directories[index].get_or_insert_with(|| (0..PAGES).map(|_| None).collect())
    }

    fn page_mut(&mut self, part: &Part) -> &mut Page {
        self.directory_mut(part.directory)[part.page]
            .get_or_insert_with(|| vec![0; PAGE_BYTES].into_boxed_slice())
    }

    /// The page's place, if there is such a page.
    fn existing(&mut self, part: &Part) -> Option<&mut Option<Page>> {
        Some(&mut self.directories.get_mut(part.directory)?.as_mut()?[part.page])
    }

    fn has_page(&self, number: u64) -> bool {
        let (directory, page) = (number as usize / PAGES, number as usize % PAGES);
        self.directories.get(directory).and_then(Option::as_ref).is_some_and(|all| all[page].is_some())
    }

    /// The first page from `number` on, below `end`, that exists or does not,
    /// as asked; `end` if there is none.
    fn seek(&self, mut number: u64, end: u64, exists: bool) -> u64 {
        while number < end && self.has_page(number) != exists {
            let empty = self.directories.get(number as usize / PAGES).is_none_or(Option::is_none);
            // An absent directory is passed over as a whole.
            let next = if empty { (number / PAGES as u64 + 1) * PAGES as u64 } else { number + 1 };
            number = if number as usize / PAGES >= self.directories.len() { end } else { next };
        }
        number.min(end)
    }
}

impl Medium for MemoryMedium {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    #[inline]
    fn read(&self, lbn: Lbn, into: &mut [u8]) -> io::Result<()> {
        for part in parts(byte_of(lbn), into.len()) {
            match self.page(&part) {
                Some(page) => into[part.run].copy_from_slice(&page[part.within]),
                None => into[part.run].fill(0),
            }
        }
        Ok(())
    }

    #[inline]
    fn write(&mut self, lbn: Lbn, from: &[u8]) -> io::Result<()> {
        for part in parts(byte_of(lbn), from.len()) {
            let page = self.page_mut(&part);
            page[part.within].copy_from_slice(&from[part.run]);
        }
        Ok(())
    }

    fn zero(&mut self, extent: Extent, hole: bool) -> io::Result<()> {
        let (mut at, end) = (byte_of(extent.start), byte_of(extent.end()));
        while at < end {
            // Whole directories at once: a drive may be large.
            let directory = (at / DIRECTORY_BYTES as u64 + 1) * DIRECTORY_BYTES as u64;
            let stop = end.min(directory);
            if hole && stop - at == DIRECTORY_BYTES as u64 {
                if let Some(directory) = self.directories.get_mut((at / DIRECTORY_BYTES as u64) as usize) {
                    *directory = None;
                }
            } else {
                self.zero_parts(at, (stop - at) as usize, hole);
            }
            at = stop;
        }
        Ok(())
    }

    fn next_data(&self, extent: Extent) -> io::Result<Option<Extent>> {
        const SECTORS: u64 = PAGE_BYTES as u64 / SECTOR_BYTES;
        let (start, end) = (extent.start.0, extent.end().0);
        let pages_end = end.div_ceil(SECTORS);
        let first = self.seek(start / SECTORS, pages_end, true);
        if first == pages_end {
            return Ok(None);
        }
        let behind = self.seek(first, pages_end, false);
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
            if hole && part.within.len() == PAGE_BYTES {
                if let Some(page) = self.existing(&part) {
                    *page = None;
                }
            } else if !hole {
                self.page_mut(&part)[part.within].fill(0);
            } else if let Some(Some(page)) = self.existing(&part) {
                page[part.within].fill(0);
            }
        }
    }
}
