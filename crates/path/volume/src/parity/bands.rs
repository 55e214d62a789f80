//! The part of one row inside a request, in cuts. Each cut concerns the same chunks from end to
//! end. In a plan, each cut becomes a [`Band`](crate::Band) with the method of the cut.

use std::ops::Range;

/// A run of one row's data, in sectors from the beginning of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowBand {
    pub(crate) row: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// A range of offsets within the chunks. In this range, the request covers exactly the data chunks
/// `first..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct BandCut {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) first: u64,
    pub(crate) end: u64,
}

/// The cuts of a span, by ascending offset; at most three.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BandCuts {
    cuts: [BandCut; BandCuts::MOST],
    count: usize,
}

impl BandCut {
    pub(crate) fn sectors(&self) -> u64 {
        self.to - self.from
    }
    pub(crate) fn offsets(&self) -> Range<u64> {
        self.from..self.to
    }
    /// True if the request covers the data chunk `index` in this cut.
    #[inline]
    pub(crate) fn covers(&self, index: u64) -> bool {
        (self.first..self.end).contains(&index)
    }
    /// Returns the number of chunks inside the request in this cut.
    pub(crate) fn covered(&self) -> u64 {
        self.end - self.first
    }
}

impl BandCuts {
    /// The span begins somewhere in one chunk and ends somewhere in another. The set of covered
    /// chunks changes only at these two offsets.
    pub(crate) const MOST: usize = 3;

    /// Returns the cuts of `span` in chunks of `chunk` sectors. `span` must not be empty.
    pub(crate) fn of(span: RowBand, chunk: u64) -> BandCuts {
        let (head, last) = (span.from / chunk, (span.to - 1) / chunk);
        let (begin, stop) = (span.from - head * chunk, span.to - last * chunk);
        let mut cuts = BandCuts::default();
        if head == last {
            cuts.push(BandCut {
                from: begin,
                to: stop,
                first: head,
                end: head + 1,
            });
            return cuts;
        }
        let (low, high) = (begin.min(stop), begin.max(stop));
        for (from, to) in [(0, low), (low, high), (high, chunk)] {
            let first = if from >= begin { head } else { head + 1 };
            let end = if from < stop { last + 1 } else { last };
            if from < to && first < end {
                cuts.push(BandCut {
                    from,
                    to,
                    first,
                    end,
                });
            }
        }
        cuts
    }

    fn push(&mut self, cut: BandCut) {
        self.cuts[self.count] = cut;
        self.count += 1;
    }

    pub(crate) fn as_slice(&self) -> &[BandCut] {
        &self.cuts[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cuts(from: u64, to: u64) -> Vec<(u64, u64, u64, u64)> {
        let cuts = BandCuts::of(RowBand { row: 0, from, to }, 100);
        cuts.as_slice()
            .iter()
            .map(|cut| (cut.from, cut.to, cut.first, cut.end))
            .collect()
    }

    #[test]
    fn a_run_within_one_chunk_is_one_cut() {
        assert_eq!(cuts(110, 130), [(10, 30, 1, 2)]);
    }

    #[test]
    fn small_pieces_on_both_sides_of_a_border_leave_the_middle_of_the_parity_alone() {
        assert_eq!(cuts(95, 105), [(0, 5, 1, 2), (95, 100, 0, 1)]);
    }

    #[test]
    fn overlapping_offsets_are_cut_where_the_chunks_change() {
        assert_eq!(
            cuts(40, 160),
            [(0, 40, 1, 2), (40, 60, 0, 2), (60, 100, 0, 1)]
        );
        assert_eq!(cuts(0, 250), [(0, 50, 0, 3), (50, 100, 0, 2)]);
    }

    proptest! {
        #[test]
        fn cuts_cover_each_sector_of_the_span_once(
            chunk in 1u64..20, from in 0u64..100, sectors in 1u64..100,
        ) {
            let to = from + sectors;
            let cuts = BandCuts::of(RowBand { row: 0, from, to }, chunk);
            let mut covered = Vec::new();
            for cut in cuts.as_slice() {
                prop_assert!(cut.from < cut.to && cut.to <= chunk && cut.first < cut.end);
                for index in cut.first..cut.end {
                    covered.extend((cut.from..cut.to).map(|offset| index * chunk + offset));
                }
            }
            covered.sort_unstable();
            prop_assert_eq!(covered, (from..to).collect::<Vec<_>>());
            prop_assert!(cuts.as_slice().windows(2).all(|pair| pair[0].to <= pair[1].from));
        }
    }
}
