//! The keys of `[shared.server]`.

use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The keys of `server` in `[shared]`: hosts reach their files over a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerKeys {
    /// The protocol: "nfs" (4.1) or "smb" (3).
    pub protocol: ServerProtocol,
    /// Largest read in one call. Default: "1MiB" with nfs, "4MiB" with smb.
    #[serde(default)]
    pub rsize: Option<Bytes>,
    /// Largest write in one call. Default: "1MiB" with nfs, "4MiB" with smb.
    #[serde(default)]
    pub wsize: Option<Bytes>,
    /// Number of calls that a client may have in flight (nfs: `max_session_slots`). Default: 64.
    #[serde(default)]
    pub slots: Option<u32>,
    /// Number of credits of a client, each for 64 KiB (smb: `smb2 max credits`). Default: 8192.
    #[serde(default)]
    pub credits: Option<u32>,
    /// Number of calls that the server works on at a time. Default: 16 threads for all clients with
    /// nfs (nfsd; 8 before nfs-utils 2.7), 100 for each client with smb (`aio max threads`).
    #[serde(default)]
    pub threads: Option<u32>,
    /// With smb: true if a flush of a client is an fsync (`strict sync`). Default: true.
    #[serde(default)]
    pub strict_sync: Option<bool>,
    /// Line rate of each client in 10^6 bytes a second, in each direction. Default: 125 (1 Gbit/s).
    #[serde(default = "gigabit")]
    pub client_mb_per_s: f64,
    /// Line rate of the server in 10^6 bytes a second, in each direction. Default: 1250 (10 Gbit/s).
    #[serde(default = "ten_gigabit")]
    pub server_mb_per_s: f64,
    /// Time of a message from one end to the other, besides its time on the wire. Default: "50us".
    #[serde(default = "latency")]
    pub latency: Duration,
}

/// The protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerProtocol {
    /// NFS 4.1: unstable writes, made durable by COMMIT.
    Nfs,
    /// SMB 3 with large requests, without signing.
    Smb,
}

fn gigabit() -> f64 {
    // 1 Gbit/s in MB/s. The headers of each frame count separately.
    125.0
}

fn ten_gigabit() -> f64 {
    1250.0
}

fn latency() -> Duration {
    Duration::from_micros(50)
}

/// Handling of a client's flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlushRule {
    /// A COMMIT, if the client has unstable data.
    Commit,
    /// A flush, always.
    Always,
    /// A call that the server answers without work.
    Nothing,
}

/// The rules of a protocol, with the keys applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServiceRules {
    pub(super) rsize: Sectors,
    pub(super) wsize: Sectors,
    /// Size of a client's window.
    pub(super) window: u64,
    /// Bytes for each unit of the window; `None` if each call takes one unit.
    pub(super) unit: Option<u64>,
    pub(super) threads: u32,
    /// True if each client has the threads for itself.
    pub(super) threads_of_client: bool,
    pub(super) flush: FlushRule,
    /// True if the server makes a forced write durable before its reply.
    pub(super) forces_writes: bool,
    /// Bytes of a call or reply besides the data.
    pub(super) header: Bytes,
}

impl ServiceRules {
    /// Returns the part of the window that a call with `bytes` takes.
    pub(super) fn charge(&self, bytes: u64) -> u64 {
        self.unit.map_or(1, |unit| bytes.div_ceil(unit).max(1))
    }

    /// Returns the number of threads for this number of clients.
    pub(super) fn threads_for(&self, clients: u32) -> u32 {
        if self.threads_of_client {
            self.threads.saturating_mul(clients)
        } else {
            self.threads
        }
    }
}

/// Returns a size of a call in sectors: a multiple of 4 KiB, up to `most`.
pub(super) fn size(
    key: &str,
    given: Option<Bytes>,
    default: Bytes,
    most: Bytes,
) -> Result<Sectors, ConfigError> {
    let size = given.unwrap_or(default);
    if size.0 == 0 || size.0 > most.0 || !size.0.is_multiple_of(4096) {
        let message = format!("found {size}; expected a multiple of 4KiB up to {most}");
        return Err(ConfigError::new(key, message));
    }
    Ok(Sectors(size.0 / SECTOR_BYTES))
}

/// Returns a number of at least 1.
pub(super) fn number(key: &str, given: Option<u32>, default: u32) -> Result<u32, ConfigError> {
    match given.unwrap_or(default) {
        0 => Err(ConfigError::new(key, "found 0; expected at least 1")),
        number => Ok(number),
    }
}

/// Refuses a key of another protocol.
pub(super) fn foreign(key: &str, given: bool, of: &str) -> Result<(), ConfigError> {
    if given {
        let message = format!("a key of {of}; remove the key, or set protocol = \"{of}\"");
        return Err(ConfigError::new(key, message));
    }
    Ok(())
}
