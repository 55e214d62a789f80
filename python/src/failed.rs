//! The exception that ends runs: that of a policy written in Python, or of Ctrl-C. It cannot leave a
//! run from within: it is kept, the run is stopped, and whoever asked for it gets the exception in
//! place of results.

use fullstroke_measure::Stop;
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{panic, thread};

/// How often Ctrl-C is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The first exception of some runs.
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

    /// Whether there was one: then nothing is called any more.
    pub(crate) fn is_kept(&self) -> bool {
        self.stop.is_set()
    }

    /// What stops runs once there is one.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The exception, if there was one.
    pub(crate) fn raise(&self) -> PyResult<()> {
        let kept = self
            .first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        kept.map_or(Ok(()), Err)
    }

    /// What the call gives; nothing, and none after it, if it fails.
    pub(crate) fn attempt<R>(&self, call: impl FnOnce(Python<'_>) -> PyResult<R>) -> Option<R> {
        if self.is_kept() {
            return None;
        }
        Python::attach(call).map_err(|error| self.keep(error)).ok()
    }

    /// What `work` gives, whose runs are stopped by Ctrl-C. It has a thread of its own, for signals are
    /// told to the one that asks. Other threads go on meanwhile.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is no policy crate: it may use threads"
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
                    // Python's state of this thread is made once, not at each call of a policy.
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
