//! Syncing: data becomes durable, and marks of durable regions are cleared.

use crate::Device;
use crate::bytes::StoreError;
use crate::bytes::records::Records;
use crate::bytes::redo::Redo;
use crate::bytes::store::Store;
use crate::bytes::sync::ToSync;
use crate::bytes::verify::Verifier;
use crate::journal::BeforeFlush;
use fullstroke_contract::{Extent, MemberState};
use fullstroke_units::{SECTOR_BYTES, Sectors};
use std::sync::Arc;
use std::time::Duration;

/// Largest extent for one call of [`Store::tidy`] to mend: 2 MiB.
const SETTLED_SECTORS: Sectors = Sectors((2 << 20) / SECTOR_BYTES);

/// Makes all earlier writes durable. The job holds the files themselves, so another thread can run
/// it while the store is in use.
pub struct SyncJob {
    files: Vec<ToSync>,
    synced: SyncResult,
}

/// Result of a [`SyncJob`], for [`Store::note_synced`].
#[derive(Debug)]
#[must_use = "what was not made durable is known to nobody else"]
pub struct SyncResult {
    epoch: u64,
    /// State of the journal when the job was made: records carried out by then can be given up.
    carried_out: Option<BeforeFlush>,
    state_changes: u64,
    states: Vec<MemberState>,
    /// Devices with failed flushes: index of the medium, `None` for the store's own file.
    failed: Vec<(Option<usize>, StoreError)>,
}

/// Makes new marks of regions durable; [`Store::announce`] tells when a job is needed. Another
/// thread may run the job.
pub struct MarkJob {
    file: ToSync,
    setting: u64,
}

/// Result of a [`MarkJob`], for [`Store::note_marked`].
#[derive(Debug)]
#[must_use = "what was not made durable is known to nobody else"]
pub struct MarkResult(Result<u64, StoreError>);

impl MarkJob {
    /// Waits until the host has written the marks, or has failed to.
    pub fn run(self) -> MarkResult {
        MarkResult(self.file.run().map(|()| self.setting))
    }

    /// Replaces the device of the job: for tests.
    #[doc(hidden)]
    pub fn over(mut self, device: Arc<dyn Device>) -> MarkJob {
        self.file.device = device;
        self
    }
}

/// Work left by [`Store::tidy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TidyWork {
    /// Nothing until the next write.
    Done,
    /// More at once: call again when there is nothing better to do.
    Again,
    /// Something later: call again at this instant.
    At(Duration),
    /// Run a [`SyncJob`], pass its result to [`Store::note_synced`], and call again.
    Sync,
}

impl SyncJob {
    /// Waits until the host has written everything, or has failed to. Unwritten data may be lost,
    /// and the host reports a failure only once. So the caller must pass the result to
    /// [`Store::note_synced`].
    pub fn run(mut self) -> SyncResult {
        for file in self.files {
            let medium = file.medium;
            if let Err(error) = file.run() {
                self.synced.failed.push((medium, error));
            }
        }
        self.synced
    }

    /// True if there is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

impl Store {
    /// Makes all writes so far durable, and waits for the host.
    ///
    /// # Errors
    /// The host's.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        let synced = self.sync_job().run();
        self.note_synced(synced)
    }

    /// Returns a job to make all writes so far durable.
    pub fn sync_job(&mut self) -> SyncJob {
        self.sync_job_without(&[])
    }

    /// The same, without some media.
    pub(crate) fn sync_job_without(&mut self, without: &[usize]) -> SyncJob {
        let mut files = self.media.changed_since(self.checkpoints.synced(), without);
        let redo = self.records.as_ref().and_then(Records::redo);
        files.extend(redo.and_then(|redo| redo.to_sync_since(self.checkpoints.synced())));
        // The bits say that lost sectors were written. So the bits become durable after the data.
        let losses = self.losses.iter();
        files.extend(losses.filter_map(|loss| loss.changed_since(self.checkpoints.synced())));
        let epoch = self.media.epoch;
        // Taken before the flush: the job does not cover changes that are made during the flush.
        let carried_out = redo.map(Redo::before_sync);
        // Later writes belong to the next epoch, which the job does not cover.
        self.media.epoch += 1;
        let (state_changes, states) = (self.state_changes, self.states());
        SyncJob {
            files,
            synced: SyncResult {
                epoch,
                carried_out,
                state_changes,
                states,
                failed: Vec::new(),
            },
        }
    }

    /// Announces that the extent is about to change. Returns true if a change would be carried out
    /// at once. Otherwise the change would wait for the host's disk, to make the marks of its
    /// regions durable. A [`MarkJob`] waits in another thread instead.
    ///
    /// # Errors
    /// The host's.
    #[inline]
    pub fn announce(&mut self, extent: Extent) -> Result<bool, StoreError> {
        self.check_running()?;
        let within = extent.sectors > Sectors::ZERO && extent.within(self.capacity());
        match self.records.as_mut().and_then(Records::marks_mut) {
            Some(marks) if within => marks.mark_ahead(extent, self.media.epoch),
            _ => Ok(true),
        }
    }

    /// Returns a job for all announced marks; `None` if all are durable.
    pub fn mark_job(&self) -> Option<MarkJob> {
        let (file, setting) = self.records.as_ref()?.marks()?.to_sync()?;
        Some(MarkJob { file, setting })
    }

    /// Takes the result of a [`MarkJob`].
    ///
    /// # Errors
    /// The store [has stopped](StoreError::Stopped): marks cannot be trusted after a failed flush.
    pub fn note_marked(&mut self, marked: MarkResult) -> Result<(), StoreError> {
        let setting = marked.0.map_err(|error| self.stop(error))?;
        if let Some(marks) = self.records.as_mut().and_then(Records::marks_mut) {
            marks.note_durable(setting);
        }
        Ok(())
    }

    /// Takes the result of a [`SyncJob`], and records the progress of rebuilds. A failed flush
    /// fails the member, if the volume survives that. The volume's data is durable without the
    /// member.
    ///
    /// # Errors
    /// The store [has stopped](StoreError::Stopped), now or before: a flush failed for data without
    /// redundancy. Or the progress cannot be recorded: the record stays unchanged.
    pub fn note_synced(&mut self, synced: SyncResult) -> Result<(), StoreError> {
        self.check_running()?;
        assert!(
            synced.epoch < self.media.epoch,
            "a sync of epoch {} ends in epoch {}",
            synced.epoch,
            self.media.epoch
        );
        // Before the epoch counts as synced: data of a failed flush are not durable.
        for (medium, error) in synced.failed {
            match medium {
                Some(medium) => self.drop_or_stop(medium, error)?,
                None => return Err(self.stop(error)),
            }
        }
        self.checkpoints.note_synced(synced.epoch);
        let redo = self.records.as_mut().and_then(Records::redo_mut);
        if let Some((redo, before)) = redo.zip(synced.carried_out) {
            redo.given_up(before, self.media.epoch)?;
        }
        // After a change of a state the job's snapshot of the states is out of date.
        if synced.state_changes == self.state_changes {
            self.record_better(&synced.states, false)?;
        }
        Ok(())
    }

    /// Mends the effects of failed requests. Clears the marks of regions without writes for some
    /// seconds, so the next opening has less to compare. Call this from time to time, when there
    /// are no requests. `now` counts from any instant and never decreases.
    ///
    /// # Errors
    /// The host's; call again later.
    pub fn tidy(&mut self, now: Duration) -> Result<TidyWork, StoreError> {
        self.check_running()?;
        self.finish_pending()?;
        if self.settle_or_give_up_lacking()? {
            return Ok(TidyWork::Again);
        }
        if !self.has_more_to_record() {
            self.checkpoints.give_up();
            return Ok(TidyWork::Done);
        }
        let Some((epoch, due)) = self.checkpoints.due() else {
            return Ok(self.begin_checkpoint(now));
        };
        if now < due {
            return Ok(TidyWork::At(due));
        }
        // A mark may be cleared only when its writes are durable: the epochs before the checkpoint
        // must be synced.
        if !self.checkpoints.covers(epoch) {
            return Ok(TidyWork::Sync);
        }
        if self.unsettled.is_empty()
            && let Some(marks) = self.records.as_mut().and_then(Records::marks_mut)
        {
            marks.clear_before(epoch)?;
        }
        let later = self.begin_checkpoint(now);
        Ok(if self.has_more_to_record() {
            later
        } else {
            TidyWork::Done
        })
    }

    /// Completes all pending work, so the next opening has nothing to mend.
    ///
    /// # Errors
    /// The host's. The next opening mends then.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.check_running()?;
        self.finish_pending()?;
        while self
            .unsettled
            .last()
            .is_some_and(|unsettled| !unsettled.media.is_empty())
            && self.settle_some()?
        {}
        let compared = self.unsettled.is_empty();
        self.sync()?;
        if let Some(redo) = self.records.as_mut().and_then(Records::redo_mut) {
            redo.restart(self.media.epoch)?;
        }
        let states = self.states();
        self.record_better(&states, true)?;
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        if !compared {
            // The store stays unclean, and the next opening continues the comparison.
            return Ok(());
        }
        if let Some(marks) = records.marks_mut() {
            marks.clear_before(u64::MAX)?;
        }
        let mut description = records.description().clone();
        // Recorded last: after a crash before this, the store is unclean and the next opening
        // mends.
        description.clean = true;
        records.replace(description)
    }

    /// Begins a new epoch for later writes. When the checkpoint is due, regions of older epochs
    /// have had no writes for the time `quiet`.
    fn begin_checkpoint(&mut self, now: Duration) -> TidyWork {
        self.media.epoch += 1;
        TidyWork::At(self.checkpoints.begin(self.media.epoch, now))
    }

    /// True if there are marks to clear, or rebuilds have filled more than is recorded.
    fn has_more_to_record(&self) -> bool {
        let marks = self.records.as_ref().and_then(Records::marks);
        marks.is_some_and(|marks| marks.is_dirty()) || self.records_lag()
    }

    /// Makes redundancy follow from the data in one place where it may not. Returns false if there
    /// was no such place.
    pub(crate) fn settle_some(&mut self) -> Result<bool, StoreError> {
        let Some(extent) = self.unsettled.last().map(|unsettled| unsettled.extent) else {
            return Ok(false);
        };
        if !self.root.answers() {
            return Ok(false);
        }
        let part = Extent {
            sectors: extent.sectors.min(SETTLED_SECTORS),
            ..extent
        };
        if let Some(marks) = self.records.as_mut().and_then(Records::marks_mut) {
            // Marked before the mending writes, as before any other write.
            marks.mark(part, self.media.epoch)?;
        }
        Verifier::mending(&mut self.media).check(&mut self.root, "", part)?;
        assert!(
            part.sectors > Sectors::ZERO,
            "an empty extent is to be settled at {}",
            part.start
        );
        if part.sectors < extent.sectors {
            let rest = Extent {
                start: part.end(),
                sectors: extent.sectors - part.sectors,
            };
            if let Some(unsettled) = self.unsettled.last_mut() {
                unsettled.extent = rest;
            }
        } else {
            self.unsettled.pop();
        }
        Ok(true)
    }
}
