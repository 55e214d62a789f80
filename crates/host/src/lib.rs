//! The host between workload and volume: its dispatch queue.
//!
//! | file | what |
//! |---|---|
//! | `dispatch.rs` | how many requests the host lets the volume see at once |

mod dispatch;

pub use dispatch::{DispatchQueue, HostConfig};
