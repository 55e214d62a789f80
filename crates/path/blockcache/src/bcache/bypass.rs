//! Requests that pass by the cache: sequential streams, and requests to a congested device.

use fullstroke_units::{Duration, Random, Time};

/// Streams that bcache follows (`RECENT_IO_BITS`, bcache.h).
const STREAMS: usize = 128;
/// Time for which a stream may pause (`check_should_bypass`, request.c).
const STREAM_PAUSE: Duration = Duration::from_secs(5);
/// Largest congestion (`CONGESTED_MAX`, bcache.h).
const CONGESTED_MAX: i64 = 1024;

#[derive(Clone, Copy, Debug)]
struct Stream {
    end: u64,
    sectors: u64,
    until: Time,
    /// Number of the last request.
    used: u64,
}

/// The last streams, and the congestion of the flash device.
pub(super) struct Bypass {
    /// Sectors from which a stream passes by. 0 = never.
    pub(super) cutoff: u64,
    /// Times above which the device is congested, for reads and writes. 0 = never.
    pub(super) thresholds: [Duration; 2],
    streams: Vec<Stream>,
    requests: u64,
    /// 0, or below 0 for a congested device.
    congested: i64,
    congested_last: Time,
    random: Random,
}

impl Bypass {
    pub(super) fn new(cutoff: u64, thresholds: [Duration; 2], random: Random) -> Bypass {
        Bypass {
            cutoff,
            thresholds,
            streams: Vec::with_capacity(STREAMS),
            requests: 0,
            congested: 0,
            congested_last: Time::ZERO,
            random,
        }
    }

    /// True if a request passes by (`check_should_bypass`, request.c). Synchronous writes pass by as
    /// well: Linux 6.12 writes a stream of O_DIRECT past the cache (samples/oracle/cache).
    pub(super) fn passes(&mut self, now: Time, start: u64, sectors: u64) -> bool {
        let congested = self.congestion(now);
        if congested.is_none() && self.cutoff == 0 {
            return false;
        }
        let length = self.stream(now, start, sectors);
        self.cutoff > 0 && length >= self.cutoff || congested.is_some_and(|limit| length >= limit)
    }

    /// Returns the length of the stream of a request, the request included.
    fn stream(&mut self, now: Time, start: u64, sectors: u64) -> u64 {
        self.requests += 1;
        let known = (self.streams.iter_mut()).find(|one| one.end == start && now < one.until);
        let used = self.requests;
        let until = now + STREAM_PAUSE;
        if let Some(stream) = known {
            stream.sectors += sectors;
            (stream.end, stream.until, stream.used) = (start + sectors, until, used);
            return stream.sectors;
        }
        let new = Stream {
            end: start + sectors,
            sectors,
            until,
            used,
        };
        if self.streams.len() < STREAMS {
            self.streams.push(new);
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|one| one.used) {
            *oldest = new;
        }
        sectors
    }

    /// Returns the sectors of a stream from which a congested device is passed by; `None` without
    /// congestion (`bch_get_congested`, request.c).
    fn congestion(&mut self, now: Time) -> Option<u64> {
        if self.thresholds.iter().all(|limit| *limit == Duration::ZERO) {
            return None;
        }
        // Congestion wears off by one each 1024 us (`bch_get_congested`, request.c).
        let since = now.saturating_since(self.congested_last).as_nanos() / 1000;
        let level = (since / 1024) as i64 + self.congested;
        if level >= 0 {
            return None;
        }
        let left = (level + CONGESTED_MAX) as u64;
        // `fract_exp_two(left, 6)` (util.h): 2 to the power of left / 64, linear in between.
        let whole = 1_u64 << (left >> 6);
        let limit = match left {
            0 => 0,
            left => whole + ((whole * (left & 63)) >> 6),
        };
        // The number of ones of a random word varies the limit, so that requests of one size do not
        // all pass by.
        let ones = u64::from(self.random.below(u64::MAX).count_ones());
        Some(limit.saturating_sub(ones).max(1))
    }

    /// Takes note of a transfer of the flash device (`bch_bbio_count_io_errors`, io.c).
    pub(super) fn answered(&mut self, now: Time, write: bool, took: Duration) {
        let limit = self.thresholds[usize::from(write)];
        if limit == Duration::ZERO {
            return;
        }
        if took > limit {
            self.congested_last = now;
            // `bch_bbio_count_io_errors` (io.c) divides microseconds by 1024.
            let ms = (took.as_nanos() / 1_024_000) as i64;
            self.congested -= ms.min(CONGESTED_MAX + self.congested);
        } else if self.congested < 0 {
            self.congested += 1;
        }
    }
}
