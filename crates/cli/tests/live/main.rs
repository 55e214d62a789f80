//! Tests of `fullstroke serve`: the program on its sockets, real clients and hostile clients.
//!
//! | file | contents |
//! |---|---|
//! | `stacks.rs` | small stacks for the servers |
//! | `server.rs` | start and end of the program |
//! | `programs.rs` | other programs, if they are installed |
//! | `pattern.rs` | bytes that encode their place and time of writing |
//! | `cache.rs` | a cache in front of a served array |
//! | `clients.rs` | clients of other projects |
//! | `file_systems.rs` | file systems on an export |
//! | `kills.rs` | killed servers lose no flushed data |
//! | `live_page.rs` | the servers' page in a browser |
//! | `long.rs` | long and unaligned requests |
//! | `members.rs` | failed and rebuilt drives |
//! | `record.rs` | records, and their replay under the virtual clock |
//! | `extract.rs` | tracks of a served disk, found under the real clock |
//! | `timing.rs` | no answer is early |
//! | `hostile.rs` | invalid requests harm only their client |
//! | `tls.rs` | encrypted connections, and refused clients |
//! | `crowds.rs` | many clients, vanished clients, and exhausted descriptors |
//! | `ends.rs` | servers' ends, and refused starts |
//! | `mends.rs` | repair of wrong redundancy |
//! | `metrics.rs` | metrics agree with the clients' requests |
//! | `array.rs` | arrays on files: creation, kills, repair and refusals |
//! | `faulty.rs` | block devices with faults and power loss |
//! | `gate.rs` | files in use are protected from other writers |
//! | `faults.rs` | arrays, replays and streams on faulty devices |
//! | `replay.rs` | replays of traces on files and on served arrays |
//! | `top.rs` | the screen of a running server, and the end of its terminal |
//! | `ublk.rs` | arrays as block devices of ublk, in an emulated machine |
//!
//! A test whose program is not installed prints a note and passes.

#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]

mod array;
mod cache;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod crowds;
mod distrust;
mod ends;
mod extract;
mod faults;
mod faulty;
mod file_systems;
mod gate;
mod hostile;
mod kills;
mod live_page;
mod long;
mod members;
mod mends;
mod metrics;
mod pattern;
mod programs;
mod record;
mod replay;
mod server;
mod stacks;
mod timing;
mod tls;
mod top;
mod ublk;
