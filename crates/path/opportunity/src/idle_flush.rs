//! Opportunistic flushing with fixed thresholds (*Pro-active storage systems*, section 3.1).
//!
//! The opportunity looks at regular intervals. If no request has come for a while and few requests
//! are inside, the opportunity pulls any dirty pages. One pull should take at most one interval to
//! write, otherwise the flush looks like load. 16 pages fit an interval of 120 ms.

use crate::quiet::{any, granule, quiet_time, some};
use crate::{Opportunity, OpportunitySite, OpportunityView};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Request, RequestStatus, Signal};
use fullstroke_units::{Bytes, Duration, Sectors, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const SUMMARY: &str = "pulls dirty pages at intervals, while no request has come for a time and the array has few requests";

/// Keys of `idle-flush`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Time between two checks of the load, and so between two pulls. Default 120ms.
    every: Duration,
    /// Time without a request before a pull. Default 120ms.
    wait: Duration,
    /// Largest number of unfinished requests in the array at which a pull is made. Default 0.
    most_inside: u32,
    /// Size of one pull. Default 64KiB.
    flush: Bytes,
}

impl Default for Config {
    fn default() -> Config {
        // 120 ms: the time assumed for one write-back, so the shortest useful interval (*Pro-active
        // storage systems*, section 3.1).
        let interval = Duration::from_millis(120);
        Config {
            every: interval,
            wait: interval,
            most_inside: 0,
            // 16 pages: a write-back of 16 pages fits the interval (section 3.1).
            flush: Bytes(64 << 10),
        }
    }
}

pub(crate) fn build(
    keys: &Keys,
    site: &OpportunitySite,
) -> Result<Box<dyn Opportunity>, ConfigError> {
    let Config {
        every,
        wait,
        most_inside,
        flush,
    } = read(keys)?;
    let every = quiet_time("every", some("every", every)?, site)?;
    let wait = quiet_time("wait", wait, site)?;
    let (flush, came) = (granule(flush, site)?, Time::ZERO);
    Ok(Box::new(IdleFlush {
        every,
        wait,
        most_inside,
        flush,
        came,
        look: Time::ZERO + every,
    }))
}

struct IdleFlush {
    every: Duration,
    wait: Duration,
    most_inside: u32,
    flush: Sectors,
    /// Time of the last arrival.
    came: Time,
    look: Time,
}

impl Opportunity for IdleFlush {
    fn arrived(&mut self, seen: OpportunityView, _: &Request) -> bool {
        self.came = seen.now;
        false
    }

    fn left(&mut self, _: OpportunityView, _: &Request, _: RequestStatus) {}

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
        // A late look does not shift the intervals.
        let missed = seen.now.since(self.look).as_nanos() / self.every.as_nanos();
        self.look += self.every * (missed + 1);
        if seen.now >= self.came + self.wait && seen.inside <= self.most_inside {
            say(any(self.flush));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Gauge, Operation};

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Returns the times of the pulls within a second. Requests come at `requests` in ms and stay
    /// 30 ms.
    fn pulls(requests: &[u64]) -> Vec<u64> {
        let mut flush = build(&Keys::new(), &crate::testing::site()).unwrap();
        let mut pulled = Vec::new();
        for ms in 0..1000 {
            let inside = requests
                .iter()
                .filter(|&&came| (came..came + 30).contains(&ms))
                .count() as u32;
            let seen = OpportunityView {
                now: at(ms),
                inside,
                arm: Gauge::default(),
                standing: 0,
                cleaning: 0,
            };
            if requests.contains(&ms) {
                flush.arrived(
                    seen,
                    &Request {
                        operation: Operation::Read,
                        ..Request::default()
                    },
                );
            }
            if flush.next_look() <= at(ms) {
                flush.look(seen, &mut |signal| {
                    assert_eq!(
                        signal,
                        Signal::Pull {
                            extent: None,
                            sectors: Sectors(128)
                        }
                    );
                    pulled.push(ms);
                });
            }
        }
        pulled
    }

    #[test]
    fn it_pulls_at_each_interval_of_a_quiet_array() {
        assert_eq!(pulls(&[]), [120, 240, 360, 480, 600, 720, 840, 960]);
    }

    #[test]
    fn what_comes_puts_it_off() {
        assert_eq!(pulls(&[230]), [120, 360, 480, 600, 720, 840, 960]);
        assert_eq!(pulls(&[100, 200, 300, 400, 500]), [720, 840, 960]);
    }

    #[test]
    fn so_many_requests_may_be_inside() {
        let keys = serde_json::from_str(r#"{ "most_inside": 2 }"#).unwrap();
        for (inside, expected) in [(0, 1), (1, 1), (2, 1), (3, 0)] {
            let mut flush = build(&keys, &crate::testing::site()).unwrap();
            let seen = OpportunityView {
                now: at(120),
                inside,
                arm: Gauge::default(),
                standing: 0,
                cleaning: 0,
            };
            let mut pulls = 0;
            flush.look(seen, &mut |_| pulls += 1);
            assert_eq!(pulls, expected, "{inside} inside");
        }
    }

    #[test]
    fn looking_late_keeps_the_intervals() {
        let mut flush = build(&Keys::new(), &crate::testing::site()).unwrap();
        flush.look(
            OpportunityView {
                now: at(500),
                inside: 0,
                arm: Gauge::default(),
                standing: 0,
                cleaning: 0,
            },
            &mut |_| {},
        );
        assert_eq!(flush.next_look(), at(600));
    }
}
