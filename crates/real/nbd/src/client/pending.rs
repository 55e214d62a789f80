//! Requests without a complete answer, and answers.

use super::error::ServerFailure;
use crate::request::{RequestCommand, StatusExtent};

/// A request without a complete answer.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) command: RequestCommand,
    pub(super) offset_bytes: u64,
    pub(super) length_bytes: u32,
    pub(super) covered_bytes: u64,
    pub(super) answer: RequestAnswer,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestAnswer {
    /// Cookie returned by [`ExportClient::submit`](super::ExportClient::submit).
    pub cookie: u64,
    /// Success, or the first error.
    pub result: Result<(), ServerFailure>,
    /// Data of a read, as long as the request; empty for other commands.
    pub data: Vec<u8>,
    /// Requested allocation status.
    pub extents: Vec<StatusExtent>,
    /// Number of chunks with data or holes; 0 for simple replies.
    pub content_chunks: u32,
}
