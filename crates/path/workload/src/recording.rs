//! A stream that is written: a camera or an encoder makes data at its bit rate, and a server writes
//! the data to a file.
//!
//! The recorder holds a buffer. A write begins when its data are made. If the buffer is full before
//! the oldest write is done, data are lost: an overrun. The time of the loss is the time from the full
//! buffer to the end of the write.

use crate::playout::PlayingTimes;
use crate::streams_config::StreamsConfig;
use crate::streams_results::StreamTally;
use fullstroke_units::{BitRate, Duration, Seed, Time};

/// One recording. Bytes are numbered from the start of the recording. Byte `b` is made at `origin`
/// plus the playing time of `b`, so a loss moves the origin and nothing else.
///
/// - **Events in**: [`note_written`](Recording::note_written).
/// - **Effect out**: [`next_write`](Recording::next_write), which may be taken at
///   [`is_due`](Recording::is_due).
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    file: u32,
    /// Number of writes that the file holds. A recording that is full begins again at its start.
    writes: u64,
    write: u64,
    buffer: u64,
    in_flight_max: u64,
    /// Issued writes, and writes that are done without a gap.
    issued: u64,
    done: u64,
    /// Bit `k`: write `done + k` is done.
    out_of_order: u64,
    origin: Time,
    /// Times at which bytes are made: of the next write, and of the byte that fills the buffer.
    made: PlayingTimes,
    full: PlayingTimes,
}

impl Recording {
    /// Recording number `number` (from 1) into `file`, which holds `writes` writes, and its counters.
    /// The recording draws from random streams with its number.
    pub(crate) fn new(
        config: &StreamsConfig,
        number: u32,
        file: u32,
        writes: u64,
        seed: Seed,
    ) -> (Recording, StreamTally) {
        let random = |of: &str| seed.stream(&format!("recording {number} {of}"));
        let rate = config.recording_rate();
        let write = config.read_bytes().0;
        // Cameras are not in step: each begins somewhere within the time of a write.
        let step = rate.span(fullstroke_units::Bytes(write)).as_nanos().max(1);
        let origin = Time::from_nanos(random("phase").below(step));
        let made = PlayingTimes::new(rate, config.variation, random("variation"));
        let recording = Recording {
            file,
            writes,
            write,
            buffer: config.recording_bytes().0,
            in_flight_max: u64::from(config.read_ahead),
            issued: 0,
            done: 0,
            out_of_order: 0,
            origin,
            // Each copy is asked for ascending bytes. Both questions to one copy would ask
            // backwards.
            full: made.clone(),
            made,
        };
        let tally = StreamTally {
            started: Some(origin),
            plays_from: Some(origin),
            ..StreamTally::new(BitRate(rate.0))
        };
        (recording, tally)
    }

    /// Time at which the data of the next write are made. The time may be in the past. Never, if a
    /// write must be done first.
    pub(crate) fn is_due(&mut self) -> Time {
        if self.issued - self.done >= self.in_flight_max {
            return Time::NEVER;
        }
        let made = self.made.at((self.issued + 1) * self.write);
        self.origin.saturating_add(made)
    }

    /// The file of the next write, and the number of the write within the file, both from 0.
    pub(crate) fn next_write(&mut self) -> (u32, u64) {
        let place = self.issued % self.writes;
        self.issued += 1;
        (self.file, place)
    }

    /// Number of the latest write, from 1, modulo 2^32.
    pub(crate) fn latest(&self) -> u32 {
        self.issued as u32
    }

    /// The write with the issue number `latest` is done. A buffer that is full from `end` on does not
    /// count.
    pub(crate) fn note_written(
        &mut self,
        now: Time,
        latest: u32,
        end: Time,
        tally: &mut StreamTally,
    ) {
        self.out_of_order |= 1 << latest.wrapping_sub(1).wrapping_sub(self.done as u32);
        while self.out_of_order & 1 == 1 {
            // Writes leave the buffer in order. When the oldest unwritten data and a whole buffer
            // behind are made, the next byte has no room.
            let full = self.full.at(self.done * self.write + self.buffer);
            let deadline = self.origin.saturating_add(full);
            if deadline < end {
                tally.deadlines += 1;
                let lost = now.saturating_since(deadline);
                if lost > Duration::ZERO {
                    self.origin += lost;
                    tally.underruns += 1;
                    tally.first_underrun = tally.first_underrun.or(Some(deadline));
                    tally.stalled += lost;
                    tally.longest_stall = tally.longest_stall.max(lost);
                }
            }
            self.out_of_order >>= 1;
            self.done += 1;
            tally.reads += 1;
        }
    }
}
