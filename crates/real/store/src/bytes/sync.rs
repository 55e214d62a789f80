//! Devices that are to be made durable.

use crate::Device;
use crate::bytes::StoreError;
use std::sync::Arc;

/// Something that is to be made durable.
pub(crate) struct ToSync {
    /// The medium that it belongs to, if it is one of a drive.
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

    /// Waits until the host has written it, or has failed to.
    pub(crate) fn run(self) -> Result<(), StoreError> {
        self.device.flush().map_err(|source| StoreError::Host {
            file: self.device.name(),
            action: "make durable",
            source,
        })
    }
}
