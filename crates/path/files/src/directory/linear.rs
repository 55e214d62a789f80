//! ext2's directories: consecutive entries, searched by a scan.

use super::{Directory, EntryLocation, PAGE, PageTouch};

/// Bytes of the entries `.` and `..`.
pub(super) const DOTS: u32 = 24;

/// Returns the bytes of an entry: inode, lengths, type and name, rounded up to a multiple of 4
/// (`EXT2_DIR_REC_LEN`).
pub(super) fn entry_bytes(name: &str) -> u32 {
    (8 + name.len() as u32 + 3) & !3
}

impl Directory {
    /// Reads pages from the page of the last hit, around the end, until the entry is found. Reads
    /// all pages if the entry does not exist (`ext2_find_entry`).
    pub(super) fn scan(&mut self, found: Option<EntryLocation>, touched: &mut Vec<PageTouch>) {
        let count = self.used.len() as u32;
        for step in 0..count {
            let page = (self.start + step) % count;
            touched.push(PageTouch::Read(u64::from(page)));
            if found.is_some_and(|slot| slot.page == page) {
                self.start = page;
                return;
            }
        }
    }

    pub(super) fn linear_growth(&self, name: &str) -> Vec<u64> {
        if self.with_room(name).is_some() {
            Vec::new()
        } else {
            vec![self.used.len() as u64]
        }
    }

    /// Inserts the entry into the first page with room (`ext2_add_link`). Returns the page.
    pub(super) fn linear_insert(&mut self, name: &str, touched: &mut Vec<PageTouch>) -> u32 {
        let page = self.with_room(name).unwrap_or(self.used.len());
        if page == self.used.len() {
            self.used.push(0);
            touched.push(PageTouch::Fresh(page as u64));
        } else {
            touched.push(PageTouch::Change(page as u64));
        }
        self.used[page] += entry_bytes(name);
        page as u32
    }

    fn with_room(&self, name: &str) -> Option<usize> {
        let needed = entry_bytes(name);
        self.used.iter().position(|used| used + needed <= PAGE)
    }
}
