//! The segments of a buffer, and what finds them: by address, and by age.
//!
//! Nothing here looks at all of them. A buffer of today has hundreds, and each
//! request asks several times.

use super::oldest::Oldest;
use super::order::Order;
use fullstroke_contract::Extent;
use fullstroke_units::Time;

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// Nothing.
    #[default]
    Free,
    Read,
    Written,
    /// Written data that are not on the medium yet.
    Dirty,
    /// Reserved by a layer above; neither replaced nor hit.
    Protected,
}

/// How a segment is filled by the drive itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Fill {
    /// Not, or no longer.
    #[default]
    Idle,
    /// Read-ahead: the head waits for the segment's end since an instant, and
    /// goes on to `limit`.
    Ahead { since: Time, limit: u64 },
    /// A whole track, while the head is on it.
    Track { landed: Time, left: Time },
}

/// Data of neighbouring addresses. A free one, and a protected one, has none;
/// a free one was used at 0, so that it is the first to be replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) kind: Kind,
    pub(super) fill: Fill,
    /// When its data were there, but for those that the drive fills in.
    pub(super) ready: Time,
    /// The tick of its last use.
    pub(super) used: u64,
}

/// All segments of a buffer.
pub(super) struct Segments {
    all: Vec<Segment>,
    /// Those that hold data, by where they begin.
    order: Order,
    /// Of what has ever been in a segment, the most: no segment that begins
    /// further before a place than this reaches it.
    longest: u64,
    /// Those that may go, by age; and of them those that were written.
    oldest: Oldest,
    oldest_written: Oldest,
    /// Those that hold data and may go, by age, and the sectors that all may
    /// hold together: where they share the buffer.
    shared: Option<(Oldest, u64)>,
    sectors: u64,
    may_go: usize,
    written: usize,
    /// Room for what one request concerns.
    found: Vec<usize>,
}

impl Segments {
    /// `count` segments; which share `sectors`, if they do.
    pub(super) fn new(count: usize, sectors: Option<u64>) -> Segments {
        Segments {
            all: vec![Segment::default(); count],
            order: Order::default(),
            longest: 0,
            oldest: Oldest::new(count, 0),
            oldest_written: Oldest::new(count, Oldest::NEVER),
            shared: sectors.map(|sectors| (Oldest::new(count, Oldest::NEVER), sectors)),
            sectors: 0,
            may_go: count,
            written: 0,
            found: Vec::with_capacity(count),
        }
    }

    pub(super) fn get(&self, index: usize) -> &Segment {
        &self.all[index]
    }

    /// Segments that another may take the place of.
    pub(super) fn may_go(&self) -> usize {
        self.may_go
    }

    /// Changes how a segment is being filled.
    pub(super) fn set_fill(&mut self, index: usize, fill: Fill) {
        self.all[index].fill = fill;
    }

    /// Changes anything of a segment.
    pub(super) fn update(&mut self, index: usize, change: impl FnOnce(&mut Segment)) {
        let old = self.all[index];
        change(&mut self.all[index]);
        self.changed(index, &old);
    }

    pub(super) fn put(&mut self, index: usize, segment: Segment) {
        self.update(index, |place| *place = segment);
    }

    /// Makes a segment free.
    pub(super) fn drop(&mut self, index: usize) {
        self.put(index, Segment::default());
    }

    /// Changes all segments that have any of `start..end`, in order of index.
    pub(super) fn update_overlapping(
        &mut self,
        start: u64,
        end: u64,
        mut change: impl FnMut(usize, &mut Segment),
    ) {
        let mut found = std::mem::take(&mut self.found);
        let overlapping =
            self.reaching(end.saturating_sub(1), start).filter(|&i| self.all[i].overlaps(start, end));
        found.extend(overlapping);
        found.sort_unstable();
        for &index in &found {
            self.update(index, |segment| change(index, segment));
        }
        found.clear();
        self.found = found;
    }

    /// Makes all segments of a kind free.
    pub(super) fn drop_all(&mut self, kind: Kind) {
        for index in 0..self.all.len() {
            if self.all[index].kind == kind {
                self.drop(index);
            }
        }
    }

    /// The segment of lowest index that has all of `start..end` and is `wanted`.
    pub(super) fn holding(&self, start: u64, end: u64, wanted: impl Fn(&Segment) -> bool) -> Option<usize> {
        let holds = |&index: &usize| self.all[index].covers(start, end) && wanted(&self.all[index]);
        self.reaching(start, start).filter(holds).min()
    }

    /// A segment that has the sector at `place`, or ends before it, and is
    /// `wanted`: of several the one that begins last.
    pub(super) fn touching(&self, place: u64, wanted: impl Fn(&Segment) -> bool) -> Option<usize> {
        let touches = |&index: &usize| place <= self.all[index].end && wanted(&self.all[index]);
        self.reaching(place, place.saturating_sub(1)).find(touches)
    }

    /// The segment to give up first, where they hold more than they share.
    pub(super) fn beyond_share(&self) -> Option<usize> {
        let (oldest, most) = self.shared.as_ref()?;
        oldest.first().filter(|_| self.sectors > *most)
    }

    /// The one that a segment would replace, written or not: the least recently
    /// used of its kind, where that has `quota` or more of them, or of all.
    pub(super) fn to_replace(&self, written: bool, quota: usize) -> Option<usize> {
        let alike = if written { self.written } else { self.all.len() - self.written };
        // Who is not written has no quota but all: then the oldest is alike.
        let of_its_kind = self.oldest_written.first().filter(|_| written && alike >= quota);
        of_its_kind.or_else(|| self.oldest.first())
    }

    /// Segments that begin at `last` or before and may reach beyond `first`.
    fn reaching(&self, last: u64, first: u64) -> impl Iterator<Item = usize> {
        let reaches = move |&(start, _): &(u64, usize)| start + self.longest > first;
        self.order.back_from(last).take_while(reaches).map(|(_, index)| index)
    }

    /// Brings what finds a segment up to date.
    fn changed(&mut self, index: usize, old: &Segment) {
        let new = self.all[index];
        self.longest = self.longest.max(new.end - new.start);
        match (old.holds_data(), new.holds_data()) {
            (true, true) if old.start != new.start => self.order.shift(old.start, new.start, index as u32),
            (true, false) => self.order.remove(old.start, index as u32),
            (false, true) => self.order.insert(new.start, index as u32),
            _ => {}
        }
        if old.rank() != new.rank() {
            self.oldest.set(index, new.rank());
        }
        if old.rank_written() != new.rank_written() {
            self.oldest_written.set(index, new.rank_written());
        }
        self.sectors = self.sectors + (new.end - new.start) - (old.end - old.start);
        if let Some((oldest, _)) = &mut self.shared {
            let rank = if new.holds_data() { new.rank() } else { Oldest::NEVER };
            oldest.set(index, rank);
        }
        self.may_go = self.may_go + usize::from(new.may_go()) - usize::from(old.may_go());
        self.written = self.written + usize::from(new.is_written()) - usize::from(old.is_written());
    }
}

impl Segment {
    pub(super) fn new(extent: Extent, kind: Kind, ready: Time, used: u64) -> Segment {
        Segment { start: extent.start.0, end: extent.end().0, kind, fill: Fill::Idle, ready, used }
    }

    /// Whether another may take its place.
    fn may_go(&self) -> bool {
        !matches!(self.kind, Kind::Protected | Kind::Dirty)
    }

    fn holds_data(&self) -> bool {
        !matches!(self.kind, Kind::Free | Kind::Protected)
    }

    pub(super) fn is_written(&self) -> bool {
        matches!(self.kind, Kind::Written | Kind::Dirty)
    }

    /// Its place in the order of replacement.
    fn rank(&self) -> u64 {
        if self.may_go() { self.used } else { Oldest::NEVER }
    }

    /// The same among those that were written.
    fn rank_written(&self) -> u64 {
        if self.kind == Kind::Written { self.used } else { Oldest::NEVER }
    }

    /// Whether it has all of `start..end`.
    pub(super) fn covers(&self, start: u64, end: u64) -> bool {
        (self.start <= start) & (end <= self.end)
    }

    /// Whether it has any of `start..end`.
    pub(super) fn overlaps(&self, start: u64, end: u64) -> bool {
        (self.start < end) & (start < self.end)
    }

    /// Keeps the newest sectors: the ring overwrites the oldest.
    pub(super) fn trim(&mut self, size: u64) {
        self.start = self.start.max(self.end.saturating_sub(size));
    }

    /// Drops what lies in `start..end`, and what is behind it if that is not
    /// all.
    pub(super) fn cut(&mut self, start: u64, end: u64) {
        if !self.overlaps(start, end) {
            return;
        }
        if self.start < start {
            self.end = start
        } else {
            self.start = end.min(self.end)
        }
        if self.start >= self.end {
            *self = Segment::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the index must find, by looking at every segment.
    struct Plain(Vec<Segment>);

    impl Plain {
        fn holding(&self, start: u64, end: u64) -> Option<usize> {
            self.0.iter().position(|segment| segment.holds_data() && segment.covers(start, end))
        }

        fn to_replace(&self, written: bool, quota: usize) -> Option<usize> {
            let oldest = |among: &dyn Fn(&Segment) -> bool| {
                let ranks =
                    self.0.iter().enumerate().filter(|(_, segment)| segment.may_go() && among(segment));
                ranks.min_by_key(|(_, segment)| segment.used).map(|(index, _)| index)
            };
            let alike = |segment: &Segment| segment.is_written() == written;
            let full = self.0.iter().filter(|segment| alike(segment)).count() >= quota;
            oldest(&alike).filter(|_| full).or_else(|| oldest(&|_| true))
        }
    }

    fn kinds() -> impl Strategy<Value = Kind> {
        let kinds = vec![Kind::Read, Kind::Written, Kind::Dirty, Kind::Protected, Kind::Free];
        prop::sample::select(kinds)
    }

    fn segment(start: u64, sectors: u64, kind: Kind, used: u64) -> Segment {
        match kind {
            Kind::Free => Segment::default(),
            Kind::Protected => Segment { kind, ..Segment::default() },
            _ => Segment::new(Extent::new(start, sectors), kind, Time::ZERO, used),
        }
    }

    proptest! {
        /// Overlapping, nested and empty ones included, as read-ahead and
        /// writes leave them.
        #[test]
        fn what_is_found_is_what_a_look_at_every_segment_finds(
            count in 1usize..100,
            steps in prop::collection::vec((0usize..100, 0u64..400, 0u64..60, kinds(), 0u64..400, 0u64..40), 1..300),
            quota in 1usize..100,
        ) {
            let quota = quota.min(count);
            let mut segments = Segments::new(count, None);
            let mut plain = Plain(vec![Segment::default(); count]);
            for (tick, (index, start, sectors, kind, at, length)) in steps.into_iter().enumerate() {
                let new = segment(start, sectors, kind, tick as u64 + 1);
                segments.put(index % count, new);
                plain.0[index % count] = new;
                prop_assert_eq!(segments.holding(at, at + length + 1, |_| true), plain.holding(at, at + length + 1));
                for written in [false, true] {
                    let quota = if written { quota } else { count };
                    prop_assert_eq!(segments.to_replace(written, quota), plain.to_replace(written, quota));
                }
                prop_assert_eq!(segments.may_go(), plain.0.iter().filter(|segment| segment.may_go()).count());
                if tick % 7 == 0 {
                    let cut = |segment: &mut Segment| segment.cut(at, at + length);
                    segments.update_overlapping(at, at + length, |_, segment| cut(segment));
                    let hit = |segment: &&mut Segment| segment.holds_data() && segment.overlaps(at, at + length);
                    plain.0.iter_mut().filter(hit).for_each(cut);
                }
                prop_assert_eq!(&segments.all, &plain.0);
            }
        }
    }
}
