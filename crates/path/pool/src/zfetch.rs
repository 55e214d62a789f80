//! Read-ahead of sequential reads (`module/zfs/dmu_zfetch.c`, OpenZFS 2.2).
//!
//! A stream remembers the record that should come next. A read of this record doubles the distance
//! of the read-ahead, from the size of the read up to 4 MiB. Beyond, the distance grows by an eighth
//! of each read up to the largest distance, 64 MiB unless given. A read that no stream expects replaces the oldest stream.

use fullstroke_units::{Duration, Time};
use std::ops::Range;

/// Distance up to which the read-ahead doubles: `zfetch_min_distance`.
const DOUBLES_TO: u64 = 4 << 20;

/// Largest number of streams: `zfetch_max_streams`.
const STREAMS: usize = 8;

/// Streams of all files together. Each file of ZFS has [`STREAMS`] of its own; here open files share
/// a larger number.
const FILE_STREAMS: usize = 512;

/// Time without a hit after which another stream may replace a stream: `zfetch_min_sec_reap`.
const REAP: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Record that is expected next.
    next: u64,
    /// Records below this are read ahead.
    fetched: u64,
    /// Distance in bytes.
    distance: u64,
    used: Time,
}

/// The streams of a volume.
#[derive(Debug)]
pub(crate) struct Zfetch {
    streams: Vec<Stream>,
    record: u64,
    records: u64,
    /// Largest distance in bytes: `zfetch_max_distance`.
    distance: u64,
    most: usize,
}

impl Zfetch {
    /// Returns the streams of a volume of `records` records of `record` bytes. `distance` is the
    /// largest distance in bytes.
    pub(crate) fn new(record: u64, records: u64, distance: u64) -> Zfetch {
        let whole = record.saturating_mul(records) / distance.max(1);
        Zfetch {
            streams: Vec::with_capacity(STREAMS),
            record,
            records,
            distance,
            most: STREAMS.min(whole.max(1) as usize),
        }
    }

    /// Returns the streams of files. A read-ahead ends with its file, so that `records` has no limit.
    pub(crate) fn of_files(record: u64, distance: u64) -> Zfetch {
        Zfetch {
            most: FILE_STREAMS,
            ..Zfetch::new(record, u64::MAX, distance)
        }
    }

    /// Takes note of a read. Returns the records to read ahead; empty if none.
    pub(crate) fn access(&mut self, now: Time, read: Range<u64>) -> Range<u64> {
        let Range { start, end } = read;
        // A read within the last record of a stream is part of the same record.
        let found = self
            .streams
            .iter_mut()
            .find(|stream| stream.next == start || (stream.next == end && end == start + 1));
        let Some(stream) = found else {
            self.begin(now, end);
            return 0..0;
        };
        if stream.next == end {
            stream.used = now;
            return 0..0;
        }
        let bytes = (end - start) * self.record;
        let most = self.distance;
        stream.used = now;
        stream.next = end;
        stream.distance = if stream.distance < DOUBLES_TO.min(most) {
            (2 * stream.distance.max(bytes)).min(DOUBLES_TO.min(most))
        } else {
            (stream.distance + bytes / 8).min(most)
        };
        let from = stream.fetched.max(end);
        let to = (end + stream.distance.div_ceil(self.record)).min(self.records);
        stream.fetched = to.max(from);
        from..stream.fetched
    }

    fn begin(&mut self, now: Time, next: u64) {
        let stream = Stream {
            next,
            fetched: next,
            distance: 0,
            used: now,
        };
        if self.streams.len() < self.most {
            return self.streams.push(stream);
        }
        let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used);
        // A stream in use keeps its place: with more readers than streams, no stream would ever
        // grow.
        if let Some(oldest) = oldest
            && now.saturating_since(oldest.used) >= REAP
        {
            *oldest = stream;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_doubles_and_random_reads_fetch_nothing() {
        let mut zfetch = Zfetch::new(131_072, 1 << 20, 64 << 20);
        let mut ahead = Vec::new();
        for record in 0..10 {
            let fetched = zfetch.access(Time::ZERO, record..record + 1);
            ahead.push(fetched.end.saturating_sub(record + 1));
        }
        assert_eq!(ahead, [0, 2, 4, 8, 16, 32, 33, 33, 33, 33]);
        for record in [500, 90, 7000, 42_000] {
            assert!(zfetch.access(Time::ZERO, record..record + 1).is_empty());
        }
    }

    #[test]
    fn the_distance_ends_at_its_limit() {
        let mut zfetch = Zfetch::new(131_072, 1 << 20, 1 << 20);
        let ahead = (0..20).map(|record| {
            let fetched = zfetch.access(Time::ZERO, record..record + 1);
            fetched.end.saturating_sub(record + 1)
        });
        assert_eq!(ahead.max(), Some(8));
    }

    #[test]
    fn small_reads_of_one_record_keep_the_stream() {
        let mut zfetch = Zfetch::new(131_072, 1 << 20, 64 << 20);
        for _ in 0..4 {
            assert!(zfetch.access(Time::ZERO, 10..11).is_empty());
        }
        assert!(!zfetch.access(Time::ZERO, 11..12).is_empty());
    }
}
