//! Rounds of reads without a user: a scrub, a backup, a monitor of the medium. Such reads often
//! wake sleeping disks.

use crate::region::{RegionKeys, region, sectors};
use crate::sizes::{SizeConfig, SizeDraws};
use fullstroke_contract::{
    Completion, ConfigError, Extent, Node, NodeContext, Port, Request, RequestId, Source, Wake,
};
use fullstroke_units::{Bytes, Duration, Random, Sectors, Seed, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The keys of background reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackgroundConfig {
    /// Time between the starts of two rounds. If a round lasts longer, the next round starts at the
    /// next multiple of this time.
    pub every: Duration,
    /// Rounds start during this time. The last round is completed.
    pub duration: Duration,
    /// Start of the first round. Default: `every`.
    pub first: Option<Duration>,
    /// Size of the reads.
    #[serde(default = "one_mib")]
    pub size: Bytes,
    /// Amount of data per round. Default: the whole region. A sequential round continues at the end
    /// of the previous round.
    pub amount: Option<Bytes>,
    /// Order of the reads.
    #[serde(default)]
    pub order: BackgroundOrder,
    /// Bytes a second during a round, regardless of response times. Default: one read after the
    /// other.
    pub rate: Option<Bytes>,
    /// Start of the read part of the volume.
    #[serde(default)]
    pub region_start: Bytes,
    /// Size of the read part of the volume. Default: everything after the start.
    pub region_size: Option<Bytes>,
}

/// The order of the places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundOrder {
    /// From the start to the end, repeatedly.
    #[default]
    Sequential,
    /// Random places, so that no buffer answers.
    Random,
}

fn one_mib() -> Bytes {
    Bytes(1 << 20)
}

/// A source of background reads for one volume.
pub struct Background {
    every: Duration,
    end: Time,
    size: u64,
    /// Sectors of a round.
    amount: u64,
    order: BackgroundOrder,
    /// Time between two reads of a round with a fixed rate.
    spacing: Option<Duration>,
    start: u64,
    length: u64,
    /// Start of the next round, or of the round in progress.
    round: Time,
    /// Sectors left in the round; `None` between rounds.
    left: Option<u64>,
    /// Due time of the next read of the round; never while a read is outstanding.
    next: Time,
    /// Sectors from the start of the region, for sequential rounds.
    at: u64,
    issued: u64,
    place: Random,
}

impl Background {
    /// A source for a volume of `capacity`.
    ///
    /// # Errors
    /// Names the impossible key.
    pub fn new(
        config: &BackgroundConfig,
        capacity: Sectors,
        seed: Seed,
    ) -> Result<Background, ConfigError> {
        let sizes = SizeDraws::new(&SizeConfig::Fixed(config.size))?;
        let keys = RegionKeys {
            start: config.region_start,
            size: config.region_size,
            alignment: None,
        };
        let region = region(keys, &sizes, capacity)?;
        let amount = config
            .amount
            .map_or(Ok(region.length), |amount| sectors("amount", amount))?;
        if config.every == Duration::ZERO {
            return Err(ConfigError::new(
                "every",
                "found 0; expected the time from round to round, such as 168h",
            ));
        }
        if amount == Sectors::ZERO {
            return Err(ConfigError::new(
                "amount",
                "found 0; expected the amount of data per round, such as 64KiB",
            ));
        }
        if config.rate == Some(Bytes(0)) {
            return Err(ConfigError::new(
                "rate",
                "found 0; expected bytes a second, such as 50MiB",
            ));
        }
        // The limit avoids an overflow for a rate of a byte a second and reads of an exabyte. A
        // century between two reads is longer than every run.
        let spacing = |rate: Bytes| {
            let nanoseconds = (config.size.0 as f64 / rate.0 as f64 * 1e9) as u64;
            Duration::from_nanos(nanoseconds).min(Duration::LONGEST)
        };
        Ok(Background {
            every: config.every,
            end: Time::ZERO + config.duration,
            size: region.largest.0,
            amount: amount.0,
            order: config.order,
            spacing: config.rate.map(spacing),
            start: region.start.0,
            length: region.length.0,
            round: Time::ZERO + config.first.unwrap_or(config.every),
            left: None,
            next: Time::NEVER,
            at: 0,
            issued: 0,
            place: seed.stream("background"),
        })
    }

    fn issue(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        let left = self.left.unwrap_or(0);
        let from = match self.order {
            BackgroundOrder::Sequential => self.at,
            // Places are multiples of the read size, so two different reads never overlap.
            BackgroundOrder::Random => self.place.below(self.length / self.size) * self.size,
        };
        // The last read of a round, or the last before the end of the region, may be shorter.
        let sectors = self.size.min(left).min(self.length - from);
        self.at = (from + sectors) % self.length;
        assert!(
            sectors > 0 && from + sectors <= self.length,
            "a round reads {sectors} sectors at {from}, of {}",
            self.length
        );
        let extent = Extent::new(self.start + from, sectors);
        cx.out.issue(
            0,
            Request {
                id: RequestId(self.issued),
                extent,
                ..Request::default()
            },
        );
        self.issued += 1;
        self.left = Some(left - sectors);
        self.next = self.spacing.map_or(Time::NEVER, |spacing| now + spacing);
        // With a fixed rate nobody waits for completions, so the issue of the last read ends the
        // round.
        if left == sectors && self.spacing.is_some() {
            self.finish(now);
        }
    }

    /// Ends the round. The next round starts at a whole multiple of `every` after this round.
    fn finish(&mut self, now: Time) {
        assert!(
            now >= self.round,
            "a round of {:?} is over at {now:?}",
            self.round
        );
        // A round that took longer than `every` skips starts. Otherwise rounds would pile up behind
        // a slow array.
        let rounds = now.since(self.round).as_nanos() / self.every.as_nanos() + 1;
        self.round += self.every * rounds;
        self.left = None;
    }
}

impl Node for Background {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        // A late wake-up issues each missed read at the read's own time, so lateness does not lower
        // the rate.
        while self.next_wake().at() <= now {
            let due = self.next_wake().at();
            self.left.get_or_insert(self.amount);
            self.issue(due, cx);
        }
    }

    fn completed(&mut self, now: Time, _: Port, _: Completion, cx: &mut NodeContext<'_>) {
        match (self.spacing, self.left) {
            (None, Some(0)) => self.finish(now),
            (None, Some(_)) => self.issue(now, cx),
            _ => {}
        }
    }

    fn next_wake(&self) -> Wake {
        match self.left {
            Some(_) => self.next.into(),
            None if self.round < self.end => self.round.into(),
            None => Wake::NEVER,
        }
    }
}

impl Source for Background {
    fn depends_on_completions(&self) -> bool {
        self.spacing.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Effects;

    const CAPACITY: Sectors = Sectors(10_000);

    fn config(every_s: u64, rounds: u64) -> BackgroundConfig {
        BackgroundConfig {
            every: Duration::from_secs(every_s),
            duration: Duration::from_secs(every_s * rounds + 1),
            first: None,
            size: Bytes(64 << 10),
            amount: Some(Bytes(192 << 10)),
            order: BackgroundOrder::Sequential,
            rate: None,
            region_start: Bytes(0),
            region_size: None,
        }
    }

    /// Seconds and extents of all reads, with the response time `answer` for each.
    fn reads(config: &BackgroundConfig, answer: Duration) -> Vec<(f64, Extent)> {
        let mut source = Background::new(config, CAPACITY, Seed(1)).unwrap();
        let (mut out, mut all, mut answers) = (Effects::new(), Vec::new(), Vec::new());
        loop {
            let now = answers
                .iter()
                .copied()
                .chain([source.next_wake().at()])
                .min()
                .unwrap();
            if now == Time::NEVER {
                return all;
            }
            if answers.first() == Some(&now) {
                answers.remove(0);
                source.completed(
                    now,
                    Port::FIRST,
                    Completion::default(),
                    &mut NodeContext::alone(&mut out),
                );
            } else {
                source.wake(now, &mut NodeContext::alone(&mut out));
            }
            for request in out.requests() {
                all.push((now.as_nanos() as f64 / 1e9, request.extent));
                answers.push(now + answer);
            }
        }
    }

    #[test]
    fn rounds_come_at_their_times_and_go_on_where_the_one_before_ended() {
        let found = reads(&config(100, 3), Duration::from_secs(1));
        let times: Vec<f64> = found.iter().map(|(at, _)| *at).collect();
        assert_eq!(
            times,
            [
                100.0, 101.0, 102.0, 200.0, 201.0, 202.0, 300.0, 301.0, 302.0
            ]
        );
        let places: Vec<u64> = found.iter().map(|(_, extent)| extent.start.0).collect();
        assert_eq!(places, (0..9).map(|index| 128 * index).collect::<Vec<_>>());
    }

    #[test]
    fn a_round_that_outlasts_its_time_makes_the_next_one_wait() {
        let times: Vec<f64> = reads(&config(100, 5), Duration::from_secs(60))
            .iter()
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(
            times,
            [
                100.0, 160.0, 220.0, 300.0, 360.0, 420.0, 500.0, 560.0, 620.0
            ]
        );
    }

    #[test]
    fn with_a_rate_reads_come_whatever_answers_take() {
        let config = BackgroundConfig {
            rate: Some(Bytes(128 << 10)),
            ..config(100, 1)
        };
        let times: Vec<f64> = reads(&config, Duration::from_secs(7))
            .iter()
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(times, [100.0, 100.5, 101.0]);
    }

    #[test]
    fn a_scrub_reads_everything_once_a_round() {
        let config = BackgroundConfig {
            amount: None,
            ..config(1000, 2)
        };
        let found = reads(&config, Duration::from_millis(1));
        let read = |from: f64, to: f64| {
            let mut covered = vec![0; CAPACITY.0 as usize];
            for (_, extent) in found.iter().filter(|(at, _)| (from..to).contains(at)) {
                covered[extent.start.0 as usize..extent.end().0 as usize]
                    .iter_mut()
                    .for_each(|each| *each += 1);
            }
            covered
        };
        assert!(read(1000.0, 2000.0).iter().all(|&times| times == 1));
        assert!(read(2000.0, 3000.0).iter().all(|&times| times == 1));
    }

    #[test]
    fn random_reads_stay_in_the_region() {
        let region = BackgroundConfig {
            order: BackgroundOrder::Random,
            region_start: Bytes(1000 * 512),
            region_size: Some(Bytes(1000 * 512)),
            ..config(10, 100)
        };
        let found = reads(&region, Duration::from_millis(1));
        assert_eq!(found.len(), 300);
        assert!(
            found
                .iter()
                .all(|(_, extent)| extent.start.0 >= 1000 && extent.end().0 <= 2000)
        );
        assert!(
            found
                .windows(2)
                .any(|pair| pair[1].1.start < pair[0].1.start)
        );
    }

    #[test]
    fn what_cannot_be_is_refused_at_its_key() {
        let base = config(10, 1);
        for (key, config) in [
            (
                "every",
                BackgroundConfig {
                    every: Duration::ZERO,
                    ..base.clone()
                },
            ),
            (
                "amount",
                BackgroundConfig {
                    amount: Some(Bytes(0)),
                    ..base.clone()
                },
            ),
            (
                "rate",
                BackgroundConfig {
                    rate: Some(Bytes(0)),
                    ..base.clone()
                },
            ),
            (
                "size",
                BackgroundConfig {
                    size: Bytes(1 << 30),
                    ..base.clone()
                },
            ),
            (
                "region_size",
                BackgroundConfig {
                    region_size: Some(Bytes(1 << 40)),
                    ..base
                },
            ),
        ] {
            assert_eq!(
                Background::new(&config, CAPACITY, Seed(1))
                    .err()
                    .unwrap()
                    .key,
                key
            );
        }
    }
}
