//! The numbers of the protocol, as on the wire: all big-endian.

/// `NBDMAGIC`, the first eight bytes of a server.
pub(crate) const GREETING: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`, before the handshake flags and before each option.
pub(crate) const OPTION: u64 = 0x4948_4156_454f_5054;
pub(crate) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST: u32 = 0x2560_9513;
pub(crate) const SIMPLE_REPLY: u32 = 0x6744_6698;
pub(crate) const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Lengths of the client's flags, of an option's header and of a request's header, in bytes.
pub(crate) const CLIENT_FLAGS_BYTES: usize = 4;
pub(crate) const OPTION_HEADER_BYTES: usize = 16;
pub(crate) const REQUEST_BYTES: usize = 28;
/// Lengths of reply headers in bytes.
pub(crate) const OPTION_REPLY_BYTES: usize = 20;
pub(crate) const SIMPLE_REPLY_BYTES: usize = 16;
pub(crate) const STRUCTURED_REPLY_BYTES: usize = 20;
/// Number of zeroes behind the answer to an export name, unless the client asked for none.
pub(crate) const EXPORT_NAME_PADDING_BYTES: usize = 124;

/// Longest string of the protocol, in bytes.
pub(crate) const STRING_BYTES_MAX: usize = 4096;

/// Handshake flags; the client answers with the same bits.
pub(crate) const FIXED_NEWSTYLE: u32 = 1 << 0;
pub(crate) const NO_ZEROES: u32 = 1 << 1;

/// Transmission flags that do not depend on the export.
pub(crate) const HAS_FLAGS: u16 = 1 << 0;
pub(crate) const SEND_DF: u16 = 1 << 7;

/// Options.
pub(crate) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const STARTTLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

/// Types of replies to options.
pub(crate) mod option_reply {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    /// Bit of all error types.
    pub(crate) const ERROR: u32 = 1 << 31;
    pub(crate) const UNSUPPORTED: u32 = ERROR | 1;
    pub(crate) const INVALID: u32 = ERROR | 3;
    pub(crate) const TLS_REQUIRED: u32 = ERROR | 5;
    pub(crate) const UNKNOWN: u32 = ERROR | 6;
    pub(crate) const TOO_BIG: u32 = ERROR | 9;
}

/// Types of information on an export.
pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Types of requests.
pub(crate) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISCONNECT: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

/// Types of chunks of a structured reply.
pub(crate) mod chunk {
    /// Flag of a reply's last chunk.
    pub(crate) const DONE: u16 = 1 << 0;
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    /// Bit of all error types.
    pub(crate) const ERROR_BIT: u16 = 1 << 15;
    pub(crate) const ERROR: u16 = ERROR_BIT | 1;
    pub(crate) const ERROR_OFFSET: u16 = ERROR_BIT | 2;
}

/// The only metadata context, and its id where selected.
pub(crate) const ALLOCATION_CONTEXT: &str = "base:allocation";
pub(crate) const ALLOCATION_CONTEXT_ID: u32 = 1;
/// Query for all contexts of the namespace.
pub(crate) const BASE_NAMESPACE: &str = "base:";
