//! Many media streams as one source.

use crate::media_files::MediaFiles;
use crate::playout::Playout;
use crate::stream::{Rules, Stream};
use crate::streams_config::{StartPosition, StreamsConfig};
use crate::streams_results::{StreamTally, StreamsResults};
use fullstroke_contract::{
    Completion, ConfigError, Cx, Hints, Node, Out, Port, Request, RequestId, Source, Wake,
};
use fullstroke_units::{BitRate, Duration, Random, Sectors, Seed, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The source.
///
/// Streams are numbered from 1 in the order in which they start; the number is
/// the `stream` of their requests' hints. Each draws from random streams that
/// bear its number, so that one stream more leaves the others' rates and
/// positions as they are.
pub struct Streams {
    rules: Rules,
    streams: Vec<Stream>,
    starts: Starts,
    /// When the server has room again for a stream, and its index: at most once
    /// for each, and not until then is anything issued for it.
    room: BinaryHeap<Reverse<(Time, u32)>>,
    /// No read is issued from then on.
    end: Time,
    left: u64,
    servers: u32,
    tallies: Vec<StreamTally>,
    start_up_latency_max: Option<Duration>,
}

/// The ramp.
struct Starts {
    /// When the next stream starts.
    next: Time,
    started: u32,
    /// The first that does not play yet.
    first_silent: u32,
    interval: Duration,
    exponential: bool,
    random: Random,
    latency_max: Duration,
    /// Whether one has begun to play later than that.
    late: bool,
    /// How long the load goes on after the last start.
    duration: Duration,
}

impl Streams {
    /// The streams on a volume of `capacity`, and where their results will be.
    ///
    /// # Errors
    /// Names the key that cannot be.
    pub fn new(config: &StreamsConfig, capacity: Sectors, seed: Seed) -> Result<Streams, ConfigError> {
        config.check()?;
        let files = MediaFiles::new(config, capacity, &mut seed.stream("media files"))?;
        let order = shuffled(files.count(), &mut seed.stream("media files dealt out"));
        let (streams, tallies): (Vec<Stream>, Vec<StreamTally>) = (0..config.streams)
            .map(|index| {
                let file = order[index as usize % order.len()];
                stream(config, index + 1, file, files.reads, seed)
            })
            .unzip();
        Ok(Streams {
            rules: Rules::new(config, files)?,
            room: BinaryHeap::with_capacity(streams.len()),
            streams,
            starts: Starts {
                next: Time::ZERO,
                started: 0,
                first_silent: 0,
                interval: config.start_interval,
                exponential: config.exponential,
                random: seed.stream("stream starts"),
                latency_max: config.until_start_up_latency.unwrap_or(Duration::MAX),
                late: false,
                duration: config.duration,
            },
            end: Time::NEVER,
            left: config.requests.unwrap_or(u64::MAX),
            servers: config.servers.unwrap_or(config.streams),
            tallies,
            start_up_latency_max: config.until_start_up_latency,
        })
    }

    /// What it has counted so far: complete when the run is over.
    pub fn results(&self) -> StreamsResults {
        StreamsResults::new(self.tallies.clone(), self.start_up_latency_max)
    }

    /// Issues all reads of a stream that there is room for.
    fn serve(&mut self, index: u32, now: Time, out: &mut Out) {
        let stream = &mut self.streams[index as usize];
        while now < self.end {
            let room = stream.has_room(&self.rules);
            if room > now {
                if room < self.end {
                    self.room.push(Reverse((room, index)));
                }
                return;
            }
            let extent = stream.read(&self.rules);
            let request = Request {
                id: RequestId(u64::from(index) << 32 | u64::from(stream.latest())),
                extent,
                hints: Hints { stream: index + 1, process: index % self.servers + 1, ..Hints::default() },
                ..Request::default()
            };
            out.issue(0, request);
            self.left -= 1;
            if self.left == 0 {
                self.starts.next = Time::NEVER;
                self.end = now;
            }
        }
    }

    /// Starts the next stream, unless one has waited too long.
    fn start(&mut self, now: Time, out: &mut Out) {
        if self.someone_waits_too_long(now) {
            self.starts.next = Time::NEVER;
            self.end = now + self.starts.duration;
            return;
        }
        let index = self.starts.started;
        self.starts.started += 1;
        if self.starts.started as usize == self.streams.len() {
            self.starts.next = Time::NEVER;
            self.end = now + self.starts.duration;
        } else {
            self.starts.next = now + self.starts.gap();
        }
        self.streams[index as usize].start(now);
        self.tallies[index as usize].started = Some(now);
        self.serve(index, now, out);
    }

    fn someone_waits_too_long(&mut self, now: Time) -> bool {
        let starts = &mut self.starts;
        if starts.late || starts.latency_max == Duration::MAX {
            return starts.late;
        }
        while starts.first_silent < starts.started && self.streams[starts.first_silent as usize].plays {
            starts.first_silent += 1;
        }
        let waits_from = self.tallies[starts.first_silent as usize].started;
        waits_from.is_some_and(|from| now.since(from) > starts.latency_max)
    }
}

impl Starts {
    fn gap(&mut self) -> Duration {
        if self.exponential { self.random.exponential(self.interval) } else { self.interval }
    }
}

/// Stream number `number`, and what will be counted of it.
fn stream(config: &StreamsConfig, number: u32, file: u32, reads: u64, seed: Seed) -> (Stream, StreamTally) {
    let random = |of: &str| seed.stream(&format!("stream {number} {of}"));
    let rate = draw_rate(config, &mut random("bit rate"));
    let mut place = random("place");
    let first = match config.start_position {
        StartPosition::Beginning => 0,
        StartPosition::Random => place.below(reads),
    };
    let playout = Playout::new(rate, config.variation, random("variation"));
    (Stream::new(file, first, &playout, place), StreamTally::new(rate))
}

fn draw_rate(config: &StreamsConfig, random: &mut Random) -> BitRate {
    let rates = config.rates();
    let total: f64 = rates.iter().map(|rate| rate.weight).sum();
    let mut share = random.unit() * total;
    let drawn = rates.iter().find(|rate| {
        share -= rate.weight;
        share < 0.0
    });
    // Rounding may leave a share behind the last.
    drawn.or(rates.last()).map_or(BitRate(1), |rate| rate.bit_rate)
}

/// `0..count` in an order drawn at random.
fn shuffled(count: u32, random: &mut Random) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

impl Node for Streams {
    fn wake(&mut self, now: Time, cx: &mut Cx<'_>) {
        while let Some(&Reverse((due, index))) = self.room.peek()
            && due <= now
        {
            self.room.pop();
            self.serve(index, now, cx.out);
        }
        while self.starts.next <= now {
            self.start(now, cx.out);
        }
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut Cx<'_>) {
        let index = (completion.id.0 >> 32) as u32;
        let stream = &mut self.streams[index as usize];
        let (waits, plays) = (stream.has_room(&self.rules), stream.plays);
        let tally = &mut self.tallies[index as usize];
        stream.came(now, completion.id.0 as u32, self.end, &self.rules, tally);
        let late = |latency| latency > self.starts.latency_max;
        self.starts.late |= !plays && tally.start_up_latency().is_some_and(late);
        // Whoever waits for room to come is in the heap already.
        if waits == Time::NEVER {
            self.serve(index, now, cx.out);
        }
    }

    fn next_wake(&self) -> Wake {
        let room = self.room.peek().map_or(Time::NEVER, |&Reverse((due, _))| due);
        let next = room.min(self.starts.next);
        if next < self.end { next.into() } else { Wake::NEVER }
    }
}

impl Source for Streams {}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
