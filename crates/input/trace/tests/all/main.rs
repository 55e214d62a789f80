//! Tests of formats, damage and conversions in one program, so that common code is compiled only
//! once.

mod arbitrary_bytes;
mod conversion;
mod damage;
mod fio_logs;
mod lost_events;
mod mutated_parquet;
#[path = "../../../../../samples/oracle/table.rs"]
mod oracle;
mod pasted;
mod shared_traces;
mod variants;
#[path = "../../../../../samples/oracle/whole.rs"]
mod whole;
