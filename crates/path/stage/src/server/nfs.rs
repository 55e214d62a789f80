//! NFS 4.1, as Linux has it: WRITE is UNSTABLE, and COMMIT makes the data durable (RFC 8881, 18.32
//! and 18.3). A forced write is FILE_SYNC.

use super::config::{FlushRule, ServerKeys, ServiceRules, foreign, number, size};
use fullstroke_contract::ConfigError;
use fullstroke_units::Bytes;

/// Largest and usual read and write: `NFS_MAX_FILE_IO_SIZE`.
const LARGEST: Bytes = Bytes(1 << 20);
/// Calls in flight: `NFS4_DEF_SLOT_TABLE_SIZE`.
const SLOTS: u32 = 64;
/// Threads of nfsd, of all clients, since nfs-utils 2.7.
const THREADS: u32 = 16;
/// RPC, SEQUENCE, PUTFH, the operation and GETATTR.
const HEADER: Bytes = Bytes(240);

/// Returns the rules of NFS.
///
/// # Errors
/// An impossible value, or a key of SMB.
pub(super) fn rules(keys: &ServerKeys) -> Result<ServiceRules, ConfigError> {
    foreign("credits", keys.credits.is_some(), "smb")?;
    foreign("strict_sync", keys.strict_sync.is_some(), "smb")?;
    Ok(ServiceRules {
        rsize: size("rsize", keys.rsize, LARGEST, LARGEST)?,
        wsize: size("wsize", keys.wsize, LARGEST, LARGEST)?,
        window: number("slots", keys.slots, SLOTS)?.into(),
        unit: None,
        threads: number("threads", keys.threads, THREADS)?,
        threads_of_client: false,
        flush: FlushRule::Commit,
        forces_writes: true,
        header: HEADER,
    })
}
