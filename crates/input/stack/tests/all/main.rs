//! Runs of stack files. All tests are one program, so that common code is compiled once.

#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]

mod cache;
mod carroll;
mod extremes;
mod host;
mod hosts;
mod link;
mod memory;
#[path = "../../../../../samples/oracle/table.rs"]
mod oracle;
mod pool;
mod pool_measured;
mod power;
mod programs;
mod rebuild;
mod reference_mechanics;
mod signals;
mod slow;
mod spindles;
mod stack_files;
mod tracks;
#[path = "../../../../../samples/oracle/whole.rs"]
mod whole;
mod xor;
mod zfs_files;
