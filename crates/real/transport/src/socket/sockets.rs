//! Sockets for clients: unix sockets, TCP, or sockets inherited from the process that started the
//! server.

use rustix::fs::Mode;
use rustix::net::sockopt;
use rustix::process::umask;
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A unix socket at this path.
    Unix(PathBuf),
    /// An address and port; port 0 selects any free port.
    Tcp(SocketAddr),
    /// The sockets inherited in the way of systemd (`LISTEN_FDS`).
    Inherited,
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Unix(path) => write!(f, "{}", path.display()),
            Listen::Tcp(address) => write!(f, "{address}"),
            Listen::Inherited => f.write_str("inherited sockets"),
        }
    }
}

/// A socket for accepting clients.
#[derive(Debug)]
pub enum Listener {
    /// A unix socket.
    Unix {
        /// The socket.
        socket: UnixListener,
        /// Path of the socket file, which is removed with the socket; `None` if the socket was
        /// inherited.
        path: Option<PathBuf>,
    },
    /// A TCP socket.
    Tcp(TcpListener),
}

/// A client's socket.
#[derive(Debug)]
pub enum ClientSocket {
    /// A unix socket.
    Unix(UnixStream),
    /// A TCP socket.
    Tcp(TcpStream),
}

/// Silence after which a client is probed, interval of the probes, and number of unanswered probes
/// after which the client is given up.
const PROBE_AFTER: Duration = Duration::from_secs(60);
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 6;

/// First inherited descriptor.
// Inherited descriptors begin behind standard input, output and error (sd_listen_fds(3)).
const FIRST_INHERITED: i32 = 3;

impl Listener {
    /// Opens the listeners at `listen`; several if sockets are inherited. The listeners do not
    /// block. A unix socket gets the permissions `mode`.
    ///
    /// # Errors
    /// An error of the host.
    pub fn open(listen: &Listen, mode: u32) -> io::Result<Vec<Listener>> {
        let listeners = match listen {
            Listen::Unix(path) => vec![Listener::unix(path, mode)?],
            Listen::Tcp(address) => vec![Listener::Tcp(TcpListener::bind(address)?)],
            Listen::Inherited => inherited()?,
        };
        for listener in &listeners {
            match listener {
                Listener::Unix { socket, .. } => socket.set_nonblocking(true)?,
                Listener::Tcp(socket) => socket.set_nonblocking(true)?,
            }
        }
        Ok(listeners)
    }

    fn unix(path: &Path, mode: u32) -> io::Result<Listener> {
        Ok(Listener::Unix {
            socket: listen_unix(path, mode)?,
            path: Some(path.to_owned()),
        })
    }

    /// Accepts a client. The stream does not block.
    ///
    /// # Errors
    /// An error of the host; `WouldBlock` if no client connects.
    pub fn accept(&self) -> io::Result<ClientSocket> {
        match self {
            Listener::Unix { socket, .. } => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(true)?;
                Ok(ClientSocket::Unix(stream))
            }
            Listener::Tcp(socket) => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                Ok(ClientSocket::Tcp(stream))
            }
        }
    }
}

/// Listens at a unix socket with the permissions `mode`. A stale socket file is replaced.
///
/// # Errors
/// An error of the host; `AddrInUse` if another server listens there.
pub fn listen_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket()) {
        match UnixStream::connect(path) {
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another server listens there",
                ));
            }
            // No server listens there any more, so the file is stale.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path)?
            }
            Err(error) => return Err(error),
        }
    }
    // Between bind and chmod, a user without permission must not be able to connect.
    let before = umask(Mode::from_bits_truncate(!mode & 0o777));
    let socket = UnixListener::bind(path);
    umask(before);
    let socket = socket?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(socket)
}

impl Listener {
    /// Returns true if users of other hosts may reach the listener.
    pub fn is_reachable(&self) -> bool {
        let Listener::Tcp(socket) = self else {
            return false;
        };
        socket
            .local_addr()
            .is_ok_and(|address| !address.ip().is_loopback())
    }
}

impl ClientSocket {
    /// Returns the local address of the connection; `None` for a unix socket.
    pub fn local(&self) -> Option<IpAddr> {
        let ClientSocket::Tcp(stream) = self else {
            return None;
        };
        Some(stream.local_addr().ok()?.ip())
    }

    /// Returns another handle of the same socket.
    ///
    /// # Errors
    /// If the host has no more descriptors.
    pub fn try_clone(&self) -> io::Result<ClientSocket> {
        Ok(match self {
            ClientSocket::Unix(stream) => ClientSocket::Unix(stream.try_clone()?),
            ClientSocket::Tcp(stream) => ClientSocket::Tcp(stream.try_clone()?),
        })
    }

    /// Returns the address of the other end; `None` for a unix socket.
    pub fn peer(&self) -> Option<IpAddr> {
        let ClientSocket::Tcp(stream) = self else {
            return None;
        };
        Some(stream.peer_addr().ok()?.ip())
    }
}

/// Permissions of a socket for its owner only.
pub const OWNER: u32 = 0o600;

/// Lets the host detect a lost client. Detection takes about two minutes.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(())
}

/// Takes the sockets inherited by this process.
fn inherited() -> io::Result<Vec<Listener>> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<i32>().ok())
    };
    let wrong = |message: &str| io::Error::new(io::ErrorKind::InvalidInput, message.to_owned());
    if number("LISTEN_PID").is_some_and(|pid| pid != std::process::id() as i32) {
        return Err(wrong("LISTEN_PID names another process"));
    }
    let count = number("LISTEN_FDS")
        .filter(|&count| count > 0)
        .ok_or_else(|| wrong("no sockets were passed on: LISTEN_FDS is not set"))?;
    (FIRST_INHERITED..FIRST_INHERITED + count)
        .map(inherit)
        .collect()
}

#[allow(unsafe_code)]
fn inherit(descriptor: i32) -> io::Result<Listener> {
    // SAFETY: the process that sets LISTEN_FDS gives these descriptors to this process, and no
    // other code here takes them.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let domain = sockopt::socket_domain(&descriptor).map_err(|error| {
        io::Error::new(
            io::Error::from(error).kind(),
            "a descriptor that was passed on is no socket",
        )
    })?;
    Ok(if domain == rustix::net::AddressFamily::UNIX {
        Listener::Unix {
            socket: descriptor.into(),
            path: None,
        }
    } else {
        Listener::Tcp(descriptor.into())
    })
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix {
            path: Some(path), ..
        } = self
        {
            // If another process was faster, the file is already gone.
            let _ = fs::remove_file(path);
        }
    }
}

impl fmt::Display for Listener {
    /// Writes an NBD URI without the export's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listener::Unix {
                path: Some(path), ..
            } => write!(f, "nbd+unix:///?socket={}", path.display()),
            Listener::Unix { path: None, .. } => f.write_str("an inherited unix socket"),
            Listener::Tcp(socket) => match socket.local_addr() {
                Ok(address) => write!(f, "nbd://{address}"),
                Err(_) => f.write_str("an inherited TCP socket"),
            },
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix { socket, .. } => socket.as_fd(),
            Listener::Tcp(socket) => socket.as_fd(),
        }
    }
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            ClientSocket::Unix(stream) => stream.as_fd(),
            ClientSocket::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for ClientSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            ClientSocket::Unix(stream) => stream.read(into),
            ClientSocket::Tcp(stream) => stream.read(into),
        }
    }
}

impl Write for ClientSocket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            ClientSocket::Unix(stream) => stream.write(from),
            ClientSocket::Tcp(stream) => stream.write(from),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
