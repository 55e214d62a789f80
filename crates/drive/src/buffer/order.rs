//! Segments in ascending order of where they begin.
//!
//! A sorted list in chunks: what enters or leaves moves at most one chunk's
//! entries, whatever the number of segments, and the chunks' first entries are
//! found by bisection. Neighbouring chunks that fit into half of one become
//! one, so that their number stays bounded and, once grown, nothing is
//! allocated.

/// Entries of a chunk at most.
const CHUNK: usize = 32;

/// The list.
#[derive(Default)]
pub(super) struct Order {
    /// The first entry of each chunk in use, and the chunk, in order.
    lanes: Vec<(u64, u32)>,
    chunks: Vec<Chunk>,
    unused: Vec<u32>,
}

struct Chunk {
    len: usize,
    starts: [u64; CHUNK],
    segments: [u32; CHUNK],
}

/// A place in the list: lane, and entry of its chunk.
type Place = (usize, usize);

impl Order {
    /// Adds a segment that begins at `start`.
    pub(super) fn insert(&mut self, start: u64, segment: u32) {
        let Some((lane, entry)) = self.last_up_to(start) else {
            return self.insert_first(start, segment);
        };
        self.insert_at((lane, entry + 1), start, segment);
    }

    /// Takes out a segment that was added with `start`.
    pub(super) fn remove(&mut self, start: u64, segment: u32) {
        let place = self.find(start, segment);
        self.remove_at(place);
    }

    /// A segment that began at `old` begins at `new`.
    pub(super) fn shift(&mut self, old: u64, new: u64, segment: u32) {
        let place = self.find(old, segment);
        let (lane, entry) = place;
        let chunk = self.chunk_mut(lane);
        let behind_previous = entry > 0 && chunk.starts[entry - 1] <= new;
        let before_next = entry + 1 < chunk.len && new <= chunk.starts[entry + 1];
        // At the ends of a chunk the neighbours are elsewhere: rare enough.
        if behind_previous && before_next {
            chunk.starts[entry] = new;
            return;
        }
        self.remove_at(place);
        self.insert(new, segment);
    }

    /// The segments that begin at `start` or before, the last of them first,
    /// with where they begin.
    pub(super) fn back_from(&self, start: u64) -> impl Iterator<Item = (u64, usize)> {
        let mut next = self.last_up_to(start);
        std::iter::from_fn(move || {
            let (lane, entry) = next?;
            let chunk = self.chunk(lane);
            next = match (lane, entry) {
                (0, 0) => None,
                (_, 0) => Some((lane - 1, self.chunk(lane - 1).len - 1)),
                _ => Some((lane, entry - 1)),
            };
            Some((chunk.starts[entry], chunk.segments[entry] as usize))
        })
    }

    /// The last entry at `start` or before.
    fn last_up_to(&self, start: u64) -> Option<Place> {
        let lane = self.lanes.partition_point(|&(first, _)| first <= start).checked_sub(1)?;
        let chunk = self.chunk(lane);
        let entry = chunk.starts[..chunk.len].partition_point(|&other| other <= start);
        Some((lane, entry - 1))
    }

    fn find(&self, start: u64, segment: u32) -> Place {
        let mut place = self.last_up_to(start).expect("a segment leaves from where it was added");
        loop {
            let (lane, entry) = place;
            let chunk = self.chunk(lane);
            assert_eq!(chunk.starts[entry], start, "a segment leaves from where it was added");
            if chunk.segments[entry] == segment {
                return place;
            }
            place = if entry > 0 { (lane, entry - 1) } else { (lane - 1, self.chunk(lane - 1).len - 1) };
        }
    }

    /// Adds an entry before all others.
    fn insert_first(&mut self, start: u64, segment: u32) {
        if self.lanes.is_empty() {
            let chunk = self.unused_chunk();
            self.lanes.push((start, chunk));
        }
        self.insert_at((0, 0), start, segment);
    }

    fn insert_at(&mut self, (mut lane, mut entry): Place, start: u64, segment: u32) {
        if self.chunk(lane).len == CHUNK {
            self.split(lane);
            if entry > CHUNK / 2 {
                (lane, entry) = (lane + 1, entry - CHUNK / 2);
            }
        }
        let chunk = self.chunk_mut(lane);
        let len = chunk.len;
        chunk.starts.copy_within(entry..len, entry + 1);
        chunk.segments.copy_within(entry..len, entry + 1);
        (chunk.starts[entry], chunk.segments[entry]) = (start, segment);
        chunk.len += 1;
        self.lanes[lane].0 = self.chunk(lane).starts[0];
    }

    fn remove_at(&mut self, (lane, entry): Place) {
        let chunk = self.chunk_mut(lane);
        let len = chunk.len;
        chunk.starts.copy_within(entry + 1..len, entry);
        chunk.segments.copy_within(entry + 1..len, entry);
        chunk.len -= 1;
        if chunk.len == 0 {
            let (_, empty) = self.lanes.remove(lane);
            self.unused.push(empty);
            return;
        }
        self.lanes[lane].0 = self.chunk(lane).starts[0];
        if lane + 1 < self.lanes.len() {
            self.join(lane);
        }
        if lane > 0 && lane < self.lanes.len() {
            self.join(lane - 1);
        }
    }

    /// Moves the second half of a full chunk into a new one behind it.
    fn split(&mut self, lane: usize) {
        let new = self.unused_chunk();
        let half = CHUNK / 2;
        let full = self.chunk_mut(lane);
        full.len = half;
        let (starts, segments) = (full.starts, full.segments);
        let other = &mut self.chunks[new as usize];
        other.starts[..half].copy_from_slice(&starts[half..]);
        other.segments[..half].copy_from_slice(&segments[half..]);
        other.len = half;
        self.lanes.insert(lane + 1, (starts[half], new));
    }

    /// Makes one chunk of two neighbours, if both fit into half of one.
    fn join(&mut self, lane: usize) {
        let (len, behind) = (self.chunk(lane).len, self.chunk(lane + 1).len);
        if len + behind > CHUNK / 2 {
            return;
        }
        let (_, emptied) = self.lanes.remove(lane + 1);
        let (starts, segments) =
            (self.chunks[emptied as usize].starts, self.chunks[emptied as usize].segments);
        let chunk = self.chunk_mut(lane);
        chunk.starts[len..len + behind].copy_from_slice(&starts[..behind]);
        chunk.segments[len..len + behind].copy_from_slice(&segments[..behind]);
        chunk.len += behind;
        self.unused.push(emptied);
    }

    /// An empty chunk.
    fn unused_chunk(&mut self) -> u32 {
        let chunk = self.unused.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk { len: 0, starts: [0; CHUNK], segments: [0; CHUNK] });
            self.chunks.len() as u32 - 1
        });
        self.chunks[chunk as usize].len = 0;
        chunk
    }

    #[inline]
    fn chunk(&self, lane: usize) -> &Chunk {
        &self.chunks[self.lanes[lane].1 as usize]
    }

    #[inline]
    fn chunk_mut(&mut self, lane: usize) -> &mut Chunk {
        &mut self.chunks[self.lanes[lane].1 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list; few places, so that many begin at the same.
        #[test]
        fn the_order_is_that_of_a_sorted_list(
            steps in prop::collection::vec((0u32..200, 0u64..120), 0..900), limits in prop::collection::vec(0u64..130, 8),
        ) {
            let mut order = Order::default();
            let mut plain: Vec<Option<u64>> = vec![None; 200];
            for (segment, start) in steps {
                match plain[segment as usize] {
                    None => {
                        order.insert(start, segment);
                        plain[segment as usize] = Some(start);
                    }
                    Some(old) if start % 2 == 0 => {
                        order.shift(old, start, segment);
                        plain[segment as usize] = Some(start);
                    }
                    Some(old) => {
                        order.remove(old, segment);
                        plain[segment as usize] = None;
                    }
                }
            }
            for limit in limits {
                let found: Vec<(u64, usize)> = order.back_from(limit).collect();
                prop_assert!(found.is_sorted_by(|a, b| a.0 >= b.0));
                let mut found: Vec<(u64, usize)> = found;
                found.sort_unstable();
                let mut expected: Vec<(u64, usize)> = plain.iter().enumerate()
                    .filter_map(|(segment, start)| start.filter(|&start| start <= limit).map(|start| (start, segment)))
                    .collect();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            }
            prop_assert!(order.chunks.len() <= 200 / (CHUNK / 4) + 2, "{}", order.chunks.len());
        }
    }
}
