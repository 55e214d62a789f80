//! Unix sockets and TCP.

use rustix::fs::Mode;
use rustix::process::umask;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Who takes no answer for so long is cut off.
const SENDING: Duration = Duration::from_secs(30);
/// Only the owner may connect.
const OWNER: u32 = 0o600;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A unix socket at this path, its owner's alone.
    Unix(PathBuf),
    /// This address and port.
    Tcp(SocketAddr),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Unix(path) => write!(f, "{}", path.display()),
            Listen::Tcp(address) => write!(f, "{address}"),
        }
    }
}

pub(crate) enum Socket {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub(crate) fn open(listen: &Listen) -> io::Result<Socket> {
        match listen {
            Listen::Unix(path) => Ok(Socket::Unix(unix(path)?, path.clone())),
            Listen::Tcp(address) => Ok(Socket::Tcp(TcpListener::bind(address)?)),
        }
    }

    /// How clients name it.
    pub(crate) fn uri(&self) -> String {
        match self {
            Socket::Unix(_, path) => format!("nbd+unix:///?socket={}", path.display()),
            Socket::Tcp(socket) => match socket.local_addr() {
                Ok(address) => format!("nbd://{address}"),
                Err(error) => format!("nbd://? ({error})"),
            },
        }
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        loop {
            let accepted = match self {
                Socket::Unix(socket, _) => socket.accept().map(|(stream, _)| Stream::Unix(stream)),
                Socket::Tcp(socket) => socket.accept().map(|(stream, _)| Stream::Tcp(stream)),
            };
            match accepted {
                // Who hung up before, or no descriptor is free just now.
                Err(error) if error.raw_os_error() != Some(libc::EINVAL) => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                accepted => return accepted,
            }
        }
    }
}

/// A socket file that nobody listens on any more is taken over.
fn unix(path: &Path) -> io::Result<UnixListener> {
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        match UnixStream::connect(path) {
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens there")),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            Err(error) => return Err(error),
        }
    }
    let before = umask(Mode::from_bits_truncate(!OWNER & 0o777));
    let socket = UnixListener::bind(path);
    umask(before);
    socket
}

pub(crate) fn remove(listen: &Listen) {
    if let Listen::Unix(path) = listen {
        let _ = std::fs::remove_file(path);
    }
}

impl Stream {
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => { stream }.read(into),
            Stream::Tcp(stream) => { stream }.read(into),
        }
    }

    pub(crate) fn write_all(&self, from: &[u8]) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => { stream }.write_all(from),
            Stream::Tcp(stream) => { stream }.write_all(from),
        }
    }

    /// Sends at once, and gives up on who takes nothing.
    pub(crate) fn be_patient(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_write_timeout(Some(SENDING)),
            Stream::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(SENDING))
            }
        }
    }

    pub(crate) fn shut(&self, how: Shutdown) {
        // One that is gone is shut.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(how),
            Stream::Tcp(stream) => stream.shutdown(how),
        };
    }
}
