//! The journals of all members of an array, and the rows with changes there.

use crate::device::Aligned;
use crate::group::Group;
use crate::journal::{BeforeFlush, Change, JournalFull, MemberJournal};
use crate::superblock::Roster;
use crate::transfer::Devices;
use crate::uuid::Uuid;
use crate::{ArrayError, Device};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The journals of an array. Without parity there are none.
pub(crate) struct ArrayJournals {
    /// One for each slot; empty without parity.
    logs: Vec<MemberJournal>,
    /// For each slot, the flush that writers of records share.
    flushes: Vec<Group>,
    /// Number of the next change.
    next_change: AtomicU64,
    /// Rows with changes in the journals, each with the number of its records.
    rows: Mutex<BTreeMap<u64, u32>>,
}

/// A record in the journal of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenRecord {
    slot: usize,
    number: u64,
}

impl ArrayJournals {
    /// Returns the journals of an array with this number of slots.
    pub(crate) fn new(array: Uuid, roster: &Roster, slots: usize) -> ArrayJournals {
        let slots = if roster.journal_bytes > 0 { slots } else { 0 };
        let log = || MemberJournal::new(array, roster.journal_at, roster.journal_bytes);
        ArrayJournals {
            logs: (0..slots).map(|_| log()).collect(),
            flushes: (0..slots).map(|_| Group::default()).collect(),
            next_change: AtomicU64::new(1),
            rows: Mutex::default(),
        }
    }

    /// True if there are no journals.
    pub(crate) fn are_absent(&self) -> bool {
        self.logs.is_empty()
    }

    /// Returns a new number for a change. A replay repeats changes in the order of their numbers.
    pub(crate) fn number_change(&self) -> u64 {
        self.next_change.fetch_add(1, Ordering::SeqCst)
    }

    /// Returns an error if the journal in `slot` is too short for the change.
    pub(crate) fn check_fits(&self, slot: usize, change: &Change) -> Result<(), ArrayError> {
        let room = MemberJournal::room(change.runs.len(), change.bytes.len() as u64);
        match self.logs[slot].fits(room) {
            true => Ok(()),
            false => Err(ArrayError::Refused(format!(
                "a change takes {room} bytes, more than a journal has"
            ))),
        }
    }

    /// Writes a change of `row` to the journal in `slot`. The record is durable after
    /// [`flush`](ArrayJournals::flush).
    pub(crate) fn append(
        &self,
        slot: usize,
        device: &dyn Device,
        row: u64,
        change: &Change,
        buffer: &mut Aligned,
    ) -> Result<io::Result<WrittenRecord>, JournalFull> {
        // Counted before the record is there: a flush by another thread may give the record up, and
        // must find it counted.
        *self.rows().entry(row).or_default() += 1;
        let appended = self.logs[slot].append(device, row, change, buffer);
        if !matches!(appended, Ok(Ok(_))) {
            self.forget(&[row]);
        }
        appended.map(|written| written.map(|number| WrittenRecord { slot, number }))
    }

    /// Makes all records in the journal of `slot` durable. Several writers share a flush.
    pub(crate) fn flush(&self, slot: usize, device: &dyn Device) -> io::Result<()> {
        let mut failure = None;
        let well = self.flushes[slot].join(false, || {
            let flushed = device.flush();
            flushed.map_err(|error| failure = Some(error)).is_ok()
        });
        match well {
            true => Ok(()),
            // If the flush fails, all its writers see the failure, but only one has its error.
            false => Err(failure.unwrap_or_else(|| io::ErrorKind::Other.into())),
        }
    }

    /// Notes that the change of a record has been made on all members.
    pub(crate) fn made(&self, record: WrittenRecord) {
        self.logs[record.slot].applied(record.number);
    }

    /// Returns the state of each journal before a flush of all members.
    pub(crate) fn before_flush(&self) -> Vec<BeforeFlush> {
        self.logs.iter().map(MemberJournal::before_flush).collect()
    }

    /// Notes a flush of all members since `before`, and writes the next marker of the journal in
    /// `slot`.
    pub(crate) fn after_flush(
        &self,
        slot: usize,
        device: &dyn Device,
        before: BeforeFlush,
    ) -> io::Result<()> {
        let (rows, marked) = self.logs[slot].after_flush(device, before);
        self.forget(&rows);
        marked
    }

    /// Drops the records in the journal of a lost member.
    pub(crate) fn abandon(&self, slot: usize) {
        self.forget(&self.logs[slot].abandon());
    }

    /// Begins an empty journal in `slot`, for an array with this count of events.
    pub(crate) fn start(&self, slot: usize, device: &dyn Device, events: u64) -> io::Result<()> {
        match self.logs.get(slot) {
            Some(log) => log.start(device, events),
            None => Ok(()),
        }
    }

    /// Reads the changes that may not have been made, in the order of their numbers. Later changes
    /// get higher numbers.
    pub(crate) fn read(&self, devices: &Devices) -> Result<BTreeMap<u64, Change>, ArrayError> {
        let mut changes = BTreeMap::new();
        for (log, device) in self.logs.iter().zip(devices) {
            let Some(device) = device else { continue };
            let own = log.read(&**device)?.into_iter();
            changes.extend(own.map(|change| (change.id, change)));
        }
        let next = changes.keys().last().map_or(1, |last| last + 1);
        self.next_change.store(next, Ordering::SeqCst);
        Ok(changes)
    }

    /// True if one of the `rows` has a record.
    pub(crate) fn hold(&self, rows: Range<u64>) -> bool {
        self.rows().range(rows).next().is_some()
    }

    /// True if some row has a record.
    pub(crate) fn hold_any(&self) -> bool {
        !self.rows().is_empty()
    }

    /// Clears the list of rows with records, because the journals have begun anew.
    pub(crate) fn forget_all(&self) {
        self.rows().clear();
    }

    fn forget(&self, rows: &[u64]) {
        let mut held = self.rows();
        for row in rows {
            if let Some(count) = held.get_mut(row) {
                assert!(*count > 0, "row {row} is listed without a record");
                *count -= 1;
                if *count == 0 {
                    held.remove(row);
                }
            }
        }
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<u64, u32>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the first slot whose journal has a record.
    #[cfg(test)]
    pub(crate) fn first_holder(&self) -> Option<usize> {
        self.logs.iter().position(|log| !log.is_empty())
    }
}
