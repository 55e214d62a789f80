//! A drive that answers late without failing.
//!
//! A slow drive is a node around the node of a drive. The drive inside knows nothing of its
//! slowness. Three things delay its answers:
//!
//! 1. **A stretched clock.** In a slow period the clock of the drive inside runs slower by a
//!    factor, so that every part of a request takes longer: overhead, seek, rotation, transfer,
//!    read-ahead, destaging. In a stall the clock stands.
//! 2. **A slow area.** With `zone` or `lbns` the clock is not stretched. Instead, the drive is held
//!    after each request in the area, until the request has taken the factor as long. A write that
//!    the buffer takes is held for the time of the buffer only.
//! 3. **Bad sectors.** A read of a bad sector holds the drive for the time of the retries. Without
//!    a limit (`erc`) the drive retries until the sector is read. With a limit the drive gives up
//!    after this time, and the read ends as lost. A write of a bad sector mends the sector.
//!
//! An order ([`LayerOrder::Slow`](fullstroke_contract::LayerOrder::Slow)) stretches the clock as
//! well, in place of the factor of the keys, until another order sets the factor to 1.
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the keys |
//! | `clock.rs` | the stretched clock |
//! | `periods.rs` | the times in which the drive is slow |
//! | `node.rs` | the node |
//!
//! The platters of a stretched drive turn slower. A layer above that predicts rotation from the
//! gauge (the host's `satf`) is therefore wrong about a slow drive. Energy counts the lost time as
//! waiting on track.

mod clock;
mod config;
mod node;
mod periods;

#[cfg(test)]
mod tests;

pub use config::SlowConfig;
pub(crate) use config::Slowness;
pub(crate) use node::SlowDrive;
