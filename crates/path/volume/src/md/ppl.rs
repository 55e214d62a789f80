//! The partial parity log of a RAID 5 (`drivers/md/raid5-ppl.c`, Linux 6.12;
//! `mdadm --consistency-policy=ppl`).
//!
//! A crash between the writes of data and parity leaves a stripe whose parity is wrong. The log
//! holds, before these writes, the parity of the data that a write does not change.
//!
//! 1. Each member has a log of its own. A stripe is logged on the member with its parity.
//! 2. Stripes gather in a **unit** until md's thread sends the unit: a header of 4 KiB, and a page
//!    of partial parity for each stripe that is not overwritten as a whole. The write is forced to
//!    the medium (`REQ_FUA`).
//! 3. When the unit is on the member, the data and the parity of its stripes are written.
//! 4. Then the members with these pages are flushed, because their write caches may hold the pages
//!    (`ppl_do_flush`).
//! 5. A log has one unit on its way. The next unit follows when the flushes have ended.
//!
//! Departures: the log lies in the first sectors of the member's data; mdadm has the log before the
//! data. Members without a write cache get the flush, too, and answer at once.

mod steps;

use super::stripes::PAGE;
use std::collections::VecDeque;

/// First sector of the log: behind the superblock.
const BEGIN: u64 = 8;

/// Sectors of the header: `PPL_HEADER_SIZE`.
const HEADER: u64 = 8;

/// Least sectors of partial parity, and those of a unit in a log with room for several units:
/// `PPL_SPACE_SIZE`, 128 KiB.
const SPACE: u64 = 256;

/// Sectors of the log of a member at least: 1 MiB, `MULTIPLE_PPL_AREA_SIZE_SUPER1` of mdadm. The
/// members of the laboratory have as much more before their data.
const AREA: u64 = 2048;

/// Entries of a header: `PPL_HDR_MAX_ENTRIES`, 148.
const ENTRIES_MAX: u32 = 148;

/// Stripes that are logged together.
#[derive(Debug, Default)]
struct LogUnit {
    stripes: Vec<u32>,
    /// Pages of partial parity.
    pages: u64,
    /// Entries of the header: runs of stripes that write the same members.
    entries: u32,
    /// Page number and written members of the latest stripe.
    latest: Option<(u64, u64)>,
    /// Stripes whose data and parity are not written.
    pending: u32,
    /// Flushes that have not ended.
    flushes: u32,
    /// Members with pages of the stripes, one bit each.
    written: u64,
    sent: bool,
}

/// The log of one member.
#[derive(Debug, Default)]
struct MemberLog {
    /// Units in order. The first may be on its way, the last accepts stripes if it was not sent.
    units: VecDeque<LogUnit>,
    /// Offset of the next unit from the beginning of the log, in sectors.
    next: u64,
}

/// The logs of all members.
#[derive(Debug)]
pub(super) struct PartialParityLog {
    logs: Vec<MemberLog>,
    /// Sectors of the log of a member.
    size: u64,
    /// Pages of partial parity of a unit.
    pages_max: u64,
    /// Stripes of the unit that was logged last; kept to reuse the allocated memory.
    ended: Vec<u32>,
}

impl PartialParityLog {
    /// Most members: the bits of `disk_flush_bitmap`.
    pub(super) const MEMBERS_MAX: usize = 64;

    /// Returns empty logs of an array with this chunk, in sectors. mdadm reserves the header and a
    /// chunk, at least [`AREA`]. A log with room for two units of 128 KiB is used in turns
    /// (`ppl_init_child_log`).
    pub(super) fn new(members: usize, chunk: u64) -> PartialParityLog {
        let size = AREA.max(HEADER + chunk.max(SPACE));
        let space = match size >= 2 * (HEADER + SPACE) {
            true => SPACE,
            false => size - HEADER,
        };
        PartialParityLog {
            logs: (0..members).map(|_| MemberLog::default()).collect(),
            size,
            pages_max: space / PAGE,
            ended: Vec::new(),
        }
    }

    /// Adds a stripe to the log of the member with its parity (`ppl_log_stripe`). `whole` is true
    /// if the stripe is overwritten as a whole, and `written` has a bit for each member to write.
    fn add(&mut self, at: u32, number: u64, parity: usize, whole: bool, written: u64) {
        let log = &mut self.logs[parity];
        let full = |unit: &LogUnit| {
            unit.sent || unit.pages == self.pages_max || unit.entries == ENTRIES_MAX
        };
        if log.units.back().is_none_or(full) {
            log.units.push_back(LogUnit::default());
        }
        let Some(unit) = log.units.back_mut() else {
            return;
        };
        let continues = unit
            .latest
            .is_some_and(|(before, of)| before + 1 == number && of == written);
        unit.entries += u32::from(!continues);
        unit.latest = Some((number, written));
        unit.pages += u64::from(!whole);
        unit.pending += 1;
        unit.written |= written;
        unit.stripes.push(at);
    }
}
