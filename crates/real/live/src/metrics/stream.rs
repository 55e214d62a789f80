//! The status of a running server, several times a second, for live pages: server-sent events
//! (WHATWG HTML, section 9.2), each with a status as JSON.
//!
//! The server is asked once for all watchers, and no more often than for one. A watcher that does
//! not take its events is disconnected.

use crate::control_queue::{ControlRequest, ControlResponse, ServerHandle};
use fullstroke_transport::socket::Peer;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two events: nearly seven per second.
pub(super) const EVERY: Duration = Duration::from_millis(150);
/// Time for a watcher to take an event.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
    Connection: close\r\n\r\n";

/// The latest status, shared by all watchers.
pub(super) struct Latest {
    server: ServerHandle,
    every: Duration,
    kept: Mutex<Option<(Instant, Arc<str>)>>,
}

impl Latest {
    /// Creates a source that asks `server` at most once in `every`.
    pub(super) fn new(server: ServerHandle, every: Duration) -> Latest {
        Latest {
            server,
            every,
            kept: Mutex::new(None),
        }
    }

    /// Returns an event; `None` if the server has ended.
    fn event(&self) -> Option<Arc<str>> {
        // Held while the server is asked: watchers that come meanwhile wait for the same answer and
        // then find it fresh.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, event)) = kept.as_ref().filter(|(at, _)| at.elapsed() < self.every) {
            return Some(Arc::clone(event));
        }
        let ControlResponse::Status(status) = self.server.ask(ControlRequest::Status) else {
            return None;
        };
        // JSON on one line: line breaks within a text are escaped.
        let json = serde_json::to_string(&status).ok()?;
        let event: Arc<str> = format!("data: {json}\n\n").into();
        *kept = Some((Instant::now(), Arc::clone(&event)));
        Some(event)
    }
}

/// Sends events until the watcher leaves, does not take an event in time, or the server ends.
pub(super) fn serve(peer: &Peer, latest: &Latest, patience: Duration) {
    if peer.write_by(Instant::now() + patience, HEAD).is_err() {
        return;
    }
    // A mere watcher makes room for peers with questions.
    peer.awaits_request();
    while let Some(event) = latest.event() {
        if peer
            .write_by(Instant::now() + patience, event.as_bytes())
            .is_err()
        {
            return;
        }
        thread::sleep(latest.every);
    }
}
