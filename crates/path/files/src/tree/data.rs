//! Writes, truncation, and placement of delayed pages.

use super::FileTree;
use crate::format::{DiskFormat, Inode, WriteEnd};
use crate::system::{ObjectKind, PAGE_BYTES};
use crate::{Caller, FileError, MetaAccesses};
use fullstroke_contract::Object;
use std::ops::Range;

/// For each 256 delayed pages, one page more is kept free for the metadata that will record the
/// places, and at least 16 pages in total. (`ext4_da_reserve_space` and `xfs_bmap_worst_indlen`
/// compute this number for each file.)
const PAGES_A_METADATA_PAGE: u64 = 256;
const METADATA_MIN: u64 = 16;

/// Returns the first page from `page` on without a place and without a promise of one.
fn first_new<X>(inode: &Inode<X>, page: u64) -> u64 {
    let mut at = page;
    loop {
        let piece = inode
            .map
            .pieces()
            .get(inode.map.index_from(at))
            .filter(|piece| piece.page <= at);
        match (inode.delayed.run_at(at), piece) {
            (Some(run), _) => at = run.end,
            (None, Some(piece)) => at = piece.end(),
            (None, None) => return at,
        }
    }
}

impl<F: DiskFormat> FileTree<F> {
    pub(super) fn write_bytes(
        &mut self,
        caller: Caller,
        file: Object,
        offset: u64,
        length: u64,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let limit = self.format.page_limit();
        let (_, inode) = self.file(file)?;
        inode.open = true;
        if length == 0 {
            return Ok(());
        }
        let end = offset.saturating_add(length);
        let pages = offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
        if pages.end > limit {
            return Err(FileError::TooLarge {
                pages: pages.end,
                limit,
            });
        }
        if self.format.delays() {
            self.promise(file, pages)?;
        } else {
            self.place_now(caller, file, pages, touches)?;
        }
        let (_, inode) = self.file(file)?;
        inode.bytes = inode.bytes.max(end);
        // A write always changes the times in the inode (`file_update_time`).
        self.change_inode(file, touches);
        Ok(())
    }

    /// Promises room for pages whose place is chosen later.
    fn promise(&mut self, file: Object, pages: Range<u64>) -> Result<(), FileError> {
        let free = self.format.free_pages();
        let promised = self.promised;
        let (format, inode) = self.file(file)?;
        let mut new = inode.map.gaps(pages.clone());
        let needed: u64 = new.iter().map(|gap| gap.end - gap.start).sum();
        // Delayed pages count only once.
        let known: u64 = new
            .iter()
            .flat_map(|gap| {
                let within = inode
                    .delayed
                    .iter_from(gap.start)
                    .take_while(move |run| run.start < gap.end);
                within.map(|run| run.end.min(gap.end) - run.start)
            })
            .sum();
        assert!(
            known <= needed,
            "{known} of {needed} pages are promised already"
        );
        let more = needed - known;
        let all = promised + more;
        if more > 0 && all + all / PAGES_A_METADATA_PAGE + METADATA_MIN > free {
            return Err(self.no_space(more));
        }
        let before = inode.delayed.total();
        let first = first_new(inode, pages.start);
        for gap in new.drain(..) {
            inode.delayed.insert(gap);
        }
        // Only a write that needs new pages preallocates pages behind it.
        let ahead = if more > 0 {
            format.ahead(inode, &(first..pages.end))
        } else {
            0..0
        };
        // Preallocation is only a guess, so no page is preallocated when space is scarce.
        if all + 2 * (ahead.end - ahead.start) + METADATA_MIN < free - free / PAGES_A_METADATA_PAGE
        {
            inode
                .map
                .gaps(ahead)
                .into_iter()
                .for_each(|gap| inode.delayed.insert(gap));
        }
        let promised = inode.delayed.total() - before;
        self.promised += promised;
        Ok(())
    }

    fn place_now(
        &mut self,
        caller: Caller,
        file: Object,
        pages: Range<u64>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let (format, inode) = self.file(file)?;
        format.walk(inode, pages.clone(), touches);
        let gaps = inode.map.gaps(pages);
        let needed: u64 = gaps.iter().map(|gap| gap.end - gap.start).sum();
        let free = format.free_pages();
        let (own, end) = (format.set_aside(file.0, inode), inode.pages());
        if needed > free + own {
            return Err(FileError::NoSpace { needed, free });
        }
        for gap in gaps {
            if let Err(error) = format.place(caller, file.0, inode, gap, touches) {
                // Pages placed behind the end of the file are freed (`vmtruncate` in
                // `block_write_begin`).
                format.release(file.0, inode, end, touches);
                return Err(error);
            }
        }
        self.order(file, needed);
        Ok(())
    }

    fn order(&mut self, file: Object, placed: u64) {
        if placed > 0
            && self.format.ordered()
            && let Some(journal) = &mut self.journal
        {
            journal.order(file);
        }
    }

    /// Gives places to the delayed pages in `pages`.
    pub(super) fn settle(
        &mut self,
        caller: Caller,
        file: Object,
        pages: Range<u64>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let mut at = pages.start;
        loop {
            let (format, inode) = self.parts(file)?;
            let Some(run) = inode
                .delayed
                .iter_from(at)
                .next()
                .filter(|run| run.start < pages.end)
            else {
                return Ok(());
            };
            // The whole run and not only its part from `at` on, because XFS gives all of it a place
            // at once.
            let run = inode.delayed.run_at(run.start).unwrap_or(run);
            let asked = run.start.max(at)..run.end.min(pages.end);
            let batch = format.batch(run, asked.clone());
            at = asked.end;
            let before = inode.map.pages();
            let placed = format.place(caller, file.0, inode, batch.clone(), touches);
            let delayed = inode.delayed.total();
            if format.write_end() != WriteEnd::Nothing {
                inode.unwritten.insert(batch.clone());
            }
            match &placed {
                Ok(()) => inode.delayed.remove(batch),
                // Pages placed before the error keep their places; the other pages stay promised.
                Err(_) => {
                    let gaps = inode.map.gaps(batch.clone());
                    inode.delayed.remove(batch);
                    for gap in gaps {
                        inode.unwritten.remove(gap.clone());
                        inode.delayed.insert(gap);
                    }
                }
            }
            assert!(
                inode.delayed.total() <= delayed,
                "placing pages has delayed others: {} of {delayed}",
                inode.delayed.total()
            );
            let kept = delayed - inode.delayed.total();
            let given = inode.map.pages().saturating_sub(before);
            assert!(
                kept <= self.promised,
                "{kept} pages have got their places, of {} promised",
                self.promised
            );
            self.promised -= kept;
            self.change_inode(file, touches);
            self.order(file, given);
            placed?;
        }
    }

    /// Notes that the data of `pages` is on the device. Returns true if that changes metadata:
    /// unwritten extents become written, or the length in the inode grows.
    pub(super) fn end_write(&mut self, file: Object, pages: Range<u64>) -> bool {
        let end = self.format.write_end();
        let Ok((_, inode)) = self.file(file) else {
            return false;
        };
        if end == WriteEnd::Nothing {
            return false;
        }
        let converts = inode.unwritten.first_in(pages.clone()).is_some();
        let bytes = inode.bytes.min(pages.end.saturating_mul(PAGE_BYTES));
        let grows = end == WriteEnd::ExtentsAndLength && bytes > inode.bytes_on_device;
        inode.unwritten.remove(pages);
        inode.bytes_on_device = inode.bytes_on_device.max(bytes);
        converts || grows
    }

    pub(super) fn set_length(
        &mut self,
        file: Object,
        bytes: u64,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let limit = self.format.page_limit();
        let pages = bytes.div_ceil(PAGE_BYTES);
        let (_, inode) = self.file(file)?;
        debug_assert_eq!(inode.kind, ObjectKind::File);
        if pages > limit {
            return Err(FileError::TooLarge { pages, limit });
        }
        inode.bytes_on_device = bytes;
        if bytes < inode.bytes {
            inode.unwritten.remove(pages..u64::MAX);
            let delayed = inode.delayed.total();
            inode.delayed.remove(pages..u64::MAX);
            let given_up = delayed - inode.delayed.total();
            let (format, inode) = self.file(file)?;
            format.walk(inode, pages..inode.map.end().max(pages), touches);
            format.release(file.0, inode, pages, touches);
            assert!(
                given_up <= self.promised,
                "{given_up} pages are given up, of {} promised",
                self.promised
            );
            self.promised -= given_up;
        }
        self.file(file)?.1.bytes = bytes;
        self.change_inode(file, touches);
        Ok(())
    }
}
