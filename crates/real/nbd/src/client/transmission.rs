//! Many requests in flight, and their answers.

use super::error::{ClientError, ServerFailure};
use super::pending::{PendingRequest, RequestAnswer};
use super::{ExportClient, stream};
use crate::export::PAYLOAD_BYTES_MAX;
use crate::input::MessageFields;
use crate::request::{Allocation, CommandFlags, ErrorCode, RequestCommand, StatusExtent};
use crate::wire::{self, chunk};
use std::io::{Read, Write};

/// Longest chunk: the longest read and its offset.
const CHUNK_BYTES_MAX: u32 = PAYLOAD_BYTES_MAX + 8;

impl<S: Read + Write> ExportClient<S> {
    /// Sends a request and returns the cookie of its answer. `payload` is the data of a write, as
    /// long as the request; empty for other commands. The client checks nothing, so that tests can
    /// see a server's refusals.
    ///
    /// # Errors
    /// If the stream failed.
    pub fn submit(
        &mut self,
        command: RequestCommand,
        offset_bytes: u64,
        length_bytes: u32,
        flags: CommandFlags,
        payload: &[u8],
    ) -> Result<u64, ClientError> {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        self.send(
            command.to_wire(),
            flags,
            cookie,
            offset_bytes,
            length_bytes,
            payload,
        )?;
        let room = if command == RequestCommand::Read {
            // An impossible length must not allocate 4 GiB here. The server refuses the request.
            length_bytes.min(PAYLOAD_BYTES_MAX)
        } else {
            0
        };
        let answer = RequestAnswer {
            cookie,
            result: Ok(()),
            data: vec![0; room as usize],
            extents: Vec::new(),
            content_chunks: 0,
        };
        let pending = PendingRequest {
            command,
            offset_bytes,
            length_bytes,
            covered_bytes: 0,
            answer,
        };
        self.pending.insert(cookie, pending);
        Ok(cookie)
    }

    fn send(
        &mut self,
        command: u16,
        flags: CommandFlags,
        cookie: u64,
        offset_bytes: u64,
        length_bytes: u32,
        payload: &[u8],
    ) -> Result<(), ClientError> {
        self.message.clear();
        self.message.extend(wire::REQUEST.to_be_bytes());
        self.message.extend(flags.bits().to_be_bytes());
        self.message.extend(command.to_be_bytes());
        self.message.extend(cookie.to_be_bytes());
        self.message.extend(offset_bytes.to_be_bytes());
        self.message.extend(length_bytes.to_be_bytes());
        self.message.extend(payload);
        self.stream.write_all(&self.message)?;
        self.stream.flush()?;
        Ok(())
    }

    /// Returns the number of requests without a complete answer.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Ends the session and returns the stream.
    ///
    /// # Errors
    /// If the stream failed.
    pub fn disconnect(mut self) -> Result<S, ClientError> {
        self.send(
            wire::command::DISCONNECT,
            CommandFlags::empty(),
            0,
            0,
            0,
            &[],
        )?;
        Ok(self.stream)
    }

    /// Waits until a request has its complete answer.
    ///
    /// # Errors
    /// If the stream failed, or an answer belongs to no request.
    pub fn receive(&mut self) -> Result<RequestAnswer, ClientError> {
        loop {
            let magic = stream::u32(&mut self.stream)?;
            let (cookie, done) = match magic {
                wire::SIMPLE_REPLY => (self.simple()?, true),
                wire::STRUCTURED_REPLY => self.chunk()?,
                _ => {
                    let expected = "the beginning of an answer";
                    return Err(ClientError::protocol(
                        "magic of an answer",
                        format_args!("{magic:#x}"),
                        expected,
                    ));
                }
            };
            if done && let Some(pending) = self.pending.remove(&cookie) {
                return pending.finish();
            }
        }
    }

    /// Reads a simple answer and returns its cookie.
    fn simple(&mut self) -> Result<u64, ClientError> {
        let error = stream::u32(&mut self.stream)?;
        let cookie = stream::u64(&mut self.stream)?;
        let pending = self
            .pending
            .get_mut(&cookie)
            .ok_or_else(|| unknown(cookie))?;
        if error != 0 {
            pending.fail(error, None, String::new());
        } else if pending.command == RequestCommand::Read {
            // With structured replies, a read is never answered with a simple reply ("Structured
            // replies" in the protocol). Only errors and other commands may be.
            if self.properties.structured {
                return Err(ClientError::protocol(
                    "answer to a read",
                    "a simple one",
                    "one in chunks",
                ));
            }
            self.stream.read_exact(&mut pending.answer.data)?;
            pending.covered_bytes = pending.length_bytes.into();
        }
        Ok(cookie)
    }

    /// Reads a chunk. Returns the cookie, and true for the last chunk.
    fn chunk(&mut self) -> Result<(u64, bool), ClientError> {
        let flags = stream::u16(&mut self.stream)?;
        let kind = stream::u16(&mut self.stream)?;
        let cookie = stream::u64(&mut self.stream)?;
        let length = stream::u32(&mut self.stream)?;
        let payload = stream::bytes(&mut self.stream, "chunk", length, CHUNK_BYTES_MAX)?;
        let pending = self
            .pending
            .get_mut(&cookie)
            .ok_or_else(|| unknown(cookie))?;
        let mut fields = MessageFields::new(&payload);
        let taken = match kind {
            chunk::NONE => Some(()),
            chunk::OFFSET_DATA => pending.data(&mut fields),
            chunk::OFFSET_HOLE => pending.hole(&mut fields),
            chunk::BLOCK_STATUS => pending.extents(&mut fields),
            _ if kind & chunk::ERROR_BIT != 0 => pending.error(kind, &mut fields),
            _ => None,
        };
        if taken.is_none() || !fields.rest().is_empty() {
            let found = format_args!("type {kind} of {length} bytes");
            return Err(ClientError::protocol(
                "chunk",
                found,
                "one that answers the request",
            ));
        }
        Ok((cookie, flags & chunk::DONE != 0))
    }
}

fn unknown(cookie: u64) -> ClientError {
    ClientError::protocol("cookie of an answer", cookie, "one of a request in flight")
}

impl PendingRequest {
    fn fail(&mut self, error: u32, offset_bytes: Option<u64>, message: String) {
        if self.answer.result.is_ok() {
            self.answer.result = Err(ServerFailure {
                code: ErrorCode::from_wire(error),
                offset_bytes,
                message,
            });
        }
    }

    /// Returns the part of the data at an offset of the export.
    fn part(&mut self, offset: u64, length: usize) -> Option<&mut [u8]> {
        let from = usize::try_from(offset.checked_sub(self.offset_bytes)?).ok()?;
        self.covered_bytes += length as u64;
        self.answer.content_chunks += 1;
        self.answer.data.get_mut(from..from.checked_add(length)?)
    }

    fn data(&mut self, fields: &mut MessageFields<'_>) -> Option<()> {
        let offset = fields.u64()?;
        let bytes = fields.take(fields.rest().len())?;
        self.part(offset, bytes.len())?.copy_from_slice(bytes);
        (!bytes.is_empty()).then_some(())
    }

    fn hole(&mut self, fields: &mut MessageFields<'_>) -> Option<()> {
        let offset = fields.u64()?;
        let length = fields.u32()?;
        self.part(offset, length as usize)?.fill(0);
        (length > 0).then_some(())
    }

    fn extents(&mut self, fields: &mut MessageFields<'_>) -> Option<()> {
        if self.command != RequestCommand::BlockStatus
            || fields.u32()? != wire::ALLOCATION_CONTEXT_ID
        {
            return None;
        }
        while !fields.rest().is_empty() {
            let length_bytes = fields.u32()?;
            let state = Allocation::from_bits_truncate(fields.u32()?);
            self.answer.extents.push(StatusExtent {
                length_bytes,
                state,
            });
        }
        (!self.answer.extents.is_empty()).then_some(())
    }

    fn error(&mut self, kind: u16, fields: &mut MessageFields<'_>) -> Option<()> {
        let error = fields.u32()?;
        let length = fields.u16()?;
        let message = String::from_utf8_lossy(fields.take(length.into())?).into_owned();
        let offset = if kind == chunk::ERROR_OFFSET {
            Some(fields.u64()?)
        } else {
            None
        };
        self.fail(error, offset, message);
        // Errors of later versions of the protocol may have more fields.
        fields.take(fields.rest().len()).map(|_| ())
    }

    /// Returns the answer, if no data are missing.
    fn finish(self) -> Result<RequestAnswer, ClientError> {
        let whole = self.command != RequestCommand::Read
            || self.covered_bytes == u64::from(self.length_bytes);
        if self.answer.result.is_ok() && !whole {
            let found = format_args!("{} bytes", self.covered_bytes);
            return Err(ClientError::protocol(
                "answer to a read",
                found,
                "as many bytes as were asked for",
            ));
        }
        let data = if self.answer.result.is_ok() {
            self.answer.data
        } else {
            Vec::new()
        };
        Ok(RequestAnswer {
            data,
            ..self.answer
        })
    }
}
