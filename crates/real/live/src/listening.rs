//! The places where a server accepts clients.

use fullstroke_transport::socket::{Admission, Listener};
use std::time::{Duration, Instant};

/// Pause before the next accept, if the host refuses.
const RETRY: Duration = Duration::from_millis(100);

/// The listeners, and the admission of clients.
pub(crate) struct Listening {
    listeners: Vec<Listener>,
    /// Time when listeners are tried again after a refusal of the host.
    again_at: Option<Instant>,
    /// Admission over TCP, and encryption of connections.
    admission: Admission,
}

impl Listening {
    /// Returns the listeners with this admission.
    pub(crate) fn new(listeners: Vec<Listener>, admission: Admission) -> Listening {
        Listening {
            listeners,
            again_at: None,
            admission,
        }
    }

    /// Returns the listeners in the order of their keys.
    pub(crate) fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Returns the admission.
    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Notes whether listeners are read, or tried again after a pause.
    pub(crate) fn set_readable(&mut self, readable: bool) {
        self.again_at = (!readable).then(|| Instant::now() + RETRY);
    }

    /// Returns the time when listeners are tried again.
    pub(crate) fn again_at(&self) -> Option<Instant> {
        self.again_at
    }

    /// Removes the listeners.
    pub(crate) fn close(&mut self) -> Vec<Listener> {
        std::mem::take(&mut self.listeners)
    }
}
