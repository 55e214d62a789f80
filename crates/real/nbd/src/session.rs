//! Terms agreed when an export was opened.

/// Use of TLS by a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// No TLS.
    #[default]
    Off,
    /// TLS for clients that ask for it; other clients are served in the clear.
    Offered,
    /// Nothing is answered before TLS has begun.
    Required,
}

/// The terms of the transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// Number of the export.
    pub(crate) export: usize,
    /// True if replies to reads come in chunks.
    pub(crate) structured: bool,
    /// True if the client may ask for allocated parts.
    pub(crate) status: bool,
}
