//! What was agreed on when an export was opened.

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
