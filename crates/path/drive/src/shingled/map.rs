//! The log of the persistent cache, and the map from sectors to places in the log.

use std::collections::{BTreeMap, VecDeque};

/// An extent of the drive's addresses in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedExtent {
    /// First sector, as the host addresses it.
    pub(super) start: u64,
    pub(super) sectors: u64,
    /// Place in the log. The place on the medium is the place modulo the size of the cache.
    pub(super) place: u64,
}

impl CachedExtent {
    fn end(&self) -> u64 {
        self.start + self.sectors
    }

    /// Returns the part from `start` to `end`.
    fn part(&self, start: u64, end: u64) -> CachedExtent {
        CachedExtent {
            start,
            sectors: end - start,
            place: self.place + (start - self.start),
        }
    }
}

/// A part of an extent, and where its newest data are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: u64,
    pub(super) sectors: u64,
    /// Place in the log; `None` for data at home.
    pub(super) cached: Option<u64>,
}

/// Log and map. Places in the log only grow.
///
/// Invariants: the map is one-to-one. Each mapped place lies between `tail` and `head`. The log has
/// room for `cache` sectors.
#[derive(Clone, Debug)]
pub(super) struct ShingledMap {
    band: u64,
    capacity: u64,
    cache: u64,
    head: u64,
    tail: u64,
    /// First place of a move under way. The moved data are in the log only after the move, and the
    /// log must not lose this place before.
    reserved: Option<u64>,
    /// Cached extents by their first sector.
    map: BTreeMap<u64, CachedExtent>,
    /// Writes to the log that may still be mapped, in order of their places.
    log: VecDeque<CachedExtent>,
}

impl ShingledMap {
    pub(super) fn new(capacity: u64, band: u64, cache: u64) -> ShingledMap {
        ShingledMap {
            band,
            capacity,
            cache,
            head: 0,
            tail: 0,
            reserved: None,
            map: BTreeMap::new(),
            log: VecDeque::new(),
        }
    }

    /// Number of free sectors in the cache.
    pub(super) fn free(&self) -> u64 {
        self.cache - (self.head - self.tail)
    }

    /// Number of sectors in use, dead data before the head included.
    pub(super) fn used(&self) -> u64 {
        self.head - self.tail
    }

    /// Number of extents in the map.
    pub(super) fn extents(&self) -> usize {
        self.map.len()
    }

    /// Place of the next write on the medium, and the number of sectors up to the end of the cache
    /// on the medium.
    pub(super) fn at_head(&self) -> (u64, u64) {
        let place = self.head % self.cache;
        (place, self.cache - place)
    }

    /// Returns the place on the medium of a place in the log.
    pub(super) fn on_medium(&self, place: u64) -> u64 {
        place % self.cache
    }

    /// Maps `sectors` sectors from `start` on to the head of the log.
    pub(super) fn append(&mut self, start: u64, sectors: u64) -> u64 {
        assert!(
            sectors <= self.free() && start + sectors <= self.capacity,
            "{sectors} sectors from {start} go to a cache with room for {}",
            self.free()
        );
        // Extents of the map never overlap, so older data of these addresses leave the map first.
        self.unmap(start, sectors);
        let extent = CachedExtent {
            start,
            sectors,
            place: self.head,
        };
        self.map.insert(start, extent);
        self.log.push_back(extent);
        self.head += sectors;
        extent.place
    }

    /// Leaves `sectors` sectors of the log unused.
    pub(super) fn pad(&mut self, sectors: u64) {
        self.head += sectors.min(self.free());
        self.release();
    }

    /// Returns where the newest data of an extent are, in order.
    pub(super) fn places(&self, start: u64, sectors: u64, each: &mut dyn FnMut(Place)) {
        let end = start + sectors;
        let mut at = start;
        for extent in self.overlapping(start, end) {
            let (from, to) = (extent.start.max(start), extent.end().min(end));
            if at < from {
                each(Place {
                    start: at,
                    sectors: from - at,
                    cached: None,
                });
            }
            each(Place {
                start: from,
                sectors: to - from,
                cached: Some(extent.part(from, to).place),
            });
            at = to;
        }
        if at < end {
            each(Place {
                start: at,
                sectors: end - at,
                cached: None,
            });
        }
    }

    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = &CachedExtent> {
        // Extents do not overlap, so only the last extent that begins earlier can reach into the
        // range.
        let before = self.map.range(..start).next_back();
        let before = before.filter(|(_, extent)| extent.end() > start);
        before
            .into_iter()
            .chain(self.map.range(start..end))
            .map(|(_, extent)| extent)
    }

    /// Removes an extent from the map: its newest data are at home, or nowhere.
    pub(super) fn unmap(&mut self, start: u64, sectors: u64) {
        let end = start + sectors;
        loop {
            let first = self.overlapping(start, end).next().copied();
            let Some(extent) = first else { return };
            self.map.remove(&extent.start);
            if extent.start < start {
                self.map
                    .insert(extent.start, extent.part(extent.start, start));
            }
            if extent.end() > end {
                self.map.insert(end, extent.part(end, extent.end()));
            }
        }
    }

    /// Returns the band of the oldest mapped data; `None` if nothing is mapped.
    pub(super) fn oldest_band(&mut self) -> Option<u64> {
        self.release();
        let oldest = self.log.front()?;
        self.live_part(oldest).map(|start| start / self.band)
    }

    /// Returns the first sector of a write to the log that is still mapped to this write.
    fn live_part(&self, written: &CachedExtent) -> Option<u64> {
        self.overlapping(written.start, written.end())
            .find(|extent| {
                // A later write of the same addresses is mapped to another place.
                let from = extent.start.max(written.start);
                let own = written.place + (from - written.start);
                extent.place + (from - extent.start) == own
            })
            .map(|extent| extent.start.max(written.start))
    }

    /// Frees the end of the log up to the oldest mapped data.
    pub(super) fn release(&mut self) {
        // The room of a move in progress has no entry in the log yet. Without this limit the room
        // would count as free.
        let most = self.reserved.unwrap_or(self.head);
        while let Some(oldest) = self.log.front() {
            if self.live_part(oldest).is_some() {
                self.tail = oldest.place.min(most);
                return;
            }
            self.log.pop_front();
        }
        self.tail = most;
    }

    /// Returns the addresses of a band: the first sector, and the number of sectors.
    pub(super) fn extent_of(&self, band: u64) -> (u64, u64) {
        let start = band * self.band;
        (start, self.band.min(self.capacity - start))
    }

    /// Returns the cached data of a band, in order of their addresses.
    pub(super) fn cached_of(&self, band: u64) -> Vec<CachedExtent> {
        let (start, sectors) = self.extent_of(band);
        let end = start + sectors;
        self.overlapping(start, end)
            .map(|extent| extent.part(extent.start.max(start), extent.end().min(end)))
            .collect()
    }

    /// Takes note that these extents are at home. Data written to the log since then stay mapped.
    pub(super) fn came_home(&mut self, extents: &[CachedExtent]) {
        for home in extents {
            let mut own = Vec::new();
            self.own_parts(home, |part| own.push(part));
            for extent in own {
                self.unmap(extent.start, extent.sectors);
            }
        }
        self.release();
    }

    /// Returns the oldest part of the log, whole entries of `length` sectors together or a little
    /// more: its first place, its end, and the extents that are mapped to this part. `None` if the
    /// log is shorter.
    pub(super) fn oldest_part(&mut self, length: u64) -> Option<(u64, u64, Vec<CachedExtent>)> {
        self.release();
        let end = self.tail + length;
        let next = self.log.iter().find(|entry| entry.place >= end)?;
        let mut valid = Vec::new();
        let part = self.log.iter().take_while(|entry| entry.place < next.place);
        part.for_each(|entry| self.own_parts(entry, |own| valid.push(own)));
        Some((self.tail, next.place, valid))
    }

    /// Calls `each` with the parts of `written` that are still mapped to the places of `written`.
    fn own_parts(&self, written: &CachedExtent, mut each: impl FnMut(CachedExtent)) {
        for extent in self.overlapping(written.start, written.end()) {
            let (from, to) = (
                extent.start.max(written.start),
                extent.end().min(written.end()),
            );
            let own = extent.part(from, to);
            if own.place == written.place + (from - written.start) {
                each(own);
            }
        }
    }

    /// Takes `sectors` sectors at the head of the log for a move, and returns the first place. One
    /// move is under way at a time, until [`moved`](ShingledMap::moved).
    pub(super) fn reserve(&mut self, sectors: u64) -> u64 {
        assert!(
            sectors <= self.free(),
            "{sectors} sectors are reserved in a cache with room for {}",
            self.free()
        );
        let place = self.head;
        self.head += sectors;
        self.reserved = Some(place);
        place
    }

    /// Takes note that the data of `extents` lie one after the other from `place` on as well. Data
    /// that went elsewhere since then stay there.
    pub(super) fn moved(&mut self, extents: &[CachedExtent], place: u64) {
        self.reserved = None;
        let mut at = place;
        for old in extents {
            let mut own = Vec::new();
            self.own_parts(old, |part| own.push(part));
            for part in own {
                self.unmap(part.start, part.sectors);
                let new = CachedExtent {
                    place: at + (part.start - old.start),
                    ..part
                };
                self.map.insert(new.start, new);
                // Entries of the log stand in the order of their places.
                let later = self.log.iter().rev();
                let later = later.take_while(|entry| entry.place > new.place).count();
                self.log.insert(self.log.len() - later, new);
            }
            at += old.sectors;
        }
        self.release();
    }

    /// Calls `each` with the places on the medium of a part of the log, in pieces of at most
    /// `piece` sectors.
    pub(super) fn on_medium_in_pieces(
        &self,
        place: u64,
        sectors: u64,
        piece: u64,
        each: &mut dyn FnMut(u64, u64),
    ) {
        let (mut at, end) = (place, place + sectors);
        while at < end {
            let start = self.on_medium(at);
            let length = piece.min(end - at).min(self.cache - start);
            each(start, length);
            at += length;
        }
    }

    /// Checks the invariants.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut places: Vec<(u64, u64)> = self
            .map
            .values()
            .map(|extent| (extent.place, extent.place + extent.sectors))
            .collect();
        places.sort_unstable();
        assert!(
            places.windows(2).all(|two| two[0].1 <= two[1].0),
            "one-to-one"
        );
        assert!(
            places
                .iter()
                .all(|&(from, to)| self.tail <= from && to <= self.head)
        );
        assert!(self.head - self.tail <= self.cache);
        let extents: Vec<&CachedExtent> = self.map.values().collect();
        assert!(extents.windows(2).all(|two| two[0].end() <= two[1].start));
    }
}
