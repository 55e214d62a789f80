//! Answers to requests, simple and in chunks.

use crate::output::OutputBytes;
use crate::request::{CommandFlags, ErrorCode, NbdRequest, StatusExtent};
use crate::wire::{self, chunk};
use std::fmt;

/// A part of the answer to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyPiece<'a> {
    /// Data.
    Data(&'a [u8]),
    /// Zeroes, which are not transferred in structured replies.
    Hole {
        /// Length of the hole in bytes.
        length_bytes: u32,
    },
}

impl ReplyPiece<'_> {
    fn len(&self) -> usize {
        match self {
            ReplyPiece::Data(bytes) => bytes.len(),
            ReplyPiece::Hole { length_bytes } => *length_bytes as usize,
        }
    }
}

/// Writes a success without data.
pub(crate) fn done(output: &mut OutputBytes, structured: bool, cookie: u64) {
    if structured {
        put_chunk(output, chunk::DONE, chunk::NONE, cookie, 0);
    } else {
        put_simple(output, 0, cookie);
    }
}

/// Writes an error, with a text where the reply has room.
pub(crate) fn error(
    output: &mut OutputBytes,
    structured: bool,
    cookie: u64,
    code: ErrorCode,
    message: impl fmt::Display,
) {
    if !structured {
        return put_simple(output, code.to_wire(), cookie);
    }
    put_error(output, chunk::ERROR, cookie, code, message, None);
}

/// Writes an error at an offset.
pub(crate) fn error_at(
    output: &mut OutputBytes,
    structured: bool,
    cookie: u64,
    code: ErrorCode,
    offset: u64,
    message: impl fmt::Display,
) {
    if !structured {
        return put_simple(output, code.to_wire(), cookie);
    }
    put_error(
        output,
        chunk::ERROR_OFFSET,
        cookie,
        code,
        message,
        Some(offset),
    );
}

fn put_error(
    output: &mut OutputBytes,
    kind: u16,
    cookie: u64,
    code: ErrorCode,
    message: impl fmt::Display,
    offset: Option<u64>,
) {
    let header = output.mark();
    // The length of the text is not known yet. The lengths are filled in behind.
    put_chunk(output, chunk::DONE, kind, cookie, 0);
    output.put_u32(code.to_wire());
    output.put_u16(0);
    let text_bytes = output.put_text(message);
    if let Some(offset) = offset {
        output.put_u64(offset);
    }
    let payload = header + wire::STRUCTURED_REPLY_BYTES;
    let payload_bytes = (output.mark() - payload) as u32;
    output.patch(payload - 4, &payload_bytes.to_be_bytes());
    output.patch(payload + 4, &(text_bytes as u16).to_be_bytes());
}

/// Writes the data of a read in one piece. If `fill` fails, the answer is its error.
pub(crate) fn read(
    output: &mut OutputBytes,
    structured: bool,
    request: &NbdRequest,
    fill: impl FnOnce(&mut [u8]) -> Result<(), ErrorCode>,
) {
    let mark = output.mark();
    let length = request.length_bytes as usize;
    if structured {
        put_data_chunk(
            output,
            chunk::DONE,
            request.cookie,
            request.offset_bytes,
            length,
        );
    } else {
        put_simple(output, 0, request.cookie);
    }
    if let Err(code) = fill(output.room(length)) {
        // The header was written in the hope of success. Nothing of it was sent, because the driver
        // sends only between calls.
        output.rewind(mark);
        error(
            output,
            structured,
            request.cookie,
            code,
            "the data could not be read",
        );
    }
}

/// Writes the data of a read in consecutive pieces.
pub(crate) fn read_pieces<'a>(
    output: &mut OutputBytes,
    structured: bool,
    request: &NbdRequest,
    pieces: impl IntoIterator<Item = ReplyPiece<'a>>,
) {
    // A client that forbids fragments gets one chunk, and holes in it as zeroes.
    let whole = !structured || request.flags.contains(CommandFlags::DO_NOT_FRAGMENT);
    let read = if whole {
        put_whole(output, structured, request, pieces)
    } else {
        put_chunks(output, request, pieces)
    };
    assert_eq!(
        read,
        u64::from(request.length_bytes),
        "the pieces of a read must be as long as the request"
    );
}

/// Writes all pieces in one answer, holes as zeroes. Returns the number of bytes of the pieces.
fn put_whole<'a>(
    output: &mut OutputBytes,
    structured: bool,
    request: &NbdRequest,
    pieces: impl IntoIterator<Item = ReplyPiece<'a>>,
) -> u64 {
    if structured {
        let length = request.length_bytes as usize;
        put_data_chunk(
            output,
            chunk::DONE,
            request.cookie,
            request.offset_bytes,
            length,
        );
    } else {
        put_simple(output, 0, request.cookie);
    }
    let from = output.mark();
    for piece in pieces {
        match piece {
            ReplyPiece::Data(bytes) => output.put(bytes),
            ReplyPiece::Hole { length_bytes } => output.put_zeroes(length_bytes as usize),
        }
    }
    (output.mark() - from) as u64
}

/// Writes one chunk for each piece. Returns the number of bytes of the pieces.
fn put_chunks<'a>(
    output: &mut OutputBytes,
    request: &NbdRequest,
    pieces: impl IntoIterator<Item = ReplyPiece<'a>>,
) -> u64 {
    let mut offset = request.offset_bytes;
    let mut last = output.mark();
    // Empty pieces make no chunk: the protocol forbids chunks without content.
    for piece in pieces.into_iter().filter(|piece| piece.len() > 0) {
        last = output.mark();
        match piece {
            ReplyPiece::Data(bytes) => {
                put_data_chunk(output, 0, request.cookie, offset, bytes.len());
                output.put(bytes);
            }
            ReplyPiece::Hole { length_bytes } => {
                put_chunk(output, 0, chunk::OFFSET_HOLE, request.cookie, 12);
                output.put_u64(offset);
                output.put_u32(length_bytes);
            }
        }
        offset += piece.len() as u64;
    }
    let read = offset - request.offset_bytes;
    if read > 0 {
        // Only the last chunk has the flag, and the last piece is not known before the end.
        output.patch(last + 4, &chunk::DONE.to_be_bytes());
    }
    read
}

/// Writes the allocation of a range. Parts beyond the range are cut off. Without extents, the whole
/// range counts as data.
pub(crate) fn status(
    output: &mut OutputBytes,
    request: &NbdRequest,
    extents: impl IntoIterator<Item = StatusExtent>,
) {
    let header = output.mark();
    put_chunk(output, chunk::DONE, chunk::BLOCK_STATUS, request.cookie, 0);
    output.put_u32(wire::ALLOCATION_CONTEXT_ID);
    let mut left = request.length_bytes;
    for extent in extents {
        // Extents of no bytes are forbidden by the protocol.
        let length = extent.length_bytes.min(left);
        if length == 0 {
            continue;
        }
        output.put_u32(length);
        output.put_u32(extent.state.bits());
        left -= length;
        if left == 0 || request.flags.contains(CommandFlags::ONE_EXTENT) {
            break;
        }
    }
    // A reply needs at least one extent.
    if left == request.length_bytes {
        output.put_u32(left);
        output.put_u32(0);
    }
    let payload = header + wire::STRUCTURED_REPLY_BYTES;
    let payload_bytes = (output.mark() - payload) as u32;
    output.patch(payload - 4, &payload_bytes.to_be_bytes());
}

fn put_simple(output: &mut OutputBytes, error: u32, cookie: u64) {
    let mut bytes = [0; wire::SIMPLE_REPLY_BYTES];
    bytes[..4].copy_from_slice(&wire::SIMPLE_REPLY.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    output.put(&bytes);
}

fn put_chunk(output: &mut OutputBytes, flags: u16, kind: u16, cookie: u64, length: u32) {
    let mut bytes = [0; wire::STRUCTURED_REPLY_BYTES];
    bytes[..4].copy_from_slice(&wire::STRUCTURED_REPLY.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..].copy_from_slice(&length.to_be_bytes());
    output.put(&bytes);
}

/// Writes the header of a chunk with `length` bytes of data.
fn put_data_chunk(output: &mut OutputBytes, flags: u16, cookie: u64, offset: u64, length: usize) {
    put_chunk(output, flags, chunk::OFFSET_DATA, cookie, 8 + length as u32);
    output.put_u64(offset);
}
