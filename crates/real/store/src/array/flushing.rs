//! Flushes of an array, and the records of failures.

use super::{Array, Sabotage};
use crate::ArrayError;
use crate::transfer::Devices;

impl Array {
    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// A device's, if no redundancy replaces the data. Also, once, if data was lost since the last
    /// flush: earlier writes may be among the lost data. fsync(2) also fails once for pages that
    /// could not be written.
    pub fn flush(&self) -> Result<(), ArrayError> {
        if self.is_read_only() {
            return Ok(());
        }
        self.make_durable()?;
        match self.condition.take_loss() {
            true => Err(ArrayError::LostBefore),
            false => Ok(()),
        }
    }

    /// As [`flush`](Array::flush), for the array's own purposes: does not report lost data.
    pub(crate) fn make_durable(&self) -> Result<(), ArrayError> {
        self.epochs
            .join(self.sabotage == Sabotage::FlushShared, || {
                self.flush_members()
            });
        self.settle()?;
        self.condition.check_running()
    }

    fn flush_members(&self) -> bool {
        // Taken before the flush, together with the epoch: the flush does not cover changes that
        // end during the flush.
        let before = self.journals.before_flush();
        let epoch = self.epochs.begin_flush();
        if !self.flush_devices() {
            return false;
        }
        self.epochs.end_flush(epoch);
        let devices = self.devices();
        for (slot, mut before) in before.into_iter().enumerate() {
            if self.sabotage == Sabotage::RetiredEarly {
                before.marked = before.applied;
            }
            let Some(device) = &devices[slot] else {
                self.journals.abandon(slot);
                continue;
            };
            if let Err(error) = self.journals.after_flush(slot, &**device, before) {
                let why = format!("write of the journal failed: {error}");
                if self.drop_member(slot, &why, error).is_err() {
                    return false;
                }
                self.journals.abandon(slot);
            }
        }
        true
    }

    /// Flushes every device. A failed flush fails the device.
    pub(crate) fn flush_devices(&self) -> bool {
        let mut well = true;
        for (slot, result) in flush_each(&self.turning()) {
            if let Err(error) = result {
                let why = format!("flush failed: {error}");
                if let Err(error) = self.drop_member(slot, &why, error) {
                    // The device's writes are lost, and no other member has them.
                    self.condition.halt(&error.to_string());
                    well = false;
                }
            }
        }
        well
    }

    /// Clears the marks of regions without writes during several calls. Call this about once a
    /// second.
    ///
    /// # Errors
    /// As [`flush`](Array::flush).
    pub fn tidy(&self) -> Result<(), ArrayError> {
        let Some(bitmap) = self.bitmap.as_ref().filter(|_| !self.is_read_only()) else {
            return Ok(());
        };
        self.condition.check_running()?;
        // Flushes only if the writes of a quiet region are not known to be durable.
        if bitmap.look(self.epochs.flushed()) {
            self.make_durable()?;
        }
        let flushed = self.epochs.flushed();
        // The cleared bits need no flush: a mark that stays set costs only a comparison after a
        // crash.
        bitmap.clear_quiet(flushed, |granules| self.write_granules(&granules, false));
        self.settle()
    }

    /// Gives up the records of the journals with two flushes: the first makes changes durable, the
    /// second their markers.
    pub(crate) fn give_up_records(&self) -> Result<(), ArrayError> {
        for _ in 0..2 {
            if !self.epochs.join(false, || self.flush_members()) {
                self.condition.check_running()?;
            }
        }
        Ok(())
    }

    /// Records new failures of members. If another thread is recording, the call waits for the end.
    pub(crate) fn settle(&self) -> Result<(), ArrayError> {
        if self.sabotage == Sabotage::FailureForgotten {
            return Ok(());
        }
        while self.condition.is_unsettled() {
            let mut book = self.book();
            if self.condition.is_unsettled() {
                self.commit(&mut book)?;
            }
        }
        Ok(())
    }
}

/// Flushes the devices: at the same time if all have descriptors, otherwise one after the other.
fn flush_each(devices: &Devices) -> Vec<(usize, std::io::Result<()>)> {
    let present = devices
        .iter()
        .enumerate()
        .filter_map(|(slot, device)| Some((slot, device.as_ref()?)));
    let present: Vec<_> = present.collect();
    if present
        .iter()
        .any(|(_, device)| device.descriptor().is_none())
    {
        return present
            .into_iter()
            .map(|(slot, device)| (slot, device.flush()))
            .collect();
    }
    std::thread::scope(|scope| {
        let begun = present
            .iter()
            .map(|&(slot, device)| (slot, scope.spawn(move || device.flush())));
        let begun: Vec<_> = begun.collect();
        let ended = begun.into_iter().map(|(slot, flush)| {
            (
                slot,
                flush
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        });
        ended.collect()
    })
}
