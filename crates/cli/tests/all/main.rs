//! Tests of the program without servers; `live/` has those with servers. All tests are one program,
//! so that shared code is compiled once.

#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]

mod answers;
mod circles;
mod command_line;
#[path = "../common/mod.rs"]
mod common;
mod documents;
mod energy;
mod files;
mod fio;
mod fit;
mod flushes;
mod lzvs;
#[path = "../../../../samples/oracle/table.rs"]
mod oracle;
mod outputs;
mod pages;
#[path = "../../../../samples/oracle/parameters.rs"]
mod parameters;
mod pasted;
mod perfetto;
mod questions;
#[path = "../../../answers/measure/src/perfetto/read_back.rs"]
mod read_back;
mod steering;
mod storeys;
mod streams;
mod studies;
mod validation;
mod verdicts;
mod workloads;
