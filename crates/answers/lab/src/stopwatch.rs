//! The wall-clock time of a run.

/// A stopwatch. A build for WebAssembly has no clock, and `Instant::now` would panic there.
pub(crate) struct Stopwatch {
    #[cfg(not(target_family = "wasm"))]
    began: std::time::Instant,
}

impl Stopwatch {
    /// Starts a stopwatch.
    pub(crate) fn start() -> Stopwatch {
        Stopwatch {
            #[cfg(not(target_family = "wasm"))]
            began: std::time::Instant::now(),
        }
    }

    /// Returns the seconds since the start; `None` without a clock.
    #[cfg_attr(target_family = "wasm", allow(clippy::unused_self))]
    pub(crate) fn seconds(&self) -> Option<f64> {
        #[cfg(not(target_family = "wasm"))]
        return Some(self.began.elapsed().as_secs_f64());
        #[cfg(target_family = "wasm")]
        None
    }
}
