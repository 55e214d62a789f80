//! One client: its socket and its side of the protocol.

use crate::poll::{Interest, Poll};
use crate::socket::Stream;
use crate::world::ClientId;
use fullstroke_nbd::{Connection, Event, ProtocolError};
use std::io::{self, Read as _, Write as _};

/// A client's socket and protocol.
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) connection: Connection,
    /// The export that it has opened.
    pub(crate) export: Option<usize>,
    stream: Stream,
    key: u64,
    interest: Interest,
    /// The client has closed its side, or wants to end.
    finished_sending: bool,
    /// There is output that was not offered to the socket.
    pub(crate) unsent: bool,
}

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Goes,
    Ends,
}

impl Client {
    pub(crate) fn new(
        id: ClientId,
        key: u64,
        stream: Stream,
        connection: Connection,
        poll: &Poll,
    ) -> io::Result<Client> {
        poll.add(&stream, key, Interest::READ)?;
        Ok(Client {
            id,
            connection,
            export: None,
            stream,
            key,
            interest: Interest::READ,
            finished_sending: false,
            unsent: true,
        })
    }

    /// Reads once. Answers whether there may be more at once: a read that did
    /// not fill its room has taken all that there was.
    pub(crate) fn receive(&mut self) -> io::Result<bool> {
        let space = self.connection.space();
        let room = space.len();
        if room == 0 {
            return Ok(false);
        }
        match self.stream.read(space) {
            Ok(0) => {
                self.finished_sending = true;
                Ok(false)
            }
            Ok(count) => {
                self.connection.filled(count);
                Ok(count == room)
            }
            Err(error) if is_transient(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The next thing that the client wants.
    pub(crate) fn next_event(&mut self) -> Result<Option<Event>, ProtocolError> {
        let event = self.connection.next_event()?;
        self.finished_sending |= matches!(event, Some(Event::Disconnect));
        Ok(event)
    }

    /// Sends what the socket takes.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        self.unsent = false;
        while !self.connection.output().is_empty() {
            match self.stream.write(self.connection.output()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.connection.consumed(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Nothing more is taken from this client.
    pub(crate) fn end_input(&mut self) {
        self.finished_sending = true;
    }

    /// Whether the connection is over: nothing more comes, and all is answered
    /// and sent.
    pub(crate) fn fate(&self) -> Fate {
        let ends = self.finished_sending || self.connection.has_ended();
        let quiet = self.connection.in_flight() == 0 && self.connection.output().is_empty();
        if ends && quiet { Fate::Ends } else { Fate::Goes }
    }

    /// Waits for what can go on: room in the socket if there is output, input
    /// if `reads` and the connection takes more.
    pub(crate) fn settle(&mut self, poll: &Poll, reads: bool) -> io::Result<()> {
        let interest = Interest {
            readable: reads
                && !self.finished_sending
                && !self.connection.is_paused()
                && !self.connection.has_ended(),
            writable: !self.connection.output().is_empty(),
        };
        if interest != self.interest {
            self.interest = interest;
            poll.modify(&self.stream, self.key, interest)?;
        }
        Ok(())
    }

    /// Nobody will hear from this client again.
    pub(crate) fn leave(self, poll: &Poll) {
        // Closing the socket ends the watch in any case.
        let _ = poll.remove(&self.stream);
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
