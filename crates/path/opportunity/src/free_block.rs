//! Free-block scheduling outside the drive (Lumb, Schindler & Ganger, *Freeblock Scheduling Outside
//! of Disk Firmware*, FAST 2002).
//!
//! A request has come to a drive without other requests. The position of the arm, the rotation and
//! the layout of addresses are known. Thus the time is known when the first sector of the request
//! will be under the head. The scan reads unread sectors of the same track that pass before. The
//! drive receives two commands: the read of the scan, and then the request. Only the drive knows
//! its command times and the active head. Both ends of the window are therefore kept clear by the
//! `overhead` of a command and a `margin`. If these are too short, the request waits a revolution
//! longer. So this scan has a cost, unlike the drive's own scan (`freeblock` of a drive).
//!
//! The drive must have one request at a time. Hosts with deeper queues must keep the other requests
//! (`host.queue_depth = 1`), or no time is known to be free.

use crate::{Opportunity, OpportunitySite, OpportunityView, OwnRequest};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{
    ConfigError, Extent, Gauge, Operation, Request, RequestStatus, SectorSet, Signal, TrackTable,
};
use fullstroke_units::{Duration, Lbn, Sectors, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

#[cfg(test)]
mod tests;

pub(crate) const SUMMARY: &str =
    "reads sectors for a scan while a single request waits for rotation";

/// Keys of `free-block`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Assumed time of a command in the drive before the arm moves. Default 300us.
    overhead: Duration,
    /// Time kept clear before and after the sectors of the scan, for unforeseen delays. Default
    /// 300us.
    margin: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            overhead: Duration::from_micros(300),
            margin: Duration::from_micros(300),
        }
    }
}

pub(crate) fn build(
    keys: &Keys,
    site: &OpportunitySite,
) -> Result<Box<dyn Opportunity>, ConfigError> {
    let Config { overhead, margin } = read(keys)?;
    let drive = site.drive.as_ref().map_err(|why| {
        let message =
            format!("the position of the arm is not known here: {why}; expected one drive");
        ConfigError::new("kind", message)
    })?;
    for (key, time) in [("overhead", overhead), ("margin", margin)] {
        if time >= MOST {
            let message =
                format!("found {time}; expected less than {MOST}, the longest rotational latency");
            return Err(ConfigError::new(key, message));
        }
    }
    Ok(Box::new(FreeBlock {
        potential: potential(drive.as_ref()),
        drive: Arc::clone(drive),
        overhead,
        margin,
        next: None,
        covered: SectorSet::default(),
        last: Time::ZERO,
    }))
}

/// Revolution time of the slowest drives, 3,600 rpm, rounded up.
const MOST: Duration = Duration::from_millis(17);

/// Largest rounding error between two instants computed from each other.
const ROUNDING: Duration = Duration::from_nanos(8);

struct FreeBlock {
    drive: Arc<dyn TrackTable>,
    overhead: Duration,
    margin: Duration,
    /// Sectors to read before the waiting request.
    next: Option<Extent>,
    covered: SectorSet,
    /// Time of the last read of the scan.
    last: Time,
    /// Rate of a sequential read of the whole drive, in bytes a second.
    potential: f64,
}

impl FreeBlock {
    /// Returns the unread sectors that pass before `target` on the same track. The drive gets the
    /// command at `now`, and `arm` describes the arm.
    fn passes(&self, now: Time, arm: &Gauge, target: Lbn, write: bool) -> Option<Extent> {
        let before = target.0 - self.drive.track_at(target).first.0;
        let due = now
            + self.overhead
            + self
                .drive
                .positioning(now + self.overhead, arm, target, write);
        // The arm must reach the target in time even if the arm leaves a margin later.
        let leaves = now + self.overhead + self.margin;
        let wait = self.drive.positioning(leaves, arm, target, write);
        // If the margin would cost the target its turn, the time until the target is no free
        // latency.
        if leaves + wait > due + ROUNDING {
            return None;
        }
        // A sector that has already passed comes round only after the target.
        let ahead = |sectors: u64| {
            let position = self
                .drive
                .positioning(leaves, arm, Lbn(target.0 - sectors), write);
            (position < wait).then(|| wait - position)
        };
        // Sectors on one track pass in order of address, so the sectors in reach are the ones
        // nearest before the target.
        let most = last_index(before, |sectors| ahead(sectors).is_some());
        let passes = ahead(most)?;
        // The last sectors before the target pass within overhead and margin, in which the drive
        // must already have the request. Their number follows from the mean rate of the pass.
        let clear = (self.overhead + self.margin).as_nanos() * most;
        let clear = clear.div_ceil(passes.as_nanos().max(1));
        let (from, to) = (target.0 - most, target.0.saturating_sub(clear));
        let mut unread: Option<(u64, u64)> = None;
        self.covered.missing(from, to, |start, end| {
            unread = Some((unread.map_or(start, |(first, _)| first), end))
        });
        unread.map(|(start, end)| Extent::new(start, end - start))
    }
}

/// Returns the largest of `1..=most` for which `holds` is true, or 0 if there is none. `holds` must
/// be true for all smaller values as well.
fn last_index(most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) {
            low = middle
        } else {
            high = middle - 1
        }
    }
    low
}

/// Returns the rate of a sequential read of the whole drive, in bytes a second.
fn potential(drive: &dyn TrackTable) -> f64 {
    let zones = drive.zone_rates();
    let bytes = |sectors: Sectors| sectors.bytes().0 as f64;
    let seconds: f64 = zones
        .iter()
        .map(|zone| bytes(zone.sectors) / zone.bytes_per_s as f64)
        .sum();
    bytes(drive.capacity()) / seconds
}

impl Opportunity for FreeBlock {
    fn arrived(&mut self, seen: OpportunityView, request: &Request) -> bool {
        // With other work inside, the position of the arm at the target is not known. The new
        // request counts as inside.
        let lone = seen.inside == 1 && seen.arm.queue_length == 0;
        let within = request.extent.end().0 <= self.drive.capacity().0;
        if !lone || !within || !matches!(request.operation, Operation::Read | Operation::Write) {
            return false;
        }
        let write = request.operation == Operation::Write;
        self.next = self.passes(seen.now, &seen.arm, request.extent.start, write);
        self.next.is_some()
    }

    fn left(&mut self, _: OpportunityView, _: &Request, _: RequestStatus) {}

    fn holding(&self) -> bool {
        self.next.is_some()
    }

    fn next_look(&self) -> Time {
        if self.next.is_some() {
            // The request is held until the read is issued, so the look is due at once.
            Time::ZERO
        } else {
            Time::NEVER
        }
    }

    fn look(&mut self, _: OpportunityView, _: &mut dyn FnMut(Signal)) {}

    fn next_request(&mut self, _: OpportunityView) -> Option<OwnRequest> {
        let extent = self.next.take()?;
        Some(OwnRequest {
            operation: Operation::Read,
            extent,
            verify: false,
            members: false,
        })
    }

    fn served(&mut self, seen: OpportunityView, own: &OwnRequest, status: RequestStatus) {
        if status == RequestStatus::Done {
            self.covered.add(own.extent);
            self.last = seen.now;
        }
    }

    fn readings(&self) -> Vec<(&'static str, f64)> {
        let read = self.covered.sectors();
        let scan = self.last.since(Time::ZERO).as_secs_f64();
        let rate = if scan > 0.0 {
            read.bytes().0 as f64 / scan
        } else {
            0.0
        };
        vec![
            ("freeblock_read_mb", read.bytes().0 as f64 / 1e6),
            ("freeblock_mb_per_s", rate / 1e6),
            ("freeblock_potential_share", rate / self.potential),
            (
                "freeblock_scanned_share",
                read.0 as f64 / self.drive.capacity().0 as f64,
            ),
            ("freeblock_scan_s", scan),
        ]
    }
}
