//! The regions of the write-intent bitmap of Linux's md (`drivers/md/md-bitmap.c`, Linux 6.12).
//!
//! The bit of a region is on every member before a write to the clean region begins. After its
//! last write a region becomes clean again in two runs of the daemon, and the bitmap is written
//! later, without a request that waits.

use crate::layout::Layout;
use crate::parity::RowMap;
use fullstroke_contract::{ConfigError, Extent};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Default size of a region: `add_internal_bitmap1` (`super1.c` of mdadm 4.2).
pub(super) const REGION: Bytes = Bytes(64 << 20);

/// Least size of a region (`add_internal_bitmap1`).
const REGION_MIN: u64 = 4096;

/// Bytes of a member above which `mdadm --create` makes a bitmap without a word: `Create`
/// (`Create.c` of mdadm 4.2), which compares the size in KiB with 100 * 1024 * 1024. mdadm 4.3 and
/// later ask and recommend the bitmap, for any size.
const LARGE: u64 = 100 << 30;

/// Bits of a page of the bitmap.
const BITS_OF_PAGE: u64 = 4096 * 8;

/// Bits of the bitmap's own superblock at the beginning of the first page: 256 bytes
/// (`bitmap_super_t`).
const BITS_BEFORE: u64 = 256 * 8;

/// Time between two runs of the daemon: `daemon_sleep`, 5 s by default (`mdadm`).
pub(super) const DAEMON: Duration = Duration::from_nanos(5_000_000_000);

/// Runs of the daemon until a region without writers is clean (`md_bitmap_daemon_work`: the counter
/// falls from 2 to 1, then to 0).
const RUNS_UNTIL_CLEAN: u8 = 2;

/// The write-intent bitmap of an array.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WriteIntent {
    /// No bitmap.
    None,
    /// A bitmap on the members.
    Internal,
}

/// A region that is not clean.
#[derive(Clone, Copy, Debug)]
struct DirtyRegion {
    writers: u32,
    /// Runs of the daemon until the region is clean.
    age: u8,
    /// True if the bit is on the members.
    durable: bool,
    /// True if a member missed a write of the region. The bit stays until the member is back
    /// (`md_bitmap_endwrite`, `NEEDED_MASK`).
    needed: bool,
}

/// The regions, and the pages of the bitmap that are to be written.
#[derive(Debug)]
pub(super) struct Bitmap {
    /// Map of a parity array, whose regions count on the members; `None` if regions count on the
    /// volume.
    map: Option<RowMap>,
    /// Sectors of a region.
    region: u64,
    /// Bits of the bitmap with those of its superblock.
    bits: u64,
    regions: BTreeMap<u64, DirtyRegion>,
    /// Pages with new bits, written before the next writes: `BITMAP_PAGE_DIRTY`.
    dirty: BTreeSet<u64>,
    /// Pages with bits that have become clean since the latest run of the daemon:
    /// `BITMAP_PAGE_PENDING`.
    pending: BTreeSet<u64>,
    /// Pages with bits that became clean before: `BITMAP_PAGE_NEEDWRITE`.
    stale: BTreeSet<u64>,
}

impl WriteIntent {
    /// Returns what `mdadm --create` makes for an array of this layout: a bitmap if more than
    /// 100 GiB of each member are used.
    pub(super) fn of_mdadm(layout: &dyn Layout) -> WriteIntent {
        let used = (0..layout.members()).map(|member| layout.member_used(member).bytes().0);
        match used.min().is_some_and(|used| used > LARGE) {
            true => WriteIntent::Internal,
            false => WriteIntent::None,
        }
    }
}

/// Checks the size of a region of the bitmap.
///
/// # Errors
/// If mdadm refuses the size.
pub(super) fn check_region(region: Bytes) -> Result<(), ConfigError> {
    if region.0.is_power_of_two() && region.0 >= REGION_MIN {
        return Ok(());
    }
    let message = format!("found {region}; mdadm's regions are a power of two, at least 4 KiB");
    Err(ConfigError::new("bitmap_chunk", message))
}

impl Bitmap {
    /// Returns a clean bitmap of regions of `region` bytes.
    pub(super) fn new(layout: &dyn Layout, map: Option<RowMap>, region: Bytes) -> Bitmap {
        let region = region.0 / SECTOR_BYTES;
        let sectors = match map {
            Some(map) => map.rows * map.chunk,
            None => layout.capacity().0,
        };
        Bitmap {
            map,
            region,
            bits: BITS_BEFORE + sectors.div_ceil(region),
            regions: BTreeMap::new(),
            dirty: BTreeSet::new(),
            pending: BTreeSet::new(),
            stale: BTreeSet::new(),
        }
    }

    /// Returns the regions of an extent, both ends included.
    pub(super) fn regions_of(&self, extent: Extent) -> (u64, u64) {
        let (first, last) = (extent.start.0, extent.end().0 - 1);
        let region = |lbn: u64| match self.map {
            Some(map) => map.place_of(lbn).sector / self.region,
            None => lbn / self.region,
        };
        // The last chunk of a row may begin at a lower offset than the first.
        let (one, other) = (region(first), region(last));
        (one.min(other), one.max(other))
    }

    /// Adds a writer to regions. Returns true if their bits are on the members.
    pub(super) fn begin(&mut self, (first, last): (u64, u64)) -> bool {
        let mut durable = true;
        for number in first..=last {
            let region = self.regions.entry(number).or_insert_with(|| {
                self.dirty.insert(page_of(number));
                DirtyRegion {
                    writers: 0,
                    age: RUNS_UNTIL_CLEAN,
                    durable: false,
                    needed: false,
                }
            });
            region.writers += 1;
            durable &= region.durable;
        }
        durable
    }

    /// Takes a writer from regions. `whole` is false if a member missed the write.
    pub(super) fn end(&mut self, (first, last): (u64, u64), whole: bool) {
        for number in first..=last {
            if let Some(region) = self.regions.get_mut(&number) {
                region.writers -= 1;
                region.age = RUNS_UNTIL_CLEAN;
                region.needed |= !whole;
            }
        }
    }

    /// Notes that the bits of regions are on the members.
    pub(super) fn note_durable(&mut self, (first, last): (u64, u64)) {
        for number in first..=last {
            if let Some(region) = self.regions.get_mut(&number) {
                region.durable = true;
            }
        }
    }

    /// Takes the pages to write before the next writes: all pages with new bits, and the pages that
    /// would be written later for their clean bits (`md_bitmap_unplug`).
    pub(super) fn take_dirty(&mut self) -> BTreeSet<u64> {
        let mut pages = std::mem::take(&mut self.dirty);
        pages.append(&mut self.stale);
        for page in &pages {
            // The page has all its clean bits now.
            self.pending.remove(page);
        }
        pages
    }

    /// Cleans regions without writers. Returns the pages to write, whose bits became clean in the
    /// run before. `whole` is true if no member is missing.
    pub(super) fn run_daemon(&mut self, whole: bool) -> BTreeSet<u64> {
        self.stale.append(&mut self.pending);
        let (pending, stale) = (&mut self.pending, &self.stale);
        self.regions.retain(|&number, region| {
            region.needed &= !whole;
            if region.writers > 0 || region.needed {
                return true;
            }
            region.age -= 1;
            // A page that is about to be written has the clean bit, too (`md_bitmap_file_clear_bit`).
            if region.age == 0 && !stale.contains(&page_of(number)) {
                pending.insert(page_of(number));
            }
            region.age > 0
        });
        // The daemon stops at the first page with new bits. This page and all pages behind it are
        // written together with the new bits (`md_bitmap_daemon_work`).
        let behind = match self.dirty.first() {
            Some(&first) => self.stale.split_off(&first),
            None => BTreeSet::new(),
        };
        std::mem::replace(&mut self.stale, behind)
    }

    /// True if the daemon has nothing to do before the next write.
    pub(super) fn rests(&self) -> bool {
        self.pending.is_empty()
            && self.stale.is_empty()
            && self.regions.values().all(|region| region.needed)
    }

    /// Returns the sectors of a page of the bitmap: 4 KiB, or the used sectors of the last page
    /// (`__write_sb_page`).
    pub(super) fn sectors_of(&self, page: u64) -> u64 {
        let left = self
            .bits
            .saturating_sub(page * BITS_OF_PAGE)
            .min(BITS_OF_PAGE);
        left.div_ceil(8 * SECTOR_BYTES).max(1)
    }
}

/// Returns the page of a region's bit.
fn page_of(region: u64) -> u64 {
    (BITS_BEFORE + region) / BITS_OF_PAGE
}

/// Returns the time of the daemon's first run after the end of a write.
pub(super) fn first_run(now: Time) -> Time {
    now + DAEMON
}
