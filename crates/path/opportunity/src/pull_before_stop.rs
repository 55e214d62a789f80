//! PULL before platters stop, as proposed in *Pro-active storage systems* (section 2.5). Without
//! the PULL, dirty data of hosts would wake the platters as soon as write-back is due.
//!
//! When no request has come for `after`, every host is asked for all dirty data. `after` is shorter
//! than the idle time before a stop. The following writes count as the answer until no request has
//! come for `after` again. The next request then begins another busy time. Thus hosts are asked
//! once in each idle time. Recurring writes postpone the stop once, not for ever. While platters
//! stand, hosts are asked only with `start_standing`, because the answers would start the platters.
//! An example is a mirror of which one drive has not been read.

use crate::quiet::{any, granule, quiet_time, some};
use crate::{Opportunity, OpportunitySite, OpportunityView};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Operation, Request, RequestStatus, Signal};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const SUMMARY: &str =
    "pulls all dirty pages of every host before idle drives stop their platters";

/// Keys of `pull-before-stop`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Time without a request before a PULL. Must be shorter than the idle time before a stop.
    /// Default 5s.
    after: Duration,
    /// Size of the PULL to each host. Default: the size of the largest page cache.
    flush: Option<Bytes>,
    /// True if hosts are asked although platters stand. The answers may start the platters. Default
    /// false.
    start_standing: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            after: Duration::from_secs(5),
            flush: None,
            start_standing: false,
        }
    }
}

pub(crate) fn build(
    keys: &Keys,
    site: &OpportunitySite,
) -> Result<Box<dyn Opportunity>, ConfigError> {
    let Config {
        after,
        flush,
        start_standing,
    } = read(keys)?;
    let after = quiet_time("after", some("after", after)?, site)?;
    let Some(stop) = site.stop else {
        let message = "no drive has [spin_down]; add [spin_down], or use kind = \"idle-flush-on\"";
        return Err(ConfigError::new("kind", message));
    };
    if after >= stop {
        let [after, stop] = [after, stop].map(|time| time.as_secs_f64());
        let message = format!(
            "found {after} s; expected less than {stop} s, the shortest idle time before a stop"
        );
        return Err(ConfigError::new("after", message));
    }
    let flush = flush.map_or(Ok(largest_cache(site)), |flush| granule(flush, site))?;
    let stage = WatchStage::Busy { since: Time::ZERO };
    let (hosts, counts) = (site.hosts, PullCounts::default());
    Ok(Box::new(PullBeforeStop {
        after,
        flush,
        start_standing,
        hosts,
        stage,
        counts,
    }))
}

/// Returns the size of the largest page cache, at most one TiB, because the cache of network
/// clients is not known.
fn largest_cache(site: &OpportunitySite) -> Sectors {
    // 2^31 sectors of 512 bytes are one TiB.
    Sectors((site.page_cache.0 / SECTOR_BYTES).min(1 << 31))
}

struct PullBeforeStop {
    after: Duration,
    flush: Sectors,
    start_standing: bool,
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

impl Opportunity for PullBeforeStop {
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
            WatchStage::Busy { .. } if seen.standing > 0 && !self.start_standing => {
                WatchStage::Quiet
            }
            WatchStage::Busy { .. } => {
                self.counts.asked += 1;
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
        vec![
            ("stop_pulls", asked as f64),
            ("stop_pulls_answered", answered as f64),
            ("stop_pulls_written_mb", written.bytes().0 as f64 / 1e6),
        ]
    }
}

impl PullBeforeStop {
    /// Ends the current stage, counts an answer, and returns the next stage.
    fn ended(&mut self, next: WatchStage) -> WatchStage {
        if let WatchStage::Asked { written, .. } = self.stage {
            self.counts.answered += u64::from(written > Sectors::ZERO);
            self.counts.written += written;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Gauge;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Returns the times of the PULLs within a minute, with `after` = 2 s. Each request has an
    /// arrival in ms, an operation and a stay in ms.
    fn pulls(requests: &[(u64, Operation, u64)]) -> (Vec<u64>, Vec<(&'static str, f64)>) {
        pulls_while_standing(requests, 0)
    }

    /// Returns the same with `standing` drives whose platters stand.
    fn pulls_while_standing(
        requests: &[(u64, Operation, u64)],
        standing: u32,
    ) -> (Vec<u64>, Vec<(&'static str, f64)>) {
        let keys = serde_json::json!({ "after": "2s" });
        let mut pull = build(keys.as_object().unwrap(), &crate::testing::site()).unwrap();
        let mut pulled = Vec::new();
        for ms in 0..60_000 {
            let inside = |then: u64| {
                requests
                    .iter()
                    .filter(|(came, _, stays)| (*came..came + stays).contains(&then))
                    .count()
            };
            let seen = OpportunityView {
                now: at(ms),
                inside: inside(ms) as u32,
                arm: Gauge::default(),
                standing,
            };
            let request = |operation| Request {
                operation,
                extent: fullstroke_contract::Extent::new(0, 2000),
                ..Request::default()
            };
            for (_, operation, _) in requests.iter().filter(|(came, ..)| *came == ms) {
                pull.arrived(seen, &request(*operation));
            }
            for (_, operation, _) in requests
                .iter()
                .filter(|(came, _, stays)| came + stays == ms)
            {
                pull.left(seen, &request(*operation), RequestStatus::Done);
            }
            if pull.next_look() <= at(ms) {
                pull.look(seen, &mut |signal| {
                    assert_eq!(
                        signal,
                        Signal::Pull {
                            extent: None,
                            sectors: Sectors(2048)
                        }
                    );
                    pulled.push(ms);
                });
            }
        }
        (pulled, pull.readings())
    }

    #[test]
    fn it_asks_once_about_each_idle_time() {
        use Operation::{Read, Write};
        let (pulled, counted) =
            pulls(&[(5_000, Read, 10), (30_000, Write, 10), (31_000, Write, 10)]);
        assert_eq!(pulled, [2_000, 7_010, 33_010]);
        assert_eq!(
            counted,
            [
                ("stop_pulls", 3.0),
                ("stop_pulls_answered", 0.0),
                ("stop_pulls_written_mb", 0.0)
            ]
        );
    }

    #[test]
    fn answers_begin_no_other_idle_time_and_reads_do() {
        use Operation::{Read, Write};
        // An answer, the rest of the answer, and then another request.
        let (pulled, counted) = pulls(&[
            (2_100, Write, 500),
            (3_000, Write, 500),
            (20_000, Write, 10),
        ]);
        assert_eq!(pulled, [2_000, 22_010]);
        assert_eq!(
            counted[1..],
            [
                ("stop_pulls_answered", 1.0),
                ("stop_pulls_written_mb", 2.048)
            ]
        );
        let (pulled, _) = pulls(&[(2_100, Write, 500), (3_000, Read, 500)]);
        assert_eq!(pulled, [2_000, 5_500]);
    }

    #[test]
    fn platters_that_stand_are_not_started_for_it() {
        let requests = [(5_000, Operation::Write, 10)];
        assert_eq!(pulls_while_standing(&requests, 1).0, [0; 0]);
        assert_eq!(pulls_while_standing(&requests, 0).0, [2_000, 7_010]);
    }

    #[test]
    fn what_takes_its_time_is_waited_for() {
        let (pulled, _) = pulls(&[(1_000, Operation::Read, 15_000)]);
        assert_eq!(pulled, [18_000]);
    }

    #[test]
    fn a_time_behind_which_platters_stand_already_is_refused() {
        let refused = |keys: serde_json::Value, site: &OpportunitySite| {
            build(keys.as_object().unwrap(), site)
                .err()
                .map(|error| error.to_string())
                .unwrap()
        };
        let site = crate::testing::site();
        let error = refused(serde_json::json!({ "after": "10min" }), &site);
        assert!(
            error.starts_with("`after`")
                && error.contains("less than 60 s, the shortest idle time"),
            "{error}"
        );
        let error = refused(
            serde_json::json!({}),
            &OpportunitySite {
                stop: None,
                ..site.clone()
            },
        );
        assert!(error.contains("no drive has"), "{error}");
        assert!(
            refused(serde_json::json!({ "flush": "2MiB" }), &site).contains("largest page cache")
        );
    }
}
