//! `fullstroke serve` as its users call it: the program on its sockets, real
//! clients, and clients that mean no good.
//!
//! | file | what |
//! |---|---|
//! | `stacks.rs` | the small stacks that are served |
//! | `server.rs` | the program, begun and ended |
//! | `programs.rs` | other programs, if they are installed |
//! | `pattern.rs` | bytes that tell where and when they were written |
//! | `cache.rs` | memory in front of a served array |
//! | `clients.rs` | clients of others, each doing what it does best |
//! | `file_systems.rs` | file systems on an export |
//! | `kills.rs` | servers that are killed lose nothing that was flushed |
//! | `live_page.rs` | the page that servers show, in a browser |
//! | `long.rs` | long requests, and such as do not fit the sectors |
//! | `members.rs` | drives that fail and are rebuilt |
//! | `record.rs` | records, and their replay under the virtual clock |
//! | `extract.rs` | a served disk's tracks, found under the real clock |
//! | `timing.rs` | no answer comes early |
//! | `hostile.rs` | clients that break the rules harm only themselves |
//! | `tls.rs` | encrypted connections, and who is refused one |
//! | `crowds.rs` | many clients, clients that go, and descriptors that run out |
//! | `ends.rs` | how servers end, and why they do not begin |
//! | `mends.rs` | redundancy that is wrong, after kills and by itself |
//! | `metrics.rs` | counts that agree with what clients did |
//! | `array.rs` | arrays on files, made, killed, mended and refused |
//! | `faulty.rs` | block devices with faults, which lose power |
//! | `gate.rs` | what is in use is written by nobody else |
//! | `faults.rs` | what arrays, replays and streams do on these |
//! | `replay.rs` | traces replayed on files and on served arrays |
//! | `top.rs` | the screen of a running server, and the end of its terminal |
//! | `ublk.rs` | arrays as block devices of ublk, in an emulated machine |
//!
//! Tests that need a program which is not installed say so and pass.

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
