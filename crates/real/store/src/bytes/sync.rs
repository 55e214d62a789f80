//! Files that are to be made durable.

use crate::bytes::StoreError;
use crate::bytes::medium::Durable;
use std::sync::Arc;

/// Something that is to be made durable.
pub(crate) struct ToSync {
    /// The medium that it belongs to, if it is one of a drive.
    pub(crate) medium: Option<usize>,
    pub(crate) name: String,
    pub(crate) file: Arc<dyn Durable>,
}

impl ToSync {
    /// Waits until the host has written it, or has failed to.
    pub(crate) fn run(self) -> Result<(), StoreError> {
        let ToSync { name, file, .. } = self;
        file.make_durable().map_err(|source| StoreError::Host {
            file: name,
            action: "make durable",
            source,
        })
    }
}
