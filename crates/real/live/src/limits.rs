//! Largest number of clients.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// Largest number of connections, if the host permits as many descriptors.
const CLIENTS_MAX: u64 = 4096;
/// Descriptors kept for peers of the control socket and of the metrics, and for files that the
/// server opens briefly.
const RESERVED: u64 = 2 * fullstroke_transport::socket::PEERS_MAX as u64 + 8;

/// Returns the largest number of connected clients, so that descriptors are left for the control
/// socket. Raises the limit of descriptors if permitted. The server's own descriptors must be open
/// before.
pub(crate) fn clients_max() -> u64 {
    // 64 is a guess for a host without /proc.
    let open = fs::read_dir("/proc/self/fd").map_or(64, |entries| entries.count() as u64);
    let wanted = open + RESERVED + CLIENTS_MAX;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` means that there is no limit.
    let allowed = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current.is_some_and(|current| current < allowed) {
        // If the host refuses, the old limit stays.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(allowed),
                maximum,
            },
        );
    }
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(wanted);
    descriptors
        .saturating_sub(open + RESERVED)
        .clamp(1, CLIENTS_MAX)
}
