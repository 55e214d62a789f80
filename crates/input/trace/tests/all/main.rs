//! Formats, damage and conversions: one program, so that what is in common is compiled once.

mod arbitrary_bytes;
mod conversion;
mod damage;
mod fio_logs;
mod lost_events;
#[path = "../../../../../samples/oracle/table.rs"]
mod oracle;
mod shared_traces;
mod variants;
#[path = "../../../../../samples/oracle/whole.rs"]
mod whole;
