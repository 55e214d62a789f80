//! The data of pages, sector by sector.

use fullstroke_memory::PAGE_BYTES;
use std::collections::BTreeMap;

/// Size of a sector in bytes: the smallest write of a client.
pub(crate) const SECTOR: u64 = 512;

struct CachePage {
    data: Box<[u8; PAGE_BYTES as usize]>,
    /// One bit for each known sector.
    known: u8,
}

impl CachePage {
    fn new() -> CachePage {
        CachePage {
            data: Box::new([0; PAGE_BYTES as usize]),
            known: 0,
        }
    }
}

/// Pages by their number.
#[derive(Default)]
pub(crate) struct CachePages(BTreeMap<u64, CachePage>);

/// A stretch of bytes within one page.
struct PageStretch {
    page: u64,
    /// Offset from the beginning of the page.
    from: usize,
    to: usize,
}

impl PageStretch {
    /// Returns the sectors of the part, as bits.
    fn sectors(&self) -> u8 {
        let sector = SECTOR as usize;
        (self.from / sector..self.to.div_ceil(sector)).fold(0, |bits, sector| bits | 1 << sector)
    }
}

/// The parts of `bytes` from `offset` on, page by page.
fn parts(offset: u64, bytes: u64) -> impl Iterator<Item = PageStretch> {
    let end = offset + bytes;
    (offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES)).map(move |page| {
        let first = page * PAGE_BYTES;
        let (from, to) = (
            offset.max(first) - first,
            end.min(first + PAGE_BYTES) - first,
        );
        PageStretch {
            page,
            from: from as usize,
            to: to as usize,
        }
    })
}

impl CachePages {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Stores whole sectors, which are newer than the present content.
    pub(crate) fn put(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        for part in parts(offset, data.len() as u64) {
            // Taken piece by piece along with the parts, because a request may begin and end within
            // pages.
            let (piece, behind) = rest.split_at(part.to - part.from);
            rest = behind;
            let page = self.0.entry(part.page).or_insert_with(CachePage::new);
            page.data[part.from..part.to].copy_from_slice(piece);
            page.known |= part.sectors();
        }
    }

    /// Stores whole sectors read from below. Known sectors stay, because the stored data are newer.
    pub(crate) fn fill(&mut self, offset: u64, data: &[u8]) {
        for (index, sector) in data.chunks(SECTOR as usize).enumerate() {
            let at = offset + index as u64 * SECTOR;
            let page = self.0.entry(at / PAGE_BYTES).or_insert_with(CachePage::new);
            let (from, bit) = ((at % PAGE_BYTES) as usize, 1 << (at % PAGE_BYTES / SECTOR));
            // A client may have written the sector while the read was in flight.
            if page.known & bit == 0 {
                page.data[from..from + sector.len()].copy_from_slice(sector);
                page.known |= bit;
            }
        }
    }

    /// Copies a range into `into`. Returns false if some of its sectors are unknown.
    pub(crate) fn copy(&self, offset: u64, into: &mut [u8]) -> bool {
        let mut rest = into;
        for part in parts(offset, rest.len() as u64) {
            let (piece, behind) = rest.split_at_mut(part.to - part.from);
            rest = behind;
            match self.0.get(&part.page) {
                Some(page) if page.known & part.sectors() == part.sectors() => {
                    piece.copy_from_slice(&page.data[part.from..part.to]);
                }
                _ => return false,
            }
        }
        true
    }

    /// Returns the known data of a range, in stretches as long as possible.
    pub(crate) fn known(&self, offset: u64, bytes: u64) -> Vec<(u64, Vec<u8>)> {
        let mut stretches: Vec<(u64, Vec<u8>)> = Vec::new();
        for at in (offset..offset + bytes).step_by(SECTOR as usize) {
            let Some(page) = self.0.get(&(at / PAGE_BYTES)) else {
                continue;
            };
            if page.known & 1 << (at % PAGE_BYTES / SECTOR) == 0 {
                continue;
            }
            let from = (at % PAGE_BYTES) as usize;
            let sector = &page.data[from..from + SECTOR as usize];
            match stretches.last_mut() {
                Some((start, data)) if *start + data.len() as u64 == at => {
                    data.extend_from_slice(sector)
                }
                _ => stretches.push((at, sector.to_vec())),
            }
        }
        stretches
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        self.0.retain(|&page, _| keep(page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_newer_than_what_lies_below() {
        let mut pages = CachePages::default();
        pages.put(4096 + 512, &[1; 1024]);
        let mut whole = [9; 4096];
        assert!(!pages.copy(4096, &mut whole));
        assert_eq!(pages.known(0, 8192), [(4608, vec![1; 1024])]);
        pages.fill(4096, &[2; 4096]);
        assert!(pages.copy(4096, &mut whole));
        assert_eq!(
            (whole[511], whole[512], whole[1535], whole[1536]),
            (2, 1, 1, 2)
        );
        assert_eq!(pages.known(0, 8192), [(4096, whole.to_vec())]);
        pages.retain(|page| page == 0);
        assert_eq!(pages.len(), 0);
    }
}
