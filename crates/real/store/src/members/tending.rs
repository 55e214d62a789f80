//! The work that reads around slow members leave behind.

use crate::ArrayError;
use crate::array::{Array, RequestScratch};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Interval between two looks at the reads under way.
const LOOK: Duration = Duration::from_millis(10);

impl Array {
    /// Does the work that reads around members leave behind: mends sectors that could not be read
    /// after all, finds members that hang, and reports members that begin or end to sit out. Call
    /// this about once a second.
    ///
    /// # Errors
    /// Data cannot be computed, or the array has halted.
    pub fn tend_late_reads(&self, worker: &mut RequestScratch) -> Result<(), ArrayError> {
        let Some(late) = self.late.get() else {
            return Ok(());
        };
        let devices = self.devices();
        let now = Instant::now();
        for limit in devices.iter().flatten().filter_map(|device| device.limit()) {
            limit.check_begun(now);
        }
        for (slot, device) in devices.iter().enumerate() {
            let sits_out = device.is_some() && late.sits_out(slot);
            if !late.note_sitting(slot, sits_out) {
                continue;
            }
            let name = device
                .as_ref()
                .map_or_else(String::new, |device| device.name());
            let (kind, why) = match sits_out {
                true => (
                    "sits-out",
                    "its reads take far longer than those of the other members: reads go around the member for a while",
                ),
                false => ("reads", "the member gets reads again"),
            };
            self.happened(kind, slot, name, why);
        }
        let mut result = Ok(());
        for failed in late.take_unread() {
            // An error of one read does not keep the others from being mended.
            let mended = self.mend_left_behind(worker, failed);
            result = result.and(mended);
        }
        result
    }

    /// Waits until no read is left behind, but no longer than `patience`. A read under way keeps its
    /// device open, and nobody else can use the device meanwhile.
    pub(crate) fn wait_for_late_reads(&self, patience: Duration) {
        let devices = self.devices();
        let limits: Vec<_> = (devices.iter().flatten())
            .filter_map(|device| device.limit())
            .collect();
        let began = Instant::now();
        while began.elapsed() < patience && limits.iter().any(|limit| limit.left_behind() > 0) {
            sleep(LOOK);
        }
    }
}
