//! Requests to a server that is running, from other threads.

use crate::signals::Said;
use crate::status::Status;
use fullstroke_store::Repair;
use fullstroke_transport::socket::Waker;
use fullstroke_units::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What may be asked of a running server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ask", deny_unknown_fields)]
pub enum ControlRequest {
    /// The status of the server and of all exports.
    Status,
    /// This drive has failed.
    Fail {
        /// The export; the only one, unless said.
        #[serde(default)]
        export: Option<String>,
        /// The drive's name: `3`, or `1.0` where volumes nest.
        drive: String,
    },
    /// An empty drive stands in the failed one's place.
    Restore {
        /// The export; the only one, unless said.
        #[serde(default)]
        export: Option<String>,
        /// The drive's name.
        drive: String,
        /// Fill it with at most so many bytes a second of the world's time.
        #[serde(default)]
        rate: Option<Bytes>,
        /// Give up what a volume that has failed has lost.
        #[serde(default)]
        accept_data_loss: bool,
    },
    /// The failed drive stands in its place again, with its bytes.
    ReAdd {
        /// The export; the only one, unless said.
        #[serde(default)]
        export: Option<String>,
        /// The drive's name.
        drive: String,
    },
    /// Members are filled so fast, now and from now on.
    Speed {
        /// The export; the only one, unless said.
        #[serde(default)]
        export: Option<String>,
        /// Do not make way for requests below so many bytes a second of the
        /// world's time.
        #[serde(default)]
        least: Option<Bytes>,
        /// At most so many bytes a second; as fast as it goes unless said.
        #[serde(default)]
        most: Option<Bytes>,
    },
    /// Compare all redundancy with what it should be; the answer comes when all
    /// is compared. Clients are served meanwhile.
    Scrub {
        /// The export; the only one, unless said.
        #[serde(default)]
        export: Option<String>,
        /// What is written again of what is wrong: `true` for what is proven to be
        /// wrong, `"data"` also for the rest, which follows from the data then; otherwise
        /// nothing is changed.
        #[serde(default)]
        repair: Repair,
    },
    /// What opportunities say to clients; the answer comes when there is something,
    /// or after ten seconds.
    Signals {
        /// The export; the only one, unless said.
        #[serde(default)]
        export: Option<String>,
        /// From this number on, which the last answer told; from now on without.
        #[serde(default)]
        after: Option<u64>,
        /// The host that asks, by any name of its own: of several, one at a time is asked
        /// for dirty data without an address, in turn. Without a name it hears all.
        #[serde(default)]
        host: Option<String>,
        /// What this host has written, in sectors, for the PULLs without an address of the
        /// answer before: who wrote less than it was asked for is passed over once. Not said,
        /// it is not.
        #[serde(default)]
        wrote: Option<u64>,
    },
}

impl ControlRequest {
    /// How long to wait for the answer: so long, unless it comes only when
    /// something is done that takes its time.
    pub(crate) fn timeout(&self, usual: Duration) -> Duration {
        if matches!(self, ControlRequest::Scrub { .. }) {
            usual.max(SCRUBBING)
        } else {
            usual
        }
    }
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "answer")]
pub enum ControlResponse {
    /// To a request for status.
    Status(Box<Status>),
    /// The order was carried out, or is being.
    Done {
        /// What happens now, for people.
        message: String,
    },
    /// It was carried out, and found something wrong.
    Wrong {
        /// What, for people.
        message: String,
    },
    /// What opportunities have said.
    Signals {
        /// The number of the next signal.
        next: u64,
        /// Signals that are kept no more.
        missed: u64,
        /// The others, in their order.
        signals: Vec<Said>,
    },
    /// It was not, and nothing has changed.
    Refused {
        /// Why, for people.
        message: String,
    },
}

/// A request with the place for its response.
pub(crate) type Pending = (ControlRequest, Sender<ControlResponse>);

/// The server's side: requests that wait for a response.
pub(crate) struct ControlQueue {
    pub(crate) waker: Arc<Waker>,
    requests: Receiver<Pending>,
    handle: ServerHandle,
}

/// Where requests are sent to. Clones reach the same server.
#[derive(Clone)]
pub struct ServerHandle {
    waker: Arc<Waker>,
    // A mutex makes it shareable; nobody holds it for long.
    requests: Arc<Mutex<Sender<Pending>>>,
}

/// For all redundancy to be compared: a hundred terabytes at 200 MB/s.
const SCRUBBING: Duration = Duration::from_secs(600_000);
/// A server that does not answer for so long is stuck.
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

    /// Nothing is answered any more: whoever waits is told so at once.
    pub(crate) fn close(&mut self) {
        (_, self.requests) = channel();
    }

    pub(crate) fn take(&self) -> Option<Pending> {
        self.requests.try_recv().ok()
    }
}

impl ServerHandle {
    /// Asks, and waits for the answer.
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
