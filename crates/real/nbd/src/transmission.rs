//! Requests, and the payloads of writes.

use crate::check::{Header, Refusal};
use crate::error::ProtocolError;
use crate::export::{Export, PAYLOAD_BYTES_MAX};
use crate::input::Input;
use crate::output::Output;
use crate::pool::Pool;
use crate::reply;
use crate::request::{Command, Request};
use crate::session::Session;
use crate::wire::{self, command};

/// The payload of a refused write is skipped up to this length. Beyond it the
/// client takes us for something that we are not.
const SKIPPED_BYTES_MAX: u32 = 2 * PAYLOAD_BYTES_MAX;
/// If more is missing of a payload, it is read to its place without a stop in
/// the input. Below, the input takes the requests behind it at the same time.
const DIRECT_BYTES: usize = 16 << 10;

/// What is being received.
#[derive(Debug)]
pub(crate) struct Transmission {
    pub(crate) session: Session,
    state: State,
}

#[derive(Debug)]
enum State {
    Header,
    Payload {
        request: Request,
        payload: Vec<u8>,
        filled: usize,
    },
    Skip {
        cookie: u64,
        outcome: Outcome,
        left: usize,
    },
}

/// The answer behind what is skipped.
type Outcome = Result<(), Refusal>;

/// Where the transmission went.
#[derive(Debug)]
pub(crate) enum Progress {
    /// More bytes are needed.
    Waiting,
    /// A request was answered at once.
    Answered,
    /// A request is there, with its payload.
    Request(Request, Vec<u8>),
    /// The client wants to end.
    Disconnect,
    /// The next request brings or fetches so many bytes, for which there is no
    /// room yet. None of it was taken.
    NoRoom(u64),
}

impl Transmission {
    pub(crate) fn new(session: Session) -> Transmission {
        Transmission {
            session,
            state: State::Header,
        }
    }

    /// Whether the next step begins a request, rather than going on with one.
    pub(crate) fn between_requests(&self) -> bool {
        matches!(self.state, State::Header)
    }

    /// Where to read to, if a payload is long enough to be read to its place.
    pub(crate) fn direct(&mut self) -> Option<&mut [u8]> {
        match &mut self.state {
            State::Payload {
                payload, filled, ..
            } if payload.len() - *filled > DIRECT_BYTES => Some(&mut payload[*filled..]),
            _ => None,
        }
    }

    /// So many bytes were put where `direct` said.
    pub(crate) fn direct_filled(&mut self, count: usize) {
        if let State::Payload {
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

    /// The length of a payload that has come in part.
    pub(crate) fn payload_bytes(&self) -> u64 {
        if let State::Payload { payload, .. } = &self.state {
            payload.len() as u64
        } else {
            0
        }
    }

    /// Does one step. A request that carries more than `room` is not begun.
    pub(crate) fn step(
        &mut self,
        export: &Export,
        room: u64,
        input: &mut Input,
        output: &mut Output,
        pool: &mut Pool,
    ) -> Result<Progress, ProtocolError> {
        if self.between_requests()
            && let Some(progress) = self.header(export, room, input, output, pool)?
        {
            return Ok(progress);
        }
        Ok(self.rest(input, output))
    }

    /// A header; nothing if there is more to it.
    fn header(
        &mut self,
        export: &Export,
        room: u64,
        input: &mut Input,
        output: &mut Output,
        pool: &mut Pool,
    ) -> Result<Option<Progress>, ProtocolError> {
        let Some(bytes) = input.peek() else {
            return Ok(Some(Progress::Waiting));
        };
        let header = Header::parse(bytes);
        if header.magic != wire::REQUEST {
            return Err(ProtocolError::RequestMagic {
                position: input.position(),
                found: header.magic,
            });
        }
        if header.command == command::DISCONNECT {
            input.take(wire::REQUEST_BYTES);
            return Ok(Some(Progress::Disconnect));
        }
        let checked = header.check(export, self.session);
        if let Ok(request) = &checked
            && request.payload_bytes() > room
        {
            return Ok(Some(Progress::NoRoom(request.payload_bytes())));
        }
        if header.command == command::WRITE && header.length > 0 {
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
                Ok(request) => State::Payload {
                    request,
                    payload: pool.take(header.length as usize),
                    filled: 0,
                },
                Err(refusal) => State::Skip {
                    cookie: header.cookie,
                    outcome: Err(refusal),
                    left: header.length as usize,
                },
            };
            return Ok(None);
        }
        input.take(wire::REQUEST_BYTES);
        Ok(Some(match checked {
            // Nothing to do is done: layers below need not know such requests.
            Ok(request) if request.length_bytes == 0 && request.command != Command::Flush => {
                self.answer(request.cookie, Ok(()), output)
            }
            Ok(request) => Progress::Request(request, Vec::new()),
            Err(refusal) => self.answer(header.cookie, Err(refusal), output),
        }))
    }

    /// What comes behind a header.
    fn rest(&mut self, input: &mut Input, output: &mut Output) -> Progress {
        match &mut self.state {
            State::Header => Progress::Answered,
            State::Payload {
                request,
                payload,
                filled,
            } => {
                *filled += input.move_to(&mut payload[*filled..]);
                if *filled < payload.len() {
                    return Progress::Waiting;
                }
                let (request, payload) = (*request, std::mem::take(payload));
                self.state = State::Header;
                Progress::Request(request, payload)
            }
            State::Skip {
                cookie,
                outcome,
                left,
            } => {
                *left -= input.skip(*left);
                if *left > 0 {
                    return Progress::Waiting;
                }
                let (cookie, outcome) = (*cookie, *outcome);
                self.state = State::Header;
                self.answer(cookie, outcome, output)
            }
        }
    }

    fn answer(&self, cookie: u64, outcome: Outcome, output: &mut Output) -> Progress {
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
        Progress::Answered
    }
}
