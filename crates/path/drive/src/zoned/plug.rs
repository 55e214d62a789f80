//! Writes of a zone that wait in the host: zone write plugging, and zone append.
//!
//! Linux sends one write of a zone to the drive at a time. The other writes of the zone wait in the
//! order of their arrival (`blk_zone_wplug_handle_write`, block/blk-zoned.c, Linux 6.10; before, the
//! elevator mq-deadline locked the zone). After its end the next write follows. If waiting
//! writes continue the next write, the drive gets all of them as one write
//! (`blk_zone_write_plug_init_request`).
//!
//! SCSI and ATA have no command that appends. Linux makes an append a write at the write pointer of
//! the zone when its turn has come, and joins no appends (`blk_zone_wplug_prepare_bio`).

use super::config::ZoneWrites;
use fullstroke_contract::{Completion, Effects, Extent, Operation, Request, RequestId};
use fullstroke_units::Time;
use std::collections::{BTreeMap, VecDeque};

/// Longest joined write in sectors: the limit of a disk's queue without a limit of its own
/// (`BLK_DEF_MAX_SECTORS_CAP`, include/linux/blkdev.h, Linux 6.10).
const JOINED_MAX: u64 = 2560;

/// A request of the layer above.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestAbove {
    pub(super) request: Request,
    pub(super) submitted: Time,
}

/// A request in the drive.
#[derive(Clone, Debug)]
struct InDrive {
    /// Zone of a write that the plug has sent.
    zone: Option<u64>,
    parts: Vec<(RequestId, Time)>,
}

/// The requests in the drive, and the writes that wait.
///
/// Invariant: a zone with waiting writes has one write in the drive.
#[derive(Debug)]
pub(super) struct ZonePlug {
    pub(super) appends: bool,
    /// Effects of the drive inside; empty between events.
    pub(super) inside: Effects,
    in_drive: BTreeMap<u64, InDrive>,
    next: u64,
    /// Waiting writes of each zone that has a write in the drive, in the order of their arrival.
    zones: BTreeMap<u64, VecDeque<RequestAbove>>,
    waiting: usize,
    pub(super) waits: u64,
    pub(super) joined: u64,
}

impl ZonePlug {
    /// Returns the plug of a host; `None` if each write goes to the drive as it comes.
    pub(super) fn new(writes: ZoneWrites) -> Option<ZonePlug> {
        let appends = match writes {
            ZoneWrites::AsSent => return None,
            ZoneWrites::Plugged => false,
            ZoneWrites::Append => true,
        };
        Some(ZonePlug {
            appends,
            inside: Effects::new(),
            in_drive: BTreeMap::new(),
            next: 0,
            zones: BTreeMap::new(),
            waiting: 0,
            waits: 0,
            joined: 0,
        })
    }

    /// Number of waiting writes.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes a write of a zone. Returns the write if it may go to the drive now.
    pub(super) fn take_write(&mut self, zone: u64, write: RequestAbove) -> Option<RequestAbove> {
        match self.zones.get_mut(&zone) {
            Some(waiting) => {
                waiting.push_back(write);
                self.waiting += 1;
                self.waits += 1;
                None
            }
            None => {
                self.zones.insert(zone, VecDeque::new());
                Some(write)
            }
        }
    }

    /// Notes a request that goes to the drive, and returns its id there.
    pub(super) fn goes(&mut self, zone: Option<u64>, parts: Vec<(RequestId, Time)>) -> RequestId {
        let id = self.next;
        self.next += 1;
        self.in_drive.insert(id, InDrive { zone, parts });
        RequestId(id)
    }

    /// Takes the completion of a request in the drive. Returns the zone whose next write may go, and
    /// the completions for the layer above.
    pub(super) fn ended(&mut self, ended: Completion) -> (Option<u64>, Vec<Completion>) {
        let Some(InDrive { zone, parts }) = self.in_drive.remove(&ended.id.0) else {
            unreachable!("the drive ends request {:?}, which did not go", ended.id)
        };
        let above = parts.into_iter();
        let above = above.map(|(id, submitted)| ended.held_since(submitted, id));
        (zone, above.collect())
    }

    /// Takes the next waiting write of a zone, joined with the writes that continue it; `None` if no
    /// write waits.
    pub(super) fn next_write(
        &mut self,
        zone: u64,
        zone_sectors: u64,
    ) -> Option<(Request, Vec<(RequestId, Time)>)> {
        let waiting = self.zones.get_mut(&zone)?;
        let Some(first) = waiting.pop_front() else {
            self.zones.remove(&zone);
            return None;
        };
        let mut request = first.request;
        let mut parts = vec![(request.id, first.submitted)];
        let border = (zone + 1) * zone_sectors;
        while let Some(next) = waiting.front().filter(|_| !self.appends) {
            let end = next.request.extent.end().0;
            let length = end.saturating_sub(request.extent.start.0);
            if next.request.extent.start.0 != request.extent.end().0
                || length > JOINED_MAX
                || end > border
                || next.request.hints.force_unit_access != request.hints.force_unit_access
            {
                break;
            }
            parts.push((next.request.id, next.submitted));
            request.extent = Extent::new(request.extent.start.0, length);
            waiting.pop_front();
        }
        self.waiting -= parts.len();
        self.joined += parts.len() as u64 - 1;
        debug_assert_eq!(request.operation, Operation::Write, "only writes wait");
        Some((request, parts))
    }
}
