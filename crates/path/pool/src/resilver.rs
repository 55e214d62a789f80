//! Scrubs, and filling a new drive.
//!
//! A scrub reads all records with their parity or copies. A **healing resilver**
//! (`module/zfs/dsl_scan.c`, OpenZFS 2.2) reads each record with a column on the new drive, and writes
//! the missing column. Both follow the order of `scan.rs`, and read the tree of pointers first
//! (`resilver/tree.rs`).
//!
//! A **sequential resilver** (`vdev_rebuild.c`) knows no blocks: `segments.rs`. The missing column
//! goes to a new drive or to a distributed spare.

mod tree;

use crate::classes::Class;
use crate::config::PoolSettings;
use crate::io::{Block, Cause, Purpose};
use crate::keys::ResilverKind;
use crate::place::Dva;
use crate::pool::Pool;
use crate::scan::ScanOrder;
use crate::segments::Segments;
use crate::txg::Scan;
use fullstroke_contract::{Effects, LayerOrder, Refusal, RequestStatus, Signal};
use fullstroke_units::{Duration, Sectors, Time};

/// Least time of a scrub in a transaction group: `zfs_scrub_min_time_ms` (2.2).
const SCRUB_MIN: Duration = Duration::from_millis(1000);

/// Least time of a resilver in a transaction group: `zfs_resilver_min_time_ms` (2.2).
const RESILVER_MIN: Duration = Duration::from_millis(3000);

/// Number of reports of progress over a whole resilver, if the resilver is quick.
const REPORTS: u64 = 10_000;

/// Longest time between reports of a resilver that goes on. Windows of a minute measure the pace of a
/// resilver that takes weeks.
const REPORT_AFTER: Duration = Duration::from_millis(100);

/// The progress of a resilver or scrub.
#[derive(Debug)]
pub(crate) struct Resilver {
    /// The drive that is filled; `None` for a scrub, and if nothing runs.
    pub(crate) member: Option<usize>,
    /// True for a scrub under way.
    pub(crate) scrubs: bool,
    /// True if the records fill a drive, also after the end.
    fills: bool,
    /// True from the first read on.
    started: bool,
    /// The first unit, the next unit, and the number of units in flight.
    first: u64,
    next: u64,
    in_flight: u64,
    /// Units below this have had their pointers read, and the number of blocks of pointers in flight.
    walked: u64,
    walking: u64,
    /// Units whose data was lost on the way.
    pub(crate) lost: u64,
    /// Part of the drive that was reported as filled, in [`REPORTS`] parts, and the time of the
    /// report.
    reported: (u64, Time),
    /// Units read and to be written, by the order of their reads.
    read: std::collections::VecDeque<u64>,
    /// Time of the last unit.
    last: Time,
    pub(crate) order: ScanOrder,
    /// Places and bytes of the pool's own objects, which the scan reads behind the records.
    objects: Vec<(Dva, u64)>,
    /// True if the kind of a resilver is healing.
    healing: bool,
}

impl Resilver {
    /// Returns a scrub that begins with the run, or nothing, by the keys of a pool.
    pub(crate) fn scrubbing(settings: &PoolSettings) -> Resilver {
        let scrub = Resilver::new(settings, None, 0);
        let first = (scrub.records() as f64 * settings.scan.scrub_from) as u64;
        Resilver {
            scrubs: settings.scan.scrub,
            first,
            next: first,
            walked: first.next_multiple_of(tree::STEP),
            ..scrub
        }
    }

    fn new(settings: &PoolSettings, member: Option<usize>, first: u64) -> Resilver {
        Resilver {
            member,
            scrubs: false,
            fills: member.is_some(),
            started: false,
            first,
            next: first,
            in_flight: 0,
            walked: first.next_multiple_of(tree::STEP),
            walking: 0,
            lost: 0,
            reported: (0, Time::ZERO),
            read: std::collections::VecDeque::new(),
            last: Time::ZERO,
            order: ScanOrder::new(settings),
            objects: Vec::new(),
            healing: settings.resilver == ResilverKind::Healing,
        }
    }

    /// Returns the number of records that a scrub or healing resilver reads.
    pub(crate) fn records(&self) -> u64 {
        self.order.units()
    }

    /// True for a scrub or resilver that has read nothing.
    pub(crate) fn waits_for_start(&self) -> bool {
        (self.member.is_some() || self.scrubs) && !self.started
    }

    /// Returns the scan that runs.
    pub(crate) fn scan(&self) -> Scan {
        match self.turn() {
            _ if !self.started => Scan::None,
            Some(_) => Scan::InTurns,
            None if self.member.is_some() => Scan::Sequential,
            None => Scan::None,
        }
    }

    /// Returns the least time of a turn in each transaction group, for a scrub or a healing
    /// resilver. A sequential resilver has a thread of its own, and no turns.
    pub(crate) fn turn(&self) -> Option<Duration> {
        match self.member {
            Some(_) if self.healing => Some(RESILVER_MIN),
            None if self.scrubs => Some(SCRUB_MIN),
            _ => None,
        }
    }

    /// Returns true while I/O of the scan is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight > 0 || self.walking > 0 || !self.read.is_empty()
    }

    /// Returns the number of records that a scrub has read in this run, and the time of the last.
    pub(crate) fn scrubbed(&self) -> Option<(u64, Time)> {
        let read = self.next.min(self.records()) - self.first;
        let read = read.saturating_sub(self.in_flight);
        (!self.fills && self.started).then_some((read, self.last))
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
            reported: (parts_of(next, units), Time::ZERO),
            ..Resilver::new(&self.settings, Some(member), next)
        };
        self
    }

    /// Carries out an operator's order.
    pub(crate) fn carry_out(&mut self, order: LayerOrder) -> Result<(), Refusal> {
        let members = self.settings.data_drives();
        let known = |member: usize| {
            let message = || format!("there is no data drive {member}; the pool has {members}");
            (member < members)
                .then_some(())
                .ok_or_else(|| Refusal(message()))
        };
        match order {
            LayerOrder::Fail { member } => {
                known(member)?;
                // A drive that fails during its resilver ends the resilver.
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
                // A resilver ends a scrub (`dsl_scan_setup_check`, `vdev_rebuild_thread`).
                if let Some(other) = self.resilver.member {
                    return Err(Refusal(format!("drive {other} is being resilvered")));
                }
                self.io.set(member, false, true);
                self.resilver = Resilver::new(&self.settings, Some(member), 0);
                Ok(())
            }
            LayerOrder::ReAdd { member } => {
                known(member)?;
                self.io.set(member, false, false);
                Ok(())
            }
            LayerOrder::Speed(_) => Ok(()),
            LayerOrder::Slow { .. } => Err(Refusal("a pool is not slow; its drives may be".into())),
            LayerOrder::Rest => {
                self.resilver.member = None;
                self.resilver.scrubs = false;
                Ok(())
            }
        }
    }

    /// Returns the number of units of a scan, and the bytes of data in each.
    fn units(&self) -> (u64, u64) {
        match Segments::of(&self.settings).filter(|_| !self.resilver.scrubs) {
            Some(segments) => (segments.count, segments.size),
            None => {
                let objects = self.resilver.objects.len() as u64;
                (self.resilver.records() + objects, self.settings.psize)
            }
        }
    }

    /// Returns the place of a unit of the scan.
    fn unit(&mut self, unit: u64) -> (Dva, u64, bool) {
        let segments = Segments::of(&self.settings);
        match self.resilver.member.zip(segments) {
            Some((member, segments)) => {
                let vdev = (member / self.settings.width()) as u32;
                let (place, size) = segments.place(vdev, unit);
                (place, size, false)
            }
            None => match unit.checked_sub(self.resilver.records()) {
                Some(number) => {
                    let (place, psize) = self.resilver.objects[number as usize];
                    (place, psize, false)
                }
                None => {
                    let record = self.resilver.order.record(unit);
                    self.place_of(record)
                }
            },
        }
    }

    /// Returns the number of units that may be in flight.
    pub(crate) fn units_in_flight(&self, size: u64) -> u64 {
        let settings = &self.settings;
        let (vdevs, width) = (settings.vdevs.len() as u64, settings.width() as u64);
        // `scan_io_queues_run_one`: the limit counts data drives, and a mirror as one.
        let of_scan = settings.scan.scan_limit.0 * settings.vdevs[0].0.data_drives();
        let bytes = match (self.resilver.scrubs, settings.resilver) {
            (true, _) => of_scan * vdevs,
            (false, ResilverKind::Healing) => of_scan,
            // `vdev_rebuild_thread`: at most half of the ARC for all vdevs.
            _ => (settings.rebuild_limit * width).min((settings.memory.arc.0 / 2 / vdevs).max(1)),
        };
        // ZFS waits while the bytes in flight are at the limit or above.
        bytes.max(1 << 20).div_ceil(size)
    }

    /// Reads further units of the scan, as many as may be in flight.
    pub(crate) fn resilver_step(&mut self, now: Time, out: &mut Effects) {
        if self.resilver.member.is_none() && !self.resilver.scrubs {
            return;
        }
        let sequential = !self.resilver.scrubs && self.settings.resilver != ResilverKind::Healing;
        if !self.resilver.started && !sequential {
            self.resilver.objects = self.objects_at_rest();
        }
        self.resilver.started = true;
        let (reads, writes) = match sequential {
            true => (Class::Rebuild, Class::Rebuild),
            false => (Class::Scrub, Class::AsyncWrite),
        };
        while let Some(unit) = self.resilver.read.pop_front() {
            let place = self.unit(unit);
            if self.io.repair(now, place, writes) {
                self.resilver.in_flight += 1;
            }
        }
        let (units, size) = self.units();
        let most = match sequential || self.txg.scan_may_issue() {
            true => self.units_in_flight(size),
            false => 0,
        };
        while self.resilver.next < units && self.resilver.in_flight < most {
            if !sequential && self.walks(now) {
                break;
            }
            let unit = self.resilver.next;
            self.resilver.next += 1;
            let place = self.unit(unit);
            let purpose = match self.resilver.scrubs {
                true => Purpose::Scrub,
                false if self.io.needs_repair(place) => Purpose::Resilver { unit },
                false => continue,
            };
            self.resilver.in_flight += 1;
            self.io
                .read(now, place, reads, purpose, Cause::background());
        }
        self.resilver.last = now;
        let whole = self.resilver.next == units && !self.resilver.is_busy();
        let member = self.resilver.member;
        if whole {
            self.resilver.member = None;
            self.resilver.scrubs = false;
        }
        if let Some(member) = member {
            if whole {
                self.io.set(member, false, false);
            }
            self.report(now, member, whole, units, out);
        }
    }

    /// Reports the progress to the layers above.
    fn report(&mut self, now: Time, member: usize, whole: bool, units: u64, out: &mut Effects) {
        let done = self.resilver.next.saturating_sub(self.resilver.in_flight);
        let part = parts_of(done, units);
        let (reported, at) = self.resilver.reported;
        if part <= reported && now.since(at) < REPORT_AFTER && !whole {
            // A signal for each record would cost more than the resilver itself.
            return;
        }
        self.resilver.reported = (part, now);
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

    /// A unit of the scan was read or written.
    pub(crate) fn resilver_ended(&mut self, block: &Block) {
        let counter = match block.purpose {
            Purpose::Walk => &mut self.resilver.walking,
            _ => &mut self.resilver.in_flight,
        };
        *counter = counter.saturating_sub(1);
        if block.status != RequestStatus::Done {
            self.resilver.lost += 1;
        } else if let Purpose::Resilver { unit } = block.purpose {
            self.resilver.read.push_back(unit);
        }
    }
}

/// Returns the part `done` of `units`, in [`REPORTS`] parts.
fn parts_of(done: u64, units: u64) -> u64 {
    (u128::from(done) * u128::from(REPORTS) / u128::from(units)) as u64
}
