//! The host between workload and volume: its page cache and its block layer.
//!
//! | file | what |
//! |---|---|
//! | `clock.rs` | exact time, or the ticks of a kernel |
//! | `config.rs` | the keys of `[host]`, and the layer that they ask for |
//! | `direction.rs` | reads, and what goes to the device |
//! | `paged.rs` | a device that is read and written through the page cache |
//! | `pushed.rs` | what storage has pushed, beneath the page cache |
//! | `dispatch.rs` | without an elevator: how many requests the volume sees at once |
//! | `block/` | the block layer: plugging, merging, waiting for a free request |
//! | `elevator/` | which request goes to the device next, and when |

pub mod block;
mod clock;
mod config;
mod direction;
mod dispatch;
pub mod elevator;
mod paged;
mod pushed;

pub use clock::Clock;
pub use config::{HostConfig, HostKeys, Underneath};
pub use direction::Direction;
pub use dispatch::DispatchQueue;
pub use paged::PagedDevice;
pub use pushed::{PushedBlocks, PushedKeys};
