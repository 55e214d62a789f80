//! The places of records that were written once, from front to back.

use crate::block::BlockMap;
use crate::capacity::{FRONT, Metaslabs, PARTITION};
use crate::config::PoolSettings;
use crate::scatter::Scatter;
use crate::vdev::Vdev;
use fullstroke_units::SECTOR_BYTES;

/// Bytes that the pool writes to one vdev before the next vdev has its turn: `metaslab_aliquot`
/// (`module/zfs/metaslab.c`, 2.2; 2.1 has half of it).
pub(crate) const ALIQUOT: u64 = 1 << 20;

/// A place on a vdev.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dva {
    /// Index of the vdev.
    pub vdev: u32,
    /// First byte on the vdev.
    pub offset: u64,
}

/// The places of all records at the start of a run. The volume was written from front to back into
/// an empty pool: the vdevs have turns of `ALIQUOT` for each data drive, and each vdev fills one
/// metaslab after the other. A share of the records may have exchanged their places since.
#[derive(Clone, Debug)]
pub struct FirstPlaces {
    /// The map of the records.
    vdev: Vdev,
    vdevs: u64,
    width: u64,
    /// Bytes of a record on the vdev.
    asize: u64,
    psize: u64,
    record: u64,
    /// Number of records in a turn of a vdev.
    turn: u64,
    metaslabs: Metaslabs,
    /// Number of records in a metaslab.
    in_metaslab: u64,
    alignment: u64,
    scatter: Scatter,
}

impl FirstPlaces {
    /// Returns the places of the records of a pool.
    pub(crate) fn new(settings: &PoolSettings) -> FirstPlaces {
        let (new, child) = settings
            .vdevs
            .iter()
            .min_by_key(|(_, child)| *child)
            .expect("a checked pool has a vdev");
        let vdev = settings.old.clone().unwrap_or_else(|| new.clone());
        let metaslabs = Metaslabs::of(new.size(*child));
        let alignment = new.alignment(settings.ashift);
        let asize = vdev.asize(settings.psize);
        let usable = (1u64 << metaslabs.shift).saturating_sub(alignment);
        FirstPlaces {
            vdevs: settings.vdevs.len() as u64,
            width: new.children(),
            psize: settings.psize,
            record: settings.record,
            turn: vdev.turn(ALIQUOT).div_ceil(asize),
            in_metaslab: (usable / asize).max(1),
            vdev,
            asize,
            metaslabs,
            alignment,
            scatter: Scatter::new(settings.volsize / settings.record, settings.scan.scattered),
        }
    }

    /// Returns the place of a record.
    pub fn of(&self, record: u64) -> Dva {
        let record = self.scatter.place(record);
        let turn = record / self.turn;
        let vdev = turn % self.vdevs;
        let on_vdev = turn / self.vdevs * self.turn + record % self.turn;
        let metaslab = on_vdev / self.in_metaslab;
        let start = (metaslab << self.metaslabs.shift).next_multiple_of(self.alignment);
        Dva {
            vdev: vdev as u32,
            offset: start + on_vdev % self.in_metaslab * self.asize,
        }
    }

    /// Returns the number of records of the first `records` that lie on `vdev`.
    pub fn count_on(&self, vdev: u64, records: u64) -> u64 {
        let round = self.turn * self.vdevs;
        let rest = records % round;
        let extra = rest.saturating_sub(vdev * self.turn).min(self.turn);
        records / round * self.turn + extra
    }

    /// Returns the number of records in each metaslab.
    pub fn records_in_metaslab(&self) -> u64 {
        self.in_metaslab
    }

    /// Returns the member and the sector of a sector of the volume. With compression, the place of
    /// the sector in the record is in proportion.
    pub(crate) fn sector(&self, lbn: u64) -> (usize, u64) {
        let byte = lbn * SECTOR_BYTES;
        let place = self.of(byte / self.record);
        let mut map = BlockMap::default();
        self.vdev.map(place.offset, self.psize, &mut map);
        let mut within = byte % self.record * self.psize / self.record;
        let first = (u64::from(place.vdev) * self.width) as usize;
        // The copies of a mirror follow each other; the first copy counts.
        let data = map
            .rows()
            .iter()
            .flat_map(|row| row.data())
            .map(|index| map.columns()[index]);
        for column in data {
            if within < column.size {
                let at = (FRONT + column.offset + within) / SECTOR_BYTES + PARTITION;
                return (first + column.child as usize, at);
            }
            within -= column.size;
        }
        (first, PARTITION + FRONT / SECTOR_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Kind;
    use fullstroke_units::Sectors;
    use serde_json::json;

    fn places(kind: Kind, keys: serde_json::Value, drives: usize) -> (PoolSettings, FirstPlaces) {
        let drives = vec![Sectors(2_000_000_000); drives];
        let settings = PoolSettings::read(kind, keys.as_object().unwrap(), &drives).unwrap();
        let places = FirstPlaces::new(&settings);
        (settings, places)
    }

    #[test]
    fn records_share_no_bytes_and_take_turns_on_the_vdevs() {
        for (kind, keys, drives) in [
            (Kind::Raidz(1), json!({ "width": 4 }), 8),
            (Kind::Raidz(2), json!({ "recordsize": "16KiB" }), 6),
            (Kind::Mirror, json!({}), 8),
            (Kind::Draid(1), json!({ "data": 3, "spares": 1 }), 10),
        ] {
            let (settings, places) = places(kind, keys, drives);
            let records = settings.volsize / settings.record;
            let step = 1 + records / 50_000;
            let mut each: Vec<Dva> = (0..records)
                .step_by(step as usize)
                .map(|r| places.of(r))
                .collect();
            let last = places.of(records - 1);
            let (vdev, child) = &settings.vdevs[0];
            assert!(last.offset + places.asize <= vdev.size(*child), "{kind:?}");
            for place in &each {
                let start = place.offset >> places.metaslabs.shift;
                let end = (place.offset + places.asize - 1) >> places.metaslabs.shift;
                assert_eq!(start, end, "{kind:?}: a block lies in one metaslab");
                assert_eq!(place.offset % places.alignment, 0);
            }
            each.sort();
            for pair in each.windows(2) {
                assert!(
                    pair[0].vdev != pair[1].vdev || pair[0].offset + places.asize <= pair[1].offset,
                    "{kind:?}: {pair:?}"
                );
            }
            let counts: u64 = (0..settings.vdevs.len() as u64)
                .map(|vdev| places.count_on(vdev, records))
                .sum();
            assert_eq!(counts, records);
            for record in [0, 1, 17, records / 3] {
                let on = places.of(record).vdev;
                let before = places.count_on(on.into(), record);
                assert_eq!(places.count_on(on.into(), record + 1), before + 1);
            }
        }
    }

    #[test]
    fn a_sector_of_the_volume_lies_behind_labels_and_partition() {
        let (_, places) = places(Kind::Raidz(2), json!({}), 8);
        // The first two columns of the first record are parity.
        assert_eq!(places.sector(0), (2, 2048 + 8192));
        // The record has 32 data sectors on 6 columns: two columns with 6, four with 5.
        assert_eq!(places.sector(6 * 8), (3, 2048 + 8192));
    }
}
