//! Statistics of the requests left out by a selection, for the error message of a selection without
//! requests.

use crate::row::TraceRow;
use fullstroke_contract::Operation;
use fullstroke_units::Duration;
use std::collections::BTreeSet;
use std::fmt;

/// Largest number of devices named in a message.
const DEVICES_NAMED: usize = 16;

/// Requests left out before the first selected request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unselected {
    requests: u64,
    devices: BTreeSet<u32>,
    operations: BTreeSet<Operation>,
    /// Arrival of the last request, from the trace's first request.
    last: Duration,
}

impl Unselected {
    /// Records that `row` was left out. It arrived `since` nanoseconds after the first request.
    pub(crate) fn note(&mut self, row: &TraceRow, since: u64) {
        self.requests += 1;
        self.last = Duration::from_nanos(since);
        self.operations.insert(row.operation);
        // One more device than a message names, to detect further devices.
        if self.devices.len() <= DEVICES_NAMED {
            self.devices.insert(row.device);
        }
    }
}

impl fmt::Display for Unselected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self
            .devices
            .iter()
            .take(DEVICES_NAMED)
            .map(u32::to_string)
            .collect();
        let more = if self.devices.len() > DEVICES_NAMED {
            " and more"
        } else {
            ""
        };
        let devices = if self.devices.len() == 1 {
            "device"
        } else {
            "devices"
        };
        let operations: Vec<&str> = self
            .operations
            .iter()
            .map(|operation| operation.name())
            .collect();
        write!(
            f,
            "{} requests from 0s to {:.3}s, {devices} {}{more}, operations {}",
            self.requests,
            self.last.as_secs_f64(),
            named.join(", "),
            operations.join(", ")
        )
    }
}
