//! The bitmap of the members' regions: regions whose redundancy may not follow from the data, and
//! regions with writes while members were missing. Linux md keeps the former in `md-bitmap.c`.
//!
//! A region is a run of addresses, the same on all members. Two planes of bits stand on every
//! member, in sectors with a check sum each:
//!
//! - **dirty**: the region is being written, or was lately. The bit is set, and made durable,
//!   before the first write. The bit is cleared some time after the last write, when the write is
//!   durable. After a loss of power redundancy is made to follow from the data in dirty regions.
//! - **missed**: the region was written since a member failed. The bit is set in the same way, and
//!   kept until all members are present again. A returning member is filled in missed regions only.

use crate::uuid::Uuid;
use fullstroke_contract::Extent;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) const SECTOR: usize = 512;
/// Size of a write of bits: 4 KiB, so every device accepts it.
const GRANULE: usize = 4096;
/// Bytes of bits in a sector; the seal follows them.
pub(crate) const BITS_BYTES: usize = 480;
const BITS: usize = BITS_BYTES * 8;
const MAGIC: [u8; 4] = *b"fsab";
const PLANES: usize = 2;
const DIRTY: usize = 0;
const MISSED: usize = 1;
/// Number of calls of [`Bitmap::look`] for which a region must have been quiet before its mark is
/// cleared.
const QUIET_LOOKS: u64 = 3;

/// The regions of an array.
#[derive(Debug)]
pub(crate) struct Bitmap {
    array: Uuid,
    region_sectors: u64,
    regions: Mutex<BitmapRegions>,
    /// Held while bits are written.
    writing: Mutex<()>,
}

#[derive(Debug)]
struct BitmapRegions {
    all: Vec<BitmapRegion>,
    looks: u64,
    /// Number of dirty regions.
    dirty: usize,
    /// Number of announcements of bits.
    announced: u64,
    /// Bits, by plane and region, for which threads wait in [`Bitmap::begin`].
    awaited: BTreeSet<(usize, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct BitmapRegion {
    writers: u32,
    /// Epoch in which the last writer ended.
    ended: u64,
    /// Value of `looks` when the last writer ended.
    looked: u64,
    /// The bits, and true for each bit that is durable on the members.
    set: [bool; PLANES],
    durable: [bool; PLANES],
    /// Number of the dirty bit's announcement.
    announced: u64,
}

/// Bytes to write, each at an offset of every member's bitmap.
pub(crate) type Granules = Vec<(u64, Vec<u8>)>;

/// Returns the size of the bitmap on a member for so many regions.
pub(crate) fn room(regions: u64) -> u64 {
    PLANES as u64 * plane_bytes(regions as usize) as u64
}

fn plane_bytes(regions: usize) -> usize {
    (regions.div_ceil(BITS) * SECTOR).next_multiple_of(GRANULE)
}

impl Bitmap {
    /// Makes a bitmap with all bits clear.
    pub(crate) fn new(array: Uuid, region_sectors: u64, regions: u64) -> Bitmap {
        let all = vec![BitmapRegion::default(); regions as usize];
        let regions = Mutex::new(BitmapRegions {
            all,
            looks: 0,
            dirty: 0,
            announced: 0,
            awaited: BTreeSet::new(),
        });
        Bitmap {
            array,
            region_sectors,
            regions,
            writing: Mutex::new(()),
        }
    }

    /// Returns the regions of a run of a member's addresses.
    pub(crate) fn regions_of(&self, extent: Extent) -> std::ops::RangeInclusive<u32> {
        // An empty extent counts as the region of its start.
        let last = extent.end().0.max(extent.start.0 + 1) - 1;
        debug_assert!(
            u32::try_from(last / self.region_sectors).is_ok(),
            "{extent:?} has no regions"
        );
        (extent.start.0 / self.region_sectors) as u32..=(last / self.region_sectors) as u32
    }

    /// Returns the addresses of a region; the last may reach beyond the members' end.
    pub(crate) fn extent(&self, region: u32) -> Extent {
        Extent::new(u64::from(region) * self.region_sectors, self.region_sectors)
    }

    fn lock(&self) -> MutexGuard<'_, BitmapRegions> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a write to these regions that ends in `epoch`. Returns true if their bits are durable;
    /// otherwise nothing has changed.
    pub(crate) fn touch(&self, regions: std::ops::RangeInclusive<u32>, epoch: u64) -> bool {
        let mut state = self.lock();
        let looks = state.looks;
        let regions = *regions.start() as usize..=*regions.end() as usize;
        let regions = &mut state.all[regions];
        let durable = regions.iter().all(|region| region.durable[DIRTY]);
        for region in regions.iter_mut().filter(|_| durable) {
            (region.ended, region.looked) = (region.ended.max(epoch), looks);
        }
        durable
    }

    /// Announces writes to these regions, not before `epoch`. Sets the missing bits; `write` writes
    /// the bits, without a flush. Returns true if all bits of the regions are durable.
    ///
    /// # Errors
    /// The error of `write`: the bits on the members are not known then.
    pub(crate) fn announce<E>(
        &self,
        regions: &BTreeSet<u32>,
        epoch: u64,
        write: impl FnOnce(Granules) -> Result<(), E>,
    ) -> Result<bool, E> {
        // The lock order: `writing` before `regions`. The regions are free while bits are written.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let clear = |region: &&u32| !state.all[**region as usize].set[DIRTY];
        let clear: BTreeSet<u32> = regions.iter().filter(clear).copied().collect();
        if !clear.is_empty() {
            state.announced += 1;
            let announced = state.announced;
            for &region in &clear {
                state.set(region, DIRTY, true);
                let region = &mut state.all[region as usize];
                // The mark must not be cleared before the write comes.
                (region.announced, region.ended) = (announced, region.ended.max(epoch));
            }
            let granules = clear.iter().map(|&region| (DIRTY, granule_of(region)));
            let encoded = self.encode(&state, granules.collect());
            drop(state);
            write(encoded)?;
            state = self.lock();
        }
        Ok(regions
            .iter()
            .all(|&region| state.all[region as usize].durable[DIRTY]))
    }

    /// Returns the latest undurable announcement of these regions.
    pub(crate) fn announced(&self, regions: &BTreeSet<u32>) -> Option<u64> {
        let state = self.lock();
        let all = regions.iter().map(|&region| &state.all[region as usize]);
        all.filter(|region| region.set[DIRTY] && !region.durable[DIRTY])
            .map(|region| region.announced)
            .max()
    }

    /// Notes that announcements up to this number are durable. Removes the durable regions from
    /// `regions`.
    pub(crate) fn note_durable(&self, announced: u64, regions: &mut BTreeSet<u32>) {
        let mut state = self.lock();
        assert!(
            announced <= state.announced,
            "announcement {announced} is durable before it was made"
        );
        regions.retain(|&region| {
            let region = &mut state.all[region as usize];
            region.durable[DIRTY] |= region.set[DIRTY] && region.announced <= announced;
            region.set[DIRTY] && !region.durable[DIRTY]
        });
    }

    /// True if any region is dirty.
    pub(crate) fn is_dirty(&self) -> bool {
        self.lock().dirty > 0
    }

    /// Begins writes to these regions; `missing` is true if members are missing. Returns when the
    /// bits are durable on the members: `write` does so. The next call of `write` by any thread
    /// takes the bits of all waiting threads along, so threads that wait share one flush.
    ///
    /// # Errors
    /// The error of `write`: the regions must not be written then.
    pub(crate) fn begin<E>(
        &self,
        regions: &BTreeSet<u32>,
        missing: bool,
        write: impl FnOnce(Granules) -> Result<(), E>,
    ) -> Result<(), E> {
        let planes = if missing { PLANES } else { 1 };
        let durable = |state: &BitmapRegions| {
            regions.iter().all(|&region| {
                state.all[region as usize].durable[..planes]
                    .iter()
                    .all(|&is| is)
            })
        };
        let mut state = self.lock();
        // Counted before the check, so no other thread clears the bits between the check and the
        // write.
        regions
            .iter()
            .for_each(|&region| state.all[region as usize].writers += 1);
        if durable(&state) {
            return Ok(());
        }
        let own = || {
            let planes_of = |&region: &u32| (0..planes).map(move |plane| (plane, region));
            regions.iter().flat_map(planes_of)
        };
        state.awaited.extend(own());
        drop(state);
        // `writing` comes before `regions`, as in `announce`, or two threads could wait for each
        // other.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        if durable(&state) {
            return Ok(());
        }
        let mut marks = std::mem::take(&mut state.awaited);
        // A thread whose write failed has taken the bits of this thread out of the list.
        marks.extend(own());
        marks.retain(|&(plane, region)| !state.all[region as usize].durable[plane]);
        let mut granules = BTreeSet::new();
        for &(plane, region) in &marks {
            state.set(region, plane, true);
            granules.insert((plane, granule_of(region)));
        }
        let encoded = self.encode(&state, granules);
        drop(state);
        let written = write(encoded);
        let mut state = self.lock();
        match written {
            Ok(()) => marks
                .iter()
                .for_each(|&(plane, region)| state.all[region as usize].durable[plane] = true),
            // The caller does not write after an error, and will not call `end`.
            Err(_) => regions
                .iter()
                .for_each(|&region| state.all[region as usize].leave()),
        }
        written
    }

    /// Ends writes to these regions, in `epoch`.
    pub(crate) fn end(&self, regions: &BTreeSet<u32>, epoch: u64) {
        let mut state = self.lock();
        let looks = state.looks;
        for &region in regions {
            let region = &mut state.all[region as usize];
            debug_assert!(region.set[DIRTY], "a region without a mark was written");
            region.leave();
            (region.ended, region.looked) = (region.ended.max(epoch), looks);
        }
    }

    /// Marks dirty regions as missed: a member has failed, and its latest writes may not be
    /// durable.
    pub(crate) fn miss_dirty(&self) {
        for region in &mut self.lock().all {
            if region.set[DIRTY] && !region.set[MISSED] {
                (region.set[MISSED], region.durable[MISSED]) = (true, false);
            }
        }
    }

    /// Returns the missed regions.
    pub(crate) fn missed(&self) -> Vec<u32> {
        self.of(MISSED)
    }

    /// Returns the dirty regions.
    pub(crate) fn dirty(&self) -> Vec<u32> {
        self.of(DIRTY)
    }

    fn of(&self, plane: usize) -> Vec<u32> {
        let state = self.lock();
        (0..state.all.len() as u32)
            .filter(|&region| state.all[region as usize].set[plane])
            .collect()
    }

    /// Returns the first sector, from `sector` on, in a missed region.
    pub(crate) fn next_missed(&self, sector: u64) -> Option<u64> {
        let state = self.lock();
        let first = (sector / self.region_sectors) as usize;
        let region = (first..state.all.len()).find(|&region| state.all[region].set[MISSED])?;
        Some(sector.max(region as u64 * self.region_sectors))
    }

    /// Clears the missed bits, because all members are present and hold the right data.
    pub(crate) fn forget_missed(&self) {
        for region in &mut self.lock().all {
            (region.set[MISSED], region.durable[MISSED]) = (false, false);
        }
    }

    /// Clears the dirty bits.
    pub(crate) fn forget_dirty(&self) {
        let mut state = self.lock();
        state.dirty = 0;
        for region in &mut state.all {
            (region.set[DIRTY], region.durable[DIRTY]) = (false, false);
        }
    }

    /// Counts one look. Returns true if a region has been quiet for enough looks, and its writes
    /// are not known to be durable by epoch `flushed`.
    pub(crate) fn look(&self, flushed: u64) -> bool {
        let mut state = self.lock();
        state.looks += 1;
        let looks = state.looks;
        state
            .all
            .iter()
            .any(|region| region.is_quiet(looks) && region.ended > flushed)
    }

    /// Clears regions if they have been quiet for enough looks, and their writes were durable by
    /// epoch `flushed`. `write` writes the bits, and need not flush.
    pub(crate) fn clear_quiet(&self, flushed: u64, write: impl FnOnce(Granules)) {
        let looks = self.lock().looks;
        let quiet = |region: &BitmapRegion| region.is_quiet(looks) && region.ended <= flushed;
        let Ok(()) = self.clear(quiet, |granules| {
            write(granules);
            Ok::<(), Infallible>(())
        });
    }

    /// Clears regions without writes in `epoch` or later. Earlier writes must be durable. `write`
    /// writes the bits, and need not flush.
    ///
    /// # Errors
    /// The error of `write`: bits may be set on the members and clear here.
    pub(crate) fn clear_before<E>(
        &self,
        epoch: u64,
        write: impl FnOnce(Granules) -> Result<(), E>,
    ) -> Result<(), E> {
        self.clear(|region| region.writers == 0 && region.ended < epoch, write)
    }

    fn clear<E>(
        &self,
        is_clear: impl Fn(&BitmapRegion) -> bool,
        write: impl FnOnce(Granules) -> Result<(), E>,
    ) -> Result<(), E> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let mut granules = BTreeSet::new();
        for index in 0..state.all.len() as u32 {
            let region = &state.all[index as usize];
            if region.set[DIRTY] && is_clear(region) {
                assert_eq!(
                    region.writers, 0,
                    "region {index} is cleared during a write"
                );
                // Cleared late, as in md (`md_bitmap_daemon_work`): a region with frequent writes
                // costs no writes of its bit.
                state.set(index, DIRTY, false);
                granules.insert((DIRTY, granule_of(index)));
            }
        }
        if granules.is_empty() {
            return Ok(());
        }
        let encoded = self.encode(&state, granules);
        drop(state);
        write(encoded)
    }

    /// Writes the whole bitmap with `write`. Returns true if `write` did, because every member has
    /// the bitmap durably.
    pub(crate) fn write_all(&self, write: impl FnOnce(&Granules) -> bool) -> bool {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.lock();
        let count = plane_bytes(state.all.len()) / GRANULE;
        let all = (0..PLANES)
            .flat_map(|plane| (0..count).map(move |granule| (plane, granule)))
            .collect();
        let encoded = self.encode(&state, all);
        let set: Vec<[bool; PLANES]> = state.all.iter().map(|region| region.set).collect();
        drop(state);
        let well = write(&encoded);
        if well {
            // A bit that was set meanwhile is written by the thread that set it.
            for (region, set) in self.lock().all.iter_mut().zip(set) {
                (0..PLANES)
                    .for_each(|plane| region.durable[plane] |= set[plane] && region.set[plane]);
            }
        }
        well
    }

    fn encode(&self, state: &BitmapRegions, granules: BTreeSet<(usize, usize)>) -> Granules {
        let plane_bytes = plane_bytes(state.all.len());
        let encode = |(plane, granule): (usize, usize)| {
            let mut bytes = Vec::with_capacity(GRANULE);
            for sector in granule * GRANULE / SECTOR..(granule + 1) * GRANULE / SECTOR {
                let mut bits = [0; BITS_BYTES];
                let first = (sector * BITS).min(state.all.len());
                // The last sector of a plane may have fewer regions than bits.
                let behind = (first + BITS).min(state.all.len());
                for (bit, region) in state.all[first..behind].iter().enumerate() {
                    bits[bit / 8] |= u8::from(region.set[plane]) << (bit % 8);
                }
                bytes.extend(seal(&self.array, number_of(plane, sector), &bits));
            }
            debug_assert_eq!(bytes.len(), GRANULE, "a granule has whole sectors");
            ((plane * plane_bytes + granule * GRANULE) as u64, bytes)
        };
        granules.into_iter().map(encode).collect()
    }

    /// Loads the set bits of all members. The bits of a sector that is damaged on all members count
    /// as set. Returns true if each sector was whole on a member.
    pub(crate) fn load(&self, members: &[Vec<u8>]) -> bool {
        let mut state = self.lock();
        let mut all_whole = true;
        let plane_bytes = plane_bytes(state.all.len());
        for plane in 0..PLANES {
            for sector in 0..state.all.len().div_ceil(BITS) {
                let at = plane * plane_bytes + sector * SECTOR;
                let whole = |bytes: &Vec<u8>| {
                    unseal(
                        &self.array,
                        number_of(plane, sector),
                        bytes.get(at..at + SECTOR)?,
                    )
                };
                let mut bits = [0u8; BITS_BYTES];
                let mut found = false;
                // The bits of all members are joined: a member may have missed the last write, and
                // a bit too many only costs a comparison.
                for copy in members.iter().filter_map(whole) {
                    found = true;
                    bits.iter_mut()
                        .zip(copy)
                        .for_each(|(bits, copy)| *bits |= copy);
                }
                all_whole &= found;
                let behind = ((sector + 1) * BITS).min(state.all.len());
                for region in sector * BITS..behind {
                    let bit = region - sector * BITS;
                    let is_set = !found || bits[bit / 8] >> (bit % 8) & 1 == 1;
                    state.set(region as u32, plane, is_set);
                    state.all[region].durable[plane] = false;
                }
            }
        }
        all_whole
    }
}

impl BitmapRegions {
    /// Sets or clears a bit. A cleared bit is not durable on any member.
    fn set(&mut self, region: u32, plane: usize, is_set: bool) {
        let region = &mut self.all[region as usize];
        if plane == DIRTY {
            // Added before subtracted, so that the count does not fall below 0 in between.
            self.dirty += usize::from(is_set);
            self.dirty -= usize::from(region.set[DIRTY]);
        }
        region.set[plane] = is_set;
        region.durable[plane] &= is_set;
    }
}

impl BitmapRegion {
    /// Ends one write.
    fn leave(&mut self) {
        assert!(self.writers > 0, "a write of a region ends unbegun");
        self.writers -= 1;
    }

    fn is_quiet(&self, looks: u64) -> bool {
        self.set[DIRTY] && self.writers == 0 && looks >= self.looked + QUIET_LOOKS
    }
}

fn granule_of(region: u32) -> usize {
    region as usize / BITS * SECTOR / GRANULE
}

/// Returns a sector of bits with its seal: magic, number, and a check sum over the array's
/// identifier.
pub(crate) fn seal(array: &Uuid, number: u32, bits: &[u8; BITS_BYTES]) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    sector[..BITS_BYTES].copy_from_slice(bits);
    sector[BITS_BYTES..][..4].copy_from_slice(&MAGIC);
    sector[BITS_BYTES + 4..][..4].copy_from_slice(&number.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(array.bytes());
    hasher.update(&sector[..BITS_BYTES + 8]);
    sector[BITS_BYTES + 8..][..4].copy_from_slice(&hasher.finalize().to_le_bytes());
    sector
}

/// Returns the bits of a sector; `None` for a damaged sector or another number.
pub(crate) fn unseal(array: &Uuid, number: u32, sector: &[u8]) -> Option<[u8; BITS_BYTES]> {
    let mut bits = [0; BITS_BYTES];
    bits.copy_from_slice(sector.get(..BITS_BYTES)?);
    (seal(array, number, &bits)[..] == *sector).then_some(bits)
}

/// Returns the number of a sector of the bitmap.
fn number_of(plane: usize, sector: usize) -> u32 {
    (plane << 28 | sector) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const ARRAY: Uuid = Uuid::from_bytes([7; 16]);

    /// Writes granules to the bytes of a member.
    fn apply(bytes: &mut [u8], granules: &Granules) {
        for (at, granule) in granules {
            bytes[*at as usize..][..granule.len()].copy_from_slice(granule);
        }
    }

    fn begin(bitmap: &Bitmap, regions: &[u32], missing: bool, mut write: impl FnMut(&Granules)) {
        let Ok(()) = bitmap.begin(&some(regions), missing, |granules| {
            write(&granules);
            Ok::<(), Infallible>(())
        });
    }

    fn some(regions: &[u32]) -> BTreeSet<u32> {
        regions.iter().copied().collect()
    }

    #[test]
    fn bits_are_written_before_the_first_writer_goes_on_and_read_back() {
        let regions = 10_000;
        let bitmap = Bitmap::new(ARRAY, 2048, regions);
        let mut member = vec![0; room(regions) as usize];
        bitmap.write_all(|all| {
            apply(&mut member, all);
            true
        });
        begin(&bitmap, &[3, 4000, 9999], false, |granules| {
            apply(&mut member, granules)
        });
        begin(&bitmap, &[3], false, |_| panic!("it is there already"));
        begin(&bitmap, &[5], true, |granules| apply(&mut member, granules));
        let read = Bitmap::new(ARRAY, 2048, regions);
        read.load(&[member.clone()]);
        assert_eq!(
            (read.dirty(), read.missed()),
            (vec![3, 5, 4000, 9999], vec![5])
        );
        // One sector of dirty bits is torn. Its regions count as dirty, unless another member has
        // the sector.
        let mut torn = member.clone();
        torn[513] ^= 1;
        let other = Bitmap::new(ARRAY, 2048, regions);
        other.load(&[torn.clone(), member]);
        assert_eq!(other.dirty(), [3, 5, 4000, 9999]);
        other.load(&[torn]);
        assert_eq!(other.dirty().len(), 2 + BITS + 1);
    }

    #[test]
    fn threads_that_wait_for_bits_share_one_write() {
        const THREADS: u32 = 8;
        let bitmap = Bitmap::new(ARRAY, 8, 10_000);
        let calls = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (bitmap, calls) = (&bitmap, &calls);
                scope.spawn(move || {
                    begin(bitmap, &[thread * 1000], thread % 2 == 0, |granules| {
                        assert!(!granules.is_empty());
                        if calls.fetch_add(1, Ordering::SeqCst) > 0 {
                            return;
                        }
                        // The first write lasts until all other threads wait. Half of the threads
                        // wait for bits of both planes.
                        let waiting = |regions: &BitmapRegions| {
                            let all = regions.all.iter();
                            all.filter(|region| region.writers > 0).count()
                        };
                        while waiting(&bitmap.lock()) < THREADS as usize {
                            std::thread::yield_now();
                        }
                    });
                    let state = bitmap.lock();
                    assert!(state.all[thread as usize * 1000].durable[DIRTY]);
                });
            }
        });
        assert!(bitmap.lock().awaited.is_empty());
        // All may have waited before the first write began.
        let calls = calls.load(Ordering::SeqCst);
        assert!(
            (1..=2).contains(&calls),
            "{calls} writes for {THREADS} threads"
        );
    }

    #[test]
    fn a_region_is_cleared_when_it_was_quiet_and_is_durable() {
        let bitmap = Bitmap::new(ARRAY, 8, 16);
        begin(&bitmap, &[2], false, |_| {});
        begin(&bitmap, &[2], false, |_| {});
        bitmap.end(&some(&[2]), 4);
        for _ in 0..QUIET_LOOKS {
            assert!(!bitmap.look(3), "somebody writes still");
        }
        bitmap.end(&some(&[2]), 5);
        assert!(!bitmap.look(4), "it was written just now");
        bitmap.look(4);
        assert!(bitmap.look(4), "it is quiet, and not durable");
        bitmap.clear_quiet(4, |_| panic!("it is not durable"));
        bitmap.clear_quiet(5, |granules| assert_eq!(granules.len(), 1));
        assert!(bitmap.dirty().is_empty());
    }

    #[test]
    fn what_is_dirty_when_a_member_fails_was_missed() {
        let bitmap = Bitmap::new(ARRAY, 8, 16);
        begin(&bitmap, &[2], false, |_| {});
        bitmap.miss_dirty();
        assert_eq!(bitmap.missed(), [2]);
        assert_eq!(
            (
                bitmap.next_missed(3),
                bitmap.next_missed(19),
                bitmap.next_missed(24)
            ),
            (Some(16), Some(19), None)
        );
        bitmap.forget_missed();
        assert!(bitmap.missed().is_empty());
    }

    #[test]
    fn what_is_announced_is_durable_once_a_flush_has_passed_that_began_later() {
        let bitmap = Bitmap::new(ARRAY, 8, 16);
        let mut member = vec![0; room(16) as usize];
        bitmap.write_all(|all| {
            apply(&mut member, all);
            true
        });
        let mut announce = |regions: &[u32]| {
            let Ok(durable) = bitmap.announce(&some(regions), 1, |granules| {
                apply(&mut member, &granules);
                Ok::<(), Infallible>(())
            });
            durable
        };
        assert!(!announce(&[0]));
        let first = bitmap.announced(&some(&[0])).unwrap();
        assert!(!announce(&[1]));
        let mut open = some(&[0, 1]);
        bitmap.note_durable(first, &mut open);
        assert_eq!(open, some(&[1]), "it came after the flush");
        assert!(announce(&[0]) && !announce(&[0, 1]));
        assert!(bitmap.touch(0..=0, 1) && !bitmap.touch(0..=1, 1));
        let read = Bitmap::new(ARRAY, 8, 16);
        assert!(read.load(&[member]));
        assert_eq!(read.dirty(), [0, 1], "a kill is survived already");
        let Ok(()) = bitmap.clear_before(2, |_| Ok::<(), Infallible>(()));
        assert!(!bitmap.is_dirty() && bitmap.announced(&some(&[0, 1])).is_none());
    }

    #[test]
    fn regions_whose_bits_could_not_be_written_have_no_writers_and_may_be_tried_again() {
        let bitmap = Bitmap::new(ARRAY, 8, 16);
        let refused = bitmap.begin(&some(&[2]), false, |_| Err("no room"));
        assert_eq!(refused, Err("no room"));
        let mut written = 0;
        begin(&bitmap, &[2], false, |_| written += 1);
        assert_eq!(written, 1, "the bit is not there yet");
        bitmap.end(&some(&[2]), 1);
        let Ok(()) = bitmap.clear_before(2, |_| Ok::<(), Infallible>(()));
        assert!(bitmap.dirty().is_empty());
    }
}
