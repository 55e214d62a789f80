//! Ends of the addresses of each device of a trace.

use crate::{TraceError, TraceOptions, TraceReader};
use std::collections::BTreeMap;
use std::path::Path;

/// Largest number of devices whose ends are kept.
const DEVICES_MAX: usize = 65_536;

/// End of the addresses of each selected device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DeviceSpans {
    ends: BTreeMap<u32, u64>,
    /// True if the trace has more devices than are kept.
    cut: bool,
}

impl DeviceSpans {
    /// Reads the whole trace. Selections other than the devices are ignored, so that a sector maps to
    /// the same place whatever part of the trace is read.
    pub(crate) fn read(path: &Path, options: &TraceOptions) -> Result<DeviceSpans, TraceError> {
        let whole = TraceOptions {
            format: options.format.clone(),
            columns: options.columns.clone(),
            devices: options.devices.clone(),
            skip_bad: options.skip_bad,
            sort_window: options.sort_window,
            files: options.files.clone(),
            ..TraceOptions::default()
        };
        let mut reader = TraceReader::open(path, &whole)?;
        let mut spans = DeviceSpans::default();
        let mut batch = Vec::new();
        while reader.next_batch(&mut batch, 1024)? > 0 {
            for record in &batch {
                spans.add(record.device, record.extent.end().0);
            }
            batch.clear();
        }
        Ok(spans)
    }

    fn add(&mut self, device: u32, end: u64) {
        if let Some(found) = self.ends.get_mut(&device) {
            *found = (*found).max(end);
        } else if self.ends.len() < DEVICES_MAX {
            self.ends.insert(device, end);
        } else {
            self.cut = true;
        }
    }

    pub(super) fn ends(&self) -> &BTreeMap<u32, u64> {
        &self.ends
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    #[cfg(test)]
    pub(crate) fn of(ends: &[(u32, u64)]) -> DeviceSpans {
        DeviceSpans {
            ends: ends.iter().copied().collect(),
            cut: false,
        }
    }
}
