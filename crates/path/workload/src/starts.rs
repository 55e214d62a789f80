//! Start times of streams, and the limit that ends the starts.

use crate::streams_config::StreamsConfig;
use crate::streams_results::StreamTally;
use fullstroke_units::{Duration, Random, Seed, Time};

/// The starts of streams, in order.
pub struct Starts {
    times: StartTimes,
    limit: Limit,
    /// Number of streams, and of started streams.
    streams: u32,
    started: u32,
    /// Time of the next start; [`Time::NEVER`] after the last.
    next: Time,
    /// Time for which reads go on after the last start.
    duration: Duration,
}

impl Starts {
    /// The starts of a configuration.
    pub fn new(config: &StreamsConfig, streams: usize, seed: Seed) -> Starts {
        let mut times = StartTimes::new(config, seed);
        Starts {
            next: match streams {
                0 => Time::NEVER,
                _ => times.take(),
            },
            times,
            limit: Limit::new(config),
            streams: streams as u32,
            started: 0,
            duration: config.duration,
        }
    }

    /// Time of the next start; [`Time::NEVER`] after the last.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Starts no further stream.
    pub fn end(&mut self) {
        self.next = Time::NEVER;
    }

    /// Takes the stream that starts at `now`; `None` if the limit ends the starts. After the last
    /// start the second value is the time from which no read is issued. Tallies are in the order of
    /// the starts.
    pub fn take(&mut self, now: Time, tallies: &[StreamTally]) -> (Option<u32>, Option<Time>) {
        let end = Some(now + self.duration);
        if self.limit.is_reached(now, tallies) {
            self.end();
            return (None, end);
        }
        assert!(
            self.started < self.streams,
            "one more stream starts at {now:?}, after all {} have started",
            self.streams
        );
        let index = self.started;
        self.started += 1;
        if self.started == self.streams {
            self.end();
            return (Some(index), end);
        }
        self.next = self.times.take();
        (Some(index), None)
    }

    /// Notes a read of a stream.
    pub fn note_read(&mut self, tally: &StreamTally) {
        self.limit.note_read(tally);
    }
}

/// Start times of streams, one after another, the first at 0.
pub struct StartTimes {
    next: Time,
    interval: Duration,
    exponential: bool,
    random: Random,
}

impl StartTimes {
    /// The start times of a configuration.
    pub fn new(config: &StreamsConfig, seed: Seed) -> StartTimes {
        StartTimes {
            next: Time::ZERO,
            interval: config.start_interval,
            exponential: config.exponential,
            random: seed.stream("stream starts"),
        }
    }

    /// The next start time.
    pub fn take(&mut self) -> Time {
        let StartTimes {
            interval,
            exponential,
            random,
            ..
        } = self;
        let gap = if *exponential {
            random.exponential(*interval)
        } else {
            *interval
        };
        let at = self.next;
        // The last of many streams may start after the end of every run.
        self.next = at.capped_add(gap);
        at
    }
}

/// The longest wait of a stream that still permits further starts.
pub struct Limit {
    latency_max: Duration,
    until_underrun: bool,
    /// The first stream that does not play yet.
    first_silent: usize,
    reached: bool,
}

impl Limit {
    /// The limit of a configuration.
    pub fn new(config: &StreamsConfig) -> Limit {
        Limit {
            latency_max: config.until_start_up_latency.unwrap_or(Duration::MAX),
            until_underrun: config.until_underrun,
            first_silent: 0,
            reached: false,
        }
    }

    /// Notes a read of a stream.
    pub fn note_read(&mut self, tally: &StreamTally) {
        self.reached |= tally
            .start_up_latency()
            .is_some_and(|latency| latency > self.latency_max);
        self.reached |= self.until_underrun && tally.underruns > 0;
    }

    /// True if no further stream starts, because a stream has waited too long or still waits.
    /// Tallies are in the order of the starts.
    pub fn is_reached(&mut self, now: Time, tallies: &[StreamTally]) -> bool {
        let silent = tallies[self.first_silent..]
            .iter()
            .position(|tally| tally.plays_from.is_none());
        // Streams start in order, so the first silent stream has waited longest, and earlier
        // streams need no second look.
        self.first_silent = silent.map_or(tallies.len(), |behind| self.first_silent + behind);
        let waits_from = tallies
            .get(self.first_silent)
            .and_then(|tally| tally.started);
        self.reached || waits_from.is_some_and(|from| now.since(from) > self.latency_max)
    }
}

/// The files of `streams` streams in start order, assigned in a random order.
pub fn dealt_out(files: u32, streams: u32, seed: Seed) -> impl Iterator<Item = u32> {
    let order = shuffled(files, &mut seed.stream("media files dealt out"));
    (0..streams as usize).map(move |index| order[index % order.len()])
}

/// `0..count` in a random order.
fn shuffled(count: u32, random: &mut Random) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    // Knuth, volume 2, section 3.4.2, algorithm P: each order is equally likely.
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}
