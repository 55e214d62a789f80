//! Filling a new drive: a healing resilver (`module/zfs/dsl_scan.c`, OpenZFS 2.1).
//!
//! A resilver walks the tree of blocks and sorts the blocks by their place, as far as memory allows.
//! Here the records follow in the order of the volume, which is the order of places for all records
//! that were not written again. Each record with a column on the new drive is read with its parity,
//! and the missing column is written.
//!
//! A sequential resilver (`vdev_rebuild.c`, OpenZFS 2.1) knows no blocks. Its units are runs of the
//! vdev's used space, 1 MiB on each drive. The missing column goes to a new drive or to a distributed
//! spare.

use crate::io::{Block, Cause, Purpose};
use crate::keys::ResilverKind;
use crate::place::Dva;
use crate::pool::Pool;
use crate::queue::Class;
use crate::vdev::Vdev;
use fullstroke_contract::{Effects, LayerOrder, Refusal, RequestStatus, Signal};
use fullstroke_units::{Sectors, Time};

/// Bytes of reads in flight for each drive of a vdev: `zfs_scan_vdev_limit` (2.2; 4 MiB before).
const IN_FLIGHT: u64 = 16 << 20;

/// The same of a sequential resilver: `zfs_rebuild_vdev_limit` (2.2; 32 MiB before).
const SEQUENTIAL_IN_FLIGHT: u64 = 64 << 20;

/// Bytes of a drive in a unit of a sequential resilver: `zfs_rebuild_max_segment`.
const SEGMENT: u64 = 1 << 20;

/// Largest unit of a sequential resilver: `SPA_MAXBLOCKSIZE`.
const UNIT_MAX: u64 = 16 << 20;

/// Number of reports of progress over a whole resilver.
const REPORTS: u64 = 10_000;

/// The progress of a resilver.
#[derive(Debug, Default)]
pub(crate) struct Resilver {
    /// The drive that is filled.
    pub(crate) member: Option<usize>,
    /// True from the first read on.
    started: bool,
    /// The next unit, and the number of units in flight.
    next: u64,
    in_flight: u64,
    /// Units whose data was lost on the way.
    pub(crate) lost: u64,
    /// Part of the drive that was reported as filled, in [`REPORTS`] parts.
    reported: u64,
    /// Units read and to be written, by the order of their reads.
    read: std::collections::VecDeque<u64>,
}

impl Resilver {
    /// True for a resilver that has read nothing.
    pub(crate) fn waits_for_start(&self) -> bool {
        self.member.is_some() && !self.started
    }
}

impl Pool {
    /// Returns the pool with an empty drive in the place of `member`, which is filled from the start
    /// of the run, from the sector `from` of the drive on.
    #[must_use]
    pub fn resilvering(mut self, member: usize, from: Sectors) -> Pool {
        self.io.set(member, false, true);
        let used = self.settings.member_used(member).0.max(1);
        let (units, _) = self.units();
        let next = (u128::from(units) * u128::from(from.0.min(used)) / u128::from(used)) as u64;
        self.resilver = Resilver {
            member: Some(member),
            next,
            reported: (u128::from(next) * u128::from(REPORTS) / u128::from(units)) as u64,
            ..Resilver::default()
        };
        self
    }

    /// Carries out an operator's order.
    pub(crate) fn carry_out(&mut self, order: LayerOrder) -> Result<(), Refusal> {
        let members = self.settings.members.len() - self.settings.logs;
        let known = |member: usize| {
            let message = || format!("there is no data drive {member}; the pool has {members}");
            (member < members)
                .then_some(())
                .ok_or_else(|| Refusal(message()))
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

    /// Returns the number of units of a resilver, and the bytes of data in each.
    fn units(&self) -> (u64, u64) {
        let settings = &self.settings;
        let records = settings.volsize / settings.record;
        let (vdev, _) = &settings.vdevs[0];
        match (settings.resilver, vdev) {
            (ResilverKind::Sequential | ResilverKind::Spare, Vdev::Draid(draid)) => {
                let row = draid.data() << settings.ashift;
                let size = (SEGMENT * draid.data()).min(UNIT_MAX) / row * row;
                let on_vdev = records.div_ceil(settings.vdevs.len() as u64);
                let used = on_vdev * vdev.asize(settings.psize);
                (used.div_ceil(vdev.asize(size)), size)
            }
            _ => (records, settings.psize),
        }
    }

    /// Returns the place of a unit of the resilver of `member`.
    fn unit(&self, member: usize, unit: u64) -> (Dva, u64, bool) {
        let (_, size) = self.units();
        let index = member / self.settings.width();
        match self.settings.resilver {
            ResilverKind::Healing => self.place_of(unit),
            _ => {
                let asize = self.settings.vdevs[index].0.asize(size);
                let place = Dva {
                    vdev: index as u32,
                    offset: unit * asize,
                };
                (place, size, false)
            }
        }
    }

    /// Reads further blocks of the resilver, as many as may be in flight.
    pub(crate) fn resilver_step(&mut self, now: Time, out: &mut Effects) {
        let Some(member) = self.resilver.member else {
            return;
        };
        self.resilver.started = true;
        while let Some(unit) = self.resilver.read.pop_front() {
            let place = self.unit(member, unit);
            if self.io.repair(now, place) {
                self.resilver.in_flight += 1;
            }
        }
        let width = self.settings.width() as u64;
        let (units, size) = self.units();
        let limit = match self.settings.resilver {
            ResilverKind::Healing => IN_FLIGHT,
            _ => SEQUENTIAL_IN_FLIGHT,
        };
        let most = (limit * width / size).max(1);
        while self.resilver.next < units && self.resilver.in_flight < most {
            let unit = self.resilver.next;
            self.resilver.next += 1;
            let place = self.unit(member, unit);
            if self.io.needs_repair(place) {
                self.resilver.in_flight += 1;
                let purpose = Purpose::Resilver { unit };
                let cause = Cause::background();
                self.io.read(now, place, Class::Scrub, purpose, cause);
            }
        }
        let whole = self.resilver.next == units && self.resilver.in_flight == 0;
        if whole {
            self.io.set(member, false, false);
            self.resilver.member = None;
        }
        self.report(member, whole, out);
    }

    /// Reports the progress to the layers above.
    fn report(&mut self, member: usize, whole: bool, out: &mut Effects) {
        let (units, _) = self.units();
        let done = self.resilver.next.saturating_sub(self.resilver.in_flight);
        let part = (u128::from(done) * u128::from(REPORTS) / u128::from(units)) as u64;
        if part <= self.resilver.reported && !whole {
            return;
        }
        self.resilver.reported = part;
        let used = self.settings.member_used(member);
        let filled = (u128::from(used.0) * u128::from(done) / u128::from(units)) as u64;
        out.signal(Signal::Rebuilt {
            member: member as u32,
            done: if whole {
                used
            } else {
                Sectors(filled.min(used.0 - 1))
            },
            used,
            whole,
        });
    }

    /// A block of the resilver was read or written.
    pub(crate) fn resilver_ended(&mut self, block: &Block) {
        self.resilver.in_flight = self.resilver.in_flight.saturating_sub(1);
        if block.status != RequestStatus::Done {
            self.resilver.lost += 1;
        } else if let Purpose::Resilver { unit } = block.purpose {
            self.resilver.read.push_back(unit);
        }
    }
}
