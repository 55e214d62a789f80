//! The ways in which clients reach a server of this project.
//!
//! | module | contents |
//! |---|---|
//! | [`socket`] | sockets: NBD clients, questions as lines of JSON, numbers over HTTP |
//! | [`ublk`] | block devices of Linux whose requests a process carries out |

pub mod socket;
pub mod ublk;
