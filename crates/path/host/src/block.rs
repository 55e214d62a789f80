//! The block layer: what is submitted is plugged, merged, and handed to the
//! device in the order that an elevator chooses.
//!
//! | file | what |
//! |---|---|
//! | `layer.rs` | the layer itself |
//! | `gate.rs` | submitters that wait: for a free request, behind a barrier |
//! | `flushing.rs` | flushes that nobody waits for but who sent them |
//! | `plug.rs` | holding requests back until neighbours have arrived |
//! | `neighbours.rs` | which waiting requests a new one could join |
//! | `originals.rs` | the submitted requests behind the waiting ones |
//! | `request.rs` | a request as elevators see it |

mod flushing;
mod gate;
mod layer;
mod neighbours;
mod originals;
mod plug;
mod request;
#[cfg(test)]
mod tests;

pub use flushing::Flushing;
pub use layer::{BlockLayer, Settings};
pub use plug::Plugging;
pub use request::{Join, Queued, Requests};
