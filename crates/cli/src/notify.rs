//! Notification of the service manager that the server is ready: `sd_notify(3)` of systemd, for
//! services of `Type=notify`. Without `NOTIFY_SOCKET` nothing is sent.

use crate::output::print_error;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Environment variable with the manager's socket: a path, or an abstract name after `@`.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Sends `READY=1`. After a failed send the server continues; the manager's start timeout may then
/// end the service.
pub(crate) fn ready() {
    let Some(socket) = std::env::var_os(SOCKET) else {
        return;
    };
    if let Err(error) = send(socket.as_bytes(), b"READY=1") {
        print_error(&format!(
            "{SOCKET}: `{}` could not be sent: {error}",
            socket.display()
        ));
    }
}

fn send(socket: &[u8], word: &[u8]) -> io::Result<()> {
    // A leading @ names an abstract socket (`sd_notify(3)`).
    let address = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(OsStr::from_bytes(socket))?,
    };
    // No reply follows (`sd_notify(3)`), so the socket needs no name of its own.
    UnixDatagram::unbound()?
        .send_to_addr(word, &address)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_hears_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("fullstroke-test-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        let (at_path, at_name) = (
            UnixDatagram::bind(&path).unwrap(),
            UnixDatagram::bind_addr(&abstract_name).unwrap(),
        );
        send(path.as_os_str().as_bytes(), b"READY=1").unwrap();
        send(format!("@{name}").as_bytes(), b"READY=1").unwrap();
        for socket in [at_path, at_name] {
            let mut heard = [0; 16];
            let length = socket.recv(&mut heard).unwrap();
            assert_eq!(&heard[..length], b"READY=1");
        }
        assert!(
            send(
                folder.path().join("nobody").as_os_str().as_bytes(),
                b"READY=1"
            )
            .is_err()
        );
    }
}
