//! Devices to flush.

use crate::Device;
use crate::bytes::StoreError;
use std::sync::Arc;

/// A device to flush.
pub(crate) struct ToSync {
    /// Index of the medium; `None` for the store's own devices.
    pub(crate) medium: Option<usize>,
    pub(crate) device: Arc<dyn Device>,
}

impl ToSync {
    /// A device of the store's own.
    pub(crate) fn own(device: &Arc<dyn Device>) -> ToSync {
        ToSync {
            medium: None,
            device: Arc::clone(device),
        }
    }

    /// Waits until the host has written the device's data, or has failed to.
    pub(crate) fn run(self) -> Result<(), StoreError> {
        self.device.flush().map_err(|source| StoreError::Host {
            file: self.device.name(),
            action: "make durable",
            source,
        })
    }
}
