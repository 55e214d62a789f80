//! Filling a new drive: a healing resilver (`module/zfs/dsl_scan.c`, OpenZFS 2.1).
//!
//! A resilver walks the tree of blocks and sorts the blocks by their place, as far as memory allows.
//! Here the records follow in the order of the volume, which is the order of places for all records
//! that were not written again. Each record with a column on the new drive is read with its parity,
//! and the missing column is written.

use crate::io::{Block, Cause, Purpose};
use crate::pool::Pool;
use crate::queue::Class;
use fullstroke_contract::{Effects, LayerOrder, Refusal, RequestStatus, Signal};
use fullstroke_units::{Sectors, Time};

/// Bytes of reads in flight for each drive of a vdev: `zfs_scan_vdev_limit` (2.2; 4 MiB before).
const IN_FLIGHT: u64 = 16 << 20;

/// Number of reports of progress over a whole resilver.
const REPORTS: u64 = 10_000;

/// The progress of a resilver.
#[derive(Debug, Default)]
pub(crate) struct Resilver {
    /// The drive that is filled.
    pub(crate) member: Option<usize>,
    /// The next record, and the number of records in flight.
    next: u64,
    in_flight: u64,
    /// Records whose data was lost on the way.
    pub(crate) lost: u64,
    /// Part of the drive that was reported as filled, in [`REPORTS`] parts.
    reported: u64,
    /// Records read and to be written, by the order of their reads.
    read: std::collections::VecDeque<u64>,
}

impl Pool {
    /// Returns the pool with an empty drive in the place of `member`, which is filled from the start
    /// of the run.
    #[must_use]
    pub fn resilvering(mut self, member: usize) -> Pool {
        self.io.set(member, false, true);
        self.resilver.member = Some(member);
        self
    }

    /// Carries out an operator's order.
    pub(crate) fn carry_out(&mut self, order: LayerOrder) -> Result<(), Refusal> {
        let members = self.settings.members.len() - self.settings.logs;
        let known = |member: usize| {
            let message = || format!("there is no data drive {member}; the pool has {members}");
            (member < members).then_some(()).ok_or_else(|| Refusal(message()))
        };
        match order {
            LayerOrder::Fail { member } => {
                known(member)?;
                if self.resilver.member == Some(member) {
                    self.resilver.member = None;
                }
                self.io.set(member, true, false);
                Ok(())
            }
            LayerOrder::Restore { member, .. } => {
                known(member)?;
                if !self.io.has_failed(member) {
                    return Err(Refusal(format!("drive {member} has not failed")));
                }
                if let Some(other) = self.resilver.member {
                    return Err(Refusal(format!("drive {other} is being resilvered")));
                }
                self.io.set(member, false, true);
                self.resilver = Resilver {
                    member: Some(member),
                    ..Resilver::default()
                };
                Ok(())
            }
            LayerOrder::ReAdd { member } => {
                known(member)?;
                self.io.set(member, false, false);
                Ok(())
            }
            LayerOrder::Speed(_) => Ok(()),
            LayerOrder::Rest => {
                self.resilver.member = None;
                Ok(())
            }
        }
    }

    /// Reads further blocks of the resilver, as many as may be in flight.
    pub(crate) fn resilver_step(&mut self, now: Time, out: &mut Effects) {
        let Some(member) = self.resilver.member else {
            return;
        };
        while let Some(record) = self.resilver.read.pop_front() {
            let place = self.place_of(record);
            if self.io.repair(now, place) {
                self.resilver.in_flight += 1;
            }
        }
        let width = self.settings.width() as u64;
        let most = (IN_FLIGHT * width / self.settings.psize).max(1);
        let records = self.settings.volsize / self.settings.record;
        while self.resilver.next < records && self.resilver.in_flight < most {
            let record = self.resilver.next;
            self.resilver.next += 1;
            let place = self.place_of(record);
            if self.io.needs_repair(place) {
                self.resilver.in_flight += 1;
                let purpose = Purpose::Resilver { record };
                let cause = Cause::background();
                self.io.read(now, place, Class::Scrub, purpose, cause);
            }
        }
        let whole = self.resilver.next == records && self.resilver.in_flight == 0;
        if whole {
            self.io.set(member, false, false);
            self.resilver.member = None;
        }
        self.report(member, whole, out);
    }

    /// Reports the progress to the layers above.
    fn report(&mut self, member: usize, whole: bool, out: &mut Effects) {
        let records = self.settings.volsize / self.settings.record;
        let done = self.resilver.next.saturating_sub(self.resilver.in_flight);
        let part = (u128::from(done) * u128::from(REPORTS) / u128::from(records)) as u64;
        if part <= self.resilver.reported && !whole {
            return;
        }
        self.resilver.reported = part;
        let used = self.settings.member_used(member);
        let filled = (u128::from(used.0) * u128::from(done) / u128::from(records)) as u64;
        out.signal(Signal::Rebuilt {
            member: member as u32,
            done: if whole { used } else { Sectors(filled.min(used.0 - 1)) },
            used,
            whole,
        });
    }

    /// A block of the resilver was read or written.
    pub(crate) fn resilver_ended(&mut self, block: &Block) {
        self.resilver.in_flight = self.resilver.in_flight.saturating_sub(1);
        if block.status != RequestStatus::Done {
            self.resilver.lost += 1;
        } else if let Purpose::Resilver { record } = block.purpose {
            self.resilver.read.push_back(record);
        }
    }
}
