//! One stream: the reads of the server, and the playback of the client.

use crate::playout::PlayingTimes;
use crate::streams_config::{AtEnd, StartPosition, StreamsConfig};
use crate::streams_results::StreamTally;
use fullstroke_units::{BitRate, Duration, Random, Seed, Time};

/// Rules common to all streams. Amounts are in bytes.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Number of files, and reads per file.
    files: u32,
    reads: u64,
    read: u64,
    /// Room of the server's buffer beyond the read that it issues.
    rest_of_server: u64,
    start_up: u64,
    client: u64,
    at_end: AtEnd,
}

impl Rules {
    /// The rules of a checked configuration with `files` files of `reads` reads each.
    pub fn new(config: &StreamsConfig, files: u32, reads: u64) -> Rules {
        Rules {
            files,
            reads,
            read: config.read_bytes().0,
            rest_of_server: u64::from(config.read_ahead - 1) * config.read_bytes().0,
            start_up: config.start_up_bytes().0,
            client: config.client_bytes().0,
            at_end: config.at_end,
        }
    }
}

/// A stream. Its bytes are numbered from its start, across files. Byte `b` is played at `origin`
/// plus the playing time of `b`, so an underrun moves the origin and nothing else.
///
/// - **Events in**: [`start`](PlayedStream::start), [`note_arrival`](PlayedStream::note_arrival).
/// - **Effect out**: [`next_read`](PlayedStream::next_read), which may be taken at
///   [`has_room`](PlayedStream::has_room).
#[derive(Clone, Debug)]
pub struct PlayedStream {
    file: u32,
    /// The next read of the file.
    next: u64,
    /// Issued reads, and reads that have arrived without a gap.
    issued: u64,
    come: u64,
    /// Bit `k`: read `come + k` has arrived.
    out_of_order: u64,
    origin: Time,
    plays: bool,
    /// Playing times of the first missing byte, and of the byte that makes room again.
    missing: PlayingTimes,
    room: PlayingTimes,
    place: Random,
}

impl PlayedStream {
    /// Stream number `number` (from 1) of a file, and its counters. The stream draws from random
    /// streams with its number.
    pub fn new(
        config: &StreamsConfig,
        number: u32,
        file: u32,
        rules: &Rules,
        seed: Seed,
    ) -> (PlayedStream, StreamTally) {
        let random = |of: &str| seed.stream(&format!("stream {number} {of}"));
        let rate = draw_rate(config, &mut random("bit rate"));
        let mut place = random("place");
        let next = match config.start_position {
            StartPosition::Beginning => 0,
            StartPosition::Random => place.below(rules.reads),
        };
        let playout = PlayingTimes::new(rate, config.variation, random("variation"));
        let stream = PlayedStream {
            file,
            next,
            issued: 0,
            come: 0,
            out_of_order: 0,
            origin: Time::NEVER,
            plays: false,
            missing: playout.clone(),
            room: playout,
            place,
        };
        (stream, StreamTally::new(rate))
    }

    /// The client asks for the stream.
    pub fn start(&mut self, now: Time, tally: &mut StreamTally) {
        self.origin = now;
        tally.started = Some(now);
    }

    /// Time at which the server has room for another read: the server's read and requested data,
    /// minus the data that the client has taken, must leave this room. The time may be in the past.
    /// Never, if a read must arrive first.
    pub fn has_room(&mut self, rules: &Rules) -> Time {
        // The buffer must hold the next read and the other reads of `read_ahead`, so the client
        // must have taken all before.
        let taken = (self.issued * rules.read).saturating_sub(rules.rest_of_server);
        if taken > self.come * rules.read {
            return Time::NEVER;
        }
        match taken.saturating_sub(rules.client) {
            0 => Time::ZERO,
            // Before playback starts, a client takes only as much as its buffer holds.
            _ if !self.plays => Time::NEVER,
            // At a rate of a few bits a second a read may play for ever.
            played => self.origin.saturating_add(self.room.at(played)),
        }
    }

    /// The file of the next read, and the number of the read within the file, both from 0.
    pub fn next_read(&mut self, rules: &Rules) -> (u32, u64) {
        if self.next == rules.reads {
            self.next = 0;
            if rules.at_end == AtEnd::Another {
                self.file = self.place.below(u64::from(rules.files)) as u32;
            }
        }
        self.next += 1;
        self.issued += 1;
        (self.file, self.next - 1)
    }

    /// Number of the latest read, from 1, modulo 2^32.
    pub fn latest(&self) -> u32 {
        self.issued as u32
    }

    /// A read with the issue number `latest` has arrived. A byte needed from `end` on does not
    /// count as missed.
    pub fn note_arrival(
        &mut self,
        now: Time,
        latest: u32,
        end: Time,
        rules: &Rules,
        tally: &mut StreamTally,
    ) {
        self.out_of_order |= 1 << latest.wrapping_sub(1).wrapping_sub(self.come as u32);
        while self.out_of_order & 1 == 1 {
            if self.plays {
                self.was_needed(now, end, rules, tally);
            }
            self.out_of_order >>= 1;
            self.come += 1;
            tally.reads += 1;
            // Playback begins with whole reads, because data count only when the read has arrived.
            if !self.plays && self.come * rules.read >= rules.start_up {
                self.plays = true;
                self.origin = now;
                tally.plays_from = Some(now);
            }
        }
    }

    /// The first missing read has arrived; it may be late.
    fn was_needed(&mut self, now: Time, end: Time, rules: &Rules, tally: &mut StreamTally) {
        // At a rate of a few bits a second a read may play for ever.
        let played = self.missing.at(self.come * rules.read);
        let needed = self.origin.saturating_add(played);
        if needed >= end {
            return;
        }
        tally.deadlines += 1;
        let stall = now.saturating_since(needed);
        if stall > Duration::ZERO {
            self.origin += stall;
            tally.underruns += 1;
            tally.first_underrun = tally.first_underrun.or(Some(needed));
            tally.stalled += stall;
            tally.longest_stall = tally.longest_stall.max(stall);
        }
    }
}

fn draw_rate(config: &StreamsConfig, random: &mut Random) -> BitRate {
    let rates = config.rates();
    let total: f64 = rates.iter().map(|rate| rate.weight).sum();
    let mut share = random.unit() * total;
    let drawn = rates.iter().find(|rate| {
        share -= rate.weight;
        share < 0.0
    });
    // Rounding may leave a share after the last entry.
    drawn
        .or(rates.last())
        .map_or(BitRate(1), |rate| rate.bit_rate)
}
