//! DiskSim's files, good and bad. All tests are one program, so that common code is compiled once.

#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "the oracle and the parameter files are read from files"
)]

mod bad_input;
#[path = "../common/mod.rs"]
mod common;
mod keys;
#[path = "../../../../../samples/oracle/table.rs"]
mod oracle;
#[path = "../../../../../samples/oracle/parameters.rs"]
mod parameters;
mod reference_buffer;
mod reference_disks;
mod schemes;
#[path = "../../../../../samples/oracle/whole.rs"]
mod whole;
