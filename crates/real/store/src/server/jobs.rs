//! The queue of requests.

use fullstroke_nbd::NbdRequest;
use fullstroke_transport::socket::NbdClient;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A request and its source.
pub(crate) enum ServerJob {
    /// From a client over NBD.
    OfClient {
        client: Arc<NbdClient>,
        request: NbdRequest,
        payload: Vec<u8>,
    },
    /// From the kernel, for a block device.
    OfDisk(fullstroke_transport::ublk::UblkRequest),
}

/// Pending requests, and the number of requests in progress.
#[derive(Default)]
pub(crate) struct Jobs {
    state: Mutex<JobQueue>,
    /// Signalled when a request is added, or the queue is closed.
    more: Condvar,
    /// Signalled when the queue is closed and all requests have ended.
    over: Condvar,
}

#[derive(Default)]
struct JobQueue {
    waiting: VecDeque<ServerJob>,
    under_way: usize,
    /// Number of idle threads.
    idle: usize,
    closed: bool,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, JobQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request. Clients limit the number of their pending requests.
    pub(crate) fn add(&self, job: ServerJob) {
        let mut state = self.lock();
        state.waiting.push_back(job);
        let idle = state.idle;
        drop(state);
        // A thread that is not idle looks at the queue before it waits.
        if idle > 0 {
            self.more.notify_one();
        }
    }

    /// Takes the next request; `None` when the queue is closed and empty.
    pub(crate) fn next(&self) -> Option<ServerJob> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.waiting.pop_front() {
                state.under_way += 1;
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self
                .more
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    pub(crate) fn ended(&self) {
        let mut state = self.lock();
        state.under_way -= 1;
        let over = state.closed && state.under_way == 0 && state.waiting.is_empty();
        drop(state);
        if over {
            self.over.notify_all();
        }
    }

    pub(crate) fn are_under_way(&self) -> bool {
        let state = self.lock();
        state.under_way > 0 || !state.waiting.is_empty()
    }

    /// Closes the queue, and waits until all requests have ended, but no longer than `patience`.
    pub(crate) fn close(&self, patience: Duration) {
        let mut state = self.lock();
        state.closed = true;
        self.more.notify_all();
        let busy = |state: &mut JobQueue| state.under_way > 0 || !state.waiting.is_empty();
        let waited = self.over.wait_timeout_while(state, patience, busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
