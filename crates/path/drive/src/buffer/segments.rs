//! The segments of a buffer, with indices by address and by age.
//!
//! No operation visits all segments, because a current drive has hundreds of segments and each
//! request asks several times.

use super::ages::{Age, Ages};
use super::free::FreeEntries;
use super::order::SegmentOrder;
use fullstroke_contract::Extent;
use fullstroke_units::Time;

/// Content of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum SegmentContent {
    /// No data.
    #[default]
    Free,
    Read,
    Written,
    /// Written data, not yet on the medium.
    Dirty,
}

/// State of the drive's own filling of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum FillState {
    /// The drive is not filling the segment.
    #[default]
    Idle,
    /// Read-ahead. The head has waited for the end of the segment since `since` and reads on to
    /// `limit`.
    Ahead { since: Time, limit: u64 },
    /// A track buffer. The head landed on the track at `landed` and leaves at `left`.
    Track { landed: Time, left: Time },
}

/// Data of neighbouring addresses. A free segment has no data and tick 0, so that a free segment is
/// replaced first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
// A segment takes 64 bytes. Without the alignment almost each segment would take two lines of the
// processor's cache, and each look at a random segment two misses.
#[repr(align(64))]
pub(super) struct BufferSegment {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) kind: SegmentContent,
    pub(super) fill: FillState,
    /// Time when the data of the segment were complete. Sectors of read-ahead have their own times.
    pub(super) ready: Time,
    /// Tick of the last use.
    pub(super) used: u64,
}

/// All segments of a buffer.
pub(super) struct Segments {
    all: Vec<BufferSegment>,
    /// Segments with data, by first and last sector.
    order: SegmentOrder,
    /// Segments with read data, in no order, and the index of each segment in this list.
    read: Vec<u32>,
    read_places: Vec<u32>,
    free: FreeEntries,
    /// Segments with data by age, and the written ones of them. Dirty segments are hidden.
    oldest: Ages,
    oldest_written: Ages,
    /// Number of sectors in the whole buffer, if segments share the buffer.
    shared: Option<u64>,
    sectors: u64,
    may_go: usize,
    written: usize,
    /// Scratch space for the segments of one request.
    found: Vec<usize>,
}

impl Segments {
    /// Creates `count` segments. With `Some`, the segments share `sectors` sectors.
    pub(super) fn new(count: usize, sectors: Option<u64>) -> Segments {
        Segments {
            all: vec![BufferSegment::default(); count],
            order: SegmentOrder::new(count),
            read: Vec::with_capacity(count),
            read_places: vec![0; count],
            free: FreeEntries::new(count),
            oldest: Ages::new(count),
            oldest_written: Ages::new(count),
            shared: sectors,
            sectors: 0,
            may_go: count,
            written: 0,
            found: Vec::with_capacity(count),
        }
    }

    pub(super) fn get(&self, index: usize) -> &BufferSegment {
        &self.all[index]
    }

    /// Number of replaceable segments.
    pub(super) fn may_go(&self) -> usize {
        self.may_go
    }

    /// Changes the fill state of a segment.
    pub(super) fn set_fill(&mut self, index: usize, fill: FillState) {
        self.all[index].fill = fill;
    }

    /// Changes a segment and updates the indices.
    pub(super) fn update(&mut self, index: usize, change: impl FnOnce(&mut BufferSegment)) {
        let old = self.all[index];
        change(&mut self.all[index]);
        self.changed(index, &old);
    }

    /// Changes begin and end of a segment that keeps its kind.
    pub(super) fn reshape(&mut self, index: usize, change: impl FnOnce(&mut BufferSegment)) {
        let segment = &mut self.all[index];
        let old = (segment.start, segment.end);
        change(segment);
        let new = (segment.start, segment.end);
        assert!(
            new.0 <= new.1 && segment.holds_data(),
            "segment {index} does not hold what its kind says: {segment:?}"
        );
        if old != new {
            self.order.change(index, old.0, new.0, new.1);
            self.sectors = self.sectors + (new.1 - new.0) - (old.1 - old.0);
        }
    }

    pub(super) fn put(&mut self, index: usize, segment: BufferSegment) {
        self.update(index, |place| *place = segment);
    }

    /// Frees a segment.
    pub(super) fn drop(&mut self, index: usize) {
        self.put(index, BufferSegment::default());
    }

    /// Changes all segments overlapping `start..end`, in order of index.
    pub(super) fn update_overlapping(
        &mut self,
        start: u64,
        end: u64,
        mut change: impl FnMut(usize, &mut BufferSegment),
    ) {
        let mut found = std::mem::take(&mut self.found);
        self.order
            .back_from(end.saturating_sub(1), start.saturating_add(1), |index| {
                if self.all[index].overlaps(start, end) {
                    found.push(index);
                }
                false
            });
        // The search goes by address. Changes go by number, so that equal runs choose equal
        // segments.
        found.sort_unstable();
        for &index in &found {
            self.update(index, |segment| change(index, segment));
        }
        found.clear();
        self.found = found;
    }

    /// Frees all segments with read data.
    pub(super) fn drop_read(&mut self) {
        while let Some(&index) = self.read.last() {
            self.drop(index as usize);
        }
    }

    /// Returns the lowest index of a segment that holds all of `start..end` and is `wanted`.
    pub(super) fn holding(
        &self,
        start: u64,
        end: u64,
        wanted: impl Fn(&BufferSegment) -> bool,
    ) -> Option<usize> {
        let mut lowest: Option<usize> = None;
        self.order.back_from(start, end, |index| {
            // Several segments may hold the sectors. The lowest number repeats the choice in each
            // run.
            if lowest.is_none_or(|lowest| index < lowest) && wanted(&self.all[index]) {
                lowest = Some(index);
            }
            false
        });
        lowest
    }

    /// Returns the lowest index of a segment that holds all of `start..end` and is `wanted`, and
    /// the lowest index of a segment that holds `start` and is `wanted_first`.
    pub(super) fn holding_or_beginning(
        &self,
        start: u64,
        end: u64,
        wanted: impl Fn(&BufferSegment) -> bool,
        wanted_first: impl Fn(&BufferSegment) -> bool,
    ) -> (Option<usize>, Option<usize>) {
        let (mut whole, mut first) = (usize::MAX, usize::MAX);
        self.order.back_from(start, start + 1, |index| {
            let segment = &self.all[index];
            if index < whole && segment.end >= end && wanted(segment) {
                whole = index;
            }
            if index < first && wanted_first(segment) {
                first = index;
            }
            false
        });
        let found = |index: usize| (index < usize::MAX).then_some(index);
        (found(whole), found(first))
    }

    /// Returns a segment that holds the sector `place`, or ends directly before `place`, and is
    /// `wanted`. Of several such segments, returns the one with the largest first sector.
    pub(super) fn touching(
        &self,
        place: u64,
        wanted: impl Fn(&BufferSegment) -> bool,
    ) -> Option<usize> {
        let mut last = None;
        self.order.back_from(place, place, |index| {
            last = Some(index).filter(|&index| wanted(&self.all[index]));
            last.is_some()
        });
        last
    }

    /// Returns the segment to free first, if the segments exceed the shared size.
    pub(super) fn beyond_share(&mut self) -> Option<usize> {
        if self.sectors > self.shared? {
            self.oldest.first()
        } else {
            None
        }
    }

    /// Returns the segment that a new segment replaces. A written segment replaces the least
    /// recently used written segment, if at least `quota` segments are written. Otherwise a free
    /// segment is replaced, or the least recently used of all segments.
    pub(super) fn replaceable(&mut self, written: bool, quota: usize) -> Option<usize> {
        // A segment that is not written has no quota, and the oldest of all segments gives way.
        let of_its_kind = if written && self.written >= quota {
            self.oldest_written.first()
        } else {
            None
        };
        of_its_kind
            .or_else(|| self.free.first())
            .or_else(|| self.oldest.first())
    }

    /// Updates all indices after a change of a segment.
    fn changed(&mut self, index: usize, old: &BufferSegment) {
        let new = self.all[index];
        assert!(
            new.start <= new.end && (new.holds_data() || new.start == new.end),
            "segment {index} does not hold what its kind says: {new:?}"
        );
        match (old.holds_data(), new.holds_data()) {
            (true, true) if (old.start, old.end) != (new.start, new.end) => {
                self.order.change(index, old.start, new.start, new.end);
            }
            (true, false) => {
                self.order.remove(index, old.start);
                self.free.add(index);
            }
            (false, true) => {
                self.order.insert(index, new.start, new.end);
                self.free.remove(index);
            }
            _ => {}
        }
        match (
            old.kind == SegmentContent::Read,
            new.kind == SegmentContent::Read,
        ) {
            (true, false) => self.forget_read(index),
            (false, true) => {
                self.read_places[index] = self.read.len() as u32;
                self.read.push(index as u32);
            }
            _ => {}
        }
        if old.age() != new.age() {
            self.oldest.set(index, new.age());
        }
        if old.age_written() != new.age_written() {
            self.oldest_written.set(index, new.age_written());
        }
        self.sectors = self.sectors + (new.end - new.start) - (old.end - old.start);
        self.may_go = self.may_go + usize::from(new.may_go()) - usize::from(old.may_go());
        self.written = self.written + usize::from(new.is_written()) - usize::from(old.is_written());
        debug_assert!(
            self.written <= self.all.len() && self.may_go <= self.all.len(),
            "{} written and {} replaceable of {} segments",
            self.written,
            self.may_go,
            self.all.len()
        );
    }

    /// Removes a segment from the list of read segments. The last entry of the list moves to the
    /// free place.
    fn forget_read(&mut self, index: usize) {
        let place = self.read_places[index];
        // The last entry takes the place of the removed one, so that no other entry moves.
        let gone = self.read.swap_remove(place as usize);
        assert_eq!(
            gone as usize, index,
            "another segment stands where this one was among those read"
        );
        if let Some(&moved) = self.read.get(place as usize) {
            self.read_places[moved as usize] = place;
        }
    }
}

impl BufferSegment {
    pub(super) fn new(
        extent: Extent,
        kind: SegmentContent,
        ready: Time,
        used: u64,
    ) -> BufferSegment {
        BufferSegment {
            start: extent.start.0,
            end: extent.end().0,
            kind,
            fill: FillState::Idle,
            ready,
            used,
        }
    }

    /// True if another segment may replace this one.
    fn may_go(&self) -> bool {
        self.kind != SegmentContent::Dirty
    }

    pub(super) fn holds_data(&self) -> bool {
        self.kind != SegmentContent::Free
    }

    pub(super) fn is_written(&self) -> bool {
        matches!(self.kind, SegmentContent::Written | SegmentContent::Dirty)
    }

    /// Age in the order of replacement.
    fn age(&self) -> Age {
        match self.kind {
            SegmentContent::Free => Age::Absent,
            SegmentContent::Dirty => Age::Hidden(self.used),
            SegmentContent::Read | SegmentContent::Written => Age::Shown(self.used),
        }
    }

    /// Age in the order of replacement among written segments.
    fn age_written(&self) -> Age {
        match self.kind {
            SegmentContent::Read => Age::Absent,
            _ => self.age(),
        }
    }

    /// True if the segment holds any sector of `start..end`.
    pub(super) fn overlaps(&self, start: u64, end: u64) -> bool {
        (self.start < end) & (start < self.end)
    }

    /// Keeps the newest `size` sectors, because the segment is a ring that overwrites the oldest
    /// sectors.
    pub(super) fn trim(&mut self, size: u64) {
        self.start = self.start.max(self.end.saturating_sub(size));
    }

    /// Drops the sectors in `start..end`. If the segment begins before `start`, the segment also
    /// loses all sectors behind `end`.
    pub(super) fn cut(&mut self, start: u64, end: u64) {
        if !self.overlaps(start, end) {
            return;
        }
        // A segment is one run of sectors, so of two rests only the first can stay.
        if self.start < start {
            self.end = start
        } else {
            self.start = end.min(self.end)
        }
        if self.start >= self.end {
            *self = BufferSegment::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A model that visits every segment. The indices must find the same segments.
    struct PlainSegments(Vec<BufferSegment>);

    impl PlainSegments {
        fn holding(&self, start: u64, end: u64) -> Option<usize> {
            self.0.iter().position(|segment| {
                segment.holds_data() && segment.start <= start && end <= segment.end
            })
        }

        fn replaceable(&self, written: bool, quota: usize) -> Option<usize> {
            let oldest = |among: &dyn Fn(&BufferSegment) -> bool| {
                let ranks = self
                    .0
                    .iter()
                    .enumerate()
                    .filter(|(_, segment)| segment.may_go() && among(segment));
                ranks
                    .min_by_key(|(_, segment)| segment.used)
                    .map(|(index, _)| index)
            };
            let alike = |segment: &BufferSegment| segment.is_written() == written;
            let full = self.0.iter().filter(|segment| alike(segment)).count() >= quota;
            oldest(&alike)
                .filter(|_| full)
                .or_else(|| oldest(&|_| true))
        }
    }

    fn kinds() -> impl Strategy<Value = SegmentContent> {
        let kinds = vec![
            SegmentContent::Read,
            SegmentContent::Written,
            SegmentContent::Dirty,
            SegmentContent::Free,
        ];
        prop::sample::select(kinds)
    }

    fn segment(start: u64, sectors: u64, kind: SegmentContent, used: u64) -> BufferSegment {
        match kind {
            SegmentContent::Free => BufferSegment::default(),
            _ => BufferSegment::new(Extent::new(start, sectors), kind, Time::ZERO, used),
        }
    }

    /// Returns segments of 8 sectors side by side. Before all of them lies one long segment, as a
    /// stream leaves behind.
    fn dense(count: usize) -> Segments {
        let mut segments = Segments::new(count, None);
        segments.put(0, segment(0, 4096, SegmentContent::Read, 1));
        for index in 1..count {
            let kind = if index % 2 == 0 {
                SegmentContent::Read
            } else {
                SegmentContent::Written
            };
            // A permutation, so that indices are not in the order of addresses.
            let place = index * 7919 % (count - 1).max(1);
            segments.put(
                index,
                segment(10_000 + 8 * place as u64, 8, kind, index as u64 + 1),
            );
        }
        segments
    }

    /// Returns the largest number of nodes that `ask` visits, over many places.
    fn looks(count: usize, ask: impl Fn(&mut Segments, u64)) -> u64 {
        let mut segments = dense(count);
        let place = |step: usize| 10_000 + 8 * (step * count / 64) as u64;
        let cost = |step: usize| {
            segments.order.looks.set(0);
            ask(&mut segments, place(step));
            segments.order.looks.get()
        };
        (0..64).map(cost).max().unwrap()
    }

    /// An earlier search visited every segment that began within the length of the longest segment:
    /// 512 of 512.
    #[test]
    fn a_look_up_costs_the_logarithm_of_the_number_of_segments() {
        for count in [8usize, 64, 512, 4096, 65_536] {
            // The search goes down to the place, and along the segments that end before the place.
            let most = 8 * u64::from(count.ilog2()) + 8;
            let hit = looks(count, |segments, at| {
                _ = segments.holding(at, at + 4, |_| true)
            });
            let miss = looks(count, |segments, at| {
                _ = segments.holding(at, at + 64, |_| true)
            });
            let touched = looks(count, |segments, at| _ = segments.touching(at, |_| true));
            let changed = looks(count, |segments, at| {
                segments.update_overlapping(at, at + 8, |_, _| {})
            });
            for cost in [hit, miss, touched, changed] {
                assert!(
                    cost <= most,
                    "{count} segments: {cost} looks, at most {most} expected"
                );
            }
        }
    }

    #[test]
    fn only_segments_that_were_read_are_visited_to_drop_them() {
        let mut segments = dense(64);
        segments.drop_read();
        assert!(segments.read.is_empty());
        let left = segments
            .all
            .iter()
            .filter(|segment| segment.kind != SegmentContent::Free);
        assert!(
            left.clone()
                .all(|segment| segment.kind == SegmentContent::Written)
        );
        assert_eq!(left.count(), 32);
    }

    proptest! {
        /// Segments overlap, nest and are empty, as read-ahead and writes leave them.
        #[test]
        fn what_is_found_is_what_a_look_at_every_segment_finds(
            count in 1usize..100,
            steps in prop::collection::vec((0usize..100, 0u64..400, 0u64..60, kinds(), 0u64..400, 0u64..40), 1..300),
            quota in 1usize..100,
        ) {
            let quota = quota.min(count);
            let mut segments = Segments::new(count, None);
            let mut plain = PlainSegments(vec![BufferSegment::default(); count]);
            for (tick, (index, start, sectors, kind, at, length)) in steps.into_iter().enumerate() {
                let new = segment(start, sectors, kind, tick as u64 + 1);
                segments.put(index % count, new);
                plain.0[index % count] = new;
                prop_assert_eq!(segments.holding(at, at + length + 1, |_| true), plain.holding(at, at + length + 1));
                for written in [false, true] {
                    let quota = if written { quota } else { count };
                    prop_assert_eq!(segments.replaceable(written, quota), plain.replaceable(written, quota));
                }
                prop_assert_eq!(segments.may_go(), plain.0.iter().filter(|segment| segment.may_go()).count());
                if tick % 7 == 0 {
                    let cut = |segment: &mut BufferSegment| segment.cut(at, at + length);
                    segments.update_overlapping(at, at + length, |_, segment| cut(segment));
                    let hit = |segment: &&mut BufferSegment| segment.holds_data() && segment.overlaps(at, at + length);
                    plain.0.iter_mut().filter(hit).for_each(cut);
                }
                prop_assert_eq!(&segments.all, &plain.0);
            }
        }
    }
}
