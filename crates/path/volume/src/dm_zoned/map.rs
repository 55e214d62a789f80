//! The map of chunks, free zones, and zones by age.

use super::config::{BITMAP_BITS, ZonedFormat};
use super::valid::ValidBlocks;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// No zone, or no chunk.
pub(super) const NONE: u32 = u32::MAX;

/// A zone.
#[derive(Clone, Debug)]
pub(super) struct MappedZone {
    /// Chunk of the zone; [`NONE`] for a free zone.
    pub(super) chunk: u32,
    /// Buffer of a data zone, or data zone of a buffer; [`NONE`] if there is none.
    pub(super) partner: u32,
    pub(super) is_buffer: bool,
    /// Block of the write pointer. 0 for a random zone.
    pub(super) pointer: u32,
    /// Number of parts of requests in flight to the chunk.
    pub(super) active: u32,
    /// True while reclaim works on the chunk.
    pub(super) in_reclaim: bool,
    /// True for a zone that only reclaim takes.
    reserved: bool,
    /// Age: the zone with the smallest stamp was used first.
    stamp: u64,
    pub(super) valid: ValidBlocks,
}

/// The map of chunks to zones.
///
/// Invariants: each zone is free, the data zone of one chunk, or the buffer of one data zone. A
/// block is valid in at most one zone of its chunk. A buffer is a random zone, and its data zone is
/// sequential. Blocks of a sequential zone are valid only before the write pointer.
#[derive(Debug)]
pub(super) struct ChunkMap {
    pub(super) format: ZonedFormat,
    zones: Vec<MappedZone>,
    /// Data zone of each chunk; [`NONE`] for a chunk without data.
    chunks: Vec<u32>,
    free_random: VecDeque<u32>,
    free_sequential: VecDeque<u32>,
    free_reserved: VecDeque<u32>,
    /// Mapped random zones by age.
    random: BTreeMap<u64, u32>,
    /// Mapped sequential zones by age.
    sequential: BTreeMap<u64, u32>,
    stamp: u64,
    /// Blocks of the metadata that changed since their last write.
    pub(super) dirty: BTreeSet<u32>,
}

impl ChunkMap {
    pub(super) fn new(format: ZonedFormat) -> ChunkMap {
        let zone = |zone: u32| MappedZone {
            chunk: NONE,
            partner: NONE,
            is_buffer: false,
            pointer: 0,
            active: 0,
            in_reclaim: false,
            reserved: zone >= format.zones - format.config.reserved,
            stamp: 0,
            valid: ValidBlocks::default(),
        };
        let mut map = ChunkMap {
            zones: (0..format.zones).map(zone).collect(),
            chunks: vec![NONE; format.chunks as usize],
            // The metadata is in the first conventional zones, which hold no data.
            free_random: (format.first()..format.conventional).collect(),
            free_sequential: VecDeque::new(),
            free_reserved: VecDeque::new(),
            random: BTreeMap::new(),
            sequential: BTreeMap::new(),
            stamp: 0,
            dirty: BTreeSet::new(),
            format,
        };
        for zone in map.format.conventional..map.format.zones {
            let chunk = zone - map.format.conventional;
            if chunk < map.format.full {
                let blocks = map.format.blocks;
                map.zones[zone as usize].pointer = blocks;
                map.zones[zone as usize].valid = ValidBlocks::first(blocks);
                map.map(zone, chunk);
            } else if map.zones[zone as usize].reserved {
                map.free_reserved.push_back(zone);
            } else {
                map.free_sequential.push_back(zone);
            }
        }
        // The zones that are full at the start are on the drive already, with their metadata.
        map.dirty.clear();
        map
    }

    pub(super) fn zone(&self, zone: u32) -> &MappedZone {
        &self.zones[zone as usize]
    }

    pub(super) fn zone_mut(&mut self, zone: u32) -> &mut MappedZone {
        &mut self.zones[zone as usize]
    }

    /// Returns the data zone of a chunk, or [`NONE`].
    pub(super) fn data_zone(&self, chunk: u32) -> u32 {
        self.chunks[chunk as usize]
    }

    /// Number of random zones without metadata.
    pub(super) fn random_zones(&self) -> u32 {
        self.format.conventional - self.format.first()
    }

    /// Number of free random zones.
    pub(super) fn free_random(&self) -> u32 {
        self.free_random.len() as u32
    }

    /// Percentage of free random zones; 0 if at most one is free (`dmz_reclaim_percentage`).
    pub(super) fn free_percentage(&self) -> u32 {
        match self.free_random() {
            0 | 1 => 0,
            free => free * 100 / self.random_zones(),
        }
    }

    /// True if no reserved zone is free.
    pub(super) fn reserve_is_used(&self) -> bool {
        self.free_reserved.is_empty()
    }

    /// Returns the mapped random zones, the zone that was used first at the front.
    pub(super) fn random_by_age(&self) -> impl Iterator<Item = u32> {
        self.random.values().copied()
    }

    /// Returns the mapped sequential zones, the zone that was used first at the front.
    pub(super) fn sequential_by_age(&self) -> impl Iterator<Item = u32> {
        self.sequential.values().copied()
    }

    /// Takes a free random zone.
    pub(super) fn take_random(&mut self) -> Option<u32> {
        self.free_random.pop_front()
    }

    /// Takes a free sequential zone for reclaim: if none is free, a reserved zone.
    pub(super) fn take_for_reclaim(&mut self) -> Option<u32> {
        (self.free_sequential.pop_front()).or_else(|| self.free_reserved.pop_front())
    }

    /// Makes a zone the newest of its kind, and a buffer of the zone as well (`dmz_lru_zone`).
    pub(super) fn touch(&mut self, zone: u32) {
        self.restamp(zone);
        let partner = self.zone(zone).partner;
        if partner != NONE {
            self.restamp(partner);
        }
    }

    fn restamp(&mut self, zone: u32) {
        self.leave_list(zone);
        self.enter_list(zone);
    }

    fn list(&mut self, zone: u32) -> &mut BTreeMap<u64, u32> {
        match self.format.is_random(zone) {
            true => &mut self.random,
            false => &mut self.sequential,
        }
    }

    fn enter_list(&mut self, zone: u32) {
        self.stamp += 1;
        let stamp = self.stamp;
        self.zone_mut(zone).stamp = stamp;
        self.list(zone).insert(stamp, zone);
    }

    fn leave_list(&mut self, zone: u32) {
        let stamp = self.zone(zone).stamp;
        self.list(zone).remove(&stamp);
    }

    /// Makes a zone the data zone of a chunk without a data zone.
    pub(super) fn map(&mut self, zone: u32, chunk: u32) {
        debug_assert_eq!(self.chunks[chunk as usize], NONE);
        self.chunks[chunk as usize] = zone;
        self.zone_mut(zone).chunk = chunk;
        self.enter_list(zone);
        self.dirty.insert(ZonedFormat::map_block(chunk));
    }

    /// Makes a random zone the buffer of a sequential data zone.
    pub(super) fn map_buffer(&mut self, buffer: u32, data: u32) {
        let chunk = self.zone(data).chunk;
        self.zone_mut(data).partner = buffer;
        let zone = self.zone_mut(buffer);
        (zone.chunk, zone.partner, zone.is_buffer) = (chunk, data, true);
        self.enter_list(buffer);
        self.dirty.insert(ZonedFormat::map_block(chunk));
    }

    /// Takes a zone away from its chunk (`dmz_unmap_zone`).
    pub(super) fn unmap(&mut self, zone: u32) {
        self.leave_list(zone);
        let MappedZone {
            chunk,
            partner,
            is_buffer,
            ..
        } = *self.zone(zone);
        match is_buffer {
            true => self.zone_mut(partner).partner = NONE,
            false => self.chunks[chunk as usize] = NONE,
        }
        let unmapped = self.zone_mut(zone);
        (unmapped.chunk, unmapped.partner, unmapped.is_buffer) = (NONE, NONE, false);
        self.dirty.insert(ZonedFormat::map_block(chunk));
    }

    /// Frees a zone without a chunk. Returns true if the drive must reset the zone.
    pub(super) fn free(&mut self, zone: u32) -> bool {
        debug_assert_eq!(self.zone(zone).chunk, NONE);
        self.invalidate(zone, 0, self.format.blocks);
        let freed = self.zone_mut(zone);
        let reset = freed.pointer > 0;
        (freed.pointer, freed.in_reclaim) = (0, false);
        let reserved = freed.reserved;
        match self.format.is_random(zone) {
            true => self.free_random.push_back(zone),
            false if reserved => self.free_reserved.push_back(zone),
            false => self.free_sequential.push_back(zone),
        }
        reset
    }

    /// Makes the blocks `start..end` of a zone valid.
    pub(super) fn validate(&mut self, zone: u32, start: u32, end: u32) {
        let all = self.format.blocks;
        self.zone_mut(zone).valid.add(start, end, all);
        self.note_bitmaps(zone, start, end);
    }

    /// Makes the blocks `start..end` of a zone invalid.
    pub(super) fn invalidate(&mut self, zone: u32, start: u32, end: u32) {
        let all = self.format.blocks;
        if (self.zone(zone).valid.next_run(start, end)).is_some() {
            self.zone_mut(zone).valid.remove(start, end, all);
            self.note_bitmaps(zone, start, end);
        }
    }

    fn note_bitmaps(&mut self, zone: u32, start: u32, end: u32) {
        for block in (start / BITMAP_BITS)..end.div_ceil(BITMAP_BITS) {
            let bitmap = self.format.bitmap_block(zone, block * BITMAP_BITS);
            self.dirty.insert(bitmap);
        }
    }

    /// Makes the valid blocks of `from` valid in `to`.
    pub(super) fn copy_valid(&mut self, from: u32, to: u32) {
        let (mut at, all) = (0, self.format.blocks);
        while let Some((start, end)) = self.zone(from).valid.next_run(at, all) {
            self.validate(to, start, end);
            at = end;
        }
    }

    /// Checks the invariants.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let first = self.format.first();
        let free = [
            &self.free_random,
            &self.free_sequential,
            &self.free_reserved,
        ];
        let free: Vec<u32> = free.into_iter().flatten().copied().collect();
        for zone in first..self.format.zones {
            let state = self.zone(zone);
            let listed = free.iter().filter(|&&other| other == zone).count();
            if state.chunk == NONE {
                // A zone of a reclaim under way is neither free nor mapped.
                assert!(listed <= 1, "zone {zone} is free twice");
                continue;
            }
            assert_eq!(listed, 0, "zone {zone} is free and mapped");
            if state.is_buffer {
                assert!(self.format.is_random(zone));
                assert!(!self.format.is_random(state.partner));
                assert_eq!(self.zone(state.partner).partner, zone);
                assert_eq!(self.zone(state.partner).chunk, state.chunk);
                let data = &self.zone(state.partner).valid;
                for block in 0..self.format.blocks {
                    let both = data.run(block, block + 1).0 && state.valid.run(block, block + 1).0;
                    assert!(
                        !both,
                        "block {block} of chunk {} is valid twice",
                        state.chunk
                    );
                }
            } else {
                assert_eq!(self.data_zone(state.chunk), zone);
            }
            if !self.format.is_random(zone) {
                let behind = state.valid.next_run(state.pointer, self.format.blocks);
                assert_eq!(
                    behind, None,
                    "zone {zone} is valid behind its write pointer"
                );
            }
        }
    }
}
