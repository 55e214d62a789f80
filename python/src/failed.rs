//! The exception of a policy written in Python. It cannot leave a run from within: it is kept, the
//! rest of the run goes on without Python, and whoever asked for the run gets it in place of results.

use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception of a run.
#[derive(Clone, Default)]
pub(crate) struct Failed(Arc<Mutex<Option<PyErr>>>);

impl Failed {
    pub(crate) fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Whether there was one: then nothing is called any more.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The exception, if there was one.
    pub(crate) fn raise(&self) -> PyResult<()> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.map_or(Ok(()), Err)
    }

    /// What the call gives; nothing, and none after it, if it fails.
    pub(crate) fn attempt<R>(&self, call: impl FnOnce(Python<'_>) -> PyResult<R>) -> Option<R> {
        if self.is_kept() {
            return None;
        }
        Python::attach(call).map_err(|error| self.keep(error)).ok()
    }
}
