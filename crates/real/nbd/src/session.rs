//! What was agreed on when an export was opened.

/// Whether a server offers TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// It does not.
    #[default]
    Off,
    /// To clients that ask for it; others are served in the clear.
    Offered,
    /// Nothing is told or done before TLS has begun.
    Required,
}

/// The terms of the transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// The number of the export.
    pub(crate) export: usize,
    /// Replies to reads come in chunks.
    pub(crate) structured: bool,
    /// The client may ask which parts are allocated.
    pub(crate) status: bool,
}
