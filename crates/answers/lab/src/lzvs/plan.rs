//! Layouts of two disks in comparison: capacity and guaranteed rate.

use crate::lzvs::{LzvsError, VolumeRates, rates};
use fullstroke_contract::ZoneRate;
use fullstroke_contract::registry::{Keys, find};
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors};
use fullstroke_volume::{REGISTRY, Shape, lzvs};
use serde::Serialize;

/// Two disks to be paired.
pub struct Pair {
    /// Zones of each disk.
    pub zones: [Vec<ZoneRate>; 2],
}

/// Capacity and rates of a pair in one layout.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offer {
    /// The layout, or "raid0, outer part".
    pub layout: String,
    /// Addressable capacity.
    #[serde(rename = "capacity_bytes")]
    pub capacity: Bytes,
    /// Usable capacity as a share of both disks together.
    pub kept: f64,
    /// The lowest rate of a large sequential transfer, from the zones.
    pub floor_mb_per_s: f64,
    /// Mean rate of a transfer of the whole volume, in MB/s.
    pub mean_mb_per_s: f64,
    /// Highest rate, in MB/s.
    pub top_mb_per_s: f64,
}

/// A line of Lloyd's figure 2.4.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ZoneLine {
    /// Index i of the zone; its counterpart has the index z-1-i.
    pub zone: u32,
    /// Ratio r(i) by equation (2.2).
    pub ideal_ratio: f64,
    /// Ratio r(i) by equation (2.3).
    pub ratio: f64,
    /// Sectors of zone i, block-exact.
    pub sectors: Sectors,
    /// Sectors of zone z-1-i, block-exact.
    pub counterpart_sectors: Sectors,
}

/// Length of the sampling transfers, 8 MiB, and number of their addresses.
const TRANSFER: Sectors = Sectors((8 << 20) / SECTOR_BYTES);
const POINTS: u32 = 2000;

impl Pair {
    /// Returns the capacities of both disks.
    pub fn members(&self) -> [Sectors; 2] {
        [0, 1].map(|disk: usize| {
            self.zones[disk]
                .iter()
                .fold(Sectors::ZERO, |sum, zone| sum + zone.sectors)
        })
    }

    /// Returns capacity and rates of the pair in `layout` with these keys, and the rates by
    /// address.
    ///
    /// # Errors
    /// Errors of the layout.
    pub fn offer(&self, layout: &str, keys: &Keys) -> Result<(Offer, VolumeRates), LzvsError> {
        let built = (find("layout", REGISTRY, "layout", layout)?.build)(keys, &self.members())?;
        let capacity = built.capacity();
        let mut volume = Shape::Volume {
            layout: built,
            members: self.members().map(Shape::Drive).into(),
        };
        let rates = rates(&mut volume, &self.zones, TRANSFER, POINTS);
        Ok((self.offer_of(layout.to_owned(), capacity, &rates), rates))
    }

    /// Returns RAID 0 over the outer part of the disks whose rate is at least `floor_mb_per_s`.
    /// This is the usual way to raise the lowest rate. `None` if even the outer edge is slower.
    ///
    /// # Errors
    /// Errors of the layout.
    pub fn short_stroked(&self, floor_mb_per_s: f64) -> Result<Option<Offer>, LzvsError> {
        let (whole, all) = self.offer("raid0", &Keys::new())?;
        let fast = all
            .points
            .iter()
            .take_while(|point| point.mb_per_s >= floor_mb_per_s);
        let points: Vec<_> = fast.copied().collect();
        let Some(last) = points.last() else {
            return Ok(None);
        };
        let capacity = match points.len() == all.points.len() {
            true => Sectors(whole.capacity.0 / SECTOR_BYTES),
            false => Sectors(last.start.0),
        };
        let slowness: f64 = points.iter().map(|point| point.mb_per_s.recip()).sum();
        let part = VolumeRates {
            floor_mb_per_s: last.mb_per_s,
            mean_mb_per_s: points.len() as f64 / slowness,
            top_mb_per_s: all.top_mb_per_s,
            points,
        };
        Ok(Some(self.offer_of(
            "raid0, outer part".to_owned(),
            capacity,
            &part,
        )))
    }

    fn offer_of(&self, layout: String, capacity: Sectors, rates: &VolumeRates) -> Offer {
        let [a, b] = self.members();
        Offer {
            layout,
            capacity: capacity.bytes(),
            kept: capacity.0 as f64 / (a.0 + b.0) as f64,
            floor_mb_per_s: rates.floor_mb_per_s,
            mean_mb_per_s: rates.mean_mb_per_s,
            top_mb_per_s: rates.top_mb_per_s,
        }
    }

    /// Returns the logical zones of `lzvs` with these keys.
    ///
    /// # Errors
    /// Names the invalid key.
    pub fn zone_lines(&self, config: &lzvs::LzvsConfig) -> Result<Vec<ZoneLine>, LzvsError> {
        let zoning = lzvs::zoning(config, &self.members())?;
        let blocking = zoning.blocking();
        let lines = zoning
            .pairs()
            .iter()
            .zip(0u32..)
            .map(|(pair, zone)| ZoneLine {
                zone,
                ideal_ratio: pair.ideal_ratio.as_f64(),
                ratio: pair.chunk as f64 / blocking as f64,
                sectors: Sectors(pair.rows * pair.chunk),
                counterpart_sectors: Sectors(pair.rows * blocking),
            });
        Ok(lines.collect())
    }
}
