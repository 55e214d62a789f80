//! A client's socket, in the clear or under TLS.

use crate::socket::sockets::Stream;
use crate::socket::tls::TlsConfig;
use rustls::ServerConnection;
use std::io::{self, Read as _, Write as _};

/// What is encrypted ahead of what the socket takes: two records.
const AHEAD_BYTES: usize = 32 << 10;
/// Reads of the socket (of 4 KiB, as rustls does them) in one read of a channel:
/// twice the input of a connection. Records without content end there, too.
const READS: usize = 32;

/// Bytes in and out.
///
/// What TLS holds for a client is bounded: what was decrypted from at most one
/// read of the socket, a record that has come in part (a message of the
/// handshake: 64 KiB), and `AHEAD_BYTES` to send.
pub struct Channel {
    stream: Stream,
    tls: Option<Box<ServerConnection>>,
    /// The bytes of output that still go out in the clear: the answer which says
    /// that TLS begins.
    clear: usize,
    /// Bytes that the socket took.
    written: u64,
    /// There may be something to read of which the socket will not tell.
    unread: bool,
}

impl Channel {
    /// A channel in the clear.
    pub fn new(stream: Stream) -> Channel {
        Channel {
            stream,
            tls: None,
            clear: 0,
            written: 0,
            unread: false,
        }
    }

    /// Encrypts from now on, but for so many bytes that are sent first.
    ///
    /// # Errors
    /// The configuration's.
    pub fn start_tls(&mut self, config: TlsConfig, clear: usize) -> io::Result<()> {
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        tls.set_buffer_limit(Some(AHEAD_BYTES));
        self.tls = Some(Box::new(tls));
        self.clear = clear;
        Ok(())
    }

    /// The socket.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Bytes that the socket took.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether a read may bring something though the socket is not readable.
    pub fn has_unread(&self) -> bool {
        self.unread
    }

    /// Whether something encrypted waits for the socket.
    pub fn is_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// The memory that is held for what waits for the socket.
    pub fn held_bytes(&self) -> u64 {
        if self.is_unsent() {
            AHEAD_BYTES as u64
        } else {
            0
        }
    }

    /// Reads what there is, as far as it fits; 0 is the end.
    ///
    /// # Errors
    /// The host's; `WouldBlock` if nothing has come; what breaks the rules of TLS.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.stream.read(into);
        };
        let mut count = 0;
        self.unread = true;
        for _ in 0..READS {
            let ended = decrypted(tls, into, &mut count)?;
            if count == into.len() || (ended && count > 0) {
                return Ok(count);
            }
            if ended {
                self.unread = false;
                return Ok(0);
            }
            match tls.read_tls(&mut self.stream) {
                // An end without a word: what was cut off ends no request.
                Ok(0) => {
                    self.unread = count > 0;
                    return Ok(count);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.unread = false;
                    return if count > 0 && error.kind() == io::ErrorKind::WouldBlock {
                        Ok(count)
                    } else {
                        Err(error)
                    };
                }
            }
            if let Err(error) = tls.process_new_packets() {
                // It is told why, if the socket takes it.
                let _ = tls.write_tls(&mut self.stream);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
        if count > 0 {
            Ok(count)
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    /// Sends what waits, then takes from the beginning of `output`, and tells how
    /// much.
    ///
    /// # Errors
    /// The host's; `WouldBlock` if the socket takes nothing.
    pub fn send(&mut self, output: &[u8]) -> io::Result<usize> {
        let tls = match &mut self.tls {
            Some(tls) if self.clear == 0 => tls,
            encrypts => {
                let length = if encrypts.is_some() {
                    self.clear.min(output.len())
                } else {
                    output.len()
                };
                let count = self.stream.write(&output[..length])?;
                self.clear -= count.min(self.clear);
                self.written += count as u64;
                return Ok(count);
            }
        };
        while tls.wants_write() {
            self.written += tls.write_tls(&mut self.stream)? as u64;
        }
        tls.writer().write(output)
    }

    /// So many bytes in the clear have been sent by another way.
    pub(crate) fn sent_in_clear(&mut self, count: usize) {
        self.clear -= count.min(self.clear);
    }

    /// Says that nothing more comes, if the socket takes it.
    pub fn say_goodbye(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.stream);
        }
    }
}

/// Moves what was decrypted behind the first `count` bytes; answers whether that
/// was the end.
fn decrypted(tls: &mut ServerConnection, into: &mut [u8], count: &mut usize) -> io::Result<bool> {
    while *count < into.len() {
        match tls.reader().read(&mut into[*count..]) {
            Ok(0) => return Ok(true),
            Ok(more) => *count += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
