//! The changes that are about to be made, written down before they are: a
//! [`Log`] in the store's own file.
//!
//! A degraded array cannot be mended from its own redundancy: if data was
//! written and parity was not yet, what the failed member held is computed
//! wrongly, also where nobody wrote. So all changes of a request are written
//! down, and durable, before the first of them is made.

use crate::Device;
use crate::bytes::StoreError;
use crate::bytes::sync::ToSync;
use crate::device::Aligned;
use crate::journal::{Change, Full, Log};
use crate::superblock::Uuid;
use fullstroke_units::Sectors;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The journal is as large as this, or four times the volume.
const MOST_BYTES: u64 = 16 << 20;
const LEAST_BYTES: u64 = 256 << 10;

/// The room that a journal takes.
pub(crate) fn room(capacity: Sectors) -> u64 {
    (capacity.bytes().0.saturating_mul(4)).clamp(LEAST_BYTES, MOST_BYTES) / 4096 * 4096
}

/// The journal of a store.
pub(crate) struct Redo {
    device: Arc<dyn Device>,
    log: Log,
    /// Whether records are made durable before what they stand for is changed.
    durable: bool,
    buffer: Aligned,
    /// Counts records.
    changes: u64,
    /// The record that is not carried out.
    under_way: Option<u64>,
    /// The epoch of the latest record or marker.
    changed: u64,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// It stands in the journal.
    Done,
    /// There is no room until earlier records are given up.
    Full,
    /// The journal is too small for it.
    TooLong,
}

impl Redo {
    /// The journal in these bytes of a device.
    pub(crate) fn new(
        device: Arc<dyn Device>,
        store: Uuid,
        [at, bytes]: [u64; 2],
        durable: bool,
    ) -> Redo {
        Redo {
            device,
            log: Log::new(store, at, bytes),
            durable,
            buffer: Aligned::default(),
            changes: 0,
            under_way: None,
            changed: 0,
        }
    }

    /// What may not have been carried out, oldest first. An error if the device has no
    /// journal of this store and it may have been `needed`.
    pub(crate) fn read(&self, needed: bool) -> Result<Vec<Change>, StoreError> {
        let file = PathBuf::from(self.device.name());
        if needed && !self.log.has_begun(&*self.device) {
            let detail = "found no whole journal of the store, which was killed while a parity volume lacked a \
                          member: what that member held may be computed wrongly now; put the file back as the \
                          server left it";
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

    /// Writes a change down, in `epoch`. Until it is [carried out](Redo::carried_out), it
    /// stands there.
    pub(crate) fn record(
        &mut self,
        change: &mut Change,
        epoch: u64,
    ) -> Result<Recorded, StoreError> {
        let room = Log::room(change.runs.len(), change.bytes.len() as u64);
        if !self.log.fits(room) {
            return Ok(Recorded::TooLong);
        }
        self.changes += 1;
        change.id = self.changes;
        let appended = self.log.append(&*self.device, 0, change, &mut self.buffer);
        let Ok(appended) = appended.map_err(|Full| ()) else {
            return Ok(Recorded::Full);
        };
        let number = appended.map_err(|error| self.error("write to", error))?;
        self.changed = epoch;
        if self.durable {
            let flushed = self.device.flush();
            flushed.map_err(|error| self.error("make durable", error))?;
        }
        self.under_way = Some(number);
        Ok(Recorded::Done)
    }

    /// The latest record was carried out.
    pub(crate) fn carried_out(&mut self) {
        if let Some(number) = self.under_way.take() {
            self.log.applied(number);
        }
    }

    /// Whether nothing would be made again if the process died now.
    pub(crate) fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// To be asked before everything is made durable, for [`given_up`](Redo::given_up).
    pub(crate) fn before_sync(&self) -> (u64, u64) {
        self.log.before_flush()
    }

    /// All that was changed `before` is durable: records of it are given up.
    pub(crate) fn given_up(&mut self, before: (u64, u64), epoch: u64) -> Result<(), StoreError> {
        let marked = self.log.before_flush().1;
        let (_, written) = self.log.after_flush(&*self.device, before);
        written.map_err(|error| self.error("write to", error))?;
        if self.log.before_flush().1 != marked {
            self.changed = epoch;
        }
        Ok(())
    }

    /// Forgets all records: what they changed is durable.
    pub(crate) fn restart(&mut self, epoch: u64) -> Result<(), StoreError> {
        self.under_way = None;
        self.changed = epoch;
        let restarted = self.log.restart(&*self.device);
        restarted.map_err(|error| self.error("write to", error))?;
        if self.durable {
            let flushed = self.device.flush();
            flushed.map_err(|error| self.error("make durable", error))?;
        }
        Ok(())
    }

    /// The device, if it was changed after the epoch `synced`.
    pub(crate) fn to_sync_since(&self, synced: u64) -> Option<ToSync> {
        (self.changed > synced).then(|| ToSync::own(&self.device))
    }

    fn error(&self, action: &'static str, source: std::io::Error) -> StoreError {
        StoreError::host(action, Path::new(&self.device.name()), source)
    }
}
