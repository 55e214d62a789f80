//! Idle read after write, IRAW (*Pro-active storage systems*, section 5.6).
//!
//! A drive may say that it has written what it has not: the write was lost, torn, or went
//! elsewhere. So what was written is kept, read again from the medium once nothing has come
//! for a time, and compared. What differs is written again, and is as unverified as before.
//!
//! What is kept is bounded. When it is full, mode I of the document forgets the oldest
//! unverified blocks, and disturbs nobody; mode V verifies them first, and lets writes wait
//! for that.
//!
//! Where a block is written anew, the older version need not be verified any more, and must
//! not be written again: it would be older over newer. So what is being mended, and what
//! is written meanwhile, do not meet: writes wait as long as something is being mended.

mod unverified;

use self::unverified::{Extents, Unverified};
use crate::quiet::{some, whole_sectors};
use crate::{Opportunity, Own, Seen, Site};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Extent, Operation, Request, Signal, Status};
use fullstroke_units::{Bytes, Duration, Sectors, Time};
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(test)]
mod tests;

pub(crate) const SUMMARY: &str =
    "reads what was written again while nothing comes, and mends what the drive has not written";

/// Its keys.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// For how long nothing must have come: 120ms unless said.
    wait: Duration,
    /// What it reads at a time, at most: 64KiB unless said.
    at_a_time: Bytes,
    /// How much unverified data are kept, in the hosts' or the hypervisor's memory: 16MiB
    /// unless said. To bring them there and back costs nothing here.
    keep: Bytes,
    /// What is done when no more can be kept: "forget" the oldest unverified (mode I), or
    /// "verify" them first (mode V). "forget" unless said.
    when_full: WhenFull,
}

/// What is done when no more can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum WhenFull {
    /// The oldest are forgotten, unverified.
    Forget,
    /// The oldest are verified first.
    Verify,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            wait: Duration::from_millis(120),
            at_a_time: Bytes(64 << 10),
            keep: Bytes(16 << 20),
            when_full: WhenFull::Forget,
        }
    }
}

pub(crate) fn build(keys: &Keys, site: &Site) -> Result<Box<dyn Opportunity>, ConfigError> {
    let config: Config = read(keys)?;
    some("wait", config.wait)?;
    let (at_a_time, keep) =
        (whole_sectors("at_a_time", config.at_a_time)?, whole_sectors("keep", config.keep)?);
    if at_a_time > keep {
        let message = format!("found {}; expected no more than is kept, {}", config.at_a_time, config.keep);
        return Err(ConfigError::new("at_a_time", message));
    }
    if let Some(why) = site.unverifiable {
        return Err(ConfigError::new("kind", why));
    }
    Ok(Box::new(IdleVerify {
        wait: config.wait,
        at_a_time,
        keep,
        when_full: config.when_full,
        unverified: Unverified::default(),
        writing: Vec::new(),
        checking: None,
        mending: Vec::new(),
        mends: false,
        came: Time::ZERO,
        inside: 0,
        counts: Counts::default(),
    }))
}

struct IdleVerify {
    wait: Duration,
    at_a_time: Sectors,
    keep: Sectors,
    when_full: WhenFull,
    /// What was written and not read again, in the order in which it was.
    unverified: Unverified,
    /// What is being written.
    writing: Vec<Extent>,
    /// What is being read again, as far as it has not been overwritten since.
    checking: Option<Extents>,
    /// What differed and has to be written again; the first is under way, if it `mends`.
    mending: Vec<Extent>,
    mends: bool,
    came: Time,
    inside: u32,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    written: Sectors,
    verified: Sectors,
    forgotten: Sectors,
    overwritten: Sectors,
    found: u64,
    mended: Sectors,
}

impl IdleVerify {
    /// Whether more is kept than can be, and must be verified before anything else.
    fn presses(&self) -> bool {
        self.when_full == WhenFull::Verify && self.unverified.sectors() > self.keep
    }

    /// It is written anew: what it held is of no interest any more.
    fn goes_down(&mut self, extent: Extent) {
        self.counts.overwritten += self.unverified.remove(extent);
        if let Some(checking) = &mut self.checking {
            self.counts.overwritten += checking.remove(extent);
        }
        self.writing.push(extent);
    }

    /// What was written can be verified, but for what is being written anew.
    fn written(&mut self, extent: Extent) {
        self.counts.written += extent.sectors;
        self.counts.overwritten += self.unverified.remove(extent);
        let mut pieces = Extents::of(extent);
        for other in &self.writing {
            self.counts.overwritten += pieces.remove(*other);
        }
        pieces.into_iter().for_each(|piece| self.unverified.add(piece));
        if self.when_full == WhenFull::Forget {
            self.counts.forgotten += self.unverified.forget_beyond(self.keep);
        }
    }

    fn checked(&mut self, status: Status) {
        let Some(pieces) = self.checking.take() else { return };
        match status {
            Status::Done => self.counts.verified += pieces.sectors(),
            Status::Differs => {
                self.counts.found += 1;
                self.mending.extend(pieces);
            }
            // It does not answer: there is nothing to be learnt of it.
            _ => self.counts.forgotten += pieces.sectors(),
        }
    }

    fn mended(&mut self, extent: Extent) {
        self.mends = false;
        self.mending.retain(|other| *other != extent);
        self.counts.mended += extent.sectors;
        self.unverified.add(extent);
    }
}

impl Opportunity for IdleVerify {
    fn arrived(&mut self, seen: Seen, request: &Request) -> bool {
        (self.came, self.inside) = (seen.now, seen.inside);
        if !matches!(request.operation, Operation::Write | Operation::Discard) {
            return false;
        }
        // What waits is not written yet: it is told again when it goes down.
        if self.holding() {
            return true;
        }
        self.goes_down(request.extent);
        false
    }

    fn left(&mut self, seen: Seen, request: &Request, status: Status) {
        self.inside = seen.inside;
        if !matches!(request.operation, Operation::Write | Operation::Discard) {
            return;
        }
        if let Some(place) = self.writing.iter().position(|extent| *extent == request.extent) {
            self.writing.swap_remove(place);
        }
        if request.operation == Operation::Write && status == Status::Done {
            self.written(request.extent);
        }
    }

    fn holding(&self) -> bool {
        !self.mending.is_empty() || self.presses()
    }

    fn released(&mut self, request: &Request) {
        if matches!(request.operation, Operation::Write | Operation::Discard) {
            self.goes_down(request.extent);
        }
    }

    fn next_look(&self) -> Time {
        if self.checking.is_some() || self.mends {
            Time::NEVER
        } else if self.holding() {
            Time::ZERO
        } else if self.unverified.is_empty() || self.inside > 0 {
            Time::NEVER
        } else {
            self.came + self.wait
        }
    }

    fn look(&mut self, _: Seen, _: &mut dyn FnMut(Signal)) {}

    fn next_request(&mut self, seen: Seen) -> Option<Own> {
        if self.next_look() > seen.now {
            return None;
        }
        if let Some(&extent) = self.mending.first() {
            self.mends = true;
            return Some(Own { operation: Operation::Write, extent, verify: false });
        }
        let extent = self.unverified.take_oldest(self.at_a_time)?;
        self.checking = Some(Extents::of(extent));
        Some(Own { operation: Operation::Read, extent, verify: true })
    }

    fn served(&mut self, _: Seen, own: &Own, status: Status) {
        match own.verify {
            true => self.checked(status),
            false => self.mended(own.extent),
        }
    }

    fn readings(&self) -> Vec<(&'static str, f64)> {
        let megabytes = |sectors: Sectors| sectors.bytes().0 as f64 / 1e6;
        let Counts { written, verified, forgotten, overwritten, found, mended } = self.counts;
        let share = if written == Sectors::ZERO { 0.0 } else { verified.0 as f64 / written.0 as f64 };
        vec![
            ("verify_written_mb", megabytes(written)),
            ("verify_verified_mb", megabytes(verified)),
            ("verify_verified_share", share),
            ("verify_overwritten_mb", megabytes(overwritten)),
            ("verify_forgotten_mb", megabytes(forgotten)),
            ("verify_left_mb", megabytes(self.unverified.sectors())),
            ("verify_found", found as f64),
            ("verify_mended_mb", megabytes(mended)),
        ]
    }
}
