//! One stream: what the server has read, and what the client has played.

use crate::media_files::MediaFiles;
use crate::playout::Playout;
use crate::streams_config::{AtEnd, StreamsConfig};
use crate::streams_results::StreamTally;
use fullstroke_contract::{ConfigError, Extent};
use fullstroke_units::{Duration, Random, Sectors, Time};

/// What all streams have in common. Amounts are in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) files: MediaFiles,
    pub(crate) read: u64,
    pub(crate) sectors: Sectors,
    /// Room of the server's buffer behind the read that it issues.
    rest_of_server: u64,
    start_up: u64,
    client: u64,
    at_end: AtEnd,
}

impl Rules {
    pub(crate) fn new(config: &StreamsConfig, files: MediaFiles) -> Result<Rules, ConfigError> {
        Ok(Rules {
            files,
            read: config.read_size.0,
            sectors: crate::region::sectors("read_size", config.read_size)?,
            rest_of_server: u64::from(config.read_ahead - 1) * config.read_size.0,
            start_up: config.start_up_bytes().0,
            client: config.client_bytes().0,
            at_end: config.at_end,
        })
    }
}

/// A stream. Its bytes are numbered from its start on, whatever file they come
/// from; byte `b` is played at `origin` and the playing time of `b`, so that an
/// underrun moves the origin and nothing else.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    file: u32,
    /// The read of the file that comes next.
    next: u64,
    /// Reads issued so far, and those that have come together with all before.
    issued: u64,
    come: u64,
    /// Bit `k`: read `come + k` has come.
    out_of_order: u64,
    origin: Time,
    pub(crate) plays: bool,
    /// Playing times of the first byte that has not come, and of that with which
    /// there is room again.
    missing: Playout,
    room: Playout,
    place: Random,
}

impl Stream {
    /// A stream that starts with read number `first` of `file`.
    pub(crate) fn new(file: u32, first: u64, playout: &Playout, place: Random) -> Stream {
        Stream {
            file,
            next: first,
            issued: 0,
            come: 0,
            out_of_order: 0,
            origin: Time::NEVER,
            plays: false,
            missing: playout.clone(),
            room: playout.clone(),
            place,
        }
    }

    /// A client asks for it.
    pub(crate) fn start(&mut self, now: Time) {
        self.origin = now;
    }

    /// When the server has room for another read: what it has read and is
    /// reading, less what the client has taken, must leave as much. May lie in
    /// the past; never, as long as a read has to come first.
    pub(crate) fn has_room(&mut self, rules: &Rules) -> Time {
        let taken = (self.issued * rules.read).saturating_sub(rules.rest_of_server);
        if taken > self.come * rules.read {
            return Time::NEVER;
        }
        match taken.saturating_sub(rules.client) {
            0 => Time::ZERO,
            // Before it plays, a client takes no more than its buffer holds.
            _ if !self.plays => Time::NEVER,
            played => self.origin + self.room.at(played),
        }
    }

    /// Its next read.
    pub(crate) fn read(&mut self, rules: &Rules) -> Extent {
        if self.next == rules.files.reads {
            self.next = 0;
            if rules.at_end == AtEnd::Another {
                self.file = self.place.below(u64::from(rules.files.count())) as u32;
            }
        }
        let extent = Extent { start: rules.files.place(self.file, self.next), sectors: rules.sectors };
        self.next += 1;
        self.issued += 1;
        extent
    }

    /// The number of the latest read, from 1, as far as 32 bits tell it.
    pub(crate) fn latest(&self) -> u32 {
        self.issued as u32
    }

    /// A read that was issued as number `latest` has come. What is needed from
    /// `end` on is not missed any more.
    pub(crate) fn came(&mut self, now: Time, latest: u32, end: Time, rules: &Rules, tally: &mut StreamTally) {
        self.out_of_order |= 1 << latest.wrapping_sub(1).wrapping_sub(self.come as u32);
        while self.out_of_order & 1 == 1 {
            if self.plays {
                self.was_needed(now, end, rules, tally);
            }
            self.out_of_order >>= 1;
            self.come += 1;
            tally.reads += 1;
            if !self.plays && self.come * rules.read >= rules.start_up {
                self.plays = true;
                self.origin = now;
                tally.plays_from = Some(now);
            }
        }
    }

    /// The first read that had not come is there; it may be late.
    fn was_needed(&mut self, now: Time, end: Time, rules: &Rules, tally: &mut StreamTally) {
        let needed = self.origin + self.missing.at(self.come * rules.read);
        if needed >= end {
            return;
        }
        tally.deadlines += 1;
        let stall = now.saturating_since(needed);
        if stall > Duration::ZERO {
            self.origin += stall;
            tally.underruns += 1;
            tally.stalled += stall;
            tally.longest_stall = tally.longest_stall.max(stall);
        }
    }
}
