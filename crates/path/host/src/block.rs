//! The block layer: plugs and merges submitted requests, and issues them in the order of an
//! elevator.
//!
//! | file | content |
//! |---|---|
//! | `layer.rs` | the layer itself |
//! | `gate.rs` | submitters that wait for a free request or behind a barrier |
//! | `flushing.rs` | flushes for which only the submitter waits |
//! | `tags.rs` | numbers of shared requests |
//! | `wait_queues.rs` | the order in which blocked submitters are woken |
//! | `throttling.rs` | fewer asynchronous writes while reads are slow |
//! | `runs.rs` | when the elevator is asked for requests |
//! | `plug.rs` | holds requests back until neighbours have arrived |
//! | `neighbours.rs` | waiting requests that a new request could join |
//! | `originals.rs` | the submitted requests behind the waiting requests |
//! | `request.rs` | a request as elevators see it |

mod flushing;
mod gate;
mod layer;
mod neighbours;
mod originals;
mod plug;
mod request;
mod runs;
mod tags;
#[cfg(test)]
mod tests;
mod throttling;
mod wait_queues;

pub use flushing::Flushing;
pub use gate::Tags;
pub use layer::{BlockLayer, LayerSettings};
pub use originals::HostTime;
pub use plug::Plugging;
pub use request::{JoinKind, Queued, Requests};
