//! Extents without overlap, by address and by age.

use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, Sectors};
use std::collections::BTreeMap;

/// Extents without overlap, in order of address.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents(Vec<Extent>);

impl Extents {
    pub fn of(extent: Extent) -> Extents {
        Extents(vec![extent])
    }

    pub fn sectors(&self) -> Sectors {
        Sectors(self.0.iter().map(|extent| extent.sectors.0).sum())
    }

    /// Removes the overlap with `gone`, and returns the number of removed sectors.
    pub fn remove(&mut self, gone: Extent) -> Sectors {
        let before = self.sectors();
        self.0 = self
            .0
            .iter()
            .flat_map(|extent| without(*extent, gone))
            .flatten()
            .collect();
        Sectors(before.0 - self.sectors().0)
    }
}

impl IntoIterator for Extents {
    type Item = Extent;
    type IntoIter = std::vec::IntoIter<Extent>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Returns the parts of an extent before and after another extent.
fn without(extent: Extent, gone: Extent) -> [Option<Extent>; 2] {
    let piece = |start: Lbn, end: Lbn| {
        (start < end).then(|| Extent {
            start,
            sectors: end.since(start),
        })
    };
    [
        piece(extent.start, extent.end().min(gone.start)),
        piece(extent.start.max(gone.end()), extent.end()),
    ]
}

/// Kept data by address and by age.
#[derive(Clone, Debug, Default)]
pub(super) struct Unverified {
    /// Maps the first sector of each extent to the end (exclusive) and the age.
    places: BTreeMap<u64, (u64, u64)>,
    /// Maps the age of each extent to the first sector; the oldest comes first.
    ages: BTreeMap<u64, u64>,
    sectors: u64,
    age: u64,
}

impl Unverified {
    pub fn sectors(&self) -> Sectors {
        Sectors(self.sectors)
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds the newest extent, which must not overlap the others.
    pub fn add(&mut self, extent: Extent) {
        self.age += 1;
        self.put(extent, self.age);
    }

    fn put(&mut self, extent: Extent, age: u64) {
        debug_assert!(!self.ages.contains_key(&age), "an age is one extent's");
        self.places.insert(extent.start.0, (extent.end().0, age));
        self.ages.insert(age, extent.start.0);
        self.sectors += extent.sectors.0;
    }

    fn take(&mut self, start: u64) -> Option<(Extent, u64)> {
        let (end, age) = self.places.remove(&start)?;
        self.ages.remove(&age);
        self.sectors -= end - start;
        Some((Extent::new(start, end - start), age))
    }

    /// Removes the overlap with `gone`, and returns the number of removed sectors. If an extent is
    /// cut in two, the rear part becomes the newest extent.
    pub fn remove(&mut self, gone: Extent) -> Sectors {
        let before = self.sectors;
        while let Some(start) = self.overlapping(gone)
            && let Some((extent, age)) = self.take(start)
        {
            match without(extent, gone) {
                [Some(front), behind] => {
                    // Each age belongs to one extent. The front part keeps the age, so the rear
                    // part needs a new one.
                    self.put(front, age);
                    behind.into_iter().for_each(|behind| self.add(behind));
                }
                [None, Some(behind)] => self.put(behind, age),
                [None, None] => {}
            }
        }
        Sectors(before - self.sectors)
    }

    fn overlapping(&self, gone: Extent) -> Option<u64> {
        let before = self.places.range(..gone.end().0).next_back();
        before
            .filter(|(_, (end, _))| *end > gone.start.0)
            .map(|(start, _)| *start)
    }

    /// Removes the oldest extent, or the first `most` sectors of the extent.
    pub fn take_oldest(&mut self, most: Sectors) -> Option<Extent> {
        let start = *self.ages.first_key_value()?.1;
        let (extent, age) = self.take(start)?;
        if extent.sectors <= most {
            return Some(extent);
        }
        let rest = Extent::new(start + most.0, extent.sectors.0 - most.0);
        self.put(rest, age);
        Some(Extent {
            sectors: most,
            ..extent
        })
    }

    /// Forgets the oldest data until at most `keep` sectors are left. Returns the number of
    /// forgotten sectors.
    pub fn forget_beyond(&mut self, keep: Sectors) -> Sectors {
        let mut forgotten = Sectors::ZERO;
        while self.sectors > keep.0 {
            let Some(gone) = self.take_oldest(Sectors(self.sectors - keep.0)) else {
                break;
            };
            forgotten += gone.sectors;
        }
        forgotten
    }
}
