//! A scrub steered by idleness: the media are read from end to end while the array has no other
//! work. *Pro-active storage systems* proposes this use of idle time in section 2.4. The idle
//! detector is that of section 5.5.
//!
//! A read at an address of a volume with copies or parity is answered by one copy, and never by
//! parity. The scrub therefore reads addresses of the members, the same addresses of all members at
//! once ([`members`](fullstroke_contract::Hints::members) in the hints of a request). The medium
//! answers, not a buffer. The answer tells if a sector does not hold the last written data. A
//! checksum, or a comparison of copies and parity, would find the same errors. The scrub does not
//! repair errors.
//!
//! The scrub pauses when a request comes, but finishes the current read. The scrub does not start
//! standing drives. The scrub waits until other work starts them.

use crate::quiet::{quiet_time, some, whole_sectors};
use crate::{Opportunity, OpportunitySite, OpportunityView, OwnRequest};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Extent, Operation, Request, RequestStatus, Signal};
use fullstroke_units::{Bytes, Duration, Sectors, Time};
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(test)]
mod tests;

pub(crate) const SUMMARY: &str =
    "reads all members from end to end in idle time and counts wrong sectors";

/// Keys of `idle-scrub`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Time without a request before a read. Default 120ms.
    wait: Duration,
    /// Size of one read of each member. Default 1MiB. A request that comes meanwhile waits for the
    /// read.
    at_a_time: Bytes,
    /// Largest rate of the scrub of each member, in bytes a second. Default: no limit.
    rate: Option<Bytes>,
    /// Time from the beginning of a pass to the beginning of the next. The next pass waits for the
    /// end of the current one. Default 168h. The first pass begins with the run.
    every: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            wait: Duration::from_millis(120),
            at_a_time: Bytes(1 << 20),
            rate: None,
            every: Duration::from_secs(168 * 3600),
        }
    }
}

pub(crate) fn build(
    keys: &Keys,
    site: &OpportunitySite,
) -> Result<Box<dyn Opportunity>, ConfigError> {
    let Config {
        wait,
        at_a_time,
        rate,
        every,
    } = read(keys)?;
    quiet_time("wait", some("wait", wait)?, site)?;
    some("every", every)?;
    let sectors = whole_sectors("at_a_time", at_a_time)?;
    let spacing = match rate {
        None => Duration::ZERO,
        Some(Bytes(0)) => {
            return Err(ConfigError::new(
                "rate",
                "found 0; expected bytes a second, such as 50MiB",
            ));
        }
        Some(rate) => Duration::from_secs_f64(at_a_time.0 as f64 / rate.0 as f64),
    };
    let depth = site.members.map_err(|why| ConfigError::new("kind", why))?;
    Ok(Box::new(IdleScrub {
        wait,
        at_a_time: sectors,
        spacing,
        every,
        depth,
        begun: None,
        at: Sectors::ZERO,
        due: Time::ZERO,
        reading: Vec::new(),
        met: Vec::new(),
        came: Time::ZERO,
        inside: 0,
        standing: 0,
        counts: ScrubCounts::default(),
    }))
}

/// Time between two reads. A run ends at an instant without awaited work in flight, so reads must
/// not follow each other without a gap.
const GAP: Duration = Duration::from_nanos(1);

struct IdleScrub {
    wait: Duration,
    at_a_time: Sectors,
    /// Time from one read to the next, from the rate.
    spacing: Duration,
    every: Duration,
    /// Number of sectors to read, from the longest member.
    depth: Sectors,
    /// Begin of the current pass. `None` between passes.
    begun: Option<Time>,
    /// Number of sectors from the start that were read in this pass or are being read.
    at: Sectors,
    /// Earliest time of the next read, from the rate and `every`.
    due: Time,
    reading: Vec<Extent>,
    /// Arrival times of requests that came during the current read.
    met: Vec<Time>,
    came: Time,
    inside: u32,
    standing: u32,
    counts: ScrubCounts,
}

#[derive(Clone, Copy, Debug, Default)]
struct ScrubCounts {
    passes: u64,
    /// Total time of all passes.
    took: Duration,
    read: Sectors,
    found: u64,
    unread: Sectors,
    met: u64,
    waited: Duration,
}

impl IdleScrub {
    /// Ends the pass if all reads have begun and ended.
    fn end_pass(&mut self, now: Time) {
        if let Some(begun) = self
            .begun
            .filter(|_| self.at >= self.depth && self.reading.is_empty())
        {
            self.counts.passes += 1;
            self.counts.took += now.since(begun);
            (self.begun, self.at) = (None, Sectors::ZERO);
            // The next pass begins `every` after the begin of this one, and never before its end.
            self.due = self.due.max(begun + self.every);
        }
    }
}

impl Opportunity for IdleScrub {
    fn arrived(&mut self, seen: OpportunityView, _: &Request) -> bool {
        (self.came, self.inside, self.standing) = (seen.now, seen.inside, seen.standing);
        if !self.reading.is_empty() {
            self.counts.met += 1;
            self.met.push(seen.now);
        }
        false
    }

    fn left(&mut self, seen: OpportunityView, _: &Request, _: RequestStatus) {
        (self.inside, self.standing) = (seen.inside, seen.standing);
    }

    fn waits_for_quiet(&self) -> bool {
        true
    }

    fn next_look(&self) -> Time {
        let full = !self.reading.is_empty() || self.at >= self.depth;
        // A scrub read must not start standing platters, and must not delay a request that is
        // inside.
        if full || self.inside > 0 || self.standing > 0 {
            return Time::NEVER;
        }
        self.due.max(self.came + self.wait)
    }

    fn look(&mut self, seen: OpportunityView, _: &mut dyn FnMut(Signal)) {
        // Only a request can start the drives, and `arrived` and `left` then report the number of
        // standing drives.
        self.standing = seen.standing;
    }

    fn next_request(&mut self, seen: OpportunityView) -> Option<OwnRequest> {
        if self.next_look() > seen.now {
            return None;
        }
        let sectors = self.at_a_time.min(self.depth - self.at);
        let extent = Extent::new(self.at.0, sectors.0);
        self.begun = self.begun.or(Some(seen.now));
        self.at += sectors;
        self.due = seen.now + self.spacing;
        self.reading.push(extent);
        Some(OwnRequest {
            operation: Operation::Read,
            extent,
            verify: true,
            members: true,
        })
    }

    fn served(&mut self, seen: OpportunityView, own: &OwnRequest, status: RequestStatus) {
        // Reads do not overlap within a pass, so the extent tells the read.
        self.reading.retain(|extent| *extent != own.extent);
        self.due = self.due.max(seen.now + GAP);
        match status {
            RequestStatus::Done => self.counts.read += own.extent.sectors,
            RequestStatus::Differs => {
                self.counts.read += own.extent.sectors;
                self.counts.found += 1;
            }
            RequestStatus::Lost | RequestStatus::Refused | RequestStatus::OutOfRange => {
                self.counts.unread += own.extent.sectors
            }
        }
        if self.reading.is_empty() {
            for came in self.met.drain(..) {
                // Many requests wait at a time, so the sum of the waits may exceed the range of the
                // counter.
                let waited = seen.now.since(came);
                self.counts.waited = self.counts.waited.saturating_add(waited);
            }
        }
        self.end_pass(seen.now);
    }

    fn readings(&self) -> Vec<(&'static str, f64)> {
        let megabytes = |sectors: Sectors| sectors.bytes().0 as f64 / 1e6;
        let ScrubCounts {
            passes,
            took,
            read,
            found,
            unread,
            met,
            waited,
        } = self.counts;
        let reading: u64 = self.reading.iter().map(|extent| extent.sectors.0).sum();
        // Reads in flight are not yet read.
        let part = (self.at.0 - reading) as f64 / self.depth.0.max(1) as f64;
        let mut readings = vec![
            ("scrub_passes", passes as f64 + part),
            ("scrub_read_mb", megabytes(read)),
            ("scrub_found", found as f64),
            ("scrub_unread_mb", megabytes(unread)),
            ("scrub_met", met as f64),
            (
                "scrub_met_ms_mean",
                waited.as_millis_f64() / met.max(1) as f64,
            ),
        ];
        if passes > 0 {
            readings.insert(
                1,
                ("scrub_pass_h", took.as_secs_f64() / 3600.0 / passes as f64),
            );
        }
        readings
    }
}
