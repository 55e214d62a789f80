//! Requests to a running server from other threads.

use crate::signal_extent::SignalExtent;
use crate::status::ServerStatus;
use fullstroke_store::Repair;
use fullstroke_transport::socket::Waker;
use fullstroke_units::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A question or order for a running server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ask", deny_unknown_fields)]
pub enum ControlRequest {
    /// Asks for the status of the server and of all exports.
    Status,
    /// Marks a drive as failed.
    Fail {
        /// Name of the export; default: the only export.
        #[serde(default)]
        export: Option<String>,
        /// Name of the drive: `3`, or `1.0` in nested volumes.
        drive: String,
    },
    /// Replaces a failed drive by an empty one.
    Restore {
        /// Name of the export; default: the only export.
        #[serde(default)]
        export: Option<String>,
        /// Name of the drive.
        drive: String,
        /// Largest rebuild rate, in bytes per second of the world's time.
        #[serde(default)]
        rate: Option<Bytes>,
        /// True to accept the data loss of a failed volume.
        #[serde(default)]
        accept_data_loss: bool,
    },
    /// Returns a failed drive to its place, with its data.
    ReAdd {
        /// Name of the export; default: the only export.
        #[serde(default)]
        export: Option<String>,
        /// Name of the drive.
        drive: String,
    },
    /// Makes a drive slow without failing it, until the server ends.
    Slow {
        /// Name of the export; default: the only export.
        #[serde(default)]
        export: Option<String>,
        /// Name of the drive.
        drive: String,
        /// Factor by which the drive takes longer. 1 ends the slowness.
        factor: f64,
    },
    /// Sets the speed of all rebuilds, present and future.
    Speed {
        /// Name of the export; default: the only export.
        #[serde(default)]
        export: Option<String>,
        /// Rate in bytes per second of the world's time below which rebuilds do not give way to
        /// requests.
        #[serde(default)]
        least: Option<Bytes>,
        /// Largest rate in bytes per second; default: no limit.
        #[serde(default)]
        most: Option<Bytes>,
    },
    /// Compares all redundancy with the data. The answer comes at the end. Clients are served
    /// meanwhile.
    Scrub {
        /// Name of the export; default: the only export.
        #[serde(default)]
        export: Option<String>,
        /// What is written again of what is wrong: `true` for what is proven to be
        /// wrong, `"data"` also for the rest, which follows from the data then; otherwise
        /// nothing is changed.
        #[serde(default)]
        repair: Repair,
    },
    /// Asks for signals to clients. The answer comes with the first signal, or after ten seconds.
    Signals {
        /// Name of the export; default: the only export.
        #[serde(default)]
        export: Option<String>,
        /// First signal to return, as given by the last answer; default: the next signal.
        #[serde(default)]
        after: Option<u64>,
        /// Name of the asking host. Dirty data without an address are requested from one named host
        /// at a time, in turn. A host without a name receives all signals.
        #[serde(default)]
        host: Option<String>,
        /// Sectors that this host has written for the PULLs without an address of the last answer.
        /// A host that wrote less than requested is passed over once. Without a value, the host is
        /// not passed over.
        #[serde(default)]
        wrote: Option<u64>,
    },
}

impl ControlRequest {
    /// Returns the time to wait for the answer: `usual`, or longer for a request whose answer comes
    /// at the end of its work.
    pub(crate) fn timeout(&self, usual: Duration) -> Duration {
        if matches!(self, ControlRequest::Scrub { .. }) {
            usual.max(SCRUBBING)
        } else {
            usual
        }
    }
}

/// An answer of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "answer")]
pub enum ControlResponse {
    /// The status.
    Status(Box<ServerStatus>),
    /// The order was carried out or has begun.
    Done {
        /// Description of the effect, for people.
        message: String,
    },
    /// The order was carried out and found an error.
    Wrong {
        /// Description of the error, for people.
        message: String,
    },
    /// Signals to clients.
    Signals {
        /// Number of the next signal.
        next: u64,
        /// Number of requested but dropped signals.
        missed: u64,
        /// The other signals, in order.
        signals: Vec<SignalExtent>,
    },
    /// The order was refused; nothing has changed.
    Refused {
        /// Reason, for people.
        message: String,
    },
}

/// A request with the channel for its response.
pub(crate) type Pending = (ControlRequest, Sender<ControlResponse>);

/// The server's side: requests waiting for a response.
pub(crate) struct ControlQueue {
    pub(crate) waker: Arc<Waker>,
    requests: Receiver<Pending>,
    handle: ServerHandle,
}

/// Sender of requests. Clones reach the same server.
#[derive(Clone)]
pub struct ServerHandle {
    waker: Arc<Waker>,
    // The mutex allows sharing. It is never held for long.
    requests: Arc<Mutex<Sender<Pending>>>,
}

/// Time to compare all redundancy: a hundred terabytes at 200 MB/s.
const SCRUBBING: Duration = Duration::from_secs(600_000);
/// Silence after which a server counts as stuck.
const TIMEOUT: Duration = Duration::from_secs(30);

impl ControlQueue {
    pub(crate) fn new() -> std::io::Result<ControlQueue> {
        let waker = Arc::new(Waker::new()?);
        let (sender, requests) = channel();
        let handle = ServerHandle {
            waker: Arc::clone(&waker),
            requests: Arc::new(Mutex::new(sender)),
        };
        Ok(ControlQueue {
            waker,
            requests,
            handle,
        })
    }

    pub(crate) fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Ends the queue. All waiting askers are told at once.
    pub(crate) fn close(&mut self) {
        (_, self.requests) = channel();
    }

    pub(crate) fn take(&self) -> Option<Pending> {
        self.requests.try_recv().ok()
    }
}

impl ServerHandle {
    /// Sends a request and waits for the answer.
    pub fn ask(&self, request: ControlRequest) -> ControlResponse {
        let timeout = request.timeout(TIMEOUT);
        let gone = || ControlResponse::Refused {
            message: "the server has ended".into(),
        };
        let (sender, answer) = channel();
        let sent = self
            .requests
            .lock()
            .is_ok_and(|requests| requests.send((request, sender)).is_ok());
        if !sent {
            return gone();
        }
        self.waker.wake();
        match answer.recv_timeout(timeout) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => gone(),
            Err(RecvTimeoutError::Timeout) => ControlResponse::Refused {
                message: format!("the server did not answer within {} s", timeout.as_secs()),
            },
        }
    }
}
