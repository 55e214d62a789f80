//! The queue of requests.

use super::ServerState;
use crate::{ArrayError, RequestScratch};
use fullstroke_nbd::{CommandFlags, Connection, ErrorCode, NbdRequest, RequestCommand};
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

impl ServerJob {
    /// Carries out the request and answers it.
    pub(crate) fn carry_out(
        self,
        server: &ServerState,
        worker: &mut RequestScratch,
        data: &mut Vec<u8>,
    ) {
        match self {
            ServerJob::OfClient {
                client,
                request,
                mut payload,
            } => {
                let is_write = request.command == RequestCommand::Write;
                let done = carry_out(
                    server,
                    worker,
                    &request,
                    if is_write { &mut payload } else { &mut *data },
                );
                client.answer(|connection| answer(connection, &request, done, data, payload));
            }
            ServerJob::OfDisk(request) => super::disk::carry_out(server, worker, request, data),
        }
    }
}

/// Carries out a request. `data` holds the bytes of the read or write.
pub(super) fn carry_out(
    server: &ServerState,
    worker: &mut RequestScratch,
    request: &NbdRequest,
    data: &mut Vec<u8>,
) -> Result<(), ArrayError> {
    let array = &server.array;
    let (at, length) = (request.offset_bytes, request.length_bytes);
    let done = match request.command {
        RequestCommand::Read => {
            data.resize(length as usize, 0);
            array.read(worker, at, data)
        }
        RequestCommand::Write => array.write(worker, at, data),
        RequestCommand::WriteZeroes => array.write_zeroes(worker, at, length.into()),
        RequestCommand::Flush => array.flush(),
        RequestCommand::Trim => array.trim(worker, at, length.into()),
        RequestCommand::Cache | RequestCommand::BlockStatus => Ok(()),
    };
    let durable =
        request.flags.contains(CommandFlags::FORCE_UNIT_ACCESS) && request.command.changes();
    let done = if durable {
        done.and_then(|()| array.flush())
    } else {
        done
    };
    server
        .counts
        .answered(request.command, length.into(), done.is_ok());
    done
}

fn answer(
    connection: &mut Connection,
    request: &NbdRequest,
    done: Result<(), ArrayError>,
    data: &[u8],
    payload: Vec<u8>,
) {
    match done {
        Err(error) => connection.reply_error(request, code_of(&error), &error),
        Ok(()) if request.command == RequestCommand::Read => {
            connection.reply_read(request, |into| {
                into.copy_from_slice(data);
                Ok(())
            })
        }
        Ok(()) if request.command == RequestCommand::BlockStatus => {
            connection.reply_status(request, [])
        }
        Ok(()) => connection.reply_done(request),
    }
    connection.recycle(payload);
}

fn code_of(error: &ArrayError) -> ErrorCode {
    match error {
        ArrayError::OutOfRange { .. } => ErrorCode::Invalid,
        ArrayError::Device { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            ErrorCode::NoSpace
        }
        _ => ErrorCode::InputOutput,
    }
}
