//! The steps of a stripe through the journal.

use crate::md::core::{Core, EventContext, Flying, MemberPage};
use crate::md::plug::{NONE, PluggedIo};
use crate::md::records::SUPERBLOCK;
use crate::md::stripes::{page, state};
use fullstroke_contract::{Effects, Extent, Hints, Operation, Request, RequestId};

impl Core {
    /// Adds the new pages of a stripe to the journal (`r5l_write_stripe`). Without room the stripe
    /// waits for a checkpoint.
    pub(in crate::md) fn add_to_journal(&mut self, at: u32) {
        let pages = self.stripes.pages_of(at).iter();
        let written = pages.filter(|page| page.is(page::WANT_WRITE)).count() as u64;
        let parities = self.map.parities;
        let Some(journal) = self.journal() else {
            return;
        };
        if journal.add(at, written.saturating_sub(parities), parities) {
            self.stripes.set(at, state::LOGGED);
        }
    }

    /// Sends the unit of a batch of stripes through the plug (`r5l_submit_current_io`). The block
    /// layer divides the unit into requests of the device.
    pub(in crate::md) fn send_unit(&mut self) {
        let (largest, port) = (self.largest, self.stripes.members as u32);
        loop {
            let Some(journal) = self.journal() else {
                return;
            };
            let Some((number, places)) = journal.next_to_send() else {
                return;
            };
            for (mut start, mut left) in places {
                while left > 0 {
                    let sectors = left.min(largest);
                    if let Some(unit) = self.journal().and_then(|all| all.unit_mut(number)) {
                        unit.writes += 1;
                    }
                    let part = self.parts.keep(MemberPage {
                        stripe: number,
                        next: NONE,
                    });
                    self.plug_io(PluggedIo {
                        member: port,
                        operation: Operation::Write,
                        start,
                        sectors,
                        parts: (part, part),
                        origin: Request::BACKGROUND,
                        hints: Hints::default(),
                    });
                    (start, left) = (start + sectors, left - sectors);
                }
            }
        }
    }

    /// Sends the flush behind the units on the device, and the I/O of a checkpoint
    /// (`r5l_flush_stripe_to_raid`, `r5l_do_reclaim`).
    pub(in crate::md) fn flush_journal(&mut self, event: &mut EventContext<'_>) {
        let port = self.stripes.members;
        let Some(journal) = self.journal() else {
            return;
        };
        let ended = journal.on_device();
        if journal.volatile && journal.flushing == 0 && ended > 0 {
            journal.flushing = ended;
            let id = self.keep_io(Flying::JournalFlush);
            event.out.issue(port, own_request(id, Operation::Flush));
        }
        self.write_superblocks(event.out);
        self.begin_checkpoint(event);
    }

    /// Lets the stripes of the units go on that are on a device without a write cache
    /// (`r5l_log_run_stripes`).
    pub(in crate::md) fn release_durable(&mut self) {
        let Some(journal) = self.journal() else {
            return;
        };
        if !journal.volatile {
            let ended = journal.on_device();
            self.release_units(ended);
        }
    }

    /// Lets the stripes of the flushed units go on (`r5l_log_flush_endio`).
    pub(in crate::md) fn release_flushed(&mut self) {
        let flushed = self
            .journal()
            .map_or(0, |journal| std::mem::take(&mut journal.flushing));
        debug_assert!(flushed > 0, "a flush covers units");
        self.release_units(flushed);
    }

    fn release_units(&mut self, units: usize) {
        for _ in 0..units {
            let Some(journal) = self.journal() else {
                return;
            };
            let unit = &mut journal.units[journal.released];
            let mut stripes = std::mem::take(&mut unit.stripes);
            journal.released += 1;
            for at in stripes.drain(..) {
                self.stripes.set(at, state::HANDLE);
                self.release(at);
            }
        }
    }

    /// Flushes the members, for superblocks behind the flushes.
    fn begin_checkpoint(&mut self, event: &mut EventContext<'_>) {
        let port = self.stripes.members;
        let Some(journal) = self.journal() else {
            return;
        };
        if !journal.wants_checkpoint() {
            return;
        }
        journal.next_tail = journal.needed;
        for device in (0..=port).rev() {
            if device < port && event.states.has_failed(device) {
                continue;
            }
            if let Some(journal) = self.journal() {
                journal.checkpoint += 1;
            }
            let id = self.keep_io(Flying::Checkpoint(Operation::Flush));
            event.out.issue(device, own_request(id, Operation::Flush));
        }
    }

    fn write_superblocks(&mut self, out: &mut Effects) {
        while let Some(device) = self.journal().and_then(|journal| journal.flushed.pop()) {
            self.counts.member_io(Operation::Write);
            let id = self.keep_io(Flying::Checkpoint(Operation::Write));
            let mut write = own_request(id, Operation::Write);
            write.extent = SUPERBLOCK;
            write.hints.force_unit_access = true;
            out.issue(device, write);
        }
    }

    /// Takes note of the end of an I/O of a checkpoint. After the last one the finished units are
    /// free, and waiting stripes go on.
    pub(in crate::md) fn checkpoint_landed(&mut self, device: usize, operation: Operation) {
        let Some(journal) = self.journal() else {
            return;
        };
        if operation == Operation::Flush {
            return journal.flushed.push(device);
        }
        journal.checkpoint -= 1;
        if journal.checkpoint > 0 {
            return;
        }
        journal.tail = journal.next_tail;
        for _ in 0..journal.no_space.len() {
            let waiting = self
                .journal()
                .and_then(|journal| journal.no_space.pop_front());
            if let Some(at) = waiting {
                self.stripes.set(at, state::HANDLE);
                self.release(at);
            }
        }
    }
}

/// Returns a request of the journal itself.
fn own_request(id: RequestId, operation: Operation) -> Request {
    Request {
        id,
        origin: Request::BACKGROUND,
        operation,
        extent: Extent::default(),
        hints: Hints {
            synchronous: true,
            ..Hints::default()
        },
        ..Request::default()
    }
}
