//! A load of an arrival process, an address pattern, request sizes and a read share.

use crate::addresses::{self, AddressPattern};
use crate::arrivals::{self, Arrivals};
use crate::region::{RegionKeys, region};
use crate::sizes::{SizeConfig, SizeDraws};
use fullstroke_contract::registry::{Keys, find};
use fullstroke_contract::{
    Completion, ConfigError, Effects, Extent, Node, NodeContext, Operation, Port, Request,
    RequestId, Source, Wake,
};
use fullstroke_units::{Bytes, Duration, Random, Sectors, Seed, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The keys of a synthetic load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticConfig {
    /// Number of requests; or give `duration`.
    pub requests: Option<u64>,
    /// Time during which requests are issued; or give `requests`. With both, the first to be
    /// reached ends the load.
    pub duration: Option<Duration>,
    /// Share of reads, 0 to 1.
    #[serde(default = "all_reads")]
    pub read_share: f64,
    /// Size of the requests: one, or a list of `{ size, weight }`.
    #[serde(default = "four_kib")]
    pub size: SizeConfig,
    /// Requests start at multiples of this size. Default: the smallest request size.
    pub alignment: Option<Bytes>,
    /// Start of the addressed part of the volume.
    #[serde(default)]
    pub region_start: Bytes,
    /// Size of the addressed part. Default: everything after the start.
    pub region_size: Option<Bytes>,
    /// Arrival process.
    pub arrivals: ArrivalsConfig,
    /// Address pattern.
    #[serde(default)]
    pub addresses: AddressesConfig,
}

/// The arrival process of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalsConfig {
    /// Name of an arrival process.
    pub process: String,
    /// The keys of the process.
    #[serde(flatten)]
    pub keys: Keys,
}

/// The address pattern of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddressesConfig {
    /// Name of an address pattern.
    pub pattern: String,
    /// The keys of the pattern.
    #[serde(flatten)]
    pub keys: Keys,
}

impl Default for AddressesConfig {
    fn default() -> AddressesConfig {
        AddressesConfig {
            pattern: "random".into(),
            keys: Keys::new(),
        }
    }
}

pub(crate) fn all_reads() -> f64 {
    1.0
}

pub(crate) fn four_kib() -> SizeConfig {
    SizeConfig::Fixed(Bytes(4096))
}

/// A source of synthetic requests.
pub struct Synthetic {
    arrivals: Arrivals,
    addresses: Box<dyn AddressPattern>,
    sizes: SizeDraws,
    read_share: f64,
    left: u64,
    expected: Option<u64>,
    end: Time,
    issued: u64,
    /// Open loads: the next arrival.
    next: Time,
    /// Closed loads with think time: issue times of the next requests.
    thinking: BinaryHeap<Reverse<Time>>,
    when: Random,
    place: Random,
    mix: Random,
}

impl Synthetic {
    /// A source for a volume of `capacity`.
    ///
    /// # Errors
    /// Names the impossible key.
    pub fn new(
        config: &SyntheticConfig,
        capacity: Sectors,
        seed: Seed,
    ) -> Result<Synthetic, ConfigError> {
        if config.requests.is_none() && config.duration.is_none() {
            return Err(ConfigError::new(
                "requests",
                "the load has no end; give `requests` or `duration`",
            ));
        }
        if !(0.0..=1.0).contains(&config.read_share) {
            return Err(ConfigError::new(
                "read_share",
                format!("found {}; expected 0 to 1", config.read_share),
            ));
        }
        let sizes = SizeDraws::new(&config.size)?;
        let region = region(
            RegionKeys {
                start: config.region_start,
                size: config.region_size,
                alignment: config.alignment,
            },
            &sizes,
            capacity,
        )?;
        let pattern = find(
            "address pattern",
            addresses::REGISTRY,
            "pattern",
            &config.addresses.pattern,
        )
        .and_then(|entry| (entry.build)(&config.addresses.keys, &region))
        .map_err(|error| error.below("addresses"))?;
        let process = find(
            "arrival process",
            arrivals::REGISTRY,
            "process",
            &config.arrivals.process,
        )
        .and_then(|entry| (entry.build)(&config.arrivals.keys))
        .map_err(|error| error.below("arrivals"))?;
        let mut source = Synthetic {
            addresses: pattern,
            sizes,
            read_share: config.read_share,
            left: config.requests.unwrap_or(u64::MAX),
            expected: config.requests.filter(|_| config.duration.is_none()),
            end: config
                .duration
                .map_or(Time::NEVER, |duration| Time::ZERO + duration),
            issued: 0,
            next: Time::ZERO,
            thinking: BinaryHeap::new(),
            // One random stream a purpose: another arrival process leaves the addresses and the mix
            // as before.
            when: seed.stream("workload arrivals"),
            place: seed.stream("workload addresses"),
            mix: seed.stream("workload mix"),
            arrivals: process,
        };
        if let Arrivals::Closed { outstanding, .. } = source.arrivals {
            // A closed load has no next arrival. Each outstanding request begins as a thinker that
            // is due at 0.
            source.next = Time::NEVER;
            source
                .thinking
                .extend((0..outstanding).map(|_| Reverse(Time::ZERO)));
        }
        Ok(source)
    }

    #[inline]
    fn issue(&mut self, out: &mut Effects) {
        self.left -= 1;
        self.issued += 1;
        let sectors = self.sizes.draw(&mut self.mix);
        debug_assert!(
            sectors > Sectors::ZERO && self.left < u64::MAX,
            "request {} moves nothing",
            self.issued
        );
        let start = self.addresses.next(sectors, &mut self.place);
        let read = self.read_share >= 1.0 || self.mix.chance(self.read_share);
        let request = Request {
            id: RequestId(self.issued),
            operation: if read {
                Operation::Read
            } else {
                Operation::Write
            },
            extent: Extent { start, sectors },
            ..Request::default()
        };
        out.issue(0, request);
    }
}

impl Node for Synthetic {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while self.next <= now && self.left > 0 && self.next < self.end {
            self.issue(cx.out);
            self.next += self.arrivals.gap(&mut self.when);
        }
        while self.thinking.peek().is_some_and(|&Reverse(due)| due <= now)
            && self.left > 0
            && now < self.end
        {
            self.thinking.pop();
            self.issue(cx.out);
        }
    }

    fn completed(&mut self, now: Time, _: Port, _: Completion, cx: &mut NodeContext<'_>) {
        let Arrivals::Closed {
            think_time,
            exponential,
            ..
        } = self.arrivals
        else {
            return;
        };
        if self.left == 0 || now >= self.end {
            return;
        }
        if think_time == Duration::ZERO {
            return self.issue(cx.out);
        }
        let pause = if exponential {
            self.when.exponential(think_time)
        } else {
            think_time
        };
        self.thinking.push(Reverse(now + pause));
    }

    fn next_wake(&self) -> Wake {
        let thinker = self
            .thinking
            .peek()
            .map_or(Time::NEVER, |&Reverse(due)| due);
        let next = self.next.min(thinker);
        if self.left == 0 || next >= self.end {
            Wake::NEVER
        } else {
            next.into()
        }
    }
}

impl Source for Synthetic {
    fn depends_on_completions(&self) -> bool {
        matches!(self.arrivals, Arrivals::Closed { .. })
    }

    fn expected_requests(&self) -> Option<u64> {
        self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn config(text: &str) -> SyntheticConfig {
        serde_json::from_str(text).unwrap()
    }

    fn issue_all(source: &mut Synthetic) -> Vec<(Time, Request)> {
        let mut issued = Vec::new();
        while source.next_wake().is_work() {
            let now = source.next_wake().at();
            let mut out = Effects::new();
            source.wake(now, &mut NodeContext::alone(&mut out));
            issued.extend(out.requests().map(|request| (now, request)));
        }
        issued
    }

    proptest! {
        #[test]
        fn every_pattern_stays_in_its_region_and_on_its_alignment(
            seed: u64, pattern in 0..addresses::REGISTRY.len(), start in 0u64..50, length in 16u64..500,
        ) {
            let name = addresses::REGISTRY[pattern].name;
            let text = format!(
                r#"{{"requests": 200, "size": [{{"size": 4096, "weight": 1}}, {{"size": 8192, "weight": 1}}],
                    "region_start": {}, "region_size": {}, "arrivals": {{"process": "constant", "rate_per_s": 100}},
                    "addresses": {{"pattern": "{name}"}}}}"#, start * 4096, length * 512);
            let mut source = Synthetic::new(&config(&text), Sectors(100_000), Seed(seed)).unwrap();
            let issued = issue_all(&mut source);
            prop_assert_eq!(issued.len(), 200);
            for (_, request) in issued {
                prop_assert!(request.extent.start.0 >= start * 8, "{}", name);
                prop_assert!(request.extent.end().0 <= start * 8 + length, "{}", name);
                prop_assert_eq!((request.extent.start.0 - start * 8) % 8, 0, "{}", name);
            }
        }
    }

    #[test]
    fn bursts_come_as_described() {
        let text = r#"{"requests": 45, "arrivals": {"process": "bursts", "requests": 20, "spacing": "10us", "interval": "400ms"}}"#;
        let mut source = Synthetic::new(&config(text), Sectors(100_000), Seed(1)).unwrap();
        let times: Vec<u64> = issue_all(&mut source)
            .iter()
            .map(|(at, _)| at.as_nanos())
            .collect();
        assert_eq!(
            (times[0], times[1], times[19], times[20], times[40]),
            (0, 10_000, 190_000, 400_000_000, 800_000_000)
        );
    }

    #[test]
    fn a_closed_load_keeps_its_number_outstanding() {
        let text = r#"{"requests": 10, "arrivals": {"process": "closed", "outstanding": 3}}"#;
        let mut source = Synthetic::new(&config(text), Sectors(100_000), Seed(1)).unwrap();
        let mut out = Effects::new();
        source.wake(Time::ZERO, &mut NodeContext::alone(&mut out));
        assert_eq!((out.len(), source.next_wake().at()), (3, Time::NEVER));
        for _ in 0..20 {
            source.completed(
                Time::from_nanos(5),
                Port::FIRST,
                Completion::default(),
                &mut NodeContext::alone(&mut out),
            );
        }
        assert_eq!(out.requests().count(), 10);
    }

    #[test]
    fn think_time_delays_the_next_request() {
        let text = r#"{"requests": 2, "arrivals": {"process": "closed", "think_time": "2ms"}}"#;
        let mut source = Synthetic::new(&config(text), Sectors(100_000), Seed(1)).unwrap();
        let mut out = Effects::new();
        source.wake(Time::ZERO, &mut NodeContext::alone(&mut out));
        source.completed(
            Time::from_nanos(7),
            Port::FIRST,
            Completion::default(),
            &mut NodeContext::alone(&mut out),
        );
        assert_eq!(
            (out.len(), source.next_wake().at()),
            (1, Time::from_nanos(2_000_007))
        );
    }

    #[test]
    fn a_load_without_end_is_refused() {
        let text = r#"{"arrivals": {"process": "closed"}}"#;
        let error = Synthetic::new(&config(text), Sectors(100_000), Seed(1))
            .err()
            .unwrap();
        assert_eq!(error.key, "requests");
    }
}
