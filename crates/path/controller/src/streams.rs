//! Sequential readers, found by their addresses.

use fullstroke_contract::Extent;
use fullstroke_units::Sectors;

/// A possibly sequential reader.
#[derive(Clone, Copy, Debug, Default)]
struct SequentialReader {
    /// Start address of the next sequential read.
    next: u64,
    /// Number of consecutive reads so far.
    reads: u32,
    /// End of the data read ahead.
    ahead: u64,
    /// Tick of the last read.
    used: u64,
}

/// The readers seen last. A search visits all readers, because there are only a few dozen.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    streams: Vec<SequentialReader>,
    sequential_after: u32,
    read_ahead: u64,
    capacity: u64,
    tick: u64,
}

impl Streams {
    /// Creates room for `count` readers of a volume of `capacity`.
    pub(crate) fn new(
        count: u32,
        sequential_after: u32,
        read_ahead: Sectors,
        capacity: Sectors,
    ) -> Streams {
        Streams {
            streams: vec![SequentialReader::default(); count as usize],
            sequential_after,
            read_ahead: read_ahead.0,
            capacity: capacity.0,
            tick: 0,
        }
    }

    /// Records a read, and returns the extent to read ahead. While half of the data read ahead is
    /// left, no further read-ahead begins.
    pub(crate) fn observe(&mut self, read: Extent) -> Option<Extent> {
        if self.read_ahead == 0 {
            return None;
        }
        self.tick += 1;
        let (start, end) = (read.start.0, read.end().0);
        let known = self
            .streams
            .iter_mut()
            // Unused entries have `next` 0, and must not match a first read at address 0.
            .find(|stream| stream.used > 0 && stream.next == start);
        let Some(stream) = known else {
            // Of unused entries (tick 0) the first is taken; otherwise the reader that has been
            // silent for longest.
            let stream = self.streams.iter_mut().min_by_key(|stream| stream.used)?;
            *stream = SequentialReader {
                next: end,
                reads: 1,
                ahead: end,
                used: self.tick,
            };
            return None;
        };
        stream.used = self.tick;
        stream.next = end;
        // The count is only compared with `sequential_after`, so the top value means "sequential".
        stream.reads = stream.reads.saturating_add(1);
        stream.ahead = stream.ahead.max(end);
        // `ahead` was raised to `end` above, so the difference does not wrap.
        let enough = stream.ahead - end >= self.read_ahead.div_ceil(2);
        let limit = (end + self.read_ahead).min(self.capacity);
        if stream.reads < self.sequential_after || enough || limit <= stream.ahead {
            return None;
        }
        let extent = Extent::new(stream.ahead, limit - stream.ahead);
        stream.ahead = limit;
        Some(extent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(count: u32) -> Streams {
        Streams::new(count, 2, Sectors(64), Sectors(1000))
    }

    #[test]
    fn the_second_read_in_a_row_is_read_ahead_of() {
        let mut streams = streams(4);
        assert_eq!(streams.observe(Extent::new(100, 8)), None);
        assert_eq!(
            streams.observe(Extent::new(108, 8)),
            Some(Extent::new(116, 64))
        );
        // Further read-ahead begins only after half of the data is used up.
        for read in 0..3 {
            assert_eq!(streams.observe(Extent::new(116 + 8 * read, 8)), None);
        }
        assert_eq!(streams.observe(Extent::new(140, 8)), None);
        assert_eq!(
            streams.observe(Extent::new(148, 8)),
            Some(Extent::new(180, 40))
        );
    }

    #[test]
    fn readers_side_by_side_are_told_apart_up_to_their_number() {
        let reads = |count| {
            let mut streams = streams(count);
            let ahead = |round: u64, reader: u64, streams: &mut Streams| {
                streams
                    .observe(Extent::new(reader * 200 + 8 * round, 8))
                    .is_some()
            };
            (0..2)
                .map(|round| {
                    (0..3)
                        .filter(|&reader| ahead(round, reader, &mut streams))
                        .count()
                })
                .sum::<usize>()
        };
        assert_eq!((reads(3), reads(2)), (3, 0));
    }

    #[test]
    fn nothing_is_read_ahead_beyond_the_end() {
        let mut streams = streams(1);
        streams.observe(Extent::new(976, 8));
        assert_eq!(
            streams.observe(Extent::new(984, 8)),
            Some(Extent::new(992, 8))
        );
        assert_eq!(streams.observe(Extent::new(992, 8)), None);
    }
}
