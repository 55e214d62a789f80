//! The server: one thread for each client reads the requested data and sends them.

use crate::stream_test::medium::{Medium, StreamReader};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread::Scope;

/// Length of a question: the number of the file and of the read, little-endian.
pub(crate) const QUESTION_BYTES: usize = 12;

/// A failed read.
pub(crate) struct FailedRead {
    pub(crate) file: u32,
    pub(crate) read: u64,
    pub(crate) source: io::Error,
}

/// Listens on the loopback interface.
pub(crate) struct FileServer<'a> {
    medium: &'a Medium,
    listener: TcpListener,
    /// First failed read.
    pub(crate) failed: Mutex<Option<FailedRead>>,
}

impl<'a> FileServer<'a> {
    pub(crate) fn open(medium: &'a Medium) -> io::Result<FileServer<'a>> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        Ok(FileServer {
            medium,
            listener,
            failed: Mutex::new(None),
        })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves the next client on a thread of its own, until the client closes the connection.
    pub(crate) fn accept<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> io::Result<()> {
        let (stream, _) = self.listener.accept()?;
        stream.set_nodelay(true)?;
        let reader = self.medium.source.reader()?;
        std::thread::Builder::new()
            .name("server".into())
            .spawn_scoped(scope, move || self.serve(stream, reader))
            .map(drop)
    }

    /// Serves one client. A closed connection ends the service.
    fn serve(&self, mut stream: TcpStream, mut reader: Box<dyn StreamReader>) {
        let mut question = [0; QUESTION_BYTES];
        while stream.read_exact(&mut question).is_ok() {
            let (file, read) = understood(question);
            match reader.read(file, read) {
                Ok(bytes) => {
                    if stream.write_all(bytes).is_err() {
                        return;
                    }
                }
                Err(source) => {
                    if let Ok(mut failed) = self.failed.lock() {
                        failed.get_or_insert(FailedRead { file, read, source });
                    }
                    return;
                }
            }
        }
    }
}

pub(crate) fn question(file: u32, read: u64) -> [u8; QUESTION_BYTES] {
    let mut bytes = [0; QUESTION_BYTES];
    bytes[..4].copy_from_slice(&file.to_le_bytes());
    bytes[4..].copy_from_slice(&read.to_le_bytes());
    bytes
}

fn understood(bytes: [u8; QUESTION_BYTES]) -> (u32, u64) {
    let (file, read) = bytes.split_at(4);
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    (number(file) as u32, number(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_understood() {
        for (file, read) in [(0, 0), (7, 1), (u32::MAX, u64::MAX), (258, 1 << 40)] {
            assert_eq!(understood(question(file, read)), (file, read));
        }
    }
}
