//! The NBD protocol as a state machine. Bytes go in and requests come out; answers go in and bytes
//! come out. The crate opens no socket, reads no clock and spawns no thread.
//!
//! [`Connection`] is the server's side of one connection. Its documentation explains the driver's
//! duties and the bounds on memory. [`client`] is a small client over any stream. The protocol is
//! `doc/proto.md` of the NBD project: fixed newstyle handshake, simple and structured replies,
//! `base:allocation`, without extended headers. The crate only detects the start of TLS; encryption
//! is the driver's task.
//!
//! | file | contents |
//! |---|---|
//! | `export.rs` | exports of a server |
//! | `connection.rs` | one client: the state machine as a whole |
//! | `handshake.rs` | from the greeting to an open export |
//! | `options.rs` | the answer to each option |
//! | `session.rs` | agreed terms |
//! | `transmission.rs` | requests and payloads |
//! | `check.rs` | validity of a request |
//! | `request.rs` | commands, flags, errors, extents |
//! | `reply.rs` | answers, simple and in chunks |
//! | `input.rs`, `output.rs`, `pool.rs` | received bytes, bytes to send, recycled buffers |
//! | `error.rs` | reasons for closing a connection |
//! | `wire.rs` | the protocol's numbers |
//! | `client/` | the client's side, for tests and tools |
//!
//! A server of zeroes, without its socket:
//!
//! ```
//! use fullstroke_nbd::{RequestCommand, Connection, ConnectionEvent, Export, Exports};
//! use std::sync::Arc;
//!
//! let exports = Arc::new(Exports::new(vec![Export::new("disk", 1 << 30)])?);
//! let mut connection = Connection::new(exports);
//!
//! let mut arrived = |bytes: &[u8]| -> Result<Vec<u8>, Box<dyn std::error::Error>> {
//!     connection.space()[..bytes.len()].copy_from_slice(bytes);
//!     connection.filled(bytes.len());
//!     while let Some(event) = connection.next_event()? {
//!         let ConnectionEvent::Request { request, payload } = event else { continue };
//!         match request.command {
//!             RequestCommand::Read => connection.reply_read(&request, |data| {
//!                 data.fill(0);
//!                 Ok(())
//!             }),
//!             RequestCommand::BlockStatus => connection.reply_status(&request, []),
//!             _ => connection.reply_done(&request),
//!         }
//!         connection.recycle(payload);
//!     }
//!     let sent = connection.output().to_vec();
//!     connection.consumed(sent.len());
//!     Ok(sent)
//! };
//!
//! // Client flags, then NBD_OPT_EXPORT_NAME with the empty name.
//! let answer = arrived(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0")?;
//! assert_eq!(answer.len(), 18 + 10); // the greeting, size and flags
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
pub mod client;
mod connection;
mod error;
mod export;
mod handshake;
mod input;
mod options;
mod output;
mod pool;
mod reply;
mod request;
mod session;
mod terms;
mod transmission;
mod wire;

pub use connection::{Connection, ConnectionEvent, Limits};
pub use error::ProtocolError;
pub use export::{Export, ExportError, Exports, Features, PAYLOAD_BYTES_MAX};
pub use reply::ReplyPiece;
pub use request::{Allocation, CommandFlags, ErrorCode, NbdRequest, RequestCommand, StatusExtent};
pub use session::Encryption;
