//! fsync, sync and O_DIRECT: write dirty pages and wait for them.

use super::PageCache;
use super::pending::{OperationKind, PendingOperation, Wait};
use crate::cache_parts::Bounds;
use crate::out::{CacheOut, IoReason, OperationAnswer, Ticket};
use crate::pages::flag;
use crate::run::PageRun;
use fullstroke_contract::Object;
use fullstroke_units::Time;

impl PageCache {
    /// Writes the dirty pages of an object and waits until they are on the device. These are all
    /// pages dirty at the call, and perhaps more (`filemap_write_and_wait`).
    pub fn fsync(
        &mut self,
        now: Time,
        object: Object,
        ticket: Ticket,
        out: &mut CacheOut,
    ) -> OperationAnswer {
        self.begin(
            now,
            PendingOperation::new(
                ticket,
                OperationKind::Sync,
                PageRun::new(object, 0, u64::MAX),
            ),
            out,
        )
    }

    /// Writes the dirty pages of all objects in the order of their numbers, and waits.
    pub fn sync(&mut self, now: Time, ticket: Ticket, out: &mut CacheOut) -> OperationAnswer {
        self.begin(
            now,
            PendingOperation::new(
                ticket,
                OperationKind::SyncAll,
                PageRun::new(Object(0), 0, u64::MAX),
            ),
            out,
        )
    }

    /// Prepares O_DIRECT, which reads or writes the device beside the cache. First writes the dirty
    /// pages of the run. For a write, then drops the run (`generic_file_direct_write`). After the
    /// write the caller must call [`invalidate`](PageCache::invalidate), because pages read during
    /// the write may hold old data.
    pub fn direct(
        &mut self,
        now: Time,
        run: PageRun,
        write: bool,
        ticket: Ticket,
        out: &mut CacheOut,
    ) -> OperationAnswer {
        self.begin(
            now,
            PendingOperation::new(ticket, OperationKind::Direct { drop: write }, run),
            out,
        )
    }

    pub(super) fn go_on_syncing(
        &mut self,
        now: Time,
        sync: &mut PendingOperation,
        out: &mut CacheOut,
    ) -> bool {
        if !sync.settling {
            if !self.write_all(now, sync, out) {
                return false;
            }
            (sync.settling, sync.next) = (true, sync.first);
            if sync.kind == OperationKind::SyncAll {
                sync.object = Object(0);
            }
        }
        if !self.wait_for_all(sync) {
            return false;
        }
        if sync.kind == (OperationKind::Direct { drop: true }) {
            self.invalidate(sync.run());
        }
        true
    }

    /// `write_cache_pages` for integrity: writes upwards. A page that is under write-back and dirty
    /// again is waited for and written once more.
    fn write_all(&mut self, now: Time, sync: &mut PendingOperation, out: &mut CacheOut) -> bool {
        loop {
            let Some(slot) = self.pages.dirty_from(sync.object, sync.next) else {
                if self.next_object(sync) {
                    continue;
                }
                return true;
            };
            let stretch = *self.pages.get(slot);
            if stretch.first >= sync.end {
                return true;
            }
            let page = stretch.first.max(sync.next);
            // A page under write-back that is dirty again waits for the end of its I/O first
            // (`write_cache_pages` with WB_SYNC_ALL).
            if stretch.is(flag::WRITING) {
                sync.wait = Wait::Written(page);
                return false;
            }
            if self.device.full() {
                sync.wait = Wait::Room;
                return false;
            }
            let run = PageRun::new(sync.object, page, stretch.end().min(sync.end) - page);
            let ticket = Some(sync.ticket);
            let request = self.device.request_pages();
            let (mut parts, write_back) = self.parts(now, out);
            let run = parts.extended(run, sync.end.min(page.saturating_add(request)));
            let wrote = parts.write_for(
                run,
                Bounds {
                    most: request,
                    nonblocking: false,
                    why: IoReason::Sync,
                },
                ticket,
            );
            if write_back.fsync_cleans() {
                parts.settle(sync.object);
            }
            sync.next = page + wrote.pages;
        }
    }

    /// Moves a sync of all objects to the next object with dirty pages.
    fn next_object(&self, sync: &mut PendingOperation) -> bool {
        if sync.kind != OperationKind::SyncAll {
            return false;
        }
        let Some(after) = sync.object.0.checked_add(1) else {
            return false;
        };
        match self.pages.dirty_object_from(Object(after)) {
            Some(object) => {
                (sync.object, sync.next) = (object, 0);
                true
            }
            None => false,
        }
    }

    /// Waits for each page under write-back, upwards: `filemap_fdatawait`.
    fn wait_for_all(&mut self, sync: &mut PendingOperation) -> bool {
        loop {
            if let Some(slot) = self.pages.writing_from(sync.object, sync.next)
                && self.pages.get(slot).first < sync.end
            {
                let page = self.pages.get(slot).first.max(sync.next);
                (sync.next, sync.wait) = (page, Wait::Written(page));
                return false;
            }
            let after = sync
                .object
                .0
                .checked_add(1)
                .filter(|_| sync.kind == OperationKind::SyncAll);
            match after.and_then(|after| self.pages.writing_object_from(Object(after))) {
                Some(object) => (sync.object, sync.next) = (object, 0),
                None => return true,
            }
        }
    }
}
