//! The server's view of one client connection.

use crate::error::ProtocolError;
use crate::export::Exports;
use crate::handshake::Handshake;
use crate::input::Input;
use crate::output::OutputBytes;
use crate::pool::BufferPool;
use crate::reply::{self, ReplyPiece};
use crate::request::{ErrorCode, NbdRequest, RequestCommand, StatusExtent};
use crate::session::Encryption;
use crate::terms::HandshakeProgress;
use crate::transmission::{self, Transmission};
use std::fmt;
use std::sync::Arc;

/// An event for the driver of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The client opened an export; requests follow.
    Opened {
        /// Number of the export among [`Exports::all`].
        export: usize,
    },
    /// The client asked for TLS, and the answer tells the client to begin. The present output is
    /// the last that is sent in the clear. From here on the driver encrypts the output and decrypts
    /// the input.
    StartTls,
    /// A valid request. The driver answers it by one of the `reply` methods, in any order.
    Request {
        /// The request.
        request: NbdRequest,
        /// Data of a write, as long as the request; empty for all other commands. Return the buffer
        /// with [`Connection::recycle`].
        payload: Vec<u8>,
    },
    /// The client wants to disconnect. The driver must answer the requests in flight, send the
    /// output and close. This is the last event.
    Disconnect,
}

/// Limits above which a connection pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of unanswered requests.
    pub requests: u32,
    /// Largest sum of payloads of unanswered writes and lengths of unanswered reads, in bytes. One
    /// request is accepted at any length.
    pub payload_bytes: u64,
    /// Largest unsent output, in bytes.
    pub output_bytes: usize,
}

impl Default for Limits {
    /// Limits of 1024 requests, 64 MiB of payload and 8 MiB of output.
    fn default() -> Limits {
        Limits {
            requests: 1024,
            payload_bytes: 64 << 20,
            output_bytes: 8 << 20,
        }
    }
}

/// The server's side of one connection, without the socket. The driver reads, writes and waits.
///
/// - **Bytes in**: [`space`](Connection::space), [`filled`](Connection::filled).
/// - **Events out**: [`next_event`](Connection::next_event).
/// - **Answers in**: [`reply_done`](Connection::reply_done),
///   [`reply_read`](Connection::reply_read), [`reply_read_pieces`](Connection::reply_read_pieces),
///   [`reply_status`](Connection::reply_status), [`reply_error`](Connection::reply_error),
///   [`reply_error_at`](Connection::reply_error_at).
/// - **Bytes out**: [`output`](Connection::output), [`consumed`](Connection::consumed).
/// - **Getters**: [`is_paused`](Connection::is_paused), [`has_ended`](Connection::has_ended),
///   [`in_flight`](Connection::in_flight), [`held_bytes`](Connection::held_bytes),
///   [`lacks_room`](Connection::lacks_room).
/// - **Encryption**: [`set_encryption`](Connection::set_encryption), for drivers with TLS.
/// - **Room**: [`set_room`](Connection::set_room), for drivers that share a bound among
///   connections.
/// - **Buffers back**: [`recycle`](Connection::recycle), [`shrink`](Connection::shrink).
///
/// The rule of polling has three steps. After `filled`, after an answer and after `consumed`, call
/// `next_event` until it returns `None`. Then send the output. Then read more, unless the
/// connection is paused. The greeting is in the output from the beginning.
///
/// The following holds for any input of the client:
///
/// - An invalid option or request is answered with an error and is no event. A request of no bytes
///   is answered at once.
/// - Memory is bounded. The parts are 64 KiB of input, 4 MiB of recycled buffers, the payloads in
///   flight, and the output. Payloads in flight are at most the limit, and one more during its
///   reception. The storage of the output is at most four times the output. The output is at most
///   the limit, one answer to an option, and the answers to the requests in flight.
/// - Handshakes end: more than 1024 options, or options of more than 1 MiB, are an error.
/// - The same bytes give the same events and the same output, however the bytes are cut into
///   pieces. The condition is that the same answers come between the same events.
///
/// After an error the connection takes no more input and reports no more events. The driver may
/// send the rest of the output, and must close.
#[derive(Debug)]
pub struct Connection {
    exports: Arc<Exports>,
    limits: Limits,
    input: Input,
    output: OutputBytes,
    pool: BufferPool,
    phase: ConnectionPhase,
    /// True if replies to reads come in chunks.
    structured: bool,
    requests_in_flight: u32,
    payload_bytes_in_flight: u64,
    /// Largest payload of the next request, in bytes.
    room: u64,
    /// Payload of the next request in bytes, if above `room`.
    lacking: Option<u64>,
}

#[derive(Debug)]
enum ConnectionPhase {
    Handshake(Handshake),
    Transmission(Transmission),
    Ended,
    Failed(ProtocolError),
}

/// Result of a step: an event, or the need to wait or go on.
enum ConnectionStep {
    Waiting,
    Going,
    Event(ConnectionEvent),
}

impl Connection {
    /// Creates a connection that was just accepted, with the default limits.
    pub fn new(exports: Arc<Exports>) -> Connection {
        Connection::with_limits(exports, Limits::default())
    }

    /// Creates a connection that was just accepted.
    pub fn with_limits(exports: Arc<Exports>, limits: Limits) -> Connection {
        let mut output = OutputBytes::default();
        let handshake = Handshake::begin(&mut output);
        Connection {
            exports,
            limits,
            input: Input::new(),
            output,
            pool: BufferPool::default(),
            phase: ConnectionPhase::Handshake(handshake),
            structured: false,
            requests_in_flight: 0,
            payload_bytes_in_flight: 0,
            room: u64::MAX,
            lacking: None,
        }
    }

    /// Sets the use of TLS: offered, required, or off (default). Must be called before any bytes
    /// arrive.
    pub fn set_encryption(&mut self, encryption: Encryption) {
        if let ConnectionPhase::Handshake(handshake) = &mut self.phase {
            handshake.terms.encryption = encryption;
        }
    }

    /// Returns the place for the next bytes: the input buffer, or the rest of a long payload.
    /// Returns an empty slice if the connection takes no more bytes, because the connection ended,
    /// or is paused and full.
    pub fn space(&mut self) -> &mut [u8] {
        match &mut self.phase {
            ConnectionPhase::Ended | ConnectionPhase::Failed(_) => &mut [],
            // A direct read into the payload is possible only if no byte waits in the input.
            // Otherwise the payload would get its bytes in the wrong order.
            ConnectionPhase::Transmission(transmission) if self.input.bytes().is_empty() => {
                transmission.direct().unwrap_or_else(|| self.input.space())
            }
            _ => self.input.space(),
        }
    }

    /// Records that `count` bytes were read to the beginning of the last
    /// [`space`](Connection::space). Nothing else may happen between the two calls.
    ///
    /// # Panics
    /// If `count` is larger than the space.
    pub fn filled(&mut self, count: usize) {
        if let ConnectionPhase::Transmission(transmission) = &mut self.phase
            && self.input.bytes().is_empty()
            && transmission.direct().is_some()
        {
            transmission.direct_filled(count);
            // The position in the stream counts all bytes, also the bytes that bypass the input.
            // Errors name the position.
            self.input.passed(count);
        } else {
            self.input.filled(count);
        }
    }

    /// Returns the next event. Returns `None` if more bytes are needed, or if the connection is
    /// paused or has ended.
    ///
    /// # Errors
    /// If the client broke the protocol so that the connection must be closed. The error stays.
    pub fn next_event(&mut self) -> Result<Option<ConnectionEvent>, ProtocolError> {
        loop {
            // Checked before each step: an answer of the last step may have filled the output.
            if self.is_paused() {
                return Ok(None);
            }
            let step = match &self.phase {
                ConnectionPhase::Handshake(_) => self.step_handshake(),
                ConnectionPhase::Transmission(_) => self.step_transmission(),
                ConnectionPhase::Ended => return Ok(None),
                ConnectionPhase::Failed(error) => return Err(error.clone()),
            };
            match step {
                Ok(ConnectionStep::Going) => {}
                Ok(ConnectionStep::Waiting) => return Ok(None),
                Ok(ConnectionStep::Event(event)) => return Ok(Some(event)),
                Err(error) => {
                    // The error stays, so that a driver that calls again does not parse from the
                    // middle of a message.
                    self.phase = ConnectionPhase::Failed(error.clone());
                    return Err(error);
                }
            }
        }
    }

    fn step_handshake(&mut self) -> Result<ConnectionStep, ProtocolError> {
        let ConnectionPhase::Handshake(handshake) = &mut self.phase else {
            return Ok(ConnectionStep::Waiting);
        };
        Ok(
            match handshake.step(&self.exports, &mut self.input, &mut self.output)? {
                HandshakeProgress::Waiting => ConnectionStep::Waiting,
                HandshakeProgress::Going => ConnectionStep::Going,
                HandshakeProgress::Aborted => self.end(),
                HandshakeProgress::Encrypts => ConnectionStep::Event(ConnectionEvent::StartTls),
                HandshakeProgress::Opened(session) => {
                    self.structured = session.structured;
                    self.phase = ConnectionPhase::Transmission(Transmission::new(session));
                    ConnectionStep::Event(ConnectionEvent::Opened {
                        export: session.export,
                    })
                }
            },
        )
    }

    fn step_transmission(&mut self) -> Result<ConnectionStep, ProtocolError> {
        let ConnectionPhase::Transmission(transmission) = &mut self.phase else {
            return Ok(ConnectionStep::Waiting);
        };
        let export = &self.exports.all()[transmission.session.export];
        // The room may have changed since the last step, so the lack of room is found anew.
        self.lacking = None;
        let room = self.room;
        Ok(
            match transmission.step(
                export,
                room,
                &mut self.input,
                &mut self.output,
                &mut self.pool,
            )? {
                transmission::TransmissionProgress::NoRoom(bytes) => {
                    self.lacking = Some(bytes);
                    ConnectionStep::Waiting
                }
                transmission::TransmissionProgress::Waiting => ConnectionStep::Waiting,
                transmission::TransmissionProgress::Answered => ConnectionStep::Going,
                transmission::TransmissionProgress::Disconnect => self.end(),
                transmission::TransmissionProgress::Request(request, payload) => {
                    self.requests_in_flight += 1;
                    self.payload_bytes_in_flight += request.payload_bytes();
                    ConnectionStep::Event(ConnectionEvent::Request { request, payload })
                }
            },
        )
    }

    fn end(&mut self) -> ConnectionStep {
        self.phase = ConnectionPhase::Ended;
        ConnectionStep::Event(ConnectionEvent::Disconnect)
    }

    /// Returns true if no request is begun until requests are answered or output is sent. Do not
    /// read in this state.
    pub fn is_paused(&self) -> bool {
        let begins = match &self.phase {
            ConnectionPhase::Handshake(_) => true,
            ConnectionPhase::Transmission(transmission) => transmission.between_requests(),
            // Not paused, so that a driver goes on to call `next_event` and gets the end or the
            // error.
            ConnectionPhase::Ended | ConnectionPhase::Failed(_) => false,
        };
        begins
            // A payload that has begun to arrive is taken to its end, because its memory is already
            // there.
            && (self.output.len() >= self.limits.output_bytes
                || self.requests_in_flight >= self.limits.requests
                || self.payload_bytes_in_flight >= self.limits.payload_bytes
                || self.lacks_room())
    }

    /// Returns true if the received bytes may begin a request, apart from the lack of room. A
    /// driver that serves clients in turns gives a turn only to connections for which this is true.
    pub fn has_request(&self) -> bool {
        let whole = match &self.phase {
            ConnectionPhase::Handshake(_) => true,
            ConnectionPhase::Transmission(transmission) if transmission.between_requests() => {
                self.input.bytes().len() >= crate::wire::REQUEST_BYTES
            }
            ConnectionPhase::Transmission(_) => !self.input.bytes().is_empty(),
            ConnectionPhase::Ended | ConnectionPhase::Failed(_) => false,
        };
        // A request that lacks room pauses the connection, and yet needs a turn when room comes.
        whole && (self.lacks_room() || !self.is_paused())
    }

    /// Sets the largest payload of the next request in bytes, until the next call. A request with a
    /// larger payload stays in the input, and the connection pauses. A driver with one bound for
    /// all its connections gives each connection its share. Without a call there is no bound.
    pub fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    /// Returns true if a request waits for more room than was set last.
    pub fn lacks_room(&self) -> bool {
        self.lacking.is_some_and(|bytes| bytes > self.room)
    }

    /// Returns the number of held bytes: unsent output, payloads in flight, present or expected,
    /// and a payload that has arrived in part.
    pub fn held_bytes(&self) -> u64 {
        let arriving = match &self.phase {
            ConnectionPhase::Transmission(transmission) => transmission.payload_bytes(),
            _ => 0,
        };
        self.output.len() as u64 + self.payload_bytes_in_flight + arriving
    }

    /// Frees the memory kept for later use.
    pub fn shrink(&mut self) {
        self.pool = BufferPool::default();
        self.output.shrink();
    }

    /// Returns true if no more input is taken, because the client ended the session or an error
    /// occurred.
    pub fn has_ended(&self) -> bool {
        matches!(
            self.phase,
            ConnectionPhase::Ended | ConnectionPhase::Failed(_)
        )
    }

    /// Returns the number of unanswered requests.
    pub fn in_flight(&self) -> u32 {
        self.requests_in_flight
    }

    /// Returns the output to send.
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// Removes `count` sent bytes from the output.
    ///
    /// # Panics
    /// If `count` is larger than the output.
    pub fn consumed(&mut self, count: usize) {
        self.output.consumed(count);
    }

    /// Takes a payload buffer back for later writes.
    pub fn recycle(&mut self, payload: Vec<u8>) {
        self.pool.give(payload);
    }

    /// Answers a request with success. Not for reads and status requests.
    ///
    /// # Panics
    /// If the request is one of these, or nothing is in flight.
    pub fn reply_done(&mut self, request: &NbdRequest) {
        assert!(
            !matches!(
                request.command,
                RequestCommand::Read | RequestCommand::BlockStatus
            ),
            "{:?} is answered with data",
            request.command
        );
        self.finish(request);
        reply::done(&mut self.output, self.structured, request.cookie);
    }

    /// Answers a read. `fill` writes the data to their place in the output. The slice is as long as
    /// the request and holds old data. So `fill` must write all bytes, or fail.
    ///
    /// # Panics
    /// If the request is no read, or nothing is in flight.
    pub fn reply_read(
        &mut self,
        request: &NbdRequest,
        fill: impl FnOnce(&mut [u8]) -> Result<(), ErrorCode>,
    ) {
        assert_eq!(
            request.command,
            RequestCommand::Read,
            "only a read is answered with data"
        );
        self.finish(request);
        reply::read(&mut self.output, self.structured, request, fill);
    }

    /// Answers a read with consecutive pieces. A hole costs no bytes if replies are structured and
    /// the client allows fragments.
    ///
    /// # Panics
    /// If the request is no read, the pieces are not as long as the request, or nothing is in
    /// flight.
    pub fn reply_read_pieces<'a>(
        &mut self,
        request: &NbdRequest,
        pieces: impl IntoIterator<Item = ReplyPiece<'a>>,
    ) {
        assert_eq!(
            request.command,
            RequestCommand::Read,
            "only a read is answered with data"
        );
        self.finish(request);
        reply::read_pieces(&mut self.output, self.structured, request, pieces);
    }

    /// Answers a status request with the extents of a range, from its beginning. The extents may
    /// cover less than the range. Parts beyond the range are cut off. If the client wants one
    /// extent, only the first is sent. No extents mean that the whole range holds data. Extents
    /// should end at the export's block boundaries.
    ///
    /// # Panics
    /// If the request is no status request, or nothing is in flight.
    pub fn reply_status(
        &mut self,
        request: &NbdRequest,
        extents: impl IntoIterator<Item = StatusExtent>,
    ) {
        assert_eq!(
            request.command,
            RequestCommand::BlockStatus,
            "only a question for status is answered with extents"
        );
        self.finish(request);
        reply::status(&mut self.output, request, extents);
    }

    /// Answers a request with an error. The message is for people and is sent only in structured
    /// replies, up to 4096 bytes. [`format_args!`] costs no allocation.
    ///
    /// # Panics
    /// If nothing is in flight.
    pub fn reply_error(
        &mut self,
        request: &NbdRequest,
        code: ErrorCode,
        message: impl fmt::Display,
    ) {
        self.finish(request);
        reply::error(
            &mut self.output,
            self.structured,
            request.cookie,
            code,
            message,
        );
    }

    /// Answers a request with an error at an offset within the request, counted from the beginning
    /// of the export. A flush has no offset, so its error is sent without.
    ///
    /// # Panics
    /// If the offset lies outside the request, or nothing is in flight.
    pub fn reply_error_at(
        &mut self,
        request: &NbdRequest,
        code: ErrorCode,
        offset_bytes: u64,
        message: impl fmt::Display,
    ) {
        // A flush covers no range, so no offset lies within it.
        if request.command == RequestCommand::Flush {
            return self.reply_error(request, code, message);
        }
        let end = request.offset_bytes + u64::from(request.length_bytes);
        assert!(
            (request.offset_bytes..end).contains(&offset_bytes),
            "an error must lie within its request"
        );
        self.finish(request);
        reply::error_at(
            &mut self.output,
            self.structured,
            request.cookie,
            code,
            offset_bytes,
            message,
        );
    }

    fn finish(&mut self, request: &NbdRequest) {
        // An answer for which no request is in flight is a mistake of the driver. Going on would
        // make the client's stream unreadable.
        assert!(self.requests_in_flight > 0, "a request was answered twice");
        self.requests_in_flight -= 1;
        self.payload_bytes_in_flight -= request.payload_bytes();
    }
}
