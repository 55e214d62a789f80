//! Many media streams as one source.

use crate::media_files::MediaFiles;
use crate::starts::{Limit, StartTimes, dealt_out};
use crate::stream::{PlayedStream, Rules};
use crate::streams_config::StreamsConfig;
use crate::streams_results::{StreamTally, StreamsResults};
use fullstroke_contract::{
    Completion, ConfigError, Effects, Extent, Hints, Node, NodeContext, Port, Request, RequestId,
    Source, Wake,
};
use fullstroke_units::{Duration, Sectors, Seed, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A source that serves many media streams.
///
/// Streams are numbered from 1 in start order. The number is the `stream` of their requests' hints.
/// Each stream draws from random streams with its number, so an additional stream does not change
/// the rates and positions of others.
pub struct Streams {
    rules: Rules,
    files: MediaFiles,
    sectors: Sectors,
    streams: Vec<PlayedStream>,
    /// Started streams, and the next start time.
    started: u32,
    next_start: Time,
    starts: StartTimes,
    limit: Limit,
    /// Time after the last start.
    duration: Duration,
    /// For each stream, at most once: the time at which the server has room again, and the index of
    /// the stream. Until then nothing is issued for the stream.
    room: BinaryHeap<Reverse<(Time, u32)>>,
    /// No read is issued from this time on.
    end: Time,
    left: u64,
    servers: u32,
    tallies: Vec<StreamTally>,
    start_up_latency_max: Option<Duration>,
}

impl Streams {
    /// The streams on a volume of `capacity`, and their results.
    ///
    /// # Errors
    /// Names the impossible key.
    pub fn new(
        config: &StreamsConfig,
        capacity: Sectors,
        seed: Seed,
    ) -> Result<Streams, ConfigError> {
        config.check()?;
        let files = MediaFiles::new(config, capacity, &mut seed.stream("media files"))?;
        let rules = Rules::new(config, files.count(), files.reads());
        let dealt = (1..).zip(dealt_out(files.count(), config.streams, seed));
        let (streams, tallies): (Vec<PlayedStream>, Vec<StreamTally>) = dealt
            .map(|(number, file)| PlayedStream::new(config, number, file, &rules, seed))
            .unzip();
        let mut starts = StartTimes::new(config, seed);
        Ok(Streams {
            rules,
            sectors: crate::region::sectors("read_size", config.read_bytes())?,
            files,
            room: BinaryHeap::with_capacity(streams.len()),
            streams,
            started: 0,
            next_start: starts.take(),
            starts,
            limit: Limit::new(config),
            duration: config.duration,
            end: Time::NEVER,
            left: config.requests.unwrap_or(u64::MAX),
            servers: config.servers.unwrap_or(config.streams),
            tallies,
            start_up_latency_max: config.until_start_up_latency,
        })
    }

    /// The results so far; complete when the run has ended.
    pub fn results(&self) -> StreamsResults {
        StreamsResults::new(self.tallies.clone(), self.start_up_latency_max)
    }

    /// Issues all reads of a stream for which the server's buffer has room.
    fn serve(&mut self, index: u32, now: Time, out: &mut Effects) {
        let stream = &mut self.streams[index as usize];
        while now < self.end {
            let room = stream.has_room(&self.rules);
            if room > now {
                if room < self.end {
                    self.room.push(Reverse((room, index)));
                }
                return;
            }
            let (file, read) = stream.next_read(&self.rules);
            let extent = Extent {
                start: self.files.place(file, read),
                sectors: self.sectors,
            };
            let request = Request {
                id: RequestId(u64::from(index) << 32 | u64::from(stream.latest())),
                extent,
                hints: Hints {
                    stream: index + 1,
                    process: index % self.servers + 1,
                    ..Hints::default()
                },
                ..Request::default()
            };
            out.issue(0, request);
            assert!(self.left > 0, "more reads are issued than requested");
            self.left -= 1;
            if self.left == 0 {
                self.next_start = Time::NEVER;
                self.end = now;
            }
        }
    }

    /// Starts the next stream, unless the starts have ended.
    fn start(&mut self, now: Time, out: &mut Effects) {
        if self.limit.is_reached(now, &self.tallies) {
            self.next_start = Time::NEVER;
            self.end = now + self.duration;
            return;
        }
        let index = self.started;
        self.started += 1;
        if self.started as usize == self.streams.len() {
            self.next_start = Time::NEVER;
            self.end = now + self.duration;
        } else {
            self.next_start = self.starts.take();
        }
        self.streams[index as usize].start(now, &mut self.tallies[index as usize]);
        self.serve(index, now, out);
    }
}

impl Node for Streams {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while let Some(&Reverse((due, index))) = self.room.peek()
            && due <= now
        {
            self.room.pop();
            self.serve(index, now, cx.out);
        }
        while self.next_start <= now {
            self.start(now, cx.out);
        }
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        let index = (completion.id.0 >> 32) as u32;
        let stream = &mut self.streams[index as usize];
        let waits = stream.has_room(&self.rules);
        let tally = &mut self.tallies[index as usize];
        stream.note_arrival(now, completion.id.0 as u32, self.end, &self.rules, tally);
        self.limit.note_read(tally);
        // A stream that waits for room is already in the heap.
        if waits == Time::NEVER {
            self.serve(index, now, cx.out);
        }
    }

    fn next_wake(&self) -> Wake {
        let room = self
            .room
            .peek()
            .map_or(Time::NEVER, |&Reverse((due, _))| due);
        let next = room.min(self.next_start);
        if next < self.end {
            next.into()
        } else {
            Wake::NEVER
        }
    }
}

impl Source for Streams {}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
