//! The rule by which a rebuild of md makes way for requests (`md_do_sync` and `is_mddev_idle`,
//! `drivers/md/md.c`, Linux 6.12).
//!
//! md sends a rebuild in windows of 128 KiB. After each window md looks if the members did other
//! I/O. The kernel counts the sectors of each disk when I/O ends, and subtracts the sectors of the
//! rebuild when their I/O begins. If this number has risen by more than 64 sectors on one member
//! since md last found I/O there, the rebuild waits until nothing of the rebuild is in flight. Few
//! small requests therefore hardly slow a rebuild.
//!
//! Linux 6.16 and later count the requests of the array instead, and wait only if more than a limit
//! is in flight (`sync_io_within_limit`).

use super::pressure::{PEACE, Pressure};
use crate::members::PAGE;
use fullstroke_units::{Duration, Sectors, Time};

/// Sectors of a rebuild between two looks for other I/O: `window` in `md_do_sync`, 32 pages.
pub const REBUILD_WINDOW: Sectors = Sectors(256);

/// Longest unit of a rebuild that found no requests.
const UNIT: u64 = 1024;

/// Time in which md hands over a block of 64 KiB: an estimate. Linux 6.12 needs 58,000 instructions
/// (`tools/kernel-lab.py --counted`), 15 µs at four instructions a nanosecond, so that this time is a
/// lower bound.
const BLOCK_TIME: Duration = Duration::from_nanos(5_000);

/// A tick of the kernel's clock at 250 Hz, as Debian and Ubuntu have it.
const JIFFY: Duration = Duration::from_nanos(4_000_000);

/// Sectors of other I/O on a member that a look takes for none (`is_mddev_idle`).
const UNNOTICED: i64 = 64;

/// The limits and the looks of a rebuild of an array like md.
#[derive(Debug)]
pub(super) struct Yielding {
    /// Sectors of one I/O of md: a page with parity, 64 KiB with copies.
    grain: u64,
    /// Largest number of sectors of each member in flight.
    most: u64,
    /// Sectors for which the array has memory.
    room: u64,
    /// Number of sectors in flight from which on a rebuild looks for requests, as in Linux 6.16 and
    /// later; `None` for the rule of Linux 6.12.
    limit: Option<u64>,
    members: Vec<MemberEvents>,
    /// Time of the latest look by the rule of Linux 6.16.
    looked: Time,
    /// Sectors since the latest look.
    since: u64,
    /// True if a look found I/O: the next unit begins when no unit is in flight.
    pub(super) waits: bool,
    /// True if the next unit ends with the next look: behind a wait, and when memory was short.
    is_careful: bool,
    /// Sectors of units that have begun, and that the array has not yet counted.
    begun: u64,
    /// True if requests and the rebuild take turns.
    takes_turns: bool,
    /// Time from which on the next unit may begin.
    pub(super) earliest: Time,
    /// Time from which on an array without requests counts as idle.
    pub(super) idle_from: Time,
}

/// I/O of a member.
#[derive(Clone, Copy, Debug, Default)]
struct MemberEvents {
    /// Sectors of I/O that has ended, less the sectors of the rebuild that have begun.
    events: i64,
    /// `events` when a look last found I/O.
    noted: i64,
}

impl Yielding {
    /// Returns the rule for an array of this number of members. At most `most` sectors of each member
    /// are in flight, in I/Os of `grain` sectors.
    pub(super) fn new(
        members: usize,
        grain: Sectors,
        most: Sectors,
        takes_turns: bool,
    ) -> Yielding {
        Yielding {
            grain: grain.0,
            most: most.0,
            room: most.0,
            limit: None,
            members: vec![MemberEvents::default(); members],
            looked: Time::ZERO,
            since: 0,
            waits: false,
            is_careful: false,
            begun: 0,
            takes_turns,
            earliest: Time::ZERO,
            idle_from: Time::ZERO,
        }
    }

    /// Sets the limit of Linux 6.16 and later, in I/Os.
    pub(super) fn set_limit(&mut self, depth: Option<u32>) {
        self.limit = depth.map(|depth| u64::from(depth) * self.grain);
    }

    /// Returns the pages that have begun since the last call.
    pub(super) fn take_begun(&mut self) -> u32 {
        u32::try_from(std::mem::take(&mut self.begun).div_ceil(PAGE)).unwrap_or(u32::MAX)
    }

    /// Sets the sectors for which the array has memory from `now` on. A rebuild that waited for memory
    /// takes more a jiffy later, so that requests come first (`raid5_sync_request`).
    pub(super) fn set_room(&mut self, now: Time, room: Sectors) {
        if self.room < self.grain && room.0 >= self.grain && !self.waits {
            self.earliest = now + JIFFY;
        }
        self.room = room.0;
    }

    /// Forgets the I/O so far, because a rebuild begins.
    pub(super) fn start(&mut self, now: Time) {
        for member in &mut self.members {
            member.noted = member.events;
        }
        (self.looked, self.since) = (now, 0);
        // A run begins with its rebuild, and the load arrives a moment later. The long units of an
        // idle array would hold up its first requests, although no array was idle before.
        self.idle_from = now + PEACE;
        self.proceed();
    }

    /// Lets the next unit follow without a look.
    fn proceed(&mut self) {
        (self.waits, self.is_careful) = (false, false);
    }

    /// Takes note of an I/O of the rebuild that begins.
    pub(super) fn begun(&mut self, member: usize, sectors: Sectors) {
        self.members[member].events -= sectors.0 as i64;
    }

    /// Takes note of an I/O that ends, of the rebuild or of a request.
    #[inline]
    pub(super) fn ended(&mut self, member: usize, sectors: Sectors) {
        self.members[member].events += sectors.0 as i64;
    }

    /// True if a unit may begin beside `in_flight` sectors.
    pub(super) fn may_begin(&self, in_flight: Sectors) -> bool {
        let waits = self.waits && in_flight > Sectors::ZERO;
        !waits && self.room_beside(in_flight) >= self.grain
    }

    fn room_beside(&self, in_flight: Sectors) -> u64 {
        self.room.min(self.most.saturating_sub(in_flight.0))
    }

    /// True if `in_flight` sectors lie within the limit of md, and are no long unit of an idle array.
    pub(super) fn holds(&self, in_flight: Sectors) -> bool {
        in_flight.0 <= self.most
    }

    /// Returns the length of the next unit while requests come. Behind a wait, a rebuild begins with
    /// one window, and looks. A rebuild that found no requests sends windows until `most` sectors are
    /// in flight; here they are few units, because each unit costs events.
    pub(super) fn unit_size(&self, in_flight: Sectors) -> Sectors {
        let room = self.room_beside(in_flight);
        let mut wanted = match self.is_careful || in_flight == Sectors::ZERO {
            true => REBUILD_WINDOW.0 - self.since,
            false => UNIT,
        };
        if self.takes_turns {
            // Growing units, because a request may arrive between any two blocks.
            wanted = wanted.min(in_flight.0.max(self.grain));
        }
        Sectors((room.min(wanted) / self.grain).max(1) * self.grain)
    }

    /// Takes note of a unit of `sectors` that has begun, and looks for requests at the end of each
    /// window. `in_flight` is the number of sectors in flight. A rebuild below its minimum speed
    /// (`is_slow`) does not look.
    pub(super) fn sent(
        &mut self,
        now: Time,
        sectors: Sectors,
        in_flight: Sectors,
        is_slow: bool,
        pressure: &Pressure,
    ) {
        if self.takes_turns {
            self.earliest = now + BLOCK_TIME * (sectors.0 / self.grain);
        }
        self.since += sectors.0;
        self.begun += sectors.0;
        let is_window = self.since >= REBUILD_WINDOW.0;
        self.since %= REBUILD_WINDOW.0;
        if is_slow {
            self.proceed();
        } else if is_window {
            let found = self.look(now, in_flight, pressure);
            (self.waits, self.is_careful) = (found, found);
        }
        self.is_careful |= self.room_beside(in_flight) < self.grain;
    }

    fn look(&mut self, now: Time, in_flight: Sectors, pressure: &Pressure) -> bool {
        match self.limit {
            Some(limit) if in_flight.0 < limit => false,
            Some(_) => {
                let found = pressure.is_since(self.looked);
                self.looked = now;
                found
            }
            None => self.look_at_members(),
        }
    }

    fn look_at_members(&mut self) -> bool {
        let mut found = false;
        for member in &mut self.members {
            if member.events - member.noted > UNNOTICED {
                member.noted = member.events;
                found = true;
            }
        }
        found
    }
}
