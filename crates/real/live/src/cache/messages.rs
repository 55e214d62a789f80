//! Messages for the loop of a cache, and the reasons for its end.

use crate::SignalExtent;
use fullstroke_contract::ConfigError;
use fullstroke_nbd::client::ClientError;
use fullstroke_nbd::{ExportError, NbdRequest};
use fullstroke_transport::socket::{NbdClient, TlsError};
use fullstroke_units::SECTOR_BYTES;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// Reason why there is no cache, or why a cache has ended.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The settings of the memory are invalid.
    #[error("memory: {0}")]
    Memory(#[from] ConfigError),
    /// The server below cannot be used, or has disconnected.
    #[error("{}: {source}; expected the socket of an NBD server that is running, and an export of it", socket.display())]
    Below {
        /// Socket of the server below.
        socket: PathBuf,
        /// Error of the connection.
        source: ClientError,
    },
    /// The server below disconnected while there were dirty pages.
    #[error(
        "the server below has gone ({source}): {dirty_bytes} bytes that were written and not flushed are lost"
    )]
    Gone {
        /// Error of the connection.
        source: ClientError,
        /// Unwritten dirty bytes.
        dirty_bytes: u64,
    },
    /// The size of the export is no whole number of sectors.
    #[error("{}: found an export of {found} bytes; expected whole sectors of {SECTOR_BYTES}", socket.display())]
    Size {
        /// Socket of the server below.
        socket: PathBuf,
        /// Size of the export in bytes.
        found: u64,
    },
    /// A certificate or key is unusable.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server of the signals has disconnected.
    #[error("{}: the server has gone: {why}", control.display())]
    Silent {
        /// Control socket of the server.
        control: PathBuf,
        /// Reason of the missing answer.
        why: String,
    },
    /// The export for clients is invalid.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// At the end some data could not be written below.
    #[error("some writes failed at the server below: see its errors")]
    Lost,
    /// Any other error of the host.
    #[error("{what}: {source}")]
    Host {
        /// Name of the failed step.
        what: String,
        /// Error of the host.
        source: io::Error,
    },
}

/// A message for the loop.
pub(crate) enum LoopMessage {
    Asked {
        client: Arc<NbdClient>,
        request: NbdRequest,
        payload: Vec<u8>,
    },
    Ended {
        id: u64,
        result: Result<Vec<u8>, ()>,
    },
    Gone(ClientError),
    /// Received signals, and the channel for the number of written sectors.
    Signals {
        signals: Vec<SignalExtent>,
        missed: u64,
        wrote: Sender<u64>,
    },
    Stop,
}
