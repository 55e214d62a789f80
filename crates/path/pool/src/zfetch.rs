//! Read-ahead of sequential reads (`module/zfs/dmu_zfetch.c`, OpenZFS 2.2).
//!
//! A stream remembers the record that should come next. The first read of this record sets the
//! distance of the read-ahead to the size of the read, and each further one doubles the distance up
//! to 4 MiB, while the read-ahead of all streams in flight is below a sixteenth of the ARC. Otherwise
//! the distance grows by an eighth each time that a read-ahead came too late, up to the largest
//! distance, 64 MiB unless given. A read that no stream expects replaces the oldest stream.

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
    /// First record of the stream, and the record that is expected next.
    first: u64,
    next: u64,
    /// Records below this are read ahead.
    fetched: u64,
    /// Distance in bytes.
    distance: u64,
    /// True if a request has waited for a read-ahead (`zs_more`).
    is_late: bool,
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

    /// Takes note of a read. Returns the records to read ahead; empty if none. `is_full` is true if much
    /// read-ahead is in flight.
    pub(crate) fn access(&mut self, now: Time, read: Range<u64>, is_full: bool) -> Range<u64> {
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
        let is_late = std::mem::take(&mut stream.is_late);
        stream.distance = match stream.distance {
            distance if distance < bytes => bytes,
            distance if distance < DOUBLES_TO && !is_full => 2 * distance,
            distance if is_late => distance + distance / 8,
            distance => distance,
        };
        stream.distance = stream.distance.min(most);
        let from = stream.fetched.max(end);
        let to = (end + stream.distance / self.record).min(self.records);
        stream.fetched = to.max(from);
        from..stream.fetched
    }

    /// Takes note of a request that had to wait for a record that was being read ahead
    /// (`dmu_zfetch_done`).
    pub(crate) fn came_late(&mut self, record: u64) {
        let passed = |stream: &&mut Stream| (stream.first..stream.next).contains(&record);
        if let Some(stream) = self.streams.iter_mut().find(passed) {
            stream.is_late = true;
        }
    }

    fn begin(&mut self, now: Time, next: u64) {
        let stream = Stream {
            first: next,
            next,
            fetched: next,
            distance: 0,
            is_late: false,
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
            let fetched = zfetch.access(Time::ZERO, record..record + 1, false);
            ahead.push(fetched.end.saturating_sub(record + 1));
        }
        assert_eq!(ahead, [0, 1, 2, 4, 8, 16, 32, 32, 32, 32]);
        zfetch.came_late(9);
        let fetched = zfetch.access(Time::ZERO, 10..11, false);
        assert_eq!(fetched.end - 11, 36, "an eighth more");
        let fetched = zfetch.access(Time::ZERO, 11..12, false);
        assert_eq!(fetched.end - 12, 36);
        for record in [500, 90, 7000, 42_000] {
            assert!(
                zfetch
                    .access(Time::ZERO, record..record + 1, false)
                    .is_empty()
            );
        }
    }

    #[test]
    fn the_distance_ends_at_its_limit() {
        let mut zfetch = Zfetch::new(131_072, 1 << 20, 1 << 20);
        let ahead = (0..20).map(|record| {
            let fetched = zfetch.access(Time::ZERO, record..record + 1, false);
            fetched.end.saturating_sub(record + 1)
        });
        assert_eq!(ahead.max(), Some(8));
    }

    #[test]
    fn small_reads_of_one_record_keep_the_stream() {
        let mut zfetch = Zfetch::new(131_072, 1 << 20, 64 << 20);
        for _ in 0..4 {
            assert!(zfetch.access(Time::ZERO, 10..11, false).is_empty());
        }
        assert!(!zfetch.access(Time::ZERO, 11..12, false).is_empty());
    }
}
