//! Lines of bounded length from a peer.

use crate::socket::peers::Peer;
use std::io;
use std::time::Instant;

/// Bytes that are asked for at a time.
const PIECE_BYTES: usize = 16 << 10;

/// Reads lines.
pub(crate) struct Lines<'peer> {
    peer: &'peer Peer,
    /// What has come and was not given out.
    buffer: Vec<u8>,
    longest_bytes: usize,
}

/// Why there is no line.
#[derive(Debug)]
pub(crate) enum LineError {
    /// It does not end where it should have by now.
    TooLong,
    /// The host's, or the deadline has passed.
    Host(io::Error),
}

impl<'peer> Lines<'peer> {
    pub(crate) fn new(peer: &'peer Peer, longest_bytes: usize) -> Lines<'peer> {
        Lines {
            peer,
            buffer: Vec::new(),
            longest_bytes,
        }
    }

    /// The next line with its end; `None` after the last. Whatever comes after
    /// the last line's end is no line.
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

    /// What has come of a line that does not end.
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
