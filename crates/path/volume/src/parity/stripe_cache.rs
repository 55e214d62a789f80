//! The stripe cache of Linux's md (`raid5.c`). The cache holds data and parity from earlier
//! transfers. The next write of the same stripe need not read them.
//!
//! As in md, a stripe is a page of 4 KiB at the same offset of every member. The number of stripes
//! is limited, and the least recently used stripe is replaced. The cache records the data and
//! parity of writes. The cache also records the sources of lost data. Other reads bypass the cache
//! (`chunk_aligned_read`).
//!
//! Here the cache only tells which reads a plan may leave out. When plans are carried out on bytes,
//! they are made again without the cache, from the members (see `ARCHITECTURE.md`, "One NBD
//! byte"). This cache belongs to arrays like `ideal`, and two features of md are missing here. md
//! delays a write for a moment so that other writes of the stripe can join. md also lets writes
//! wait if all stripes are in use. The module `md` has both.

use crate::members::PAGE;
use fullstroke_contract::{ConfigError, Extent};
use fullstroke_units::{Lbn, Sectors};
use std::collections::BTreeMap;

/// Maximum number of stripes: md's own limit (`raid5_set_cache_size`).
const STRIPES_MAX: u32 = 32_768;

/// Index for no stripe.
const NONE: u32 = u32::MAX;

/// One stripe in the list by age.
#[derive(Clone, Copy, Debug)]
struct Stripe {
    number: u64,
    older: u32,
    newer: u32,
}

/// The cache. Its memory is at most proportional to stripes times members.
#[derive(Debug)]
pub(crate) struct StripeCache {
    members: usize,
    capacity: usize,
    /// Place of each stripe, by its number.
    places: BTreeMap<u64, u32>,
    stripes: Vec<Stripe>,
    /// For each place and member, one bit for each held sector of the page.
    held: Vec<u8>,
    oldest: u32,
    newest: u32,
}

impl StripeCache {
    /// Returns an empty cache of `stripes` stripes; `None` for 0 stripes.
    ///
    /// # Errors
    /// If there are more stripes than md allows.
    pub(crate) fn new(stripes: u32, members: usize) -> Result<Option<StripeCache>, ConfigError> {
        if stripes > STRIPES_MAX {
            let message =
                format!("found {stripes}; expected 0 (no cache) to {STRIPES_MAX} stripes");
            return Err(ConfigError::new("stripe_cache", message));
        }
        Ok((stripes > 0).then(|| StripeCache {
            members,
            capacity: stripes as usize,
            places: BTreeMap::new(),
            stripes: Vec::new(),
            held: Vec::new(),
            oldest: NONE,
            newest: NONE,
        }))
    }

    /// Returns the missing parts of `extent` of a member. They must be read.
    pub(crate) fn missing(&self, member: usize, extent: Extent) -> impl Iterator<Item = Extent> {
        pages(extent).filter_map(move |(number, part, bits)| {
            let place = self.places.get(&number);
            let held = place.map_or(0, |&place| {
                self.held[place as usize * self.members + member]
            });
            (held & bits != bits).then_some(part)
        })
    }

    /// Returns the number of missing sectors of `extent`.
    pub(crate) fn missing_sectors(&self, member: usize, extent: Extent) -> u64 {
        self.missing(member, extent)
            .map(|part| part.sectors.0)
            .sum()
    }

    /// Records a read or write of `extent` of a member.
    pub(crate) fn hold(&mut self, member: usize, extent: Extent) {
        // If the extent exceeds the cache, only the end of the extent would stay.
        let room = self.capacity as u64 * PAGE;
        let skip = extent.sectors.0.saturating_sub(room);
        let extent = Extent {
            start: extent.start + Sectors(skip),
            sectors: Sectors(extent.sectors.0 - skip),
        };
        for (number, _, bits) in pages(extent) {
            let place = self.use_stripe(number);
            self.held[place as usize * self.members + member] |= bits;
        }
    }

    /// Drops all pages around the extent, for all members.
    pub(crate) fn forget(&mut self, members_extent: Extent) {
        let (first, end) = (
            members_extent.start.0 / PAGE,
            members_extent.end().0.div_ceil(PAGE),
        );
        for (_, &place) in self.places.range(first..end) {
            let from = place as usize * self.members;
            self.held[from..from + self.members].fill(0);
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.held.fill(0);
    }

    /// Returns the place of a stripe and makes the stripe the newest. A new stripe replaces the
    /// oldest if the cache is full.
    fn use_stripe(&mut self, number: u64) -> u32 {
        let place = match self.places.get(&number) {
            // The newest stripe already has its place at the end of the list.
            Some(&place) if place == self.newest => return place,
            Some(&place) => {
                self.unlink(place);
                place
            }
            None => self.place_for(number),
        };
        self.link_newest(place);
        place
    }

    fn place_for(&mut self, number: u64) -> u32 {
        let stripe = Stripe {
            number,
            older: NONE,
            newer: NONE,
        };
        if self.stripes.len() < self.capacity {
            self.stripes.push(stripe);
            self.held.resize(self.stripes.len() * self.members, 0);
            let place = self.stripes.len() as u32 - 1;
            self.places.insert(number, place);
            return place;
        }
        let place = self.oldest;
        self.unlink(place);
        self.places.remove(&self.stripes[place as usize].number);
        self.places.insert(number, place);
        self.stripes[place as usize] = stripe;
        let from = place as usize * self.members;
        self.held[from..from + self.members].fill(0);
        place
    }

    fn unlink(&mut self, place: u32) {
        let Stripe { older, newer, .. } = self.stripes[place as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.stripes[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.stripes[newer as usize].older = older,
        }
    }

    fn link_newest(&mut self, place: u32) {
        let newest = self.newest;
        let stripe = &mut self.stripes[place as usize];
        (stripe.older, stripe.newer) = (newest, NONE);
        match newest {
            NONE => self.oldest = place,
            newest => self.stripes[newest as usize].newer = place,
        }
        self.newest = place;
    }
}

/// Returns the pages of an extent: the number, the part of the extent in the page, and the bits of
/// that part.
fn pages(extent: Extent) -> impl Iterator<Item = (u64, Extent, u8)> {
    let (start, end) = (extent.start.0, extent.end().0);
    (start / PAGE..end.div_ceil(PAGE)).map(move |number| {
        let (from, to) = (start.max(number * PAGE), end.min((number + 1) * PAGE));
        let bits = (u8::MAX >> (PAGE - (to - from))) << (from % PAGE);
        (
            number,
            Extent {
                start: Lbn(from),
                sectors: Sectors(to - from),
            },
            bits,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(stripes: u32) -> StripeCache {
        StripeCache::new(stripes, 3).unwrap().unwrap()
    }

    fn missing(cache: &StripeCache, member: usize, start: u64, sectors: u64) -> Vec<(u64, u64)> {
        let parts = cache.missing(member, Extent::new(start, sectors));
        parts.map(|part| (part.start.0, part.sectors.0)).collect()
    }

    #[test]
    fn what_was_held_is_not_missing_and_nothing_else() {
        let mut cache = cache(4);
        assert_eq!(missing(&cache, 1, 6, 4), [(6, 2), (8, 2)]);
        cache.hold(1, Extent::new(6, 4));
        assert_eq!(missing(&cache, 1, 6, 4), []);
        assert_eq!(
            missing(&cache, 1, 6, 10),
            [(8, 8)],
            "a page of which a part is missing is read"
        );
        assert_eq!(
            missing(&cache, 2, 6, 4),
            [(6, 2), (8, 2)],
            "another member's"
        );
        cache.hold(1, Extent::new(0, 8));
        assert_eq!(missing(&cache, 1, 0, 8), []);
        assert_eq!(cache.missing_sectors(1, Extent::new(0, 16)), 8);
    }

    #[test]
    fn the_least_recently_used_stripe_gives_way() {
        let mut cache = cache(2);
        for page in [0, 1, 0, 2] {
            cache.hold(0, Extent::new(page * 8, 8));
        }
        assert_eq!(missing(&cache, 0, 0, 24), [(8, 8)]);
        cache.hold(0, Extent::new(0, 800));
        assert_eq!(missing(&cache, 0, 776, 24), [(776, 8)]);
        assert_eq!(
            (cache.stripes.len(), cache.places.len(), cache.held.len()),
            (2, 2, 6)
        );
    }

    #[test]
    fn what_is_forgotten_is_missing() {
        let mut cache = cache(4);
        cache.hold(0, Extent::new(0, 24));
        cache.forget(Extent::new(8, 8));
        assert_eq!(missing(&cache, 0, 0, 24), [(8, 8)]);
        cache.clear();
        assert_eq!(missing(&cache, 0, 0, 24).len(), 3);
    }

    #[test]
    fn more_stripes_than_md_allows_are_refused_and_none_is_no_cache() {
        assert!(StripeCache::new(0, 3).unwrap().is_none());
        assert_eq!(StripeCache::new(32_769, 3).unwrap_err().key, "stripe_cache");
    }
}
