//! Marks of the regions whose redundancy may not follow from the data after a loss of power.
//!
//! The marks are a [`Bitmap`] of the volume's addresses, in the store's own file.

use crate::Device;
use crate::bitmap::{self, Bitmap, Granules};
use crate::bytes::StoreError;
use crate::bytes::sync::ToSync;
use crate::uuid::Uuid;
use fullstroke_contract::Extent;
use fullstroke_units::{SECTOR_BYTES, Sectors};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

/// Smallest size of a region: 16 MiB.
const LEAST_SECTORS: u64 = (16 << 20) / SECTOR_BYTES;
/// Largest number of regions; bounds the size of the file and the memory.
const MOST: u64 = 1 << 19;

/// Returns the region size of a new store: the smallest power of two, from 16 MiB on, with at most
/// [`MOST`] regions.
pub(crate) fn region_size(capacity: Sectors) -> Sectors {
    Sectors(
        capacity
            .0
            .div_ceil(MOST)
            .next_power_of_two()
            .max(LEAST_SECTORS),
    )
}

/// Returns the size of the marks in bytes.
pub(crate) fn room(capacity: Sectors, region: Sectors) -> u64 {
    bitmap::room(capacity.0.div_ceil(region.0))
}

/// The regions of a volume, each with a mark.
pub(crate) struct RegionMarks {
    device: Arc<dyn Device>,
    /// First byte of the marks on the device.
    at: u64,
    capacity: Sectors,
    /// True if a mark is made durable before its region changes.
    durable: bool,
    bitmap: Bitmap,
    /// Regions whose marks are set and not known to be durable.
    undurable: BTreeSet<u32>,
    /// True if marks were damaged, so their regions count as dirty.
    lost: bool,
}

impl RegionMarks {
    /// Reads the marks of a device, and changes nothing.
    pub(crate) fn look(
        device: Arc<dyn Device>,
        at: u64,
        store: Uuid,
        [capacity, region]: [Sectors; 2],
    ) -> RegionMarks {
        let bitmap = Bitmap::new(store, region.0, capacity.0.div_ceil(region.0));
        let mut bytes = vec![0; room(capacity, region) as usize];
        let read = device.read(at, &mut bytes);
        // If the marks cannot be read, there is no copy, and all regions count as dirty.
        let lost = !bitmap.load(&read.map(|()| bytes).into_iter().collect::<Vec<_>>());
        RegionMarks {
            device,
            at,
            capacity,
            durable: false,
            bitmap,
            undurable: BTreeSet::new(),
            lost,
        }
    }

    /// Opens the marks of a device. Regions with damaged marks count as dirty, unless
    /// `none_is_dirty` is set, because the store was closed. If `durable` is set, each later mark
    /// is made durable before its region changes.
    pub(crate) fn open(
        device: Arc<dyn Device>,
        at: u64,
        store: Uuid,
        sizes: [Sectors; 2],
        durable: bool,
        none_is_dirty: bool,
    ) -> Result<RegionMarks, StoreError> {
        let mut marks = RegionMarks::look(device, at, store, sizes);
        if none_is_dirty {
            (marks.lost, marks.durable) = (false, durable);
            marks.bitmap.forget_dirty();
        }
        marks.durable = durable;
        let mut written = Ok(());
        marks.bitmap.write_all(|all| {
            written = marks.write(all, durable);
            written.is_ok()
        });
        written.map(|()| marks)
    }

    /// True if marks were damaged, so their regions count as dirty.
    pub(crate) fn lost(&self) -> bool {
        self.lost
    }

    /// Returns the addresses of the dirty regions, in order.
    pub(crate) fn dirty(&self) -> Vec<Extent> {
        let cut = |mut extent: Extent| {
            // The last region may reach beyond the end of the volume.
            let most = Sectors(self.capacity.0.saturating_sub(extent.start.0));
            extent.sectors = extent.sectors.min(most);
            extent
        };
        let dirty = self.bitmap.dirty().into_iter();
        dirty
            .map(|region| cut(self.bitmap.extent(region)))
            .collect()
    }

    /// True if any region is dirty.
    pub(crate) fn is_dirty(&self) -> bool {
        self.bitmap.is_dirty()
    }

    /// Marks the regions of `extent` before a change in `epoch`. After a successful return the
    /// marks are on the device.
    #[inline]
    pub(crate) fn mark(&mut self, extent: Extent, epoch: u64) -> Result<(), StoreError> {
        let regions = self.bitmap.regions_of(extent);
        if self.bitmap.touch(regions.clone(), epoch) {
            return Ok(());
        }
        self.mark_newly(regions, epoch)
    }

    #[cold]
    fn mark_newly(&mut self, regions: RangeInclusive<u32>, epoch: u64) -> Result<(), StoreError> {
        let regions: BTreeSet<u32> = regions.collect();
        self.bitmap.begin(&regions, false, |granules| {
            self.write(&granules, self.durable)
        })?;
        self.bitmap.end(&regions, epoch);
        self.undurable.retain(|region| !regions.contains(region));
        Ok(())
    }

    /// As [`mark`](RegionMarks::mark), but the marks may stand only in the host's memory. Returns
    /// true if the marks are durable, or need not be; otherwise [`to_sync`](RegionMarks::to_sync)
    /// does so.
    pub(crate) fn mark_ahead(&mut self, extent: Extent, epoch: u64) -> Result<bool, StoreError> {
        let regions: BTreeSet<u32> = self.bitmap.regions_of(extent).collect();
        let durable = self
            .bitmap
            .announce(&regions, epoch, |granules| self.write(&granules, false))?;
        if durable || !self.durable {
            return Ok(true);
        }
        self.undurable.extend(regions);
        Ok(false)
    }

    /// Returns a job to make all present marks durable, and a number for
    /// [`note_durable`](RegionMarks::note_durable). Returns `None` if all are durable.
    pub(crate) fn to_sync(&self) -> Option<(ToSync, u64)> {
        let announced = self.bitmap.announced(&self.undurable)?;
        Some((ToSync::own(&self.device), announced))
    }

    /// Notes the durability of the marks up to this number.
    pub(crate) fn note_durable(&mut self, announced: u64) {
        self.bitmap.note_durable(announced, &mut self.undurable);
    }

    /// Clears the marks of regions whose last change was before `epoch`. The change must be
    /// durable.
    pub(crate) fn clear_before(&mut self, epoch: u64) -> Result<(), StoreError> {
        self.bitmap
            .clear_before(epoch, |granules| self.write(&granules, false))
    }

    fn write(&self, granules: &Granules, durable: bool) -> Result<(), StoreError> {
        let name = self.device.name();
        let failed = |action| move |error| StoreError::host(action, Path::new(&name), error);
        granules
            .iter()
            .try_for_each(|(offset, bytes)| self.device.write(self.at + offset, bytes))
            .map_err(failed.clone()("write to"))?;
        if durable {
            self.device.flush().map_err(failed("make durable"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    const STORE: Uuid = Uuid::from_bytes([3; 16]);
    const REGION: Sectors = Sectors(LEAST_SECTORS);
    const CAPACITY: Sectors = Sectors(LEAST_SECTORS * 21 - 5);

    fn device() -> Arc<dyn Device> {
        Arc::new(MemoryDevice::new(1 << 20))
    }

    fn made(device: &Arc<dyn Device>) -> RegionMarks {
        RegionMarks::open(
            Arc::clone(device),
            4096,
            STORE,
            [CAPACITY, REGION],
            true,
            true,
        )
        .unwrap()
    }

    fn found(device: &Arc<dyn Device>) -> Vec<u64> {
        let marks = RegionMarks::look(Arc::clone(device), 4096, STORE, [CAPACITY, REGION]);
        assert!(!marks.lost());
        let dirty = marks.dirty();
        dirty
            .iter()
            .map(|extent| extent.start.0 / REGION.0)
            .collect()
    }

    #[test]
    fn a_change_marks_every_region_that_it_touches_before_it_is_made() {
        let device = device();
        let mut marks = made(&device);
        marks
            .mark(Extent::new(LEAST_SECTORS * 2 - 1, LEAST_SECTORS + 2), 1)
            .unwrap();
        marks.mark(Extent::new(LEAST_SECTORS * 20, 8), 1).unwrap();
        assert_eq!(found(&device), [1, 2, 3, 20]);
        assert_eq!(marks.dirty().last().unwrap().end().0, CAPACITY.0);
    }

    #[test]
    fn a_change_waits_for_its_own_mark_whatever_was_announced() {
        let device = device();
        let mut marks = made(&device);
        assert!(!marks.mark_ahead(Extent::new(0, 8), 1).unwrap());
        assert!(marks.to_sync().is_some());
        marks.mark(Extent::new(0, 8), 1).unwrap();
        assert!(marks.to_sync().is_none(), "a change waits for it by itself");
        assert!(marks.mark_ahead(Extent::new(0, 8), 1).unwrap());
        marks.clear_before(2).unwrap();
        assert!(
            !marks.mark_ahead(Extent::new(0, 8), 2).unwrap(),
            "forgotten, and marked anew"
        );
    }

    #[test]
    fn an_announced_mark_stays_until_its_change_comes() {
        let device = device();
        let mut marks = made(&device);
        marks.mark_ahead(Extent::new(0, 8), 5).unwrap();
        marks.clear_before(5).unwrap();
        assert_eq!(found(&device), [0]);
        marks.clear_before(6).unwrap();
        assert_eq!(found(&device), [0; 0]);
    }

    #[test]
    fn only_regions_that_were_not_changed_since_are_cleared() {
        let device = device();
        let mut marks = made(&device);
        marks.mark(Extent::new(0, LEAST_SECTORS * 10), 1).unwrap();
        marks.mark(Extent::new(LEAST_SECTORS * 4, 1), 2).unwrap();
        marks.clear_before(2).unwrap();
        assert_eq!(found(&device), [4]);
        marks.mark(Extent::new(0, 1), 3).unwrap();
        assert_eq!(found(&device), [0, 4]);
    }

    #[test]
    fn large_volumes_have_larger_regions_rather_than_more() {
        assert_eq!(region_size(Sectors(1)), REGION);
        let large = Sectors(1 << 40);
        assert_eq!(large.0 / region_size(large).0, MOST);
    }
}
