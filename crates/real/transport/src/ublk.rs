//! Block devices of Linux served by a process: the server's side of ublk.
//!
//! [`UblkDisk::open`] creates `/dev/ublkbN` and passes the device's requests to a receiver
//! ([`Serves`]). Closing removes the device again. Each [`UblkRequest`] may be answered on any
//! thread.
//!
//! | file | contents |
//! |---|---|
//! | `wire.rs` | the structures exchanged with the kernel, as bytes |
//! | `control.rs` | commands to `/dev/ublk-control`: add, start, stop, delete a device |
//! | `queue.rs` | a device's requests and their answers |
//! | `disk.rs` | [`UblkDisk`]: one device, from its beginning to its end |
//! | `error.rs` | [`UblkError`] |
//!
//! Sources: `Documentation/block/ublk.rst` and `include/uapi/linux/ublk_cmd.h` of Linux 6.12.
//! Commands have the numbers of ioctls. Data are moved by reads and writes of the character device
//! (`UBLK_F_USER_COPY`). Both need Linux 6.5. Neither recovery flag is set. So when the server
//! dies, the kernel ends the device's requests with errors and removes the device.

mod control;
mod disk;
mod error;
mod queue;
mod wire;

pub use control::check;
pub use disk::{DeviceProperties, UblkDisk, carry_out_for_others};
pub use error::UblkError;
pub use queue::{Serves, UblkRequest};
pub use wire::UblkOperation;
