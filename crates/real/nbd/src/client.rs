//! A small client over any stream. The client waits for each byte.
//!
//! | file | contents |
//! |---|---|
//! | `client.rs` | the client and its calls, one after the other |
//! | `client/handshake.rs` | opens and lists exports |
//! | `client/transmission.rs`, `client/pending.rs` | many requests at a time, and their answers |
//! | `client/stream.rs` | numbers and texts from and to a stream |
//! | `client/error.rs` | errors of a client |

mod error;
mod handshake;
mod pending;
mod stream;
mod transmission;

pub use error::{ClientError, ServerFailure};
pub use handshake::{ClientOptions, Opening, list};
pub use pending::RequestAnswer;

use crate::export::Features;
use crate::request::{CommandFlags, RequestCommand, StatusExtent};
use pending::PendingRequest;
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// An open export.
///
/// [`submit`](ExportClient::submit) and [`receive`](ExportClient::receive) keep many requests in
/// flight. The other calls are made one after the other, with no other request in flight.
#[derive(Debug)]
pub struct ExportClient<S> {
    stream: S,
    properties: Properties,
    next_cookie: u64,
    pending: BTreeMap<u64, PendingRequest>,
    /// Buffer for the outgoing request.
    message: Vec<u8>,
}

/// Properties of the export, as the server reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Size in bytes.
    pub size_bytes: u64,
    /// Features of the export.
    pub features: Features,
    /// True if replies come in chunks.
    pub structured: bool,
    /// True if the client may ask for the allocation of a range.
    pub status: bool,
    /// Smallest, preferred and largest block in bytes, if the server reports them.
    pub block_bytes: Option<[u32; 3]>,
}

impl<S: Read + Write> ExportClient<S> {
    /// Carries out the handshake and opens an export.
    ///
    /// # Errors
    /// If the stream failed, the server refused, or the answer is not NBD.
    pub fn connect(stream: S, options: &ClientOptions) -> Result<ExportClient<S>, ClientError> {
        let mut stream = stream;
        let properties = handshake::open(&mut stream, options)?;
        Ok(ExportClient {
            stream,
            properties,
            next_cookie: 1,
            pending: BTreeMap::new(),
            message: Vec::new(),
        })
    }

    /// Returns the properties of the export.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Returns the underlying stream.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Fills the buffer with data from `offset_bytes` on.
    ///
    /// # Errors
    /// If the server answered with an error, or as [`connect`](ExportClient::connect).
    pub fn read(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ClientError> {
        let length = buffer.len() as u32;
        let answer = self.call(
            RequestCommand::Read,
            offset_bytes,
            length,
            CommandFlags::empty(),
            &[],
        )?;
        buffer.copy_from_slice(&answer.data);
        Ok(())
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// As [`read`](ExportClient::read).
    pub fn write(
        &mut self,
        offset_bytes: u64,
        data: &[u8],
        flags: CommandFlags,
    ) -> Result<(), ClientError> {
        self.call(
            RequestCommand::Write,
            offset_bytes,
            data.len() as u32,
            flags,
            data,
        )
        .map(drop)
    }

    /// Makes all answered writes durable.
    ///
    /// # Errors
    /// As [`read`](ExportClient::read).
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.call(RequestCommand::Flush, 0, 0, CommandFlags::empty(), &[])
            .map(drop)
    }

    /// Discards a range.
    ///
    /// # Errors
    /// As [`read`](ExportClient::read).
    pub fn trim(&mut self, offset_bytes: u64, length_bytes: u32) -> Result<(), ClientError> {
        self.call(
            RequestCommand::Trim,
            offset_bytes,
            length_bytes,
            CommandFlags::empty(),
            &[],
        )
        .map(drop)
    }

    /// Writes zeroes.
    ///
    /// # Errors
    /// As [`read`](ExportClient::read).
    pub fn write_zeroes(
        &mut self,
        offset_bytes: u64,
        length_bytes: u32,
        flags: CommandFlags,
    ) -> Result<(), ClientError> {
        self.call(
            RequestCommand::WriteZeroes,
            offset_bytes,
            length_bytes,
            flags,
            &[],
        )
        .map(drop)
    }

    /// Announces a read of a range.
    ///
    /// # Errors
    /// As [`read`](ExportClient::read).
    pub fn cache(&mut self, offset_bytes: u64, length_bytes: u32) -> Result<(), ClientError> {
        self.call(
            RequestCommand::Cache,
            offset_bytes,
            length_bytes,
            CommandFlags::empty(),
            &[],
        )
        .map(drop)
    }

    /// Returns the allocated parts of a range.
    ///
    /// # Errors
    /// As [`read`](ExportClient::read).
    pub fn status(
        &mut self,
        offset_bytes: u64,
        length_bytes: u32,
        flags: CommandFlags,
    ) -> Result<Vec<StatusExtent>, ClientError> {
        Ok(self
            .call(
                RequestCommand::BlockStatus,
                offset_bytes,
                length_bytes,
                flags,
                &[],
            )?
            .extents)
    }

    /// Sends one request and waits for its answer.
    fn call(
        &mut self,
        command: RequestCommand,
        offset_bytes: u64,
        length_bytes: u32,
        flags: CommandFlags,
        payload: &[u8],
    ) -> Result<RequestAnswer, ClientError> {
        let cookie = self.submit(command, offset_bytes, length_bytes, flags, payload)?;
        let answer = self.receive()?;
        if answer.cookie != cookie {
            return Err(ClientError::protocol(
                "cookie",
                answer.cookie,
                "the one of the only request in flight; use `receive` where there are several",
            ));
        }
        match answer.result {
            Ok(()) => Ok(answer),
            Err(failure) => Err(ClientError::Failed { command, failure }),
        }
    }
}
