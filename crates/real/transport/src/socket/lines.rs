//! Lines of bounded length from a peer.

use crate::socket::peers::Peer;
use std::io;
use std::time::Instant;

/// Number of bytes per read.
const PIECE_BYTES: usize = 16 << 10;

/// Reads lines.
pub(crate) struct LineReader<'peer> {
    peer: &'peer Peer,
    /// Received bytes not yet returned.
    buffer: Vec<u8>,
    longest_bytes: usize,
}

/// Reason why there is no line.
#[derive(Debug)]
pub(crate) enum LineError {
    /// The line is longer than the limit.
    TooLong,
    /// An error of the host, or a missed deadline.
    Host(io::Error),
}

impl<'peer> LineReader<'peer> {
    pub(crate) fn new(peer: &'peer Peer, longest_bytes: usize) -> LineReader<'peer> {
        LineReader {
            peer,
            buffer: Vec::new(),
            longest_bytes,
        }
    }

    /// Returns the next line with its end; `None` after the last. Bytes behind the end of the last
    /// line are no line.
    pub(crate) fn next_by(&mut self, deadline: Instant) -> Result<Option<Vec<u8>>, LineError> {
        let mut searched = 0;
        loop {
            if let Some(length) = self.buffer[searched..]
                .iter()
                .position(|&byte| byte == b'\n')
            {
                let rest = self.buffer.split_off(searched + length + 1);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            searched = self.buffer.len();
            if searched > self.longest_bytes {
                return Err(LineError::TooLong);
            }
            if self.receive(deadline).map_err(LineError::Host)? == 0 {
                return Ok(None);
            }
        }
    }

    /// Returns the beginning of a line whose end has not come.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer
    }

    fn receive(&mut self, deadline: Instant) -> io::Result<usize> {
        let filled = self.buffer.len();
        self.buffer.resize(filled + PIECE_BYTES, 0);
        let received = self.peer.read_by(deadline, &mut self.buffer[filled..]);
        self.buffer
            .truncate(filled + *received.as_ref().unwrap_or(&0));
        received
    }
}
