//! Carrying requests out, and answering clients.

use super::state::ServerState;
use crate::{ArrayError, RequestScratch};
use fullstroke_nbd::{CommandFlags, Connection, ErrorCode, NbdRequest, RequestCommand};
use fullstroke_transport::socket::NbdClient;
use std::sync::Arc;

/// Carries out the request of a client and answers the client.
pub(super) fn answer_client(
    server: &ServerState,
    worker: &mut RequestScratch,
    client: &Arc<NbdClient>,
    (request, mut payload): (NbdRequest, Vec<u8>),
    data: &mut Vec<u8>,
) {
    let is_write = request.command == RequestCommand::Write;
    let done = carry_out(
        server,
        worker,
        &request,
        if is_write { &mut payload } else { &mut *data },
    );
    client.answer(|connection| answer(connection, &request, done, data, payload));
}

/// Carries out a request. `data` holds the bytes of the read or write.
pub(super) fn carry_out(
    server: &ServerState,
    worker: &mut RequestScratch,
    request: &NbdRequest,
    data: &mut Vec<u8>,
) -> Result<(), ArrayError> {
    let array = &server.array;
    let (at, length) = (request.offset_bytes, request.length_bytes);
    let done = match request.command {
        RequestCommand::Read => {
            data.resize(length as usize, 0);
            array.read(worker, at, data)
        }
        RequestCommand::Write => array.write(worker, at, data),
        RequestCommand::WriteZeroes => array.write_zeroes(worker, at, length.into()),
        RequestCommand::Flush => array.flush(),
        RequestCommand::Trim => array.trim(worker, at, length.into()),
        RequestCommand::Cache | RequestCommand::BlockStatus => Ok(()),
    };
    let durable =
        request.flags.contains(CommandFlags::FORCE_UNIT_ACCESS) && request.command.changes();
    let done = if durable {
        done.and_then(|()| array.flush())
    } else {
        done
    };
    server
        .counts
        .answered(request.command, length.into(), done.is_ok());
    done
}

fn answer(
    connection: &mut Connection,
    request: &NbdRequest,
    done: Result<(), ArrayError>,
    data: &[u8],
    payload: Vec<u8>,
) {
    match done {
        Err(error) => connection.reply_error(request, code_of(&error), &error),
        Ok(()) if request.command == RequestCommand::Read => {
            connection.reply_read(request, |into| {
                into.copy_from_slice(data);
                Ok(())
            })
        }
        Ok(()) if request.command == RequestCommand::BlockStatus => {
            connection.reply_status(request, [])
        }
        Ok(()) => connection.reply_done(request),
    }
    connection.recycle(payload);
}

fn code_of(error: &ArrayError) -> ErrorCode {
    match error {
        ArrayError::OutOfRange { .. } => ErrorCode::Invalid,
        ArrayError::Device { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            ErrorCode::NoSpace
        }
        _ => ErrorCode::InputOutput,
    }
}
