//! PULL before platters stop, as proposed in *Pro-active storage systems* (section 2.5). Without
//! the PULL, dirty data of hosts would wake the platters as soon as write-back is due.
//!
//! `after` is shorter than the idle time before a stop. Hosts are asked once in each idle time
//! (`pull_once.rs`). Recurring writes postpone the stop once, not for ever. While platters
//! stand, hosts are asked only with `start_standing`, because the answers would start the platters.
//! An example is a mirror of which one drive has not been read.

use crate::pull_once::{PullOnce, PullWhen};
use crate::quiet::{quiet_time, some};
use crate::{Opportunity, OpportunitySite, OpportunityView};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Duration};
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
    /// True if hosts are asked although platters stand still. The writes of the hosts may start the
    /// platters. Default false.
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
    Ok(Box::new(PullOnce::new(
        after,
        flush,
        BeforeStop { start_standing },
        site,
    )?))
}

/// Condition of the PULL: all platters turn.
struct BeforeStop {
    start_standing: bool,
}

impl PullWhen for BeforeStop {
    fn waits(&self, seen: OpportunityView) -> bool {
        seen.standing > 0 && !self.start_standing
    }

    fn names(&self) -> [&'static str; 3] {
        ["stop_pulls", "stop_pulls_answered", "stop_pulls_written_mb"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Gauge, Operation, Request, RequestStatus, Signal};
    use fullstroke_units::{Sectors, Time};

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
                cleaning: 0,
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
