//! The ways in which clients reach a server of this project.
//!
//! | module | contents |
//! |---|---|
//! | [`socket`] | sockets: NBD clients, questions as lines of JSON, numbers over HTTP |
//! | [`ublk`] | block devices of Linux whose requests a process carries out |

pub mod socket;
pub mod ublk;

use std::io::Write as _;

/// Says something on standard error. If nobody reads that, nothing is lost.
pub fn complain(message: &str) {
    let _ = writeln!(
        std::io::stderr(),
        "fullstroke: {}",
        fullstroke_units::printable(message)
    );
}
