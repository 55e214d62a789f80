//! Numbers and texts from and to a stream.

use super::error::ClientError;
use std::io::Read;

pub(super) fn array<const COUNT: usize>(
    stream: &mut impl Read,
) -> Result<[u8; COUNT], ClientError> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn u16(stream: &mut impl Read) -> Result<u16, ClientError> {
    array(stream).map(u16::from_be_bytes)
}

pub(super) fn u32(stream: &mut impl Read) -> Result<u32, ClientError> {
    array(stream).map(u32::from_be_bytes)
}

pub(super) fn u64(stream: &mut impl Read) -> Result<u64, ClientError> {
    array(stream).map(u64::from_be_bytes)
}

/// Reads `length` bytes, unless the length is above `limit`. The limit bounds the memory that a
/// faulty server can claim.
pub(super) fn bytes(
    stream: &mut impl Read,
    what: &'static str,
    length: u32,
    limit: u32,
) -> Result<Vec<u8>, ClientError> {
    // The length is checked before the memory is allocated.
    if length > limit {
        return Err(ClientError::protocol(
            what,
            format_args!("{length} bytes"),
            "fewer; the server is at fault",
        ));
    }
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Checks a magic number.
pub(super) fn expect(
    what: &'static str,
    found: u64,
    wanted: u64,
    expected: &'static str,
) -> Result<(), ClientError> {
    if found == wanted {
        Ok(())
    } else {
        Err(ClientError::protocol(
            what,
            format_args!("{found:#x}"),
            expected,
        ))
    }
}
