//! The journal of a parity array on a device of its own (`drivers/md/raid5-cache.c`, Linux 6.12;
//! `mdadm --write-journal`), in the mode *write-through*, which is md's default.
//!
//! A crash between the writes of data and parity leaves a stripe whose parity is wrong. The journal
//! has all pages of a write before.
//!
//! 1. md's thread gathers the stripes of a batch in a **unit**: a block of 4 KiB that describes the
//!    unit, and the new pages of data and parity of each stripe. Units follow each other on the
//!    device, and begin anew at its end.
//! 2. If the device has a write cache, a flush follows. One flush serves all units that have ended
//!    before, and one flush is on its way at a time (`r5l_flush_stripe_to_raid`).
//! 3. In the order of the units, the stripes write their data and parity.
//! 4. A flush from above ends at once, because each write that has ended is in the journal
//!    (`r5l_handle_flush_request`).
//! 5. When a quarter of the device is used, at most 10 GiB, the superblocks of all members are
//!    written behind flushes, and the blocks of finished units are free (`r5l_do_reclaim`). Stripes
//!    wait if the journal has no free block.
//!
//! Departures: the mode *write-back* does not exist. The thread does not discard freed blocks. A
//! write of superblocks does not hold the array.

mod steps;

use super::stripes::PAGE;
use fullstroke_contract::ConfigError;
use fullstroke_units::Sectors;
use std::collections::VecDeque;

/// First sector of the journal: mdadm keeps at least 1 MiB before the data, and 2 MiB on the devices
/// of the laboratory.
const BEGIN: u64 = 4096;

/// Sectors of a block: `BLOCK_SECTORS`.
const BLOCK: u64 = PAGE;

/// First block of a new journal behind the blocks that md writes at the start: the laboratory's
/// first unit is at 8 KiB.
const HEAD: u64 = 2 * BLOCK;

/// Bytes of the describing block, of its header (`r5l_meta_block`), and of its entry for each page
/// of data and for the parity of a stripe (`r5l_payload_data_parity`), with 4 bytes of checksum for
/// each page.
const DESCRIPTION: u64 = 4096;
const HEADER: u64 = 32;
const ENTRY: u64 = 16;
const CHECKSUM: u64 = 4;

/// Most sectors between two checkpoints: `RECLAIM_MAX_FREE_SPACE`, 10 GiB.
const CHECKPOINT_MAX: u64 = 10 * 1024 * 1024 * 2;

/// Least size of a journal. md takes smaller ones; their checkpoints would decide the times.
const SIZE_MIN: u64 = 64 * 1024 * 2;

/// The device of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalDevice {
    /// Size of the device.
    pub sectors: Sectors,
    /// True if the device has a volatile write cache, so that units need a flush.
    pub volatile: bool,
}

impl JournalDevice {
    /// Most members of an array with a journal: the entries of a stripe must fit into one block
    /// (`r5l_init_log`).
    pub const MEMBERS_MAX: usize = ((DESCRIPTION - HEADER) / (ENTRY + CHECKSUM)) as usize;

    /// Checks the size of the device.
    ///
    /// # Errors
    /// If the device is too small.
    pub fn check(&self) -> Result<(), ConfigError> {
        let least = Sectors(BEGIN + SIZE_MIN);
        if self.sectors >= least {
            return Ok(());
        }
        let message = format!(
            "found a device of {}; expected at least {}",
            self.sectors.bytes(),
            least.bytes()
        );
        Err(ConfigError::new("journal", message))
    }
}

/// Stripes that are written to the journal together.
#[derive(Debug, Default)]
struct JournalUnit {
    stripes: Vec<u32>,
    /// Beginning of the unit: sectors from the beginning of the first unit ever.
    begin: u64,
    sectors: u64,
    /// Bytes of the describing block that are used.
    described: u64,
    /// Writes of the unit that have not ended.
    writes: u32,
    /// Stripes whose data and parity are not written.
    pending: u32,
}

/// The journal of an array.
#[derive(Debug)]
pub(super) struct Journal {
    /// Sectors of the journal: a multiple of a block.
    size: u64,
    volatile: bool,
    /// Units in order, from the first whose stripes are not all written, and the number of this one.
    units: VecDeque<JournalUnit>,
    first: u32,
    /// Number of the units, from the first of `units` on, that were sent. The unit behind them
    /// accepts stripes.
    sent: usize,
    /// Number of the units, from the first of `units` on, whose stripes were released.
    released: usize,
    /// Number of units that the flush on its way covers, behind the released units.
    flushing: usize,
    /// End of the last unit: sectors from the beginning of the first unit ever.
    head: u64,
    /// Beginning of the blocks in use.
    tail: u64,
    /// Beginning of the blocks that a checkpoint cannot free: the last unit that was written as a
    /// whole (`next_checkpoint`), or the head if no unit is under way.
    needed: u64,
    /// Number of the unit of each stripe of the cache.
    unit_of: Vec<u32>,
    /// Stripes that wait for free blocks.
    no_space: VecDeque<u32>,
    /// I/Os of the checkpoint on its way, its tail, and the members whose flush has ended.
    checkpoint: u32,
    next_tail: u64,
    flushed: Vec<usize>,
    /// True if the device has refused a write.
    failed: bool,
}

impl Journal {
    /// Returns an empty journal.
    pub(super) fn new(device: JournalDevice) -> Journal {
        let size = device.sectors.0.saturating_sub(BEGIN) / BLOCK * BLOCK;
        Journal {
            size,
            volatile: device.volatile,
            units: VecDeque::new(),
            first: 0,
            sent: 0,
            released: 0,
            flushing: 0,
            head: HEAD,
            tail: 0,
            needed: 0,
            unit_of: Vec::new(),
            no_space: VecDeque::new(),
            checkpoint: 0,
            next_tail: 0,
            flushed: Vec::new(),
            failed: false,
        }
    }

    /// True if a write failed. No further write may enter the array (`r5l_log_disk_error`).
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Adds a stripe with so many pages of data and parity. Returns false if the journal has no room
    /// for the stripe, which then waits.
    fn add(&mut self, at: u32, data: u64, parities: u64) -> bool {
        let pages = data + parities;
        if self.head - self.tail + (1 + pages) * BLOCK >= self.size {
            self.no_space.push_back(at);
            return false;
        }
        let described = data * (ENTRY + CHECKSUM) + ENTRY + parities * CHECKSUM;
        let is_full = |unit: &JournalUnit| unit.described + described > DESCRIPTION;
        if self.sent == self.units.len() || self.units.back().is_some_and(is_full) {
            self.units.push_back(JournalUnit {
                begin: self.head,
                sectors: BLOCK,
                described: HEADER,
                ..JournalUnit::default()
            });
            self.head += BLOCK;
        }
        self.head += pages * BLOCK;
        let number = self.first.wrapping_add(self.units.len() as u32 - 1);
        let slot = at as usize;
        if self.unit_of.len() <= slot {
            self.unit_of.resize(slot + 1, 0);
        }
        self.unit_of[slot] = number;
        if let Some(unit) = self.units.back_mut() {
            unit.sectors += pages * BLOCK;
            unit.described += described;
            unit.pending += 1;
            unit.stripes.push(at);
        }
        true
    }

    fn unit_mut(&mut self, number: u32) -> Option<&mut JournalUnit> {
        let place = number.wrapping_sub(self.first) as usize;
        self.units.get_mut(place)
    }

    /// Takes note of the end of a write of a unit.
    pub(super) fn landed(&mut self, number: u32, refused: bool) {
        self.failed |= refused;
        if let Some(unit) = self.unit_mut(number) {
            unit.writes -= 1;
        }
    }

    /// Returns the number of units behind the released ones that are on the device, in order.
    fn on_device(&self) -> usize {
        let behind = self.units.iter().take(self.sent).skip(self.released);
        behind.take_while(|unit| unit.writes == 0).count()
    }

    /// True if the thread has I/O to send.
    pub(super) fn has_io(&self) -> bool {
        let to_flush = self.volatile && self.flushing == 0 && self.on_device() > 0;
        to_flush || !self.flushed.is_empty() || self.wants_checkpoint()
    }

    /// Takes note that data and parity of a stripe are written. Returns true if the thread has I/O
    /// to send.
    pub(super) fn stripe_ended(&mut self, at: u32) -> bool {
        let number = self.unit_of[at as usize];
        if let Some(unit) = self.unit_mut(number) {
            unit.pending -= 1;
        }
        while self.released > 0
            && let Some(unit) = self.units.front().filter(|unit| unit.pending == 0)
        {
            self.needed = unit.begin;
            self.units.pop_front();
            self.first = self.first.wrapping_add(1);
            self.released -= 1;
            self.sent -= 1;
        }
        // A journal of few blocks would wait for the blocks of its last unit for ever.
        if self.units.is_empty() {
            self.needed = self.head;
        }
        self.wants_checkpoint()
    }

    /// True if blocks have to be freed.
    fn wants_checkpoint(&self) -> bool {
        let free = self.needed - self.tail;
        let most = CHECKPOINT_MAX.min(self.size / 4);
        self.checkpoint == 0 && (free > most || (free > 0 && !self.no_space.is_empty()))
    }

    /// Takes the next unit to send. Returns its number, and first sector and sectors of its places
    /// on the device: two if the unit continues at the beginning.
    fn next_to_send(&mut self) -> Option<(u32, [(u64, u64); 2])> {
        let unit = self.units.get(self.sent)?;
        let begin = unit.begin % self.size;
        let before_end = unit.sectors.min(self.size - begin);
        let places = [
            (BEGIN + begin, before_end),
            (BEGIN, unit.sectors - before_end),
        ];
        let number = self.first.wrapping_add(self.sent as u32);
        self.sent += 1;
        Some((number, places))
    }
}
