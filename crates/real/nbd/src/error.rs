//! Why a connection must be closed.

use thiserror::Error;

/// What a client did that leaves nothing but to close the connection. What
/// harms only one option or one request is answered instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The client set flags that were not offered.
    #[error(
        "client flags: found {found:#010x}; expected none but {offered:#x} (fixed newstyle, no zeroes)"
    )]
    ClientFlags {
        /// What it sent.
        found: u32,
        /// What it may send.
        offered: u32,
    },
    /// An option does not begin like one.
    #[error(
        "byte {position} of the stream: found {found:#018x}; expected an option, which begins with 0x49484156454f5054"
    )]
    OptionMagic {
        /// Where in the client's stream, from 0.
        position: u64,
        /// What stands there.
        found: u64,
    },
    /// A request does not begin like one.
    #[error(
        "byte {position} of the stream: found {found:#010x}; expected a request, which begins with 0x25609513"
    )]
    RequestMagic {
        /// Where in the client's stream, from 0.
        position: u64,
        /// What stands there.
        found: u32,
    },
    /// The old way of choosing an export, which has no room for an error.
    #[error(
        "export name: found `{name}`, which is not offered; expected one that the list of exports shows"
    )]
    UnknownExport {
        /// What the client asked for, up to its 256th byte.
        name: String,
    },
    /// The old way of choosing an export, in the clear, where TLS is required.
    #[error("export name: found it in the clear; expected TLS first (NBD_OPT_STARTTLS)")]
    TlsRequired,
    /// Something came in the clear behind the wish for TLS.
    #[error(
        "byte {position} of the stream: found something in the clear behind NBD_OPT_STARTTLS; expected TLS"
    )]
    AheadOfTls {
        /// Where in the client's stream, from 0.
        position: u64,
    },
    /// Haggling went on for too many options.
    #[error(
        "handshake: found more than {limit} options; expected the client to open an export by then"
    )]
    TooManyOptions {
        /// How many are taken.
        limit: u32,
    },
    /// Haggling went on for too many bytes.
    #[error("handshake: found options of {found} bytes in all; expected at most {limit}")]
    HandshakeTooLong {
        /// What the client sent or announced.
        found: u64,
        /// How much is taken.
        limit: u64,
    },
    /// A write so long that its payload is not even skipped.
    #[error(
        "byte {position} of the stream: found a write of {found} bytes; expected at most {limit}"
    )]
    PayloadTooLong {
        /// Where the request begins in the client's stream, from 0.
        position: u64,
        /// Its length.
        found: u32,
        /// What would still be skipped.
        limit: u32,
    },
}
