//! Requests for the I/O of the page cache. The file system gives the places of the pages.

use crate::kernel::{PAGE_SECTORS, PendingPurpose, VfsKernel};
use crate::task::{Task, ThreadOwner};
use fullstroke_contract::{
    Effects, Extent, Hints, Object, Operation, Request, RequestId, RequestStatus,
};
use fullstroke_files::{PageMapping, PagePlace};
use fullstroke_memory::{IoReason, PageIo, PageRun, WindowCuts};
use fullstroke_programs::CallKind;
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors, Time};

impl VfsKernel {
    /// Begins I/O for the cache. Metadata pages have a fixed place. The place of file pages is
    /// looked up first. The look-up may need metadata from the device.
    pub fn begin_io(&mut self, now: Time, io: PageIo, write: bool, out: &mut Effects) {
        if io.run.object == Object::DEVICE {
            self.issue_io(&io, io.run, io.run.first * PAGE_SECTORS, write, out);
            return;
        }
        let thread = self.threads.add(ThreadOwner::Cache);
        // Reads of metadata for this I/O are charged to the call that needs the pages.
        if !write && let Some(ticket) = io.ticket {
            self.threads[thread].kind = self.threads[ticket.0 as u32].kind;
        }
        let asks = io.ticket.map_or(thread, |ticket| ticket.0 as u32);
        let caller = self.caller(now, asks);
        let pages = io.run.first..io.run.end();
        let mapped = &mut self.threads[thread].mapped;
        let touches = &mut self.answers.touches;
        let found = match write {
            true => self
                .fs
                .write_back(caller, io.run.object, pages, mapped, touches),
            false => self
                .fs
                .read_map(caller, io.run.object, pages, mapped, touches),
        };
        self.follow_touches(thread);
        match found {
            Ok(()) => self.threads[thread]
                .tasks
                .push_back(Task::Transfer(io, write)),
            // The file system is full, or the file has been removed meanwhile.
            Err(_) => {
                let gone = self.fs.attributes(io.run.object).is_err();
                let status = if gone {
                    RequestStatus::Done
                } else {
                    RequestStatus::Lost
                };
                self.end_io(now, &io, io.run, write, status);
            }
        }
        self.threads.make_ready(thread);
    }

    /// Returns the ends of read-ahead windows from `page` of a file on. A window ends with the page
    /// at the end of a track, or where the file continues in another place. A page with sectors of
    /// two tracks is read with the second track.
    pub fn cuts(&self, object: Object, page: u64) -> WindowCuts {
        let Some(tracks) = &self.tracks else {
            return WindowCuts::NONE;
        };
        let next = |page: u64| {
            let PageMapping { pages, place, .. } = self.fs.piece_at(object, page)?;
            let PagePlace::Device(start) = place else {
                return None;
            };
            let boundary = tracks.boundary_from(start + Sectors(PAGE_SECTORS))?;
            let whole = (boundary.0 - start.0) / PAGE_SECTORS;
            Some(page + whole.clamp(1, pages))
        };
        WindowCuts::of(std::iter::successors(next(page), |&page| next(page)))
    }

    /// Handles PULL: storage asks for dirty data. Without addresses, any dirty sectors are written,
    /// in the order of write-back. With addresses, the places of all dirty pages are looked up, and
    /// the pages with these addresses are written. Pages without a place count only for a PULL
    /// without addresses. Returns the number of sectors whose writes have begun.
    pub fn pull(&mut self, now: Time, extent: Option<Extent>, sectors: Sectors) -> Sectors {
        let Some(wanted) = extent else {
            let pages =
                self.cache
                    .pull_any(now, sectors.0.div_ceil(PAGE_SECTORS), self.todo.list());
            return Sectors(pages * PAGE_SECTORS);
        };
        let mut begun = 0;
        for run in self.cache.dirty_runs() {
            let mut page = run.first;
            while page < run.end() {
                let (pages, start) = self.place_of(run, page);
                // A page without a place is on none of the wanted sectors.
                let start = start.map_or(u64::MAX, |start| start.0);
                // The pages of the piece with at least one requested sector.
                let before = wanted.start.0.saturating_sub(start) / PAGE_SECTORS;
                let behind = wanted
                    .end()
                    .0
                    .saturating_sub(start)
                    .div_ceil(PAGE_SECTORS)
                    .min(pages);
                if before < behind {
                    let pulled = PageRun::new(run.object, page + before, behind - before);
                    begun += self.cache.pull(now, pulled, self.todo.list());
                }
                page += pages;
            }
        }
        Sectors(begun * PAGE_SECTORS)
    }

    /// Returns the number of consecutive pages on the device in a run from `page` on, and their
    /// place, if any.
    fn place_of(&self, run: PageRun, page: u64) -> (u64, Option<Lbn>) {
        let left = run.end() - page;
        if run.object == Object::DEVICE {
            return (left, Some(Lbn(page * PAGE_SECTORS)));
        }
        match self.fs.piece_at(run.object, page) {
            Some(PageMapping {
                pages,
                place: PagePlace::Device(start),
                ..
            }) => (pages.clamp(1, left), Some(start)),
            Some(piece) => (piece.pages.clamp(1, left), None),
            None => (1, None),
        }
    }

    /// Issues the requests for an I/O of the cache, piece by piece.
    pub fn transfer(&mut self, now: Time, thread: u32, io: PageIo, write: bool, out: &mut Effects) {
        let mapped = std::mem::take(&mut self.threads[thread].mapped);
        let mut at = io.run.first;
        for piece in &mapped {
            let (from, to) = (
                piece.page.max(at),
                (piece.page + piece.pages).min(io.run.end()),
            );
            debug_assert!(
                piece.page + piece.pages > io.run.first && piece.pages > 0,
                "{piece:?} has nothing of {:?}",
                io.run
            );
            if from >= to {
                continue;
            }
            self.end_unplaced(now, &io, at..from, write);
            match piece.place {
                PagePlace::Device(start) => {
                    let start = start.0 + (from - piece.page) * PAGE_SECTORS;
                    self.issue_pieces(&io, from..to, start, write, out);
                }
                PagePlace::Delayed | PagePlace::Hole => {
                    self.end_unplaced(now, &io, from..to, write)
                }
            }
            at = to;
        }
        self.end_unplaced(now, &io, at..io.run.end(), write);
        self.threads[thread].mapped = mapped;
        self.threads[thread].mapped.clear();
    }

    /// Ends the I/O for pages without a place on the device. Such pages are zeros.
    fn end_unplaced(&mut self, now: Time, io: &PageIo, pages: std::ops::Range<u64>, write: bool) {
        if !pages.is_empty() {
            let run = PageRun::new(io.run.object, pages.start, pages.end - pages.start);
            self.end_io(now, io, run, write, RequestStatus::Done);
        }
    }

    fn end_io(&mut self, now: Time, io: &PageIo, run: PageRun, write: bool, status: RequestStatus) {
        match write {
            true => self
                .cache
                .written(now, io.id, run, status, self.todo.list()),
            false => self
                .cache
                .read_done(now, io.id, run, status, self.todo.list()),
        }
    }

    /// Issues the requests for consecutive pages on the device. A write is split into the clusters
    /// of the file system.
    fn issue_pieces(
        &mut self,
        io: &PageIo,
        pages: std::ops::Range<u64>,
        start: u64,
        write: bool,
        out: &mut Effects,
    ) {
        let mut at = pages.start;
        while at < pages.end {
            let end = match write {
                true => self
                    .fs
                    .cluster(io.run.object, at)
                    .map_or(at + 1, |cluster| cluster.end),
                false => pages.end,
            };
            let end = end.clamp(at + 1, pages.end);
            let run = PageRun::new(io.run.object, at, end - at);
            self.issue_io(
                io,
                run,
                start + (at - pages.start) * PAGE_SECTORS,
                write,
                out,
            );
            at = end;
        }
    }

    fn issue_io(&mut self, io: &PageIo, run: PageRun, start: u64, write: bool, out: &mut Effects) {
        assert!(
            start < self.capacity.0 && run.pages > 0,
            "{run:?} lies at sector {start}, behind the {} of the device",
            self.capacity
        );
        // The last page may extend beyond the end of the device.
        let sectors = (run.pages * PAGE_SECTORS).min(self.capacity.0.saturating_sub(start));
        let asks = io.ticket.map(|ticket| ticket.0 as u32);
        let mut hints =
            asks.map_or_else(|| self.hints_without_process(), |thread| self.hints(thread));
        let origin = asks.map_or(Request::BACKGROUND, |thread| self.origin(thread));
        // Write-back has no process. Its requests count for the workload that last wrote the file.
        if let Some(&workload) = self.writers.get(&run.object).filter(|_| asks.is_none()) {
            hints.workload = workload;
        }
        // REQ_SYNC marks requests that somebody waits for (`wbc_to_write_flags` of
        // `include/linux/writeback.h`).
        hints.synchronous = matches!(io.why, IoReason::Read | IoReason::Fill | IoReason::Sync);
        hints.pulled = io.why == IoReason::Pull;
        let of_metadata = run.object == Object::DEVICE && self.fs.root() != Object::DEVICE;
        let kind = asks.map_or(CallKind::Read, |thread| self.threads[thread].kind);
        match (of_metadata, write) {
            (true, true) => self.accounts.write_metadata(run.first, run.pages),
            (true, false) => self.accounts.read_metadata(kind),
            (false, true) => self.accounts.write_data(),
            (false, false) => self.accounts.read_data(kind),
        }
        let operation = if write {
            Operation::Write
        } else {
            Operation::Read
        };
        self.issue(
            PendingPurpose::Cache {
                io: io.id,
                run,
                write,
            },
            operation,
            Extent::new(start, sectors),
            (hints, origin),
            out,
        );
    }

    /// Issues a request of a thread.
    pub fn issue_own(
        &mut self,
        thread: u32,
        operation: Operation,
        extent: Extent,
        hints: Hints,
        out: &mut Effects,
    ) {
        self.threads[thread].outstanding += 1;
        if operation == Operation::Flush {
            self.accounts.flush();
        }
        let origin = self.origin(thread);
        self.issue(
            PendingPurpose::Thread(thread),
            operation,
            extent,
            (hints, origin),
            out,
        );
    }

    fn issue(
        &mut self,
        flight: PendingPurpose,
        operation: Operation,
        extent: Extent,
        (hints, origin): (Hints, u64),
        out: &mut Effects,
    ) {
        debug_assert!(
            extent.sectors > Sectors::ZERO || operation.is_of_all(),
            "{operation:?} of nothing is issued for {flight:?}"
        );
        let id = RequestId(u64::from(self.flights.keep(flight)));
        out.issue(
            0,
            Request {
                id,
                origin,
                operation,
                extent,
                hints,
                ..Request::default()
            },
        );
    }

    /// Adds the steps of a transfer without the cache.
    pub fn transfer_directly(
        &mut self,
        now: Time,
        thread: u32,
        object: Object,
        (offset, bytes): (u64, u64),
        write: bool,
    ) {
        let sectors = offset / SECTOR_BYTES..(offset + bytes).div_ceil(SECTOR_BYTES);
        let pages = sectors.start / PAGE_SECTORS..sectors.end.div_ceil(PAGE_SECTORS);
        let caller = self.caller(now, thread);
        let mut mapped = std::mem::take(&mut self.answers.mapped);
        mapped.clear();
        let found = match write {
            true => self.fs.write_back(
                caller,
                object,
                pages.clone(),
                &mut mapped,
                &mut self.answers.touches,
            ),
            false => self.fs.read_map(
                caller,
                object,
                pages.clone(),
                &mut mapped,
                &mut self.answers.touches,
            ),
        };
        // Reads of metadata and the requests must precede the remaining steps of the thread. Those
        // steps are appended at the end.
        let rest = std::mem::take(&mut self.threads[thread].tasks);
        self.follow_touches(thread);
        let operation = if write {
            Operation::Write
        } else {
            Operation::Read
        };
        for piece in &mapped {
            if let Some(extent) = part_of(piece, &sectors) {
                match write {
                    true => self.accounts.write_data(),
                    false => self.accounts.read_data(CallKind::Read),
                }
                self.threads[thread]
                    .tasks
                    .push_back(Task::Issue(operation, extent, false));
            }
        }
        if let Err(error) = found {
            self.threads[thread].result = Err(error.into());
        }
        self.threads[thread].tasks.push_back(Task::Settle);
        if write {
            let run = PageRun::new(object, pages.start, pages.end - pages.start);
            self.threads[thread].tasks.push_back(Task::Convert(run));
        }
        self.threads[thread].tasks.extend(rest);
        self.answers.mapped = mapped;
    }
}

/// Returns the part of a piece with any of the sectors, if the piece has a place.
fn part_of(piece: &PageMapping, sectors: &std::ops::Range<u64>) -> Option<Extent> {
    let PagePlace::Device(start) = piece.place else {
        return None;
    };
    let first = piece.page * PAGE_SECTORS;
    let from = sectors.start.max(first);
    let to = sectors.end.min(first + piece.pages * PAGE_SECTORS);
    (from < to).then(|| Extent::new(start.0 + (from - first), to - from))
}
