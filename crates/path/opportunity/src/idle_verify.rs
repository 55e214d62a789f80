//! Idle read after write, IRAW (*Pro-active storage systems*, section 5.6).
//!
//! A drive may say that it has written what it has not: the write was lost, torn, or went
//! elsewhere. So what was written is kept, read again from the medium once nothing has come
//! for a time, and compared. What differs is written again, and is as unverified as before.
//!
//! A misdirected write leaves two places wrong: its own, where the older version is found, and
//! one that was right, perhaps verified long ago. Where that is, and that it was no lost write,
//! nobody can know from what was read. So what has been verified is kept as long as there is
//! room, and once a read has found something else than was written, all of it is *doubted*:
//! read once more when nothing is left that never was. A bad write that was written anew before
//! anybody read it again is never found, and what it has struck stays wrong unless each such
//! write makes doubt, too (`doubt = "unseen"`).
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
use crate::quiet::{quiet_time, some, whole_sectors};
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
    /// When what was verified, and is still kept, is read once more, for a write may have gone
    /// there that belongs elsewhere: "never" (as in the document), when a read has "found"
    /// something else than was written, or also when a write went "unseen": was written anew,
    /// or forgotten, before it was verified. "found" unless said.
    doubt: Doubt,
}

/// When what was verified is not taken for right any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Doubt {
    /// Never.
    Never,
    /// A read has found something else than was written.
    Found,
    /// Also: a write was written anew, or forgotten, before it was verified.
    Unseen,
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
            doubt: Doubt::Found,
        }
    }
}

pub(crate) fn build(keys: &Keys, site: &Site) -> Result<Box<dyn Opportunity>, ConfigError> {
    let config: Config = read(keys)?;
    quiet_time("wait", some("wait", config.wait)?, site)?;
    let (at_a_time, keep) = (
        whole_sectors("at_a_time", config.at_a_time)?,
        whole_sectors("keep", config.keep)?,
    );
    if at_a_time > keep {
        let message = format!(
            "found {}; expected no more than is kept, {}",
            config.at_a_time, config.keep
        );
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
        doubt: config.doubt,
        unverified: Unverified::default(),
        doubted: Unverified::default(),
        right: Unverified::default(),
        doubts: false,
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
    doubt: Doubt,
    /// What was written and not read again, in the order in which it was.
    unverified: Unverified,
    /// What was verified and is to be read once more.
    doubted: Unverified,
    /// What was verified and is still kept.
    right: Unverified,
    /// Whether what is `right` is to be doubted when nothing else is left to read.
    doubts: bool,
    /// What is being written.
    writing: Vec<Extent>,
    /// What is being read again, as far as it has not been overwritten since.
    checking: Option<Checking>,
    /// What differed and has to be written again; the first is under way, if it `mends`.
    mending: Vec<Extent>,
    mends: bool,
    came: Time,
    inside: u32,
    counts: Counts,
}

/// What is being read again.
struct Checking {
    pieces: Extents,
    /// Whether it was verified before.
    again: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    written: Sectors,
    verified: Sectors,
    forgotten: Sectors,
    overwritten: Sectors,
    found: u64,
    mended: Sectors,
    doubted: Sectors,
}

impl IdleVerify {
    /// Whether more is kept than can be, and must be verified before anything else.
    fn presses(&self) -> bool {
        self.when_full == WhenFull::Verify && self.unverified.sectors() > self.keep
    }

    /// Something was written that may have gone elsewhere: what was verified before, or is being,
    /// may be wrong again.
    fn doubt(&mut self, why: Doubt) {
        self.doubts |= why <= self.doubt && (!self.right.is_empty() || self.checking.is_some());
    }

    /// So much of what was not verified yet was written anew.
    fn overwritten(&mut self, sectors: Sectors) {
        self.counts.overwritten += sectors;
        if sectors > Sectors::ZERO {
            self.doubt(Doubt::Unseen);
        }
    }

    /// It is written anew: what it held is of no interest any more.
    fn goes_down(&mut self, extent: Extent) {
        let mut gone = self.unverified.remove(extent);
        self.doubted.remove(extent);
        self.right.remove(extent);
        if let Some(Checking { pieces, again }) = &mut self.checking {
            let checked = pieces.remove(extent);
            gone += if *again { Sectors::ZERO } else { checked };
        }
        self.overwritten(gone);
        self.writing.push(extent);
    }

    /// What was written can be verified, but for what is being written anew.
    fn written(&mut self, extent: Extent) {
        self.counts.written += extent.sectors;
        let mut gone = self.unverified.remove(extent);
        let mut pieces = Extents::of(extent);
        for other in &self.writing {
            gone += pieces.remove(*other);
        }
        self.overwritten(gone);
        pieces
            .into_iter()
            .for_each(|piece| self.unverified.add(piece));
        self.make_room();
    }

    /// What was verified goes first, then what is doubted, and what is unverified only if it
    /// may be forgotten.
    fn make_room(&mut self) {
        if self.when_full == WhenFull::Forget {
            let forgotten = self.unverified.forget_beyond(self.keep);
            self.counts.forgotten += forgotten;
            if forgotten > Sectors::ZERO {
                self.doubt(Doubt::Unseen);
            }
        }
        let left =
            |kept: &Unverified, room: Sectors| Sectors(room.0.saturating_sub(kept.sectors().0));
        let room = left(&self.unverified, self.keep);
        self.doubted.forget_beyond(room);
        self.right.forget_beyond(left(&self.doubted, room));
    }

    fn checked(&mut self, status: Status) {
        let Some(Checking { pieces, again }) = self.checking.take() else {
            return;
        };
        let sectors = pieces.sectors();
        match status {
            Status::Done => {
                let counted = if again {
                    &mut self.counts.doubted
                } else {
                    &mut self.counts.verified
                };
                *counted += sectors;
                if self.doubt > Doubt::Never {
                    pieces.into_iter().for_each(|piece| self.right.add(piece));
                    self.make_room();
                }
            }
            Status::Differs => {
                self.counts.found += 1;
                if again {
                    // It is verified again when it was mended.
                    self.counts.doubted += sectors;
                    self.counts.verified = Sectors(self.counts.verified.0 - sectors.0);
                }
                self.mending.extend(pieces);
                self.doubt(Doubt::Found);
            }
            // It does not answer: there is nothing to be learnt of it.
            _ if again => {}
            _ => self.counts.forgotten += sectors,
        }
    }

    fn mended(&mut self, extent: Extent) {
        self.mends = false;
        self.mending.retain(|other| *other != extent);
        self.counts.mended += extent.sectors;
        self.unverified.add(extent);
        self.make_room();
    }

    /// Whether there is anything to be read.
    fn has_work(&self) -> bool {
        let doubts = self.doubts && !self.right.is_empty();
        doubts || !self.unverified.is_empty() || !self.doubted.is_empty()
    }

    /// What is read next.
    fn next_check(&mut self) -> Option<(Extent, bool)> {
        if let Some(extent) = self.unverified.take_oldest(self.at_a_time) {
            return Some((extent, false));
        }
        if self.doubted.is_empty() && std::mem::take(&mut self.doubts) {
            self.doubted = std::mem::take(&mut self.right);
        }
        self.doubted
            .take_oldest(self.at_a_time)
            .map(|extent| (extent, true))
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
        if let Some(place) = self
            .writing
            .iter()
            .position(|extent| *extent == request.extent)
        {
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

    fn waits_for_quiet(&self) -> bool {
        true
    }

    fn next_look(&self) -> Time {
        if self.checking.is_some() || self.mends {
            Time::NEVER
        } else if self.holding() {
            Time::ZERO
        } else if !self.has_work() || self.inside > 0 {
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
            return Some(Own {
                operation: Operation::Write,
                extent,
                verify: false,
                members: false,
            });
        }
        let (extent, again) = self.next_check()?;
        self.checking = Some(Checking {
            pieces: Extents::of(extent),
            again,
        });
        Some(Own {
            operation: Operation::Read,
            extent,
            verify: true,
            members: false,
        })
    }

    fn served(&mut self, _: Seen, own: &Own, status: Status) {
        match own.verify {
            true => self.checked(status),
            false => self.mended(own.extent),
        }
    }

    fn readings(&self) -> Vec<(&'static str, f64)> {
        let megabytes = |sectors: Sectors| sectors.bytes().0 as f64 / 1e6;
        let Counts {
            written,
            verified,
            forgotten,
            overwritten,
            found,
            mended,
            doubted,
        } = self.counts;
        let share = if written == Sectors::ZERO {
            0.0
        } else {
            verified.0 as f64 / written.0 as f64
        };
        vec![
            ("verify_written_mb", megabytes(written)),
            ("verify_verified_mb", megabytes(verified)),
            ("verify_verified_share", share),
            ("verify_overwritten_mb", megabytes(overwritten)),
            ("verify_forgotten_mb", megabytes(forgotten)),
            ("verify_left_mb", megabytes(self.unverified.sectors())),
            ("verify_found", found as f64),
            ("verify_mended_mb", megabytes(mended)),
            ("verify_doubted_mb", megabytes(doubted)),
        ]
    }
}
