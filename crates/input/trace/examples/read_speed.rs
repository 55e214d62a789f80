//! Measures the speed of reading and summarising a trace: `cargo run --release --example read_speed
//! -- FILE [REPEATS]`.

use fullstroke_trace::{TraceOptions, TraceReader, TraceSummary};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("give the trace's file")?;
    let repeats: usize = std::env::args()
        .nth(2)
        .map_or(Ok(1), |number| number.parse())?;
    for _ in 0..repeats {
        let begin = Instant::now();
        let mut reader = TraceReader::open(Path::new(&file), &TraceOptions::default())?;
        let (mut records, mut sectors) = (0u64, 0u64);
        while let Some(record) = reader.next()? {
            records += 1;
            sectors = sectors.wrapping_add(record.extent.sectors.0);
        }
        let read = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let summary = TraceSummary::of(&mut TraceReader::open(
            Path::new(&file),
            &TraceOptions::default(),
        )?)?;
        let summed = begin.elapsed().as_secs_f64();
        let rate = |seconds: f64| records as f64 / seconds / 1e6;
        println!(
            "{} records, {sectors} sectors: read at {:.1} M/s, summed up at {:.1} M/s",
            summary.requests,
            rate(read),
            rate(summed)
        );
    }
    Ok(())
}
