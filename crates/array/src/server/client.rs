//! One client: its socket and its side of the protocol.

use super::Server;
use super::jobs::Job;
use super::sockets::Stream;
use fullstroke_nbd::{Connection, Event, Exports, Limits};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What is read from a socket at once.
const READ_BYTES: usize = 256 << 10;
/// What a client may have under way: as many requests as the kernel's NBD client
/// sends, and so much to write or read.
const LIMITS: Limits = Limits { requests: 128, payload_bytes: 64 << 20, output_bytes: 8 << 20 };

/// A client's socket and protocol.
pub(crate) struct Client {
    stream: Stream,
    state: Mutex<State>,
    /// An answer was given, so that more may be taken in.
    answered: Condvar,
}

struct State {
    connection: Connection,
    /// Nothing more comes, or can be sent.
    gone: bool,
}

impl Client {
    pub(crate) fn new(stream: Stream, exports: Arc<Exports>) -> io::Result<Client> {
        stream.be_patient()?;
        let connection = Connection::with_limits(exports, LIMITS);
        let state = Mutex::new(State { connection, gone: false });
        Ok(Client { stream, state, answered: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what comes until nothing does.
    pub(crate) fn receive(self: &Arc<Client>, server: &Server) {
        self.send(&mut self.lock());
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = match self.stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            if !self.take_in(server, &buffer[..count]) {
                break;
            }
        }
        let mut state = self.lock();
        while state.connection.in_flight() > 0 {
            state = self.answered.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.gone = true;
        drop(state);
        self.leave();
    }

    /// Answers whether more may come.
    fn take_in(self: &Arc<Client>, server: &Server, mut bytes: &[u8]) -> bool {
        let mut state = self.lock();
        while !bytes.is_empty() {
            if state.gone || state.connection.has_ended() {
                return false;
            }
            let space = state.connection.space();
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            if count > 0 {
                state.connection.filled(count);
                bytes = &bytes[count..];
            }
            self.pump(server, &mut state);
            self.send(&mut state);
            if count == 0 {
                // It has as many requests as it may: the next answer makes room.
                state = self.answered.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        !state.gone && !state.connection.has_ended()
    }

    /// Hands on what can be begun.
    fn pump(self: &Arc<Client>, server: &Server, state: &mut State) {
        while let Ok(Some(event)) = state.connection.next_event() {
            if let Event::Request { request, payload } = event {
                server.jobs.add(Job { client: Arc::clone(self), request, payload });
            }
        }
    }

    /// Gives an answer, and hands on what may begin by that.
    pub(crate) fn answer(self: &Arc<Client>, server: &Server, give: impl FnOnce(&mut Connection)) {
        let mut state = self.lock();
        give(&mut state.connection);
        self.pump(server, &mut state);
        self.send(&mut state);
        drop(state);
        self.answered.notify_all();
    }

    fn send(&self, state: &mut State) {
        let length = state.connection.output().len();
        if length > 0 {
            state.gone |= state.gone || self.stream.write_all(state.connection.output()).is_err();
            state.connection.consumed(length);
        }
    }

    /// Nothing more is taken from it.
    pub(crate) fn end_input(&self) {
        self.stream.shut(std::net::Shutdown::Read);
    }

    /// Nothing more goes either way.
    pub(crate) fn leave(&self) {
        self.stream.shut(std::net::Shutdown::Both);
    }

    pub(crate) fn has_left(&self) -> bool {
        self.lock().gone
    }
}
