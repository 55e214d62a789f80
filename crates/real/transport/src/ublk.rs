//! Block devices of Linux that a process serves: the server's side of ublk.
//!
//! [`Disk::open`] makes `/dev/ublkbN`, hands what is asked of it to whoever [`Serves`], and
//! takes it away again when it is closed. Each [`Request`] is answered on any thread.
//!
//! | file | what it holds |
//! |---|---|
//! | `wire.rs` | what the kernel and a server tell each other, as bytes |
//! | `control.rs` | commands to `/dev/ublk-control`: devices are added, started, stopped, deleted |
//! | `queue.rs` | a device's requests and their answers |
//! | `disk.rs` | [`Disk`]: one device, from its beginning to its end |
//! | `error.rs` | [`UblkError`] |
//!
//! Sources: `Documentation/block/ublk.rst` and `include/uapi/linux/ublk_cmd.h` of Linux 6.12.
//! Commands have the numbers of ioctls, and data go by reads and writes of the character
//! device (`UBLK_F_USER_COPY`): both need Linux 6.5. Neither recovery flag is set: when the
//! server dies, the kernel ends what is asked of the device with errors and takes the device away.

mod control;
mod disk;
mod error;
mod queue;
mod wire;

pub use control::check;
pub use disk::{Disk, Form, carry_out_for_others};
pub use error::UblkError;
pub use queue::{Request, Serves};
pub use wire::Operation;
