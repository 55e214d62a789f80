//! One client: its socket and its side of the protocol.

use crate::poll::{Interest, Poll};
use crate::ticket::ClientId;
use fullstroke_nbd::{Connection, ConnectionEvent, ProtocolError};
use fullstroke_transport::socket::{Channel, ClientSocket, TlsConfig};
use std::io;
use std::time::{Duration, Instant};

/// A client's socket and protocol.
pub(crate) struct ConnectedClient {
    pub(crate) id: ClientId,
    pub(crate) connection: Connection,
    /// Export opened by the client.
    pub(crate) export: Option<usize>,
    channel: Channel,
    key: u64,
    interest: Interest,
    /// True if the client has closed its side, or asked to disconnect.
    finished_sending: bool,
    /// True if some output was not offered to the socket.
    pub(crate) unsent: bool,
    /// True if the client is in the queue of clients whose next request must wait.
    pub(crate) is_queued: bool,
    /// Bytes of this client, as counted by the budget.
    pub(crate) counted_bytes: u64,
    began: Instant,
    /// Time when the client last took a part of its answers, or had taken all.
    took_at: Instant,
}

impl ConnectedClient {
    pub(crate) fn new(
        id: ClientId,
        key: u64,
        stream: ClientSocket,
        connection: Connection,
        poll: &Poll,
    ) -> io::Result<ConnectedClient> {
        poll.add(&stream, key, Interest::READ)?;
        Ok(ConnectedClient {
            id,
            connection,
            export: None,
            channel: Channel::new(stream),
            key,
            interest: Interest::READ,
            finished_sending: false,
            unsent: true,
            is_queued: false,
            counted_bytes: 0,
            began: Instant::now(),
            took_at: Instant::now(),
        })
    }

    /// Reads once. Returns true if more data may be available at once. A read with a partly filled
    /// buffer has taken all available data.
    pub(crate) fn receive(&mut self) -> io::Result<bool> {
        let space = self.connection.space();
        let room = space.len();
        // A full connection takes no bytes. A read of no bytes would look like the end of the
        // stream.
        if room == 0 {
            return Ok(false);
        }
        match self.channel.read(space) {
            Ok(0) => {
                self.finished_sending = true;
                Ok(false)
            }
            Ok(count) => {
                self.connection.filled(count);
                // TLS may hold decrypted bytes for which the socket will never become readable
                // again.
                Ok(count == room || self.channel.has_unread())
            }
            Err(error) if is_transient(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the next event of the client.
    pub(crate) fn next_event(&mut self) -> Result<Option<ConnectionEvent>, ProtocolError> {
        let event = self.connection.next_event()?;
        self.finished_sending |= matches!(event, Some(ConnectionEvent::Disconnect));
        Ok(event)
    }

    /// Sends as much as the socket accepts.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        self.unsent = false;
        if !self.has_output() {
            return Ok(());
        }
        let before = self.channel.written();
        let sent = self.send_output();
        // A client counts as stalled only while output waits and nothing of it is taken.
        if self.channel.written() > before || !self.has_output() {
            self.took_at = Instant::now();
        }
        sent
    }

    /// Offers the output to the socket.
    fn send_output(&mut self) -> io::Result<()> {
        while self.has_output() {
            match self.channel.send(self.connection.output()) {
                // A socket that takes no bytes without an error would make this loop endless.
                Ok(0) if !self.connection.output().is_empty() => {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                Ok(count) => self.connection.consumed(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns true if output waits for the socket.
    fn has_output(&self) -> bool {
        !self.connection.output().is_empty() || self.channel.is_unsent()
    }

    /// Starts encryption behind the earlier answers.
    pub(crate) fn start_tls(&mut self, config: TlsConfig) -> io::Result<()> {
        self.channel
            .start_tls(config, self.connection.output().len())
    }

    /// Returns true if there is input from the client although the socket is not readable.
    pub(crate) fn has_unread(&self) -> bool {
        self.interest.readable && self.channel.has_unread()
    }

    /// Returns the number of bytes for the budget.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.connection.held_bytes() + self.channel.held_bytes()
    }

    /// Returns the time of the handshake so far; `None` after an export was opened.
    pub(crate) fn handshaking(&self) -> Option<Duration> {
        self.export.is_none().then(|| self.began.elapsed())
    }

    /// Returns the time since the client last took a part of its waiting answers.
    pub(crate) fn stalled(&self) -> Duration {
        if self.has_output() {
            self.took_at.elapsed()
        } else {
            Duration::ZERO
        }
    }

    /// Returns true if no more input comes from the client.
    pub(crate) fn input_has_ended(&self) -> bool {
        self.finished_sending || self.connection.has_ended()
    }

    /// Ends the input from this client.
    pub(crate) fn end_input(&mut self) {
        self.finished_sending = true;
    }

    /// Returns true if the connection is over: no more input comes, and all requests are answered
    /// and sent.
    pub(crate) fn is_over(&self) -> bool {
        self.input_has_ended() && self.connection.in_flight() == 0 && !self.has_output()
    }

    /// Sets the events to wait for: room in the socket if there is output, and input if `reads` and
    /// the connection takes more.
    pub(crate) fn settle(&mut self, poll: &Poll, reads: bool) -> io::Result<()> {
        let interest = Interest {
            readable: reads
                && !self.is_queued
                && !self.connection.is_paused()
                && !self.input_has_ended(),
            writable: self.has_output(),
        };
        if interest != self.interest {
            self.interest = interest;
            poll.modify(self.channel.stream(), self.key, interest)?;
        }
        Ok(())
    }

    /// Disconnects the client.
    pub(crate) fn leave(mut self, poll: &Poll) {
        self.channel.say_goodbye();
        // Closing the socket ends the watch in any case.
        let _ = poll.remove(self.channel.stream());
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
