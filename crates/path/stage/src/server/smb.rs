//! SMB 3 without signing, as Samba has it. A read or write takes a credit for each 64 KiB (MS-SMB2,
//! 3.2.4.1.5). A flush of a client is an fsync, if `strict sync` is on; otherwise the server answers
//! at once.

use super::config::{FlushRule, ServerKeys, ServiceRules, foreign, number, size};
use fullstroke_contract::ConfigError;
use fullstroke_units::Bytes;

/// Largest read and write: `smb2 max read` and `smb2 max write` of Samba.
const LARGEST: Bytes = Bytes(8 << 20);
/// Usual read and write of Linux's client: `SMB3_DEFAULT_IOSIZE`. Windows asks for 1 MiB.
const USUAL: Bytes = Bytes(4 << 20);
/// `smb2 max credits`.
const CREDITS: u32 = 8192;
/// Bytes for each credit.
const CREDIT: u64 = 65_536;
/// `aio max threads`, of each client's smbd.
const THREADS: u32 = 100;
/// Header of SMB2, and the fixed part of a read or write.
const HEADER: Bytes = Bytes(116);

/// Returns the rules of SMB.
///
/// # Errors
/// An impossible value, or a key of NFS.
pub(super) fn rules(keys: &ServerKeys) -> Result<ServiceRules, ConfigError> {
    foreign("slots", keys.slots.is_some(), "nfs")?;
    let strict = keys.strict_sync.unwrap_or(true);
    Ok(ServiceRules {
        rsize: size("rsize", keys.rsize, USUAL, LARGEST)?,
        wsize: size("wsize", keys.wsize, USUAL, LARGEST)?,
        window: number("credits", keys.credits, CREDITS)?.into(),
        unit: Some(CREDIT),
        threads: number("threads", keys.threads, THREADS)?,
        threads_of_client: true,
        flush: if strict {
            FlushRule::Always
        } else {
            FlushRule::Nothing
        },
        forces_writes: strict,
        header: HEADER,
    })
}
