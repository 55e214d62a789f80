//! The journal of a store: changes are written here in advance. The journal is a [`MemberJournal`]
//! in the store's own file.
//!
//! The redundancy of a degraded array cannot mend a crash. If data was written and its parity was
//! not, the failed member's data is computed wrongly, also in sectors without a write. So all
//! changes of a request are written to the journal, and made durable, before the first of them is
//! made.

use crate::Device;
use crate::bytes::StoreError;
use crate::bytes::sync::ToSync;
use crate::device::Aligned;
use crate::journal::{BeforeFlush, Change, JournalFull, MemberJournal};
use crate::uuid::Uuid;
use fullstroke_units::Sectors;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest size of the journal. A smaller volume has a journal of four times its capacity.
const MOST_BYTES: u64 = 16 << 20;
const LEAST_BYTES: u64 = 256 << 10;

/// Returns the size of a store's journal in bytes.
pub(crate) fn room(capacity: Sectors) -> u64 {
    (capacity.bytes().0.saturating_mul(4)).clamp(LEAST_BYTES, MOST_BYTES) / 4096 * 4096
}

/// The journal of a store.
pub(crate) struct Redo {
    device: Arc<dyn Device>,
    log: MemberJournal,
    /// True if records are made durable before their changes are made.
    durable: bool,
    buffer: Aligned,
    /// Number of records so far.
    changes: u64,
    /// Number of the record whose changes are being made.
    under_way: Option<u64>,
    /// Epoch of the latest record or marker.
    changed: u64,
}

/// Result of writing a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordingResult {
    /// The record is in the journal.
    Done,
    /// The journal has no room until earlier records are given up.
    Full,
    /// The record is longer than the journal.
    TooLong,
}

impl Redo {
    /// Returns the journal at the byte `at` of a device, of a length of `bytes`.
    pub(crate) fn new(
        device: Arc<dyn Device>,
        store: Uuid,
        [at, bytes]: [u64; 2],
        durable: bool,
    ) -> Redo {
        Redo {
            device,
            log: MemberJournal::new(store, at, bytes),
            durable,
            buffer: Aligned::default(),
            changes: 0,
            under_way: None,
            changed: 0,
        }
    }

    /// Reads the changes that may not have been made, oldest first. Returns an error if the device
    /// has no journal of this store, although one may have been `needed`.
    pub(crate) fn read(&self, needed: bool) -> Result<Vec<Change>, StoreError> {
        let file = PathBuf::from(self.device.name());
        if needed && !self.log.has_begun(&*self.device) {
            let detail = "found no intact journal of the store, which was killed while a parity volume lacked a member: the data of that member may be computed wrongly now; restore the file as the server left it";
            return Err(StoreError::Damaged {
                file,
                detail: detail.to_owned(),
            });
        }
        self.log
            .read(&*self.device)
            .map_err(|error| StoreError::Damaged {
                file,
                detail: error.to_string(),
            })
    }

    /// Writes a change to the journal, in `epoch`. The record stays until the change is [carried
    /// out](Redo::carried_out).
    pub(crate) fn record(
        &mut self,
        change: &mut Change,
        epoch: u64,
    ) -> Result<RecordingResult, StoreError> {
        assert!(
            self.under_way.is_none(),
            "a change is recorded before the one before it was made"
        );
        let room = MemberJournal::room(change.runs.len(), change.bytes.len() as u64);
        if !self.log.fits(room) {
            return Ok(RecordingResult::TooLong);
        }
        self.changes += 1;
        change.id = self.changes;
        let appended = self.log.append(&*self.device, 0, change, &mut self.buffer);
        let Ok(appended) = appended.map_err(|JournalFull| ()) else {
            return Ok(RecordingResult::Full);
        };
        let number = appended.map_err(|error| self.error("write to", error))?;
        self.changed = epoch;
        // Without this flush a loss of power could leave a part of the change and no record.
        if self.durable {
            let flushed = self.device.flush();
            flushed.map_err(|error| self.error("make durable", error))?;
        }
        self.under_way = Some(number);
        Ok(RecordingResult::Done)
    }

    /// Notes that the changes of the latest record have been made.
    pub(crate) fn carried_out(&mut self) {
        if let Some(number) = self.under_way.take() {
            self.log.applied(number);
        }
    }

    /// True if an opening after a kill would repeat no changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Returns the state of the journal before a sync of everything, for
    /// [`given_up`](Redo::given_up).
    pub(crate) fn before_sync(&self) -> BeforeFlush {
        self.log.before_flush()
    }

    /// Gives up the records carried out `before` the sync, because their changes are durable now.
    pub(crate) fn given_up(&mut self, before: BeforeFlush, epoch: u64) -> Result<(), StoreError> {
        let marked = self.log.before_flush().marked;
        let (_, written) = self.log.after_flush(&*self.device, before);
        written.map_err(|error| self.error("write to", error))?;
        if self.log.before_flush().marked != marked {
            self.changed = epoch;
        }
        Ok(())
    }

    /// Gives up all records. Their changes must be durable.
    pub(crate) fn restart(&mut self, epoch: u64) -> Result<(), StoreError> {
        self.under_way = None;
        self.changed = epoch;
        let restarted = self.log.restart(&*self.device);
        restarted.map_err(|error| self.error("write to", error))?;
        // Otherwise a loss of power could bring the old records back, behind later changes without
        // records.
        if self.durable {
            let flushed = self.device.flush();
            flushed.map_err(|error| self.error("make durable", error))?;
        }
        Ok(())
    }

    /// Returns the device, if it was changed after the epoch `synced`.
    pub(crate) fn to_sync_since(&self, synced: u64) -> Option<ToSync> {
        (self.changed > synced).then(|| ToSync::own(&self.device))
    }

    fn error(&self, action: &'static str, source: std::io::Error) -> StoreError {
        StoreError::host(action, Path::new(&self.device.name()), source)
    }
}
