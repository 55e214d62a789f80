//! One client, seen from the server.

use crate::error::ProtocolError;
use crate::export::Exports;
use crate::handshake::{self, Handshake};
use crate::input::Input;
use crate::output::Output;
use crate::pool::Pool;
use crate::reply::{self, Piece};
use crate::request::{Command, ErrorCode, Request, StatusExtent};
use crate::session::Encryption;
use crate::transmission::{self, Transmission};
use std::fmt;
use std::sync::Arc;

/// What a connection tells its driver.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The client opened an export; requests follow.
    Opened {
        /// Its number among [`Exports::all`].
        export: usize,
    },
    /// The client wants TLS, and was told to begin. What is in the output now is
    /// the last that is sent in the clear; from here on the driver encrypts
    /// what goes out and decrypts what comes in.
    StartTls,
    /// Something to do, which is valid, and to be answered by one of the
    /// `reply` methods, in any order.
    Request {
        /// What.
        request: Request,
        /// What a write wants to write, as long as the request; empty for all
        /// others. Give it back with [`Connection::recycle`].
        payload: Vec<u8>,
    },
    /// The client wants to end. Answer what is in flight, send the output and
    /// close. It is the last event.
    Disconnect,
}

/// How much a connection takes on before it pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests that were not answered.
    pub requests: u32,
    /// Payloads of writes, and lengths of reads, that were not answered. One
    /// request is taken whatever its length.
    pub payload_bytes: u64,
    /// Output that was not sent.
    pub output_bytes: usize,
}

impl Default for Limits {
    /// 1024 requests, 64 MiB of payload, 8 MiB of output.
    fn default() -> Limits {
        Limits {
            requests: 1024,
            payload_bytes: 64 << 20,
            output_bytes: 8 << 20,
        }
    }
}

/// The server's side of one connection, without the connection: whoever drives
/// it reads, writes and waits.
///
/// - **Bytes in**: [`space`](Connection::space), [`filled`](Connection::filled).
/// - **Events out**: [`next_event`](Connection::next_event).
/// - **Answers in**: [`reply_done`](Connection::reply_done),
///   [`reply_read`](Connection::reply_read),
///   [`reply_read_pieces`](Connection::reply_read_pieces),
///   [`reply_status`](Connection::reply_status),
///   [`reply_error`](Connection::reply_error),
///   [`reply_error_at`](Connection::reply_error_at).
/// - **Bytes out**: [`output`](Connection::output),
///   [`consumed`](Connection::consumed).
/// - **Getters**: [`is_paused`](Connection::is_paused),
///   [`has_ended`](Connection::has_ended), [`in_flight`](Connection::in_flight),
///   [`held_bytes`](Connection::held_bytes),
///   [`lacks_room`](Connection::lacks_room).
/// - **Encryption**: [`set_encryption`](Connection::set_encryption), for
///   drivers that can do TLS.
/// - **Room**: [`set_room`](Connection::set_room), for drivers that share a
///   bound among connections.
/// - **Buffers back**: [`recycle`](Connection::recycle),
///   [`shrink`](Connection::shrink).
///
/// The rule of polling: after `filled`, after an answer and after `consumed`,
/// call `next_event` until it gives nothing; then send the output; then read
/// more, unless it is paused. The greeting is output from the beginning.
///
/// What holds whatever the client sends:
///
/// - What is invalid in an option or a request is answered with an error and is
///   no event. A request of no bytes is answered at once.
/// - Memory is bounded: 64 KiB of input, 4 MiB of recycled buffers, the payloads
///   in flight (the limit, and one more that is being received), and four times
///   the output in the worst case, which is at most the limit, one answer to an
///   option, and the answers to what is in flight.
/// - Handshakes end: after 1024 options, or 1 MiB of them, it is an error.
/// - The same bytes give the same events and the same output, however they are
///   cut into pieces, if the same answers come between the same events.
///
/// After an error nothing more is taken in or told: send what is left of the
/// output, if you like, and close.
#[derive(Debug)]
pub struct Connection {
    exports: Arc<Exports>,
    limits: Limits,
    input: Input,
    output: Output,
    pool: Pool,
    phase: Phase,
    /// Whether replies to reads come in chunks.
    structured: bool,
    requests_in_flight: u32,
    payload_bytes_in_flight: u64,
    /// What the next request may carry.
    room: u64,
    /// What it carries, if that was more.
    lacking: Option<u64>,
}

#[derive(Debug)]
enum Phase {
    Handshake(Handshake),
    Transmission(Transmission),
    Ended,
    Failed(ProtocolError),
}

/// A step's outcome: an event, or whether to go on.
enum Step {
    Waiting,
    Going,
    Event(Event),
}

impl Connection {
    /// A connection that was just accepted, with the usual limits.
    pub fn new(exports: Arc<Exports>) -> Connection {
        Connection::with_limits(exports, Limits::default())
    }

    /// A connection that was just accepted.
    pub fn with_limits(exports: Arc<Exports>, limits: Limits) -> Connection {
        let mut output = Output::default();
        let handshake = Handshake::begin(&mut output);
        Connection {
            exports,
            limits,
            input: Input::new(),
            output,
            pool: Pool::default(),
            phase: Phase::Handshake(handshake),
            structured: false,
            requests_in_flight: 0,
            payload_bytes_in_flight: 0,
            room: u64::MAX,
            lacking: None,
        }
    }

    /// Says whether TLS is offered, or demanded; it is not without a call. To be
    /// said before anything arrives.
    pub fn set_encryption(&mut self, encryption: Encryption) {
        if let Phase::Handshake(handshake) = &mut self.phase {
            handshake.terms.encryption = encryption;
        }
    }

    /// Where to read the next bytes to: the input, or the rest of a long
    /// payload. Empty if no more bytes are taken: the connection ended, or it
    /// is paused and full.
    pub fn space(&mut self) -> &mut [u8] {
        match &mut self.phase {
            Phase::Ended | Phase::Failed(_) => &mut [],
            Phase::Transmission(transmission) if self.input.bytes().is_empty() => {
                transmission.direct().unwrap_or_else(|| self.input.space())
            }
            _ => self.input.space(),
        }
    }

    /// So many bytes were read to the beginning of what [`space`](Connection::space)
    /// gave last; nothing else happened in between.
    ///
    /// # Panics
    /// They are more than there was space.
    pub fn filled(&mut self, count: usize) {
        if let Phase::Transmission(transmission) = &mut self.phase
            && self.input.bytes().is_empty()
            && transmission.direct().is_some()
        {
            transmission.direct_filled(count);
            self.input.passed(count);
        } else {
            self.input.filled(count);
        }
    }

    /// The next event; nothing if more bytes are needed, or the connection is
    /// paused or has ended.
    ///
    /// # Errors
    /// The client broke the protocol so that nothing is left but to close. The
    /// error stays.
    pub fn next_event(&mut self) -> Result<Option<Event>, ProtocolError> {
        loop {
            if self.is_paused() {
                return Ok(None);
            }
            let step = match &self.phase {
                Phase::Handshake(_) => self.step_handshake(),
                Phase::Transmission(_) => self.step_transmission(),
                Phase::Ended => return Ok(None),
                Phase::Failed(error) => return Err(error.clone()),
            };
            match step {
                Ok(Step::Going) => {}
                Ok(Step::Waiting) => return Ok(None),
                Ok(Step::Event(event)) => return Ok(Some(event)),
                Err(error) => {
                    self.phase = Phase::Failed(error.clone());
                    return Err(error);
                }
            }
        }
    }

    fn step_handshake(&mut self) -> Result<Step, ProtocolError> {
        let Phase::Handshake(handshake) = &mut self.phase else {
            return Ok(Step::Waiting);
        };
        Ok(
            match handshake.step(&self.exports, &mut self.input, &mut self.output)? {
                handshake::Progress::Waiting => Step::Waiting,
                handshake::Progress::Going => Step::Going,
                handshake::Progress::Aborted => self.end(),
                handshake::Progress::Encrypts => Step::Event(Event::StartTls),
                handshake::Progress::Opened(session) => {
                    self.structured = session.structured;
                    self.phase = Phase::Transmission(Transmission::new(session));
                    Step::Event(Event::Opened {
                        export: session.export,
                    })
                }
            },
        )
    }

    fn step_transmission(&mut self) -> Result<Step, ProtocolError> {
        let Phase::Transmission(transmission) = &mut self.phase else {
            return Ok(Step::Waiting);
        };
        let export = &self.exports.all()[transmission.session.export];
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
                transmission::Progress::NoRoom(bytes) => {
                    self.lacking = Some(bytes);
                    Step::Waiting
                }
                transmission::Progress::Waiting => Step::Waiting,
                transmission::Progress::Answered => Step::Going,
                transmission::Progress::Disconnect => self.end(),
                transmission::Progress::Request(request, payload) => {
                    self.requests_in_flight += 1;
                    self.payload_bytes_in_flight += request.payload_bytes();
                    Step::Event(Event::Request { request, payload })
                }
            },
        )
    }

    fn end(&mut self) -> Step {
        self.phase = Phase::Ended;
        Step::Event(Event::Disconnect)
    }

    /// Whether no request is begun until answers were given or output was sent.
    /// Do not read meanwhile.
    pub fn is_paused(&self) -> bool {
        let begins = match &self.phase {
            Phase::Handshake(_) => true,
            Phase::Transmission(transmission) => transmission.between_requests(),
            Phase::Ended | Phase::Failed(_) => false,
        };
        begins
            && (self.output.len() >= self.limits.output_bytes
                || self.requests_in_flight >= self.limits.requests
                || self.payload_bytes_in_flight >= self.limits.payload_bytes
                || self.lacks_room())
    }

    /// Whether what was received may begin a request without more of it, were
    /// there room; a driver that serves clients in turns has no turn for others.
    pub fn has_request(&self) -> bool {
        let whole = match &self.phase {
            Phase::Handshake(_) => true,
            Phase::Transmission(transmission) if transmission.between_requests() => {
                self.input.bytes().len() >= crate::wire::REQUEST_BYTES
            }
            Phase::Transmission(_) => !self.input.bytes().is_empty(),
            Phase::Ended | Phase::Failed(_) => false,
        };
        whole && (self.lacks_room() || !self.is_paused())
    }

    /// Says how many bytes the next request may bring or fetch, until other
    /// numbers are said. One that carries more waits where it is, and the
    /// connection is paused; a driver with a bound for all of its connections
    /// gives each what it may take. Without a call there is no such bound.
    pub fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    /// Whether a request waits for more room than was said last.
    pub fn lacks_room(&self) -> bool {
        self.lacking.is_some_and(|bytes| bytes > self.room)
    }

    /// The bytes of output that was not sent, of payloads in flight, be they
    /// there or expected, and of one that has come in part.
    pub fn held_bytes(&self) -> u64 {
        let arriving = match &self.phase {
            Phase::Transmission(transmission) => transmission.payload_bytes(),
            _ => 0,
        };
        self.output.len() as u64 + self.payload_bytes_in_flight + arriving
    }

    /// Gives back the memory that is kept for what may come.
    pub fn shrink(&mut self) {
        self.pool = Pool::default();
        self.output.shrink();
    }

    /// Whether nothing more is taken in: the client ended the session, or there
    /// was an error.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended | Phase::Failed(_))
    }

    /// Requests that were not answered.
    pub fn in_flight(&self) -> u32 {
        self.requests_in_flight
    }

    /// What waits for being sent.
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// So many bytes of the output were sent.
    ///
    /// # Panics
    /// There were not as many.
    pub fn consumed(&mut self, count: usize) {
        self.output.consumed(count);
    }

    /// Takes a payload back, for the writes to come.
    pub fn recycle(&mut self, payload: Vec<u8>) {
        self.pool.give(payload);
    }

    /// Done; for all but reads and questions for status.
    ///
    /// # Panics
    /// The request is one of these, or nothing is in flight.
    pub fn reply_done(&mut self, request: &Request) {
        assert!(
            !matches!(request.command, Command::Read | Command::BlockStatus),
            "{:?} is answered with data",
            request.command
        );
        self.finish(request);
        reply::done(&mut self.output, self.structured, request.cookie);
    }

    /// The data of a read, put by `fill` where it will be sent from. It is given
    /// as many bytes as the request is long, which hold leftovers: it must write
    /// them all, or fail.
    ///
    /// # Panics
    /// The request is no read, or nothing is in flight.
    pub fn reply_read(
        &mut self,
        request: &Request,
        fill: impl FnOnce(&mut [u8]) -> Result<(), ErrorCode>,
    ) {
        assert_eq!(
            request.command,
            Command::Read,
            "only a read is answered with data"
        );
        self.finish(request);
        reply::read(&mut self.output, self.structured, request, fill);
    }

    /// The data of a read in pieces, one behind the other. Holes cost no bytes
    /// where replies are structured and the client allows fragments.
    ///
    /// # Panics
    /// The request is no read, the pieces are not as long as it is, or nothing
    /// is in flight.
    pub fn reply_read_pieces<'a>(
        &mut self,
        request: &Request,
        pieces: impl IntoIterator<Item = Piece<'a>>,
    ) {
        assert_eq!(
            request.command,
            Command::Read,
            "only a read is answered with data"
        );
        self.finish(request);
        reply::read_pieces(&mut self.output, self.structured, request, pieces);
    }

    /// Which parts of a range are allocated, from its beginning. There may be
    /// less than was asked for; what is beyond is cut off, and so is all but
    /// the first where the client wants one extent. Nothing means that all of
    /// it is data. Extents should end on the export's blocks.
    ///
    /// # Panics
    /// The request does not ask for it, or nothing is in flight.
    pub fn reply_status(
        &mut self,
        request: &Request,
        extents: impl IntoIterator<Item = StatusExtent>,
    ) {
        assert_eq!(
            request.command,
            Command::BlockStatus,
            "only a question for status is answered with extents"
        );
        self.finish(request);
        reply::status(&mut self.output, request, extents);
    }

    /// Failed. The message, for people, is sent where replies are structured,
    /// up to 4096 bytes; [`format_args!`] costs no allocation.
    ///
    /// # Panics
    /// Nothing is in flight.
    pub fn reply_error(&mut self, request: &Request, code: ErrorCode, message: impl fmt::Display) {
        self.finish(request);
        reply::error(
            &mut self.output,
            self.structured,
            request.cookie,
            code,
            message,
        );
    }

    /// Failed at an offset within the request, counted from the beginning of the
    /// export. A flush has no offset: its error is sent without.
    ///
    /// # Panics
    /// The offset lies outside of the request, or nothing is in flight.
    pub fn reply_error_at(
        &mut self,
        request: &Request,
        code: ErrorCode,
        offset_bytes: u64,
        message: impl fmt::Display,
    ) {
        if request.command == Command::Flush {
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

    fn finish(&mut self, request: &Request) {
        assert!(self.requests_in_flight > 0, "a request was answered twice");
        self.requests_in_flight -= 1;
        self.payload_bytes_in_flight -= request.payload_bytes();
    }
}
