//! How many clients there may be.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// Connections at a time, where the host allows so many descriptors.
const CLIENTS_MAX: u64 = 4096;
/// Descriptors that clients leave to peers of the control socket and of the
/// metrics, and to what the server opens for a moment.
const RESERVED: u64 = 2 * fullstroke_transport::socket::PEERS_MAX as u64 + 8;

/// How many clients may be connected at a time, so that descriptors are left
/// for those who give orders. Raises the limit of descriptors if it may. What
/// the server opens for itself is open by now.
pub(crate) fn clients_max() -> u64 {
    let open = fs::read_dir("/proc/self/fd").map_or(64, |entries| entries.count() as u64);
    let wanted = open + RESERVED + CLIENTS_MAX;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Without a number there is no limit.
    let allowed = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current.is_some_and(|current| current < allowed) {
        // What the host does not allow, it does not allow.
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
