//! The host between workload and volume: page cache and block layer.
//!
//! | file | content |
//! |---|---|
//! | `clock.rs` | exact time, or the ticks of a kernel |
//! | `config.rs` | the keys of `[host]`, and the layers of a configuration |
//! | `generation.rs` | the values that the kernels of one time had in common |
//! | `direction.rs` | reads from the device, and writes to the device |
//! | `paged.rs` | a device behind the page cache of programs |
//! | `pushed.rs` | pushed blocks, below the page cache |
//! | `dispatch.rs` | a host without an elevator: limits the requests in flight |
//! | `block/` | the block layer: plugging, merging, waiting for a free request |
//! | `elevator/` | the I/O schedulers: choice of the next request and its time |

pub mod block;
mod clock;
mod config;
mod direction;
mod dispatch;
pub mod elevator;
mod generation;
mod paged;
mod pushed;

pub use clock::TickClock;
pub use config::{DeviceBelow, HostConfig, HostKeys};
pub use direction::Direction;
pub use dispatch::DispatchQueue;
pub use generation::Generation;
pub use paged::PagedDevice;
pub use pushed::{PushedBlocks, PushedKeys};
