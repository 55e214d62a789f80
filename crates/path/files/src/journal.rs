//! Journal of a file system. Changed metadata is held back until the journal contains it.
//!
//! The model covers the pages of a transaction, its due time, the sectors written to the log, and
//! their positions (the log is a ring). It does not cover a full log, where operations wait until
//! old transactions are written in place. A caller that writes back pages within seconds of their
//! release never meets that case.

use crate::metadata_accesses::MetaAccess;
use crate::system::{InodeChange, LogWrite, PAGE_SECTORS, SyncPlan};
use fullstroke_contract::Object;
use fullstroke_units::{Duration, Lbn, Sectors, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Format of a transaction in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalFormat {
    /// jbd2: a descriptor for every `TAGS` pages, the pages themselves, and a commit record behind
    /// a barrier (`jbd2_journal_commit_transaction`).
    Pages,
    /// XFS: the changed parts of each page, in records of `record` sectors of 512 bytes.
    Changes {
        /// Size of an in-core log buffer in sectors (`logbsize`).
        record: u64,
        /// Mean number of bytes of a changed page in the log: the format of the log item, and the
        /// changed 128-byte chunks (`XFS_BLF_CHUNK`). Inodes have log items of their own
        /// (`INODE_BYTES`), unless `each` is true.
        bytes: u64,
        /// True if the changes of each operation are logged anew, and written as soon as the
        /// buffers are full. Kernels before delayed logging (2.6.39) do so.
        each: bool,
    },
}

/// Bytes of a changed inode in the log: three operation headers of 12 bytes, the format of the item
/// (56), the core (`struct xfs_log_dinode`, 176) and one extent (16).
const INODE_BYTES: u64 = 284;

/// Bytes of an inode whose times alone have changed: as `INODE_BYTES`, without the extents. Linux
/// 6.18: 40 inodes with new access times are one log write of 22 sectors.
const TIMES_BYTES: u64 = 256;

/// Bytes of a checkpoint in the log besides its items: start record and commit record, operation
/// headers of 12 bytes each, and the transaction header with its own (`xlog_cil_build_trans_hdr`).
const CHECKPOINT_BYTES: u64 = 12 + 12 + 16 + 12;

/// Number of pages that one descriptor block names: 4096 bytes less header and tail, 16 bytes for
/// each page with 64-bit checksummed tags (`journal_tag_bytes`).
const TAGS: u64 = 254;

#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// Pages of the device that hold the log, in the order of the log.
    area: Vec<Range<u64>>,
    layout: JournalFormat,
    interval: Duration,
    /// Position of the next write, in sectors from the beginning of the log.
    head: u64,
    running: BTreeSet<u64>,
    /// Changed inodes of the running transaction, with their pages and their bytes in the log.
    inodes: BTreeMap<u32, (u64, u64)>,
    /// Files whose data must be on the device before the transaction is written.
    data: BTreeSet<Object>,
    opened: Time,
    /// Number of page changes by operations. A page counts once for each change.
    changes: u64,
    /// Time when the log buffers became full.
    full: Time,
    /// Number of the running transaction; the first is 0.
    number: u64,
    /// Numbers of the transactions with the last change of each inode. Old ones are forgotten.
    last: BTreeMap<u32, LastChanges>,
    /// Number of the first transaction that no plan has handed out yet.
    handed_to: u64,
    /// Number of the first transaction of the last plan. Transactions before are in the log,
    /// because a plan is carried out before the next is made.
    writing_from: u64,
    pushed: LogBuffer,
}

/// The open log buffer: transactions that are closed, and not yet written.
#[derive(Clone, Debug, Default)]
struct LogBuffer {
    bytes: u64,
    pages: BTreeSet<u64>,
}

impl LogBuffer {
    /// Adds a transaction: its bytes in the log, and its pages.
    fn add(&mut self, bytes: u64, pages: &mut BTreeSet<u64>) {
        self.bytes += bytes;
        self.pages.append(pages);
    }

    /// Empties the buffer. Returns its bytes and pages; `None` for an empty buffer.
    fn take(&mut self) -> Option<LogBuffer> {
        if self.pages.is_empty() {
            return None;
        }
        let taken = std::mem::take(self);
        assert!(
            taken.bytes > 0,
            "{} pages take no room in the log",
            taken.pages.len()
        );
        Some(taken)
    }
}

/// Numbers of the transactions with the last changes of an inode.
#[derive(Clone, Copy, Debug)]
struct LastChanges {
    /// Any change.
    any: u64,
    /// A change of more than times.
    data: Option<u64>,
}

/// Number of transactions between two searches for changes that are in the log and can be
/// forgotten.
const FORGETS: u64 = 16;

/// Number of in-core log buffers (`logbufs`).
const BUFFERS: u64 = 8;

impl Journal {
    pub(crate) fn new(area: Vec<Range<u64>>, layout: JournalFormat, interval: Duration) -> Journal {
        Journal {
            area,
            layout,
            interval,
            head: 0,
            running: BTreeSet::new(),
            inodes: BTreeMap::new(),
            data: BTreeSet::new(),
            opened: Time::NEVER,
            changes: 0,
            full: Time::NEVER,
            number: 0,
            last: BTreeMap::new(),
            handed_to: 0,
            writing_from: 0,
            pushed: LogBuffer::default(),
        }
    }

    /// Adds the pages touched by an operation and the changed inodes to the running transaction.
    /// `kind` is the kind of the inodes' changes.
    pub(crate) fn join(
        &mut self,
        now: Time,
        touches: &[MetaAccess],
        inodes: &[(u32, u64)],
        kind: InodeChange,
    ) {
        for touch in touches {
            match *touch {
                MetaAccess::Read(_) => {}
                MetaAccess::Dirty(page) | MetaAccess::Fresh(page) => {
                    if self.running.is_empty() {
                        self.opened = now;
                    }
                    debug_assert!(
                        self.opened <= now,
                        "page {page} joins at {now:?} a transaction opened at {:?}",
                        self.opened
                    );
                    self.running.insert(page);
                    self.changes += 1;
                }
                // A freed page needs no copy in the log (`jbd2_journal_forget`,
                // `xfs_trans_binval`).
                MetaAccess::Forget(page) => {
                    self.running.remove(&page);
                }
            }
        }
        let any = self.number;
        for &(inode, _) in inodes {
            let before = self.last.get(&inode).and_then(|last| last.data);
            let data = if kind == InodeChange::Data {
                Some(any)
            } else {
                before
            };
            self.last.insert(inode, LastChanges { any, data });
        }
        if matches!(self.layout, JournalFormat::Changes { each: false, .. }) {
            let bytes = match kind {
                InodeChange::Data => INODE_BYTES,
                InodeChange::Any => TIMES_BYTES,
            };
            for &(inode, page) in inodes {
                let item = self.inodes.entry(inode).or_insert((page, bytes));
                *item = (page, bytes.max(item.1));
            }
        }
        if let JournalFormat::Changes {
            record,
            bytes,
            each: true,
        } = self.layout
            && self.changes * bytes >= BUFFERS * record * 512
        {
            self.full = self.full.min(now);
        }
    }

    /// Requires that the data of `file` is written before the transaction.
    pub(crate) fn order(&mut self, file: Object) {
        self.data.insert(file);
    }

    /// Returns the number of the running transaction.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of the transaction with the last change of this kind of an inode. `None`
    /// if the change was long ago.
    pub(crate) fn last_change(&self, inode: u32, kind: InodeChange) -> Option<u64> {
        let last = self.last.get(&inode)?;
        match kind {
            InodeChange::Any => Some(last.any),
            InodeChange::Data => last.data,
        }
    }

    /// Drops the requirement for a removed file, whose data need not be written any more.
    pub(crate) fn forget(&mut self, file: Object) {
        self.last.remove(&file.0);
        self.data.remove(&file);
    }

    /// True if the log holds whole pages, which are pages of the device's page cache (jbd2).
    pub(crate) fn logs_pages(&self) -> bool {
        self.layout == JournalFormat::Pages
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn due(&self) -> Time {
        if self.is_empty() {
            Time::NEVER
        } else {
            self.full.min(self.opened + self.interval)
        }
    }

    /// True if transactions are pushed into log buffers, and a log buffer is written (delayed
    /// logging of XFS).
    pub(crate) fn pushes(&self) -> bool {
        matches!(self.layout, JournalFormat::Changes { each: false, .. })
    }

    /// Closes the running transaction. Its changes go to the open log buffer (`xlog_cil_push_work`).
    /// Returns false if the transaction is empty, or if the journal has no log buffers.
    pub(crate) fn push(&mut self) -> bool {
        let JournalFormat::Changes {
            bytes, each: false, ..
        } = self.layout
        else {
            return false;
        };
        if self.is_empty() {
            return false;
        }
        // Delayed logging (2.6.39) logs a page once, however often it changed in the transaction.
        let bytes = CHECKPOINT_BYTES + self.changed_bytes(bytes);
        self.pushed.add(bytes, &mut self.running);
        self.begin_next();
        true
    }

    /// Adds to `plan` the writes of the open log buffer, and those of its transactions that do not
    /// fit into one.
    pub(crate) fn write_pushed(&mut self, plan: &mut SyncPlan) {
        let JournalFormat::Changes { record, .. } = self.layout else {
            return;
        };
        let Some(pushed) = self.pushed.take() else {
            return;
        };
        let mut sectors = pushed.bytes.div_ceil(512) + 1;
        let first = plan.log.len();
        // The first record may overwrite the tail of the log. The metadata that the tail
        // describes must be on the medium before (`xlog_cil_set_ctx_write_state`).
        let flush_before = sectors > record;
        while sectors > 0 {
            let piece = sectors.min(record);
            sectors -= piece;
            // Since Linux 5.14 only the record with the end of a checkpoint is a barrier
            // (`XLOG_ICL_NEED_FLUSH` in `xlog_cil_push_work` of fs/xfs/xfs_log_cil.c).
            self.write(piece, sectors == 0, plan);
        }
        plan.log[first].flush_before = flush_before;
        plan.released.extend(pushed.pages);
        self.hand_out();
    }

    /// Notes that a plan has all closed transactions.
    fn hand_out(&mut self) {
        self.writing_from = std::mem::replace(&mut self.handed_to, self.number);
    }

    /// Closes the running transaction. Adds to `plan` the writes that make it durable, and all
    /// transactions before.
    pub(crate) fn commit(&mut self, plan: &mut SyncPlan) {
        if self.pushes() {
            self.push();
            self.write_pushed(plan);
            return;
        }
        if self.is_empty() {
            return;
        }
        plan.data.extend(std::mem::take(&mut self.data));
        let held = self.running.len() as u64;
        match self.layout {
            JournalFormat::Pages => {
                let pages = held + held.div_ceil(TAGS);
                self.write(pages * PAGE_SECTORS, false, plan);
                // The commit record is a write of its own, behind a barrier. If it reached the
                // medium before the pages, a crash would replay garbage.
                self.write(PAGE_SECTORS, true, plan);
            }
            // Without delayed logging each record is a barrier.
            JournalFormat::Changes { record, bytes, .. } => {
                let mut sectors = (self.changes * bytes).div_ceil(512) + 1;
                while sectors > 0 {
                    let piece = sectors.min(record);
                    sectors -= piece;
                    self.write(piece, true, plan);
                }
            }
        }
        plan.released.extend(std::mem::take(&mut self.running));
        self.begin_next();
        self.hand_out();
    }

    /// Begins the next transaction, which is empty.
    fn begin_next(&mut self) {
        self.opened = Time::NEVER;
        self.full = Time::NEVER;
        self.changes = 0;
        self.inodes.clear();
        self.number += 1;
        if self.number.is_multiple_of(FORGETS) {
            self.last.retain(|_, last| last.any >= self.writing_from);
        }
    }

    /// Returns the number of bytes of the running transaction in the log: an item for each inode,
    /// however often it changed, and `bytes` for each other page.
    fn changed_bytes(&self, bytes: u64) -> u64 {
        let mut pages = BTreeSet::new();
        let mut inodes = 0;
        for &(page, item) in self.inodes.values() {
            if self.running.contains(&page) {
                pages.insert(page);
                inodes += item;
            }
        }
        let others = self.running.len() - pages.len();
        inodes + others as u64 * bytes
    }

    /// Appends writes from the head on. A write at the end of the log continues at its beginning.
    fn write(&mut self, mut sectors: u64, barrier: bool, plan: &mut SyncPlan) {
        while sectors > 0 {
            let (start, room) = self.at_head();
            let piece = sectors.min(room);
            plan.log.push(LogWrite {
                start: Lbn(start),
                sectors: Sectors(piece),
                barrier,
                flush_before: false,
            });
            self.head += piece;
            sectors -= piece;
        }
    }

    /// Returns the sector at the head, and the number of contiguous sectors from there on.
    fn at_head(&mut self) -> (u64, u64) {
        let mut before = 0;
        for run in &self.area {
            let sectors = (run.end - run.start) * PAGE_SECTORS;
            if self.head < before + sectors {
                let within = self.head - before;
                return (run.start * PAGE_SECTORS + within, sectors - within);
            }
            before += sectors;
        }
        self.head = 0;
        let first = self.area.first().cloned().unwrap_or(0..1);
        (
            first.start * PAGE_SECTORS,
            (first.end - first.start) * PAGE_SECTORS,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_of_todays_xfs_has_one_barrier() {
        let barriers = |each| {
            let layout = JournalFormat::Changes {
                record: 64,
                bytes: 256,
                each,
            };
            let mut journal =
                Journal::new(vec![0..500, 500..1000], layout, Duration::from_secs(30));
            let touches: Vec<MetaAccess> = (0..1000).map(MetaAccess::Dirty).collect();
            journal.join(Time::ZERO, &touches, &[], InodeChange::Data);
            let mut plan = SyncPlan::default();
            journal.commit(&mut plan);
            let barriers: Vec<bool> = plan.log.iter().map(|write| write.barrier).collect();
            // A checkpoint of several records begins with a flush.
            let flushes: Vec<bool> = plan.log.iter().map(|write| write.flush_before).collect();
            assert_eq!(flushes[0], !each);
            assert!(!flushes[1..].contains(&true));
            // 1,000 changes of 256 bytes and a header, in records of 32 KiB.
            assert_eq!(barriers.len(), 8);
            barriers
        };
        assert_eq!(barriers(true), [true; 8]);
        let today = barriers(false);
        assert_eq!(today.iter().filter(|&&barrier| barrier).count(), 1);
        assert_eq!(today.last(), Some(&true));
    }

    #[test]
    fn xfs_logs_each_inode_of_a_page_once() {
        let sectors = |inodes: &[(u32, u64)]| {
            let layout = JournalFormat::Changes {
                record: 64,
                bytes: 256,
                each: false,
            };
            let area = vec![0..500, 500..1000];
            let mut journal = Journal::new(area, layout, Duration::from_secs(30));
            for _ in 0..3 {
                journal.join(
                    Time::ZERO,
                    &[MetaAccess::Dirty(7)],
                    inodes,
                    InodeChange::Data,
                );
            }
            let mut plan = SyncPlan::default();
            journal.commit(&mut plan);
            plan.log[0].sectors.0
        };
        // A header, and one item of 284 bytes or eight of these.
        assert_eq!(sectors(&[(1, 7)]), 2);
        let eight: Vec<(u32, u64)> = (1..9).map(|number| (number, 7)).collect();
        assert_eq!(sectors(&eight), 1 + 5);
    }

    /// Linux 6.18 after reads of 40 files with `relatime`: one log write of 22 sectors.
    #[test]
    fn forty_new_access_times_are_22_sectors_of_xfs_log() {
        let layout = JournalFormat::Changes {
            record: 64,
            bytes: 256,
            each: false,
        };
        let mut journal = Journal::new(vec![0..250, 250..500], layout, Duration::from_secs(30));
        let inodes: Vec<(u32, u64)> = (0..40).map(|number| (number, 7)).collect();
        journal.join(
            Time::ZERO,
            &[MetaAccess::Dirty(7)],
            &inodes,
            InodeChange::Any,
        );
        assert_eq!(journal.last_change(3, InodeChange::Data), None);
        let mut plan = SyncPlan::default();
        journal.commit(&mut plan);
        assert_eq!(plan.log.len(), 1);
        assert_eq!(plan.log[0].sectors, Sectors(22));
    }

    #[test]
    fn a_commit_is_a_descriptor_the_pages_and_a_record_behind_a_barrier() {
        let mut journal = Journal::new(
            vec![100..103, 200..201],
            JournalFormat::Pages,
            Duration::from_secs(5),
        );
        let second = |seconds| Time::ZERO + Duration::from_secs(seconds);
        assert_eq!(journal.due(), Time::NEVER);
        journal.join(
            second(1),
            &[
                MetaAccess::Read(9),
                MetaAccess::Dirty(7),
                MetaAccess::Fresh(8),
            ],
            &[(1, 7)],
            InodeChange::Data,
        );
        journal.join(
            second(2),
            &[MetaAccess::Dirty(7), MetaAccess::Forget(8)],
            &[],
            InodeChange::Data,
        );
        journal.order(Object(3));
        assert_eq!(journal.due(), second(6));
        let mut plan = SyncPlan::default();
        journal.commit(&mut plan);
        let write = |start, sectors, barrier| LogWrite {
            start: Lbn(start),
            sectors: Sectors(sectors),
            barrier,
            flush_before: false,
        };
        assert_eq!(plan.log, [write(800, 16, false), write(816, 8, true)]);
        assert_eq!((plan.data, plan.released), (vec![Object(3)], vec![7]));
        // The next transaction reaches the end of the log and continues at the beginning.
        journal.join(second(9), &[MetaAccess::Dirty(1)], &[], InodeChange::Data);
        let mut plan = SyncPlan::default();
        journal.commit(&mut plan);
        assert_eq!(
            plan.log,
            [
                write(1600, 8, false),
                write(800, 8, false),
                write(808, 8, true)
            ]
        );
    }
}
