//! Idle read after write, IRAW (*Pro-active storage systems*, section 5.6).
//!
//! A drive may report a write as done although the write was lost, torn or misdirected. Therefore
//! written data are kept. When no request has come for a time, the data are read again from the
//! medium and compared. Data that differ are written again, and are then unverified again.
//!
//! A misdirected write leaves two places wrong. The intended place has the older version. The other
//! place had right data, perhaps verified long ago. A read of the intended place tells neither the
//! other place nor the kind of fault. Therefore verified data are kept while there is room. As soon
//! as a read finds other data than written, all verified data are *doubted*. Doubted data are read
//! once more when no unverified data are left. A bad write that is overwritten before a read is
//! never found. The sectors that the bad write struck then stay wrong, unless each such write also
//! makes doubt (`doubt = "unseen"`).
//!
//! The memory for kept data is bounded. If the memory is full, mode I of the document forgets the
//! oldest unverified blocks and delays no request. Mode V verifies the oldest blocks first and lets
//! writes wait.
//!
//! If a block is written again, the older version need not be verified any more. The older version
//! must not be repaired either, because the repair would overwrite newer data. Therefore writes
//! wait while a repair is in progress.

mod kept;
mod unverified;

use self::kept::{KeptData, RecheckAfter, WhenFull};
use self::unverified::Extents;
use crate::quiet::{quiet_time, some, whole_sectors};
use crate::{Opportunity, OpportunitySite, OpportunityView, OwnRequest};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Extent, Operation, Request, RequestStatus, Signal};
use fullstroke_units::{Bytes, Duration, Sectors, Time};
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(test)]
mod tests;

pub(crate) const SUMMARY: &str = "reads written data again in idle time and repairs faulty writes";

/// Keys of `idle-verify`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Time without a request before a read. Default 120ms.
    wait: Duration,
    /// Largest size of one read. Default 64KiB.
    at_a_time: Bytes,
    /// Size of the memory for kept data, in the hosts or the hypervisor. Default 16MiB. The
    /// transfer to and from this memory costs no time in the model.
    keep: Bytes,
    /// Action when the memory is full: "forget" the oldest unverified data (mode I), or "verify"
    /// the oldest data first (mode V). Default "forget".
    when_full: WhenFull,
    /// Event after which verified data are read once more, because a misdirected write may have
    /// struck the data. "never": no event, as in *Pro-active storage systems* (2012). "found": a
    /// read found other data than written. "unseen": as "found", and also after a write was
    /// overwritten or forgotten before verification. Default "found".
    doubt: RecheckAfter,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            wait: Duration::from_millis(120),
            at_a_time: Bytes(64 << 10),
            keep: Bytes(16 << 20),
            when_full: WhenFull::Forget,
            doubt: RecheckAfter::Found,
        }
    }
}

pub(crate) fn build(
    keys: &Keys,
    site: &OpportunitySite,
) -> Result<Box<dyn Opportunity>, ConfigError> {
    let config: Config = read(keys)?;
    quiet_time("wait", some("wait", config.wait)?, site)?;
    let (at_a_time, keep) = (
        whole_sectors("at_a_time", config.at_a_time)?,
        whole_sectors("keep", config.keep)?,
    );
    // A read larger than the memory could never be compared with kept data.
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
        kept: KeptData::new(keep, config.when_full, config.doubt),
        writing: Vec::new(),
        checking: None,
        mending: Vec::new(),
        mends: false,
        came: Time::ZERO,
        inside: 0,
        counts: VerifyCounts::default(),
    }))
}

struct IdleVerify {
    wait: Duration,
    at_a_time: Sectors,
    kept: KeptData,
    /// Extents of writes in flight.
    writing: Vec<Extent>,
    /// The current verification, without parts that were overwritten since.
    checking: Option<Checking>,
    /// Extents to be repaired. If `mends` is true, the repair of the first extent is in flight.
    mending: Vec<Extent>,
    mends: bool,
    came: Time,
    inside: u32,
    counts: VerifyCounts,
}

/// A verification in flight.
struct Checking {
    pieces: Extents,
    /// True if the data were verified before.
    again: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct VerifyCounts {
    written: Sectors,
    verified: Sectors,
    forgotten: Sectors,
    overwritten: Sectors,
    found: u64,
    mended: Sectors,
    doubted: Sectors,
}

impl IdleVerify {
    /// Counts unverified data that were overwritten.
    fn overwritten(&mut self, sectors: Sectors) {
        self.counts.overwritten += sectors;
        if sectors > Sectors::ZERO {
            self.kept
                .doubt(RecheckAfter::Unseen, self.checking.is_some());
        }
    }

    /// Records that a write of `extent` goes down. The old data of the extent are dropped.
    fn goes_down(&mut self, extent: Extent) {
        let mut gone = self.kept.remove(extent);
        if let Some(Checking { pieces, again }) = &mut self.checking {
            let checked = pieces.remove(extent);
            // A second verification of the same data must not count as a first one that was missed.
            gone += if *again { Sectors::ZERO } else { checked };
        }
        self.overwritten(gone);
        self.writing.push(extent);
    }

    /// Records that a write has ended. The written data are now unverified, except parts with
    /// another write in flight.
    fn written(&mut self, extent: Extent) {
        self.counts.written += extent.sectors;
        // Two writes of the same extent were in flight. The unverified data of the earlier one are
        // overwritten.
        let mut gone = self.kept.remove_unverified(extent);
        let mut pieces = Extents::of(extent);
        // Another write of these sectors is in flight, and may end on the medium after this one.
        for other in &self.writing {
            gone += pieces.remove(*other);
        }
        self.overwritten(gone);
        pieces.into_iter().for_each(|piece| self.kept.add(piece));
        self.make_room();
    }

    /// Makes room for kept data.
    fn make_room(&mut self) {
        self.counts.forgotten += self.kept.make_room(self.checking.is_some());
    }

    fn checked(&mut self, status: RequestStatus) {
        let Some(Checking { pieces, again }) = self.checking.take() else {
            return;
        };
        let sectors = pieces.sectors();
        match status {
            RequestStatus::Done => {
                let counted = if again {
                    &mut self.counts.doubted
                } else {
                    &mut self.counts.verified
                };
                *counted += sectors;
                if self.kept.verified(pieces) {
                    self.make_room();
                }
            }
            RequestStatus::Differs => {
                self.counts.found += 1;
                if again {
                    // The data were counted as verified before, and will be counted again after the
                    // repair.
                    self.counts.doubted += sectors;
                    self.counts.verified = Sectors(self.counts.verified.0 - sectors.0);
                }
                self.mending.extend(pieces);
                self.kept.doubt(RecheckAfter::Found, false);
            }
            // The array does not answer, and the verification has no result.
            _ if again => {}
            _ => self.counts.forgotten += sectors,
        }
    }

    fn mended(&mut self, extent: Extent, status: RequestStatus) {
        self.mends = false;
        self.mending.retain(|other| *other != extent);
        if status != RequestStatus::Done {
            // The array does not answer. The data stay as they are, and are not verified any more.
            self.counts.forgotten += extent.sectors;
            return;
        }
        self.counts.mended += extent.sectors;
        // The repair is a write like any other, and can fail as silently. Its data are therefore
        // unverified.
        self.kept.add(extent);
        self.make_room();
    }
}

impl Opportunity for IdleVerify {
    fn arrived(&mut self, seen: OpportunityView, request: &Request) -> bool {
        (self.came, self.inside) = (seen.now, seen.inside);
        if !matches!(request.operation, Operation::Write | Operation::Discard) {
            return false;
        }
        // A held write is not written yet. `released` reports the write when the write goes down.
        if self.holding() {
            return true;
        }
        self.goes_down(request.extent);
        false
    }

    fn left(&mut self, seen: OpportunityView, request: &Request, status: RequestStatus) {
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
        if request.operation == Operation::Write && status == RequestStatus::Done {
            self.written(request.extent);
        }
    }

    fn holding(&self) -> bool {
        !self.mending.is_empty() || self.kept.is_urgent()
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
        } else if !self.kept.has_work() || self.inside > 0 {
            Time::NEVER
        } else {
            self.came + self.wait
        }
    }

    fn look(&mut self, _: OpportunityView, _: &mut dyn FnMut(Signal)) {}

    fn next_request(&mut self, seen: OpportunityView) -> Option<OwnRequest> {
        if self.next_look() > seen.now {
            return None;
        }
        if let Some(&extent) = self.mending.first() {
            self.mends = true;
            return Some(OwnRequest {
                operation: Operation::Write,
                extent,
                verify: false,
                members: false,
            });
        }
        let (extent, again) = self.kept.next(self.at_a_time)?;
        self.checking = Some(Checking {
            pieces: Extents::of(extent),
            again,
        });
        Some(OwnRequest {
            operation: Operation::Read,
            extent,
            verify: true,
            members: false,
        })
    }

    fn served(&mut self, _: OpportunityView, own: &OwnRequest, status: RequestStatus) {
        match own.verify {
            true => self.checked(status),
            false => self.mended(own.extent, status),
        }
    }

    fn readings(&self) -> Vec<(&'static str, f64)> {
        let megabytes = |sectors: Sectors| sectors.bytes().0 as f64 / 1e6;
        let VerifyCounts {
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
            ("verify_left_mb", megabytes(self.kept.unverified())),
            ("verify_found", found as f64),
            ("verify_mended_mb", megabytes(mended)),
            ("verify_doubted_mb", megabytes(doubted)),
        ]
    }
}
