//! The exception that ends runs: an exception of a Python policy, or of Ctrl-C.
//!
//! An exception cannot leave a run from within. So the first one is stored, the run is stopped, and
//! the caller gets the exception instead of results.

use fullstroke_measure::Stop;
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{panic, thread};

/// Interval between two checks for Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// First exception of a group of runs.
#[derive(Clone, Default)]
pub(crate) struct Failed {
    first: Arc<Mutex<Option<PyErr>>>,
    stop: Stop,
}

impl Failed {
    pub(crate) fn keep(&self, error: PyErr) {
        self.first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        self.stop.set();
    }

    /// True after an exception. Then no Python method is called any more.
    pub(crate) fn is_kept(&self) -> bool {
        self.stop.is_set()
    }

    /// Returns the flag that stops the runs.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Raises the stored exception, if any.
    pub(crate) fn raise(&self) -> PyResult<()> {
        let kept = self
            .first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        kept.map_or(Ok(()), Err)
    }

    /// Makes a call and returns its result. Returns `None` after an exception, now or earlier.
    pub(crate) fn attempt<R>(&self, call: impl FnOnce(Python<'_>) -> PyResult<R>) -> Option<R> {
        if self.is_kept() {
            return None;
        }
        Python::attach(call).map_err(|error| self.keep(error)).ok()
    }

    /// Runs `work` and returns its result. Ctrl-C stops the runs.
    ///
    /// `work` has a separate thread, because Python reports signals only to the thread that checks
    /// for them. Other Python threads continue.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is no crate without I/O: it may use threads"
    )]
    pub(crate) fn wait_for<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> R + Send,
    ) -> PyResult<R> {
        let worked = py.detach(|| {
            let (working, ended) = channel::<()>();
            thread::scope(|scope| {
                let worker = scope.spawn(move || {
                    let _working = working;
                    // Attaching here creates Python's thread state once instead of at each call of
                    // a policy.
                    Python::attach(|py| py.detach(work))
                });
                while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    if let Err(interrupt) = Python::attach(|py| py.check_signals()) {
                        self.keep(interrupt);
                    }
                }
                worker
                    .join()
                    .unwrap_or_else(|lost| panic::resume_unwind(lost))
            })
        });
        self.raise()?;
        Ok(worked)
    }
}
