//! Parts and pieces of a request, and their places.

use crate::config::SmartSettings;
use crate::rows::RowHold;
use fullstroke_contract::{ConfigError, Extent};
use fullstroke_units::{Lbn, Sectors};
use fullstroke_volume::{Layout, Role};

/// The address map, with a table of parity disks.
pub(crate) struct Map {
    layout: Box<dyn Layout>,
    /// Parity disk by row number modulo the number of disks.
    parity: Vec<u32>,
    /// Chunk size in sectors.
    chunk: u64,
    /// Number of data sectors in a row.
    row: u64,
    /// Largest number of sectors of one command.
    segment: u64,
}

impl Map {
    pub(crate) fn new(settings: &SmartSettings, members: &[Sectors]) -> Result<Map, ConfigError> {
        let layout = settings.layout(members)?;
        let sectors = |bytes: fullstroke_units::Bytes| bytes.sectors().unwrap_or_default().0;
        let (chunk, disks) = (sectors(settings.config.chunk), members.len());
        // The rotation of parity repeats after as many rows as there are disks.
        let holds_parity = |row: u64, disk: &usize| {
            // A small disk may have fewer rows than the array has disks, so the row wraps.
            let first = Lbn(row * chunk % layout.member_used(0).0);
            matches!(layout.role_of(*disk, first), Role::Parity { .. })
        };
        let parity = (0..disks as u64)
            .map(|row| {
                (0..disks)
                    .find(|disk| holds_parity(row, disk))
                    .unwrap_or_default() as u32
            })
            .collect();
        let row = chunk * (disks as u64 - 1);
        Ok(Map {
            layout,
            parity,
            chunk,
            row,
            segment: sectors(settings.config.segment),
        })
    }

    pub(crate) fn capacity(&self) -> Sectors {
        self.layout.capacity()
    }

    pub(crate) fn parity_disk(&self, row: u64) -> u32 {
        self.parity[(row % self.parity.len() as u64) as usize]
    }

    /// Returns the row of an address, the end of the part that begins there, and the hold that a
    /// write needs on the row.
    pub(crate) fn part(&self, begin: u64, end: u64) -> (u64, u64, RowHold) {
        let row = begin / self.row;
        let next = (row + 1) * self.row;
        // A write that covers several rows comes back here for each row, so only one row counts.
        let whole = begin == row * self.row && end >= next;
        (
            row,
            end.min(next),
            if whole {
                RowHold::Alone
            } else {
                RowHold::Shared
            },
        )
    }

    /// Returns the disk and the extent of the piece that begins at an address. The piece ends at
    /// the end of its chunk, or after one segment.
    pub(crate) fn piece(&self, begin: u64, end: u64) -> (u32, Extent) {
        let place = self.layout.locate(Lbn(begin));
        let sectors = (end - begin)
            .min(self.chunk - begin % self.chunk)
            .min(self.segment);
        (place.member as u32, Extent::new(place.lbn.0, sectors))
    }

    /// Returns the piece on the parity disk that begins `within` sectors behind the start of the
    /// parity chunk. `None` behind the end of the chunk.
    pub(crate) fn parity_piece(&self, row: u64, within: u64) -> Option<(u32, Extent)> {
        let sectors = self
            .chunk
            .checked_sub(within)
            .filter(|&left| left > 0)?
            .min(self.segment);
        Some((
            self.parity_disk(row),
            Extent::new(row * self.chunk + within, sectors),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::registry::Keys;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        #[test]
        fn parity_disks_are_the_layouts_whatever_the_rotation(
            rotation in prop::sample::select(vec!["left-symmetric", "left-asymmetric", "right-symmetric", "right-asymmetric"]),
            disks in 3usize..9, chunk in 1u64..9, begin in 0u64..2000, sectors in 1u64..200, segment in 1u64..9,
        ) {
            let keys = json!({ "rotation": rotation, "chunk": format!("{}", chunk * 512), "segment": format!("{}", segment * 512) });
            let keys: Keys = serde_json::from_value(keys).unwrap();
            let members = vec![Sectors(2000); disks];
            let map = Map::new(&SmartSettings::new(&keys).unwrap(), &members).unwrap();
            let end = (begin + sectors).min(map.capacity().0);
            let mut at = begin.min(end - 1);
            while at < end {
                let (disk, extent) = map.piece(at, end);
                prop_assert!(extent.sectors.0 > 0 && extent.sectors.0 <= segment.min(chunk));
                let row = map.part(at, end).0;
                prop_assert_eq!(row, extent.start.0 / chunk);
                prop_assert_ne!(disk, map.parity_disk(row));
                let role = map.layout.role_of(map.parity_disk(row) as usize, extent.start);
                prop_assert!(matches!(role, Role::Parity { .. }), "{role:?}");
                for offset in 0..extent.sectors.0 {
                    let place = map.layout.locate(Lbn(at + offset));
                    prop_assert_eq!((place.member as u32, place.lbn.0), (disk, extent.start.0 + offset));
                }
                at += extent.sectors.0;
            }
        }
    }
}
