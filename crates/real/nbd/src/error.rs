//! Reasons for closing a connection.

use thiserror::Error;

/// A fault of a client after which the connection must be closed. A fault in only one option or one
/// request is answered instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The client set flags that were not offered.
    #[error(
        "client flags: found {found:#010x}; expected none but {offered:#x} (fixed newstyle, no zeroes)"
    )]
    ClientFlags {
        /// Flags of the client.
        found: u32,
        /// Flags that were offered.
        offered: u32,
    },
    /// An option has the wrong magic number.
    #[error(
        "byte {position} of the stream: found {found:#018x}; expected an option, which begins with 0x49484156454f5054"
    )]
    OptionMagic {
        /// Position in the client's stream, from 0.
        position: u64,
        /// Value at this position.
        found: u64,
    },
    /// A request has the wrong magic number.
    #[error(
        "byte {position} of the stream: found {found:#010x}; expected a request, which begins with 0x25609513"
    )]
    RequestMagic {
        /// Position in the client's stream, from 0.
        position: u64,
        /// Value at this position.
        found: u32,
    },
    /// Unknown export in `NBD_OPT_EXPORT_NAME`, whose answer has no room for an error.
    #[error(
        "export name: found `{name}`, which is not offered; expected a name from the list of exports"
    )]
    UnknownExport {
        /// Requested name, up to its 256th byte.
        name: String,
    },
    /// `NBD_OPT_EXPORT_NAME` in the clear, where TLS is required.
    #[error("export name: found it in the clear; expected TLS first (NBD_OPT_STARTTLS)")]
    TlsRequired,
    /// Unencrypted bytes behind the request for TLS.
    #[error(
        "byte {position} of the stream: found something in the clear behind NBD_OPT_STARTTLS; expected TLS"
    )]
    AheadOfTls {
        /// Position in the client's stream, from 0.
        position: u64,
    },
    /// The handshake took too many options.
    #[error(
        "handshake: found more than {limit} options; expected the client to open an export by then"
    )]
    TooManyOptions {
        /// Largest number of options.
        limit: u32,
    },
    /// The handshake took too many bytes.
    #[error("handshake: found options of {found} bytes in all; expected at most {limit}")]
    HandshakeTooLong {
        /// Number of bytes that the client sent or announced.
        found: u64,
        /// Largest number of bytes.
        limit: u64,
    },
    /// A write whose payload is too long even to be skipped.
    #[error(
        "byte {position} of the stream: found a write of {found} bytes; expected at most {limit}"
    )]
    PayloadTooLong {
        /// Position of the request in the client's stream, from 0.
        position: u64,
        /// Length of the payload.
        found: u32,
        /// Largest length of a skipped payload.
        limit: u32,
    },
}
