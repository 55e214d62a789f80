//! How fast a trace is read: `cargo run --release --example read_speed -- FILE`.

use fullstroke_trace::{Options, TraceReader};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("give the trace's file")?;
    let begin = Instant::now();
    let mut reader = TraceReader::open(Path::new(&file), &Options::default())?;
    let (mut records, mut sectors) = (0u64, 0u64);
    while let Some(record) = reader.next()? {
        records += 1;
        sectors = sectors.wrapping_add(record.extent.sectors.0);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let rate = records as f64 / seconds / 1e6;
    println!("{records} records, {sectors} sectors, {seconds:.3} s: {rate:.1} M records/s");
    Ok(())
}
