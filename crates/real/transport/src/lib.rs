//! Transports between clients and the servers of this project.
//!
//! | module | contents |
//! |---|---|
//! | [`socket`] | sockets: NBD clients, questions as lines of JSON, metrics over HTTP |
//! | [`ublk`] | block devices of Linux whose requests a process carries out |

pub mod socket;
pub mod ublk;

use std::io::Write as _;

/// Writes a message to standard error. A failed write is ignored.
pub fn print_error(message: &str) {
    let _ = writeln!(
        std::io::stderr(),
        "fullstroke: {}",
        fullstroke_units::printable(message)
    );
}
