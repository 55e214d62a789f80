//! PULL before drives with shingled tracks clean, so that hosts do not interrupt the cleaning.
//!
//! Cleaning begins after a time without requests. A write ends that time, and the drive waits for
//! the next one. Hosts that write back at their own times may thus keep a drive from cleaning.
//! After the PULL no host has old dirty data, and no write-back is due for some time. Hosts are
//! asked once in each idle time (`pull_once.rs`), and not while a drive cleans, because the answers
//! would interrupt the cleaning.

use crate::pull_once::{PullOnce, PullWhen};
use crate::quiet::{quiet_time, some};
use crate::{Opportunity, OpportunitySite, OpportunityView};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const SUMMARY: &str =
    "pulls all dirty pages of every host before drives with shingled tracks clean bands";

/// Keys of `pull-before-cleaning`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Time without a request before a PULL. Must be shorter than the idle time before cleaning.
    /// Default 500ms.
    after: Duration,
    /// Least time between two PULLs. Default 30s.
    every: Duration,
    /// Size of the PULL to each host. Default: the size of the largest page cache.
    flush: Option<Bytes>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            // Half of the idle time after which Skylight (FAST 2015) saw drives clean.
            after: Duration::from_millis(500),
            // Linux writes a page back 30 s after the page became dirty, so hosts write no more
            // often than without PULLs.
            every: Duration::from_secs(30),
            flush: None,
        }
    }
}

pub(crate) fn build(
    keys: &Keys,
    site: &OpportunitySite,
) -> Result<Box<dyn Opportunity>, ConfigError> {
    let Config {
        after,
        every,
        flush,
    } = read(keys)?;
    let after = quiet_time("after", some("after", after)?, site)?;
    let Some(clean) = site.clean else {
        let message = "no drive cleans bands in idle time; use drives with [shingled], or kind = \"idle-flush-on\"";
        return Err(ConfigError::new("kind", message));
    };
    if after >= clean {
        let message = format!(
            "found {after}; expected less than {clean}, the shortest idle time before cleaning"
        );
        return Err(ConfigError::new("after", message));
    }
    let when = BeforeCleaning {
        every,
        next: Time::ZERO,
    };
    Ok(Box::new(PullOnce::new(after, flush, when, site)?))
}

/// Condition of the PULL: no drive cleans, and the last PULL is long enough ago.
struct BeforeCleaning {
    every: Duration,
    /// Earliest time of the next PULL.
    next: Time,
}

impl PullWhen for BeforeCleaning {
    fn waits(&self, seen: OpportunityView) -> bool {
        seen.cleaning > 0 || seen.now < self.next
    }

    fn asks(&mut self, now: Time) {
        self.next = now.capped_add(self.every);
    }

    fn names(&self) -> [&'static str; 3] {
        [
            "cleaning_pulls",
            "cleaning_pulls_answered",
            "cleaning_pulls_written_mb",
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Extent, Gauge, Operation, Request, RequestStatus, Signal};

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Returns the times of the PULLs within a minute. Reads come at `reads` in ms, and are answered
    /// at once. Drives clean in the milliseconds of `cleaning`.
    fn pulls(reads: &[u64], cleaning: std::ops::Range<u64>) -> Vec<u64> {
        let keys = serde_json::json!({ "every": "10s" });
        let mut pull = build(keys.as_object().unwrap(), &crate::testing::site()).unwrap();
        let mut pulled = Vec::new();
        for ms in 0..60_000 {
            let seen = OpportunityView {
                now: at(ms),
                inside: 0,
                arm: Gauge::default(),
                standing: 0,
                cleaning: u32::from(cleaning.contains(&ms)),
            };
            let request = Request {
                operation: Operation::Read,
                extent: Extent::new(0, 8),
                ..Request::default()
            };
            if reads.contains(&ms) {
                pull.arrived(seen, &request);
                pull.left(seen, &request, RequestStatus::Done);
            }
            if pull.next_look() <= at(ms) {
                pull.look(seen, &mut |signal| {
                    assert!(matches!(signal, Signal::Pull { extent: None, .. }));
                    pulled.push(ms);
                });
            }
        }
        pulled
    }

    #[test]
    fn it_asks_once_about_each_idle_time_and_not_too_often() {
        // The idle time from 9 s on passes without a PULL, because the last is less than 10 s ago.
        assert_eq!(pulls(&[9_000, 15_000, 15_400], 0..0), [500, 15_900]);
    }

    #[test]
    fn it_does_not_ask_while_a_drive_cleans() {
        assert_eq!(pulls(&[20_000, 40_000], 1_000..30_000), [500, 40_500]);
    }

    #[test]
    fn times_that_no_drive_waits_for_are_refused() {
        let refused = |keys: serde_json::Value, site: &OpportunitySite| {
            build(keys.as_object().unwrap(), site)
                .err()
                .map(|error| error.to_string())
                .unwrap()
        };
        let site = OpportunitySite {
            clean: Some(Duration::from_secs(1)),
            ..crate::testing::site()
        };
        let error = refused(serde_json::json!({ "after": "2s" }), &site);
        assert!(
            error.starts_with("`after`") && error.contains("less than 1s"),
            "{error}"
        );
        let site = OpportunitySite {
            clean: None,
            ..site
        };
        let error = refused(serde_json::json!({}), &site);
        assert!(error.contains("no drive cleans bands"), "{error}");
    }
}
