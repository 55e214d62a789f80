//! An array as a block device of ublk.

use super::carrying;
use super::jobs::ServerJob;
use super::state::ServerState;
use crate::array::Array;
use crate::{ArrayError, RequestScratch, Uuid};
use fullstroke_nbd::{self as nbd, CommandFlags, RequestCommand};
use fullstroke_transport::ublk::{
    DeviceProperties, Serves, UblkDisk, UblkError, UblkOperation, UblkRequest,
};
use std::io;
use std::sync::Arc;

/// Largest length of a discard, so none takes too long.
const DISCARDED_BYTES_MAX: u64 = 64 << 20;

impl From<UblkError> for ArrayError {
    fn from(error: UblkError) -> ArrayError {
        ArrayError::Refused(error.to_string())
    }
}

/// Checks that an array can be a block device here: `--ublk`.
///
/// # Errors
/// The kernel has no ublk, or one that is too old, or this user may not use it.
pub fn check_ublk() -> Result<(), ArrayError> {
    Ok(fullstroke_transport::ublk::check()?)
}

pub(super) fn open(server: &Arc<ServerState>) -> Result<UblkDisk, ArrayError> {
    Ok(UblkDisk::open(
        &form(&server.array),
        Arc::clone(server) as _,
    )?)
}

fn form(array: &Array) -> DeviceProperties {
    let block = array.block_bytes();
    DeviceProperties {
        size_bytes: array.capacity().bytes().0 / block * block,
        block_bytes: block as u32,
        rotates: true,
        discarded_bytes_max: if array.trims() {
            discarded_bytes_max(array)
        } else {
            0
        },
        label: label(array.uuid()),
    }
}

/// Returns the largest discard as a multiple of a row, because only whole rows give room back. The
/// kernel cuts a longer discard into parts of this length, and each part then covers whole rows.
fn discarded_bytes_max(array: &Array) -> u32 {
    let row = array
        .facts
        .rows
        .map_or(array.block_bytes(), |rows| rows.data.bytes().0);
    let whole = DISCARDED_BYTES_MAX / row.max(1) * row;
    if whole > 0 {
        whole as u32
    } else {
        DISCARDED_BYTES_MAX as u32
    }
}

/// Returns a label for the block device. The members belong to this process alone. So an existing
/// block device with the array's label was left behind by an earlier server.
fn label(uuid: Uuid) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&uuid.bytes()[..8]);
    u64::from_le_bytes(first)
}

impl Serves for ServerState {
    fn asked(&self, request: UblkRequest) {
        self.jobs.add(ServerJob::OfDisk(request));
    }
}

/// Carries out a request like one of an NBD client, and answers it.
pub(super) fn carry_out(
    server: &ServerState,
    worker: &mut RequestScratch,
    request: UblkRequest,
    data: &mut Vec<u8>,
) {
    let done = try_out(server, worker, &request, data);
    request.answer(done.map_err(|error| number_of(&error)));
}

fn try_out(
    server: &ServerState,
    worker: &mut RequestScratch,
    request: &UblkRequest,
    data: &mut Vec<u8>,
) -> Result<(), ArrayError> {
    let moved = |result: io::Result<()>| {
        result.map_err(|error| ArrayError::device("/dev/ublkc".to_owned(), "move data of", error))
    };
    let operation = request.operation();
    if operation == UblkOperation::Write {
        data.resize(request.length_bytes() as usize, 0);
        moved(request.take(data))?;
    }
    carrying::carry_out(server, worker, &as_of_client(request), data)?;
    if operation == UblkOperation::Read {
        moved(request.give(data))
    } else {
        Ok(())
    }
}

fn as_of_client(request: &UblkRequest) -> nbd::NbdRequest {
    let mut flags = CommandFlags::default();
    flags.set(CommandFlags::FORCE_UNIT_ACCESS, request.is_durable());
    nbd::NbdRequest {
        cookie: 0,
        command: match request.operation() {
            UblkOperation::Read => RequestCommand::Read,
            UblkOperation::Write => RequestCommand::Write,
            UblkOperation::Flush => RequestCommand::Flush,
            UblkOperation::Discard => RequestCommand::Trim,
            UblkOperation::WriteZeroes => RequestCommand::WriteZeroes,
        },
        offset_bytes: request.offset_bytes(),
        // The device's limits are far below 4 GiB.
        length_bytes: request.length_bytes() as u32,
        flags,
    }
}

fn number_of(error: &ArrayError) -> i32 {
    match error {
        ArrayError::Device { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            libc::ENOSPC
        }
        _ => libc::EIO,
    }
}
