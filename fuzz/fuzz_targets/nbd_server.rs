//! Sends arbitrary bytes in arbitrary pieces to a server, and answers its requests.
//!
//! The first byte chooses the progress of the handshake, the second the length of the pieces. The
//! target checks three properties: no input causes a panic or a hang, requests lie within their
//! export, and the pieces do not change the output.
#![no_main]

use fullstroke_nbd::{
    Allocation, Connection, ConnectionEvent, ErrorCode, Export, Exports, Features, NbdRequest,
    ReplyPiece, RequestCommand, StatusExtent,
};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

static EXPORTS: LazyLock<Arc<Exports>> = LazyLock::new(|| {
    let mut disk = Export::new("disk", 1 << 16);
    disk.features |= Features::FAST_ZERO;
    disk.description = "fuzzed".into();
    let mut archive = Export::new("a", 1 << 40);
    archive.features |= Features::READ_ONLY;
    archive.block_bytes_min = 1;
    Arc::new(Exports::new(vec![disk, archive]).expect("the exports are sound"))
});

const FLAGS: &[u8] = b"\0\0\0\x03";
const STRUCTURED: &[u8] = b"IHAVEOPT\0\0\0\x08\0\0\0\0";
const STATUS: &[u8] = b"IHAVEOPT\0\0\0\x0a\0\0\0\x1b\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation";
const OPEN_DISK: &[u8] = b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk";
const OPEN_ARCHIVE: &[u8] = b"IHAVEOPT\0\0\0\x01\0\0\0\x01a";

fuzz_target!(|bytes: &[u8]| {
    let [done, length, rest @ ..] = bytes else {
        return;
    };
    let beginning: &[&[u8]] = match done % 5 {
        0 => &[],
        1 => &[FLAGS],
        2 => &[FLAGS, OPEN_DISK],
        3 => &[FLAGS, STRUCTURED, STATUS, OPEN_DISK],
        _ => &[FLAGS, STRUCTURED, OPEN_ARCHIVE],
    };
    let stream = [&beginning.concat(), rest].concat();
    let whole = converse(&stream, stream.len());
    let cut = converse(&stream, usize::from(*length) + 1);
    assert!(whole == cut, "the pieces make a difference");
});

/// Returns all sent bytes, and the error.
fn converse(stream: &[u8], length: usize) -> (Vec<u8>, Option<String>) {
    let mut connection = Connection::new(EXPORTS.clone());
    let mut export = &EXPORTS.all()[0];
    let mut sent = Vec::new();
    for mut piece in stream.chunks(length.max(1)) {
        while !piece.is_empty() && !connection.has_ended() {
            let space = connection.space();
            assert!(
                !space.is_empty(),
                "there is no space, and nothing more to do"
            );
            let count = space.len().min(piece.len());
            space[..count].copy_from_slice(&piece[..count]);
            connection.filled(count);
            piece = &piece[count..];
            loop {
                match connection.next_event() {
                    Ok(Some(ConnectionEvent::Opened { export: number })) => {
                        export = &EXPORTS.all()[number]
                    }
                    Ok(Some(ConnectionEvent::Request { request, payload })) => {
                        answer(&mut connection, export, &request, &payload);
                        connection.recycle(payload);
                    }
                    Ok(Some(ConnectionEvent::Disconnect)) => {}
                    Ok(Some(ConnectionEvent::StartTls)) => unreachable!("TLS is not offered"),
                    Ok(None) => break,
                    Err(error) => {
                        assert!(connection.has_ended());
                        sent.extend(connection.output());
                        return (sent, Some(error.to_string()));
                    }
                }
            }
            assert_eq!(connection.in_flight(), 0);
            sent.extend(connection.output());
            connection.consumed(connection.output().len());
        }
    }
    (sent, None)
}

/// Answers in one of all forms. The cookie chooses the form.
fn answer(connection: &mut Connection, export: &Export, request: &NbdRequest, payload: &[u8]) {
    let end = request.offset_bytes + u64::from(request.length_bytes);
    assert!(end <= export.size_bytes && end.is_multiple_of(export.block_bytes_min.into()));
    assert!(request.length_bytes > 0 || request.command == RequestCommand::Flush);
    let written = if request.command == RequestCommand::Write {
        request.length_bytes as usize
    } else {
        0
    };
    assert_eq!(payload.len(), written);
    let form = request.cookie % 5;
    match request.command {
        _ if form == 0 => connection.reply_error(request, ErrorCode::InputOutput, "fuzzed"),
        _ if form == 1 => {
            connection.reply_error_at(
                request,
                ErrorCode::NoSpace,
                request.offset_bytes,
                format_args!("{request:?}"),
            );
        }
        // Long reads are refused, because they would only measure the copying of zeros.
        RequestCommand::Read if request.length_bytes > 1 << 17 => {
            connection.reply_error(request, ErrorCode::TooLong, "too long to be fuzzed");
        }
        RequestCommand::Read if form == 2 => connection.reply_read(request, |data| {
            data.fill(1);
            Ok(())
        }),
        RequestCommand::Read if form == 3 => {
            connection.reply_read(request, |_| Err(ErrorCode::InputOutput))
        }
        RequestCommand::Read => {
            let (first, second) = (
                request.length_bytes / 3,
                request.length_bytes - request.length_bytes / 3,
            );
            let data = vec![2; second as usize];
            connection.reply_read_pieces(
                request,
                [
                    ReplyPiece::Hole {
                        length_bytes: first,
                    },
                    ReplyPiece::Data(&data),
                ],
            );
        }
        RequestCommand::BlockStatus => {
            let extent = StatusExtent {
                length_bytes: 4096,
                state: Allocation::HOLE,
            };
            connection.reply_status(request, std::iter::repeat_n(extent, form as usize));
        }
        _ => connection.reply_done(request),
    }
}
