//! A PULL of all dirty data in idle time, once in each idle time.
//!
//! When no request has come for `after`, every host is asked for all dirty data. The following
//! writes count as the answer until no request has come for `after` again. The next request then
//! begins another busy time.

use crate::quiet::{any, granule};
use crate::{Opportunity, OpportunitySite, OpportunityView};
use fullstroke_contract::{ConfigError, Operation, Request, RequestStatus, Signal};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Time};

/// Returns the size of the largest page cache, at most one TiB, because the cache of network
/// clients is not known.
fn largest_cache(site: &OpportunitySite) -> Sectors {
    // 2^31 sectors of 512 bytes are one TiB.
    Sectors((site.page_cache.0 / SECTOR_BYTES).min(1 << 31))
}

/// Condition of a PULL of all dirty data.
pub(crate) trait PullWhen: Send {
    /// True if this idle time passes without a PULL.
    fn waits(&self, seen: OpportunityView) -> bool;
    /// Notes that hosts are asked.
    fn asks(&mut self, _now: Time) {}
    /// Returns the names of the readings: PULLs, PULLs with an answer, megabytes of the answers.
    fn names(&self) -> [&'static str; 3];
}

/// A PULL of all dirty data to every host, once in each idle time.
pub(crate) struct PullOnce<W> {
    after: Duration,
    flush: Sectors,
    when: W,
    hosts: usize,
    stage: WatchStage,
    counts: PullCounts,
}

/// Stage of the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchStage {
    /// Requests come. `since` is the time of the last arrival or completion.
    Busy { since: Time },
    /// Hosts were asked and have written `written` so far. `since` is the time of the last arrival
    /// or completion.
    Asked { since: Time, written: Sectors },
    /// The hosts have answered, and no request has come since.
    Quiet,
}

#[derive(Clone, Copy, Debug, Default)]
struct PullCounts {
    /// Number of idle times with a PULL.
    asked: u64,
    /// Number of idle times with an answer.
    answered: u64,
    /// Sectors written in answers.
    written: Sectors,
}

impl<W: PullWhen> PullOnce<W> {
    /// Creates an opportunity that asks after an idle time of `after`. A PULL asks for `flush`, or
    /// for as much as the largest page cache.
    ///
    /// # Errors
    /// Names `flush` as [`granule`] does.
    pub(crate) fn new(
        after: Duration,
        flush: Option<Bytes>,
        when: W,
        site: &OpportunitySite,
    ) -> Result<PullOnce<W>, ConfigError> {
        Ok(PullOnce {
            after,
            flush: flush.map_or(Ok(largest_cache(site)), |flush| granule(flush, site))?,
            when,
            hosts: site.hosts,
            stage: WatchStage::Busy { since: Time::ZERO },
            counts: PullCounts::default(),
        })
    }
}

impl<W: PullWhen> Opportunity for PullOnce<W> {
    fn arrived(&mut self, seen: OpportunityView, request: &Request) -> bool {
        let since = seen.now;
        self.stage = match self.stage {
            WatchStage::Asked { written, .. } if request.operation == Operation::Write => {
                WatchStage::Asked {
                    since,
                    written: written + request.extent.sectors,
                }
            }
            // Flushes belong to the answer, because hosts flush their writes.
            WatchStage::Asked { written, .. } if request.operation != Operation::Read => {
                WatchStage::Asked { since, written }
            }
            _ => self.ended(WatchStage::Busy { since }),
        };
        false
    }

    fn left(&mut self, seen: OpportunityView, _: &Request, _: RequestStatus) {
        if let WatchStage::Busy { since } | WatchStage::Asked { since, .. } = &mut self.stage {
            *since = seen.now;
        }
    }

    fn waits_for_quiet(&self) -> bool {
        true
    }

    fn next_look(&self) -> Time {
        match self.stage {
            WatchStage::Busy { since } | WatchStage::Asked { since, .. } => since + self.after,
            WatchStage::Quiet => Time::NEVER,
        }
    }

    fn look(&mut self, seen: OpportunityView, say: &mut dyn FnMut(Signal)) {
        if seen.now < self.next_look() {
            return;
        }
        let since = seen.now;
        self.stage = match self.stage {
            // No request has come for a time, but an earlier request is still inside.
            WatchStage::Busy { .. } if seen.inside > 0 => WatchStage::Busy { since },
            WatchStage::Asked { written, .. } if seen.inside > 0 => {
                WatchStage::Asked { since, written }
            }
            WatchStage::Busy { .. } if self.when.waits(seen) => WatchStage::Quiet,
            WatchStage::Busy { .. } => {
                self.counts.asked += 1;
                self.when.asks(seen.now);
                // A shared stage passes each PULL to the next host in turn, so one PULL per host
                // reaches all hosts.
                (0..self.hosts).for_each(|_| say(any(self.flush)));
                WatchStage::Asked {
                    since,
                    written: Sectors::ZERO,
                }
            }
            WatchStage::Asked { .. } | WatchStage::Quiet => self.ended(WatchStage::Quiet),
        };
    }

    fn readings(&self) -> Vec<(&'static str, f64)> {
        let PullCounts {
            asked,
            answered,
            written,
        } = self.counts;
        let values = [
            asked as f64,
            answered as f64,
            written.bytes().0 as f64 / 1e6,
        ];
        self.when.names().into_iter().zip(values).collect()
    }
}

impl<W> PullOnce<W> {
    /// Ends the current stage, counts an answer, and returns the next stage.
    fn ended(&mut self, next: WatchStage) -> WatchStage {
        if let WatchStage::Asked { written, .. } = self.stage {
            self.counts.answered += u64::from(written > Sectors::ZERO);
            self.counts.written += written;
        }
        next
    }
}
