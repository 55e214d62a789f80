//! Many media streams as one source.

use crate::media_files::MediaFiles;
use crate::recording::Recording;
use crate::starts::{Starts, dealt_out};
use crate::stream::{PlayedStream, Rules};
use crate::streams_config::StreamsConfig;
use crate::streams_results::{StreamTally, StreamsResults};
use fullstroke_contract::{
    Completion, ConfigError, Effects, Extent, Hints, Node, NodeContext, Operation, Port, Request,
    RequestId, Source, Wake,
};
use fullstroke_units::{Duration, Sectors, Seed, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A source that serves many media streams.
///
/// Streams are numbered from 1 in start order. The number is the `stream` of their requests' hints.
/// Each stream draws from random streams with its number, so an additional stream does not change
/// the rates and positions of others. Recordings have the numbers behind the streams.
pub struct Streams {
    rules: Rules,
    files: MediaFiles,
    sectors: Sectors,
    streams: Vec<PlayedStream>,
    recordings: Vec<Recording>,
    recorded: Vec<StreamTally>,
    starts: Starts,
    /// For each stream, at most once: the time at which the server has room again, or at which the data
    /// of a recording are made, and the index of the stream. Until then nothing is issued for the
    /// stream.
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
        let rules = Rules::new(config, files.played(), files.reads());
        let dealt = (1..).zip(dealt_out(files.played(), config.streams, seed));
        let (streams, tallies): (Vec<PlayedStream>, Vec<StreamTally>) = dealt
            .map(|(number, file)| PlayedStream::new(config, number, file, &rules, seed))
            .unzip();
        let writes = files.reads();
        let (mut recordings, recorded): (Vec<Recording>, Vec<StreamTally>) = (1..)
            .zip(files.played()..files.count())
            .map(|(number, file)| Recording::new(config, number, file, writes, seed))
            .unzip();
        let mut room = BinaryHeap::with_capacity(streams.len() + recordings.len());
        // Recordings have the indices behind the streams, and begin at once: a camera does not wait
        // for a viewer.
        for (index, recording) in (config.streams..).zip(&mut recordings) {
            room.push(Reverse((recording.is_due(), index)));
        }
        Ok(Streams {
            rules,
            sectors: crate::region::sectors("read_size", config.read_bytes())?,
            files,
            room,
            starts: Starts::new(config, streams.len(), seed),
            streams,
            recordings,
            recorded,
            end: Time::NEVER,
            left: config.requests.unwrap_or(u64::MAX),
            servers: config.servers.unwrap_or(config.with_recordings()),
            tallies,
            start_up_latency_max: config.until_start_up_latency,
        })
    }

    /// The results so far; complete when the run has ended.
    pub fn results(&self) -> StreamsResults {
        StreamsResults::new(self.tallies.clone(), self.start_up_latency_max)
            .with_recordings(self.recorded.clone())
    }

    /// Issues all requests of a stream or a recording that are due.
    fn serve(&mut self, index: u32, now: Time, out: &mut Effects) {
        match (index as usize).checked_sub(self.streams.len()) {
            None => self.serve_stream(index, now, out),
            Some(recording) => self.serve_recording(recording, now, out),
        }
    }

    /// Issues all reads of a stream for which the server's buffer has room.
    fn serve_stream(&mut self, index: u32, now: Time, out: &mut Effects) {
        while now < self.end {
            let stream = &mut self.streams[index as usize];
            let room = stream.has_room(&self.rules);
            if room > now {
                // Entries from the end on would keep the node awake for nothing.
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
            self.count(now);
        }
    }

    /// Issues all writes of a recording whose data are made.
    fn serve_recording(&mut self, place: usize, now: Time, out: &mut Effects) {
        let index = (self.streams.len() + place) as u32;
        while now < self.end {
            let recording = &mut self.recordings[place];
            let due = recording.is_due();
            if due > now {
                if due < self.end {
                    self.room.push(Reverse((due, index)));
                }
                return;
            }
            let (file, write) = recording.next_write();
            let latest = recording.latest();
            let request = Request {
                id: RequestId(u64::from(index) << 32 | u64::from(latest)),
                operation: Operation::Write,
                extent: Extent {
                    start: self.files.place(file, write),
                    sectors: self.sectors,
                },
                hints: Hints {
                    stream: index + 1,
                    process: index % self.servers + 1,
                    ..Hints::default()
                },
                ..Request::default()
            };
            out.issue(0, request);
            self.count(now);
        }
    }

    /// Counts a request, and ends the load with the last one.
    fn count(&mut self, now: Time) {
        assert!(self.left > 0, "more reads are issued than requested");
        self.left -= 1;
        if self.left == 0 {
            self.starts.end();
            self.end = now;
        }
    }

    /// Starts the next stream, unless the starts have ended.
    fn start(&mut self, now: Time, out: &mut Effects) {
        let (started, end) = self.starts.take(now, &self.tallies);
        self.end = end.unwrap_or(self.end);
        let Some(index) = started else {
            return;
        };
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
        while self.starts.next() <= now {
            self.start(now, cx.out);
        }
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        let index = (completion.id.0 >> 32) as u32;
        if let Some(place) = (index as usize).checked_sub(self.streams.len()) {
            // Asked before the write is noted, because the note may change the answer.
            let waits = self.recordings[place].is_due();
            let latest = completion.id.0 as u32;
            let tally = &mut self.recorded[place];
            self.recordings[place].note_written(now, latest, self.end, tally);
            // A recording that waits for its data is already in the heap.
            if waits == Time::NEVER {
                self.serve(index, now, cx.out);
            }
            return;
        }
        let stream = &mut self.streams[index as usize];
        // Asked before the arrival is noted, because the note may change the answer.
        let waits = stream.has_room(&self.rules);
        let tally = &mut self.tallies[index as usize];
        stream.note_arrival(now, completion.id.0 as u32, self.end, &self.rules, tally);
        self.starts.note_read(tally);
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
        let next = room.min(self.starts.next());
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
