//! Opportunistic flushing with one wait per idle period (*Pro-active storage systems*, section
//! 5.5).
//!
//! If no request has come for a while, a few dirty pages are pulled. If only the answers come then,
//! the array is as idle as before. More pages are pulled as soon as the answers are written,
//! without a new wait. Any other request ends the idle period.

use crate::quiet::{PulledSectors, any, granule, quiet_time, some};
use crate::{Opportunity, OpportunitySite, OpportunityView};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Request, RequestStatus, Signal};
use fullstroke_units::{Bytes, Duration, Sectors, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const SUMMARY: &str =
    "pulls dirty pages after a time without requests, and continues until another request comes";

/// Keys of `idle-flush-on`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Time without a request before the first pull. Default 120ms.
    wait: Duration,
    /// Size of one pull. Default 64KiB.
    flush: Bytes,
}

impl Default for Config {
    fn default() -> Config {
        // 120 ms and 64 KiB are the wait and the size of `idle-flush` (section 3.1).
        Config {
            wait: Duration::from_millis(120),
            flush: Bytes(64 << 10),
        }
    }
}

pub(crate) fn build(
    keys: &Keys,
    site: &OpportunitySite,
) -> Result<Box<dyn Opportunity>, ConfigError> {
    let Config { wait, flush } = read(keys)?;
    let (wait, flush) = (
        quiet_time("wait", some("wait", wait)?, site)?,
        granule(flush, site)?,
    );
    let (quiet_since, asked) = (Time::ZERO, PulledSectors::default());
    Ok(Box::new(IdleFlushOn {
        wait,
        flush,
        quiet_since,
        asked,
        came: false,
        look: Time::ZERO + wait,
    }))
}

struct IdleFlushOn {
    wait: Duration,
    flush: Sectors,
    /// Time of the last request that was no answer, or of the last pull.
    quiet_since: Time,
    asked: PulledSectors,
    /// True if part of an answer has come.
    came: bool,
    look: Time,
}

impl Opportunity for IdleFlushOn {
    fn arrived(&mut self, seen: OpportunityView, request: &Request) -> bool {
        if self.asked.answers(request) {
            self.came = true;
            return false;
        }
        // Any request that is no answer ends the idle period, and the wait begins anew.
        self.asked.forget();
        self.came = false;
        self.quiet_since = seen.now;
        self.look = seen.now + self.wait;
        false
    }

    fn left(&mut self, seen: OpportunityView, _: &Request, _: RequestStatus) {
        if self.came && seen.inside == 0 {
            // All answers are written, so the next PULL needs no new wait.
            self.look = self.look.min(seen.now);
        }
    }

    fn waits_for_quiet(&self) -> bool {
        true
    }

    fn next_look(&self) -> Time {
        self.look
    }

    fn look(&mut self, seen: OpportunityView, say: &mut dyn FnMut(Signal)) {
        if seen.now < self.look {
            return;
        }
        // If no answer comes, no page is dirty, and the next look is a wait later.
        self.look = seen.now + self.wait;
        if seen.inside > 0 || !(self.came || seen.now >= self.quiet_since + self.wait) {
            return;
        }
        (self.came, self.quiet_since) = (false, seen.now);
        self.asked.ask(self.flush);
        say(any(self.flush));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Extent, Gauge, Operation};

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Returns the times of the pulls in the first second. The host has `dirty` dirty granules, and
    /// the array writes each granule in 10 ms. Reads come at `reads` in ms and take as long.
    fn pulls(mut dirty: u32, reads: &[u64]) -> Vec<u64> {
        let mut flush = build(&Keys::new(), &crate::testing::site()).unwrap();
        let (mut pulled, mut ends): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        for ms in 0..1000 {
            let before = ends.len();
            ends.retain(|&end| end > ms);
            for gone in (ends.len()..before).rev() {
                flush.left(
                    OpportunityView {
                        now: at(ms),
                        inside: gone as u32,
                        arm: Gauge::default(),
                        standing: 0,
                        cleaning: 0,
                    },
                    &Request::default(),
                    RequestStatus::Done,
                );
            }
            if reads.contains(&ms) {
                ends.push(ms + 10);
                flush.arrived(
                    OpportunityView {
                        now: at(ms),
                        inside: ends.len() as u32,
                        arm: Gauge::default(),
                        standing: 0,
                        cleaning: 0,
                    },
                    &Request::default(),
                );
            }
            if flush.next_look() <= at(ms) {
                let mut asked = false;
                flush.look(
                    OpportunityView {
                        now: at(ms),
                        inside: ends.len() as u32,
                        arm: Gauge::default(),
                        standing: 0,
                        cleaning: 0,
                    },
                    &mut |_| asked = true,
                );
                if asked {
                    pulled.push(ms);
                }
                if asked && dirty > 0 {
                    dirty -= 1;
                    ends.push(ms + 10);
                    let write = Request {
                        operation: Operation::Write,
                        extent: Extent::new(0, 128),
                        ..Request::default()
                    };
                    flush.arrived(
                        OpportunityView {
                            now: at(ms),
                            inside: ends.len() as u32,
                            arm: Gauge::default(),
                            standing: 0,
                            cleaning: 0,
                        },
                        &write,
                    );
                }
            }
        }
        pulled
    }

    #[test]
    fn it_waits_once_and_then_goes_on_until_nothing_comes() {
        assert_eq!(
            pulls(3, &[])[..5],
            [120, 130, 140, 150, 270],
            "the fourth brings nothing"
        );
        assert_eq!(pulls(0, &[])[..3], [120, 240, 360]);
    }

    #[test]
    fn what_else_comes_ends_the_idle_period() {
        assert_eq!(pulls(9, &[135])[..4], [120, 130, 255, 265]);
    }

    #[test]
    fn writes_beyond_what_was_asked_for_are_somebody_elses() {
        let mut flush = build(&Keys::new(), &crate::testing::site()).unwrap();
        flush.look(
            OpportunityView {
                now: at(120),
                inside: 0,
                arm: Gauge::default(),
                standing: 0,
                cleaning: 0,
            },
            &mut |_| {},
        );
        let write = Request {
            operation: Operation::Write,
            extent: Extent::new(0, 128),
            ..Request::default()
        };
        flush.arrived(
            OpportunityView {
                now: at(121),
                inside: 1,
                arm: Gauge::default(),
                standing: 0,
                cleaning: 0,
            },
            &write,
        );
        flush.left(
            OpportunityView {
                now: at(125),
                inside: 0,
                arm: Gauge::default(),
                standing: 0,
                cleaning: 0,
            },
            &write,
            RequestStatus::Done,
        );
        assert_eq!(flush.next_look(), at(125), "an answer");
        flush.arrived(
            OpportunityView {
                now: at(125),
                inside: 1,
                arm: Gauge::default(),
                standing: 0,
                cleaning: 0,
            },
            &write,
        );
        assert_eq!(flush.next_look(), at(245), "no answer");
    }
}
