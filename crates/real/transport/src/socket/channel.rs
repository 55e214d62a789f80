//! A client's socket, in the clear or under TLS.

use crate::socket::sockets::ClientSocket;
use crate::socket::tls::TlsConfig;
use rustls::ServerConnection;
use std::io::{self, Read as _, Write as _};

/// Largest amount of encrypted data waiting for the socket: two records.
const AHEAD_BYTES: usize = 32 << 10;
/// Largest number of socket reads in one read of a channel. rustls reads 4 KiB at a time, so this
/// is twice the input buffer of a connection. The limit also ends a stream of records without
/// content.
const READS: usize = 32;

/// A socket with optional TLS.
///
/// The memory of TLS for a client has three bounded parts. They are the decrypted data of at most
/// one read of the socket, a partly received record (a handshake message: 64 KiB), and
/// `AHEAD_BYTES` to send.
pub struct Channel {
    stream: ClientSocket,
    tls: Option<Box<ServerConnection>>,
    /// Number of output bytes still to be sent in the clear: the answer announcing TLS.
    clear: usize,
    /// Number of bytes accepted by the socket.
    written: u64,
    /// True if there may be data to read although the socket is not readable.
    unread: bool,
}

impl Channel {
    /// Creates a channel without TLS.
    pub fn new(stream: ClientSocket) -> Channel {
        Channel {
            stream,
            tls: None,
            clear: 0,
            written: 0,
            unread: false,
        }
    }

    /// Starts encryption. The first `clear` bytes of the output are still sent in the clear.
    ///
    /// # Errors
    /// The error of the configuration.
    pub fn start_tls(&mut self, config: TlsConfig, clear: usize) -> io::Result<()> {
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        tls.set_buffer_limit(Some(AHEAD_BYTES));
        self.tls = Some(Box::new(tls));
        self.clear = clear;
        Ok(())
    }

    /// Returns the socket.
    pub fn stream(&self) -> &ClientSocket {
        &self.stream
    }

    /// Returns the number of bytes accepted by the socket.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns true if a read may return data although the socket is not readable.
    pub fn has_unread(&self) -> bool {
        self.unread
    }

    /// Returns true if encrypted data wait for the socket.
    pub fn is_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Returns the memory held for data waiting for the socket, in bytes.
    pub fn held_bytes(&self) -> u64 {
        if self.is_unsent() {
            AHEAD_BYTES as u64
        } else {
            0
        }
    }

    /// Reads the available data, as far as they fit. Returns 0 at the end.
    ///
    /// # Errors
    /// An error of the host; `WouldBlock` if nothing has arrived; a violation of TLS.
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
                // An end without a TLS close message. A truncated stream ends no request, so this
                // is harmless.
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
                // The peer receives the TLS alert, if the socket accepts it.
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

    /// Sends waiting data, then data from the beginning of `output`. Returns the number of bytes
    /// taken from `output`.
    ///
    /// # Errors
    /// An error of the host; `WouldBlock` if the socket accepts nothing.
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

    /// Records that `count` clear bytes were sent directly over the socket.
    pub(crate) fn sent_in_clear(&mut self, count: usize) {
        self.clear -= count.min(self.clear);
    }

    /// Sends the TLS close message, if the socket accepts it.
    pub fn say_goodbye(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.stream);
        }
    }
}

/// Moves decrypted data behind the first `count` bytes. Returns true at the end of the stream.
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
