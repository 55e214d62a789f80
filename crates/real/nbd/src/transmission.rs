//! Requests, and the payloads of writes.

use crate::check::{Header, Refusal};
use crate::error::ProtocolError;
use crate::export::{Export, PAYLOAD_BYTES_MAX};
use crate::input::Input;
use crate::output::OutputBytes;
use crate::pool::BufferPool;
use crate::reply;
use crate::request::{NbdRequest, RequestCommand};
use crate::session::Session;
use crate::wire::{self, command};

/// Largest payload of a refused write that is skipped. A client with a longer payload does not
/// speak NBD.
const SKIPPED_BYTES_MAX: u32 = 2 * PAYLOAD_BYTES_MAX;
/// Missing bytes of a payload from which on data are read directly into the payload. With fewer
/// missing bytes, the data pass through the input, which receives the next requests at the same
/// time.
const DIRECT_BYTES: usize = 16 << 10;

/// State of the reception.
#[derive(Debug)]
pub(crate) struct Transmission {
    pub(crate) session: Session,
    state: TransmissionState,
}

#[derive(Debug)]
enum TransmissionState {
    Header,
    Payload {
        request: NbdRequest,
        payload: Vec<u8>,
        filled: usize,
    },
    Skip {
        cookie: u64,
        outcome: Outcome,
        left: usize,
    },
}

/// Answer that follows a skipped payload.
type Outcome = Result<(), Refusal>;

/// Result of a step.
#[derive(Debug)]
pub(crate) enum TransmissionProgress {
    /// More bytes are needed.
    Waiting,
    /// A request was answered at once.
    Answered,
    /// A request with its payload is complete.
    Request(NbdRequest, Vec<u8>),
    /// The client wants to disconnect.
    Disconnect,
    /// The next request has a payload of this many bytes, for which there is no room yet. No byte
    /// of the request was taken.
    NoRoom(u64),
}

impl Transmission {
    pub(crate) fn new(session: Session) -> Transmission {
        Transmission {
            session,
            state: TransmissionState::Header,
        }
    }

    /// Returns true if the next step begins a new request.
    pub(crate) fn between_requests(&self) -> bool {
        matches!(self.state, TransmissionState::Header)
    }

    /// Returns the place for a direct read of a long payload; `None` if the payload is short.
    pub(crate) fn direct(&mut self) -> Option<&mut [u8]> {
        match &mut self.state {
            TransmissionState::Payload {
                payload, filled, ..
            // Counted by the missing bytes, not by the length: the end of a payload comes together
            // with the next request.
            } if payload.len() - *filled > DIRECT_BYTES => Some(&mut payload[*filled..]),
            _ => None,
        }
    }

    /// Records that `count` bytes were written to the last `direct`.
    pub(crate) fn direct_filled(&mut self, count: usize) {
        if let TransmissionState::Payload {
            payload, filled, ..
        } = &mut self.state
        {
            assert!(
                count <= payload.len() - *filled,
                "more bytes were filled in than there was space"
            );
            *filled += count;
        }
    }

    /// Returns the length of a payload that has arrived in part.
    pub(crate) fn payload_bytes(&self) -> u64 {
        if let TransmissionState::Payload { payload, .. } = &self.state {
            payload.len() as u64
        } else {
            0
        }
    }

    /// Carries out one step. A request with a payload above `room` is not begun.
    pub(crate) fn step(
        &mut self,
        export: &Export,
        room: u64,
        input: &mut Input,
        output: &mut OutputBytes,
        pool: &mut BufferPool,
    ) -> Result<TransmissionProgress, ProtocolError> {
        if self.between_requests()
            && let Some(progress) = self.header(export, room, input, output, pool)?
        {
            return Ok(progress);
        }
        Ok(self.rest(input, output))
    }

    /// Parses a header. Returns `None` if a payload follows.
    fn header(
        &mut self,
        export: &Export,
        room: u64,
        input: &mut Input,
        output: &mut OutputBytes,
        pool: &mut BufferPool,
    ) -> Result<Option<TransmissionProgress>, ProtocolError> {
        let Some(bytes) = input.peek() else {
            return Ok(Some(TransmissionProgress::Waiting));
        };
        let header = Header::parse(bytes);
        if header.magic != wire::REQUEST {
            return Err(ProtocolError::RequestMagic {
                position: input.position(),
                found: header.magic,
            });
        }
        // Before all checks: the disconnect has no answer, so nothing could be refused.
        if header.command == command::DISCONNECT {
            input.take(wire::REQUEST_BYTES);
            return Ok(Some(TransmissionProgress::Disconnect));
        }
        let checked = header.check(export, self.session);
        // A refused write does not need the room: its payload is skipped.
        if let Ok(request) = &checked
            && request.payload_bytes() > room
        {
            return Ok(Some(TransmissionProgress::NoRoom(request.payload_bytes())));
        }
        // The payload follows a write even if the write is refused. It must be taken or skipped, or
        // its bytes would be parsed as requests.
        if header.command == command::WRITE && header.length > 0 {
            // Skipping without limit would let a client keep a thread busy with 4 GiB of nothing.
            if header.length > SKIPPED_BYTES_MAX {
                let (position, found) = (input.position(), header.length);
                return Err(ProtocolError::PayloadTooLong {
                    position,
                    found,
                    limit: SKIPPED_BYTES_MAX,
                });
            }
            input.take(wire::REQUEST_BYTES);
            self.state = match checked {
                Ok(request) => TransmissionState::Payload {
                    request,
                    payload: pool.take(header.length as usize),
                    filled: 0,
                },
                Err(refusal) => TransmissionState::Skip {
                    cookie: header.cookie,
                    outcome: Err(refusal),
                    left: header.length as usize,
                },
            };
            return Ok(None);
        }
        input.take(wire::REQUEST_BYTES);
        Ok(Some(match checked {
            // A request of no bytes is answered here, so the layers below need not handle such
            // requests.
            Ok(request)
                if request.length_bytes == 0 && request.command != RequestCommand::Flush =>
            {
                self.answer(request.cookie, Ok(()), output)
            }
            Ok(request) => TransmissionProgress::Request(request, Vec::new()),
            Err(refusal) => self.answer(header.cookie, Err(refusal), output),
        }))
    }

    /// Handles the data behind a header.
    fn rest(&mut self, input: &mut Input, output: &mut OutputBytes) -> TransmissionProgress {
        match &mut self.state {
            TransmissionState::Header => TransmissionProgress::Answered,
            TransmissionState::Payload {
                request,
                payload,
                filled,
            } => {
                *filled += input.move_to(&mut payload[*filled..]);
                if *filled < payload.len() {
                    return TransmissionProgress::Waiting;
                }
                let (request, payload) = (*request, std::mem::take(payload));
                self.state = TransmissionState::Header;
                TransmissionProgress::Request(request, payload)
            }
            TransmissionState::Skip {
                cookie,
                outcome,
                left,
            } => {
                *left -= input.skip(*left);
                if *left > 0 {
                    return TransmissionProgress::Waiting;
                }
                let (cookie, outcome) = (*cookie, *outcome);
                self.state = TransmissionState::Header;
                self.answer(cookie, outcome, output)
            }
        }
    }

    fn answer(
        &self,
        cookie: u64,
        outcome: Outcome,
        output: &mut OutputBytes,
    ) -> TransmissionProgress {
        match outcome {
            Ok(()) => reply::done(output, self.session.structured, cookie),
            Err(refusal) => reply::error(
                output,
                self.session.structured,
                cookie,
                refusal.code(),
                refusal,
            ),
        }
        TransmissionProgress::Answered
    }
}
