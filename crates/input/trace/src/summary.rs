//! Summary of a trace.

mod collector;
mod numbers;
mod recent;
mod spread;

use crate::{TraceError, TraceReader};
use collector::Collector;
use comfy_table::{CellAlignment, Table, presets};
use fullstroke_units::three_digits;
use numbers::share;
pub use numbers::{
    AddressSummary, Completions, OperationSummary, SummaryDistribution, TraceSummary,
};
use std::fmt;

/// Number of requests taken from the reader at a time. The batch stays in the first cache of a
/// processor while each statistic goes through the batch.
const BATCH: usize = 256;

impl TraceSummary {
    /// Reads `reader` to its end and summarises it, in bounded memory.
    ///
    /// # Errors
    /// Fails if the trace cannot be read or parsed.
    pub fn of(reader: &mut TraceReader) -> Result<TraceSummary, TraceError> {
        let mut collector = Collector::default();
        let mut records = Vec::with_capacity(BATCH);
        // A second thread pays off, because parsing takes as long as the summary.
        reader.run_ahead();
        while reader.next_batch(&mut records, BATCH)? > 0 {
            collector.add(&records);
            records.clear();
        }
        reader.stop_ahead();
        Ok(collector.summary(reader))
    }
}

impl fmt::Display for TraceSummary {
    /// Prints the summary as text. Programs use serde instead.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} requests ({})",
            self.file, self.requests, self.format
        )?;
        if self.skipped_rows > 0 {
            writeln!(f, "{} damaged rows were left out", self.skipped_rows)?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        writeln!(f)?;
        writeln!(f, "{}", self.facts())?;
        writeln!(f)?;
        write!(f, "{}", self.spreads())
    }
}

impl AddressSummary {
    fn facts(&self) -> [(&'static str, String); 3] {
        let (first, end) = (self.first_sector, self.end_sector);
        let exact = match self.footprint_exact {
            true => "exact".to_owned(),
            false => format!("estimated, ±{:.1} %", self.footprint_error * 100.0),
        };
        let (one, many) = (self.sequential_share * 100.0, self.stream_share * 100.0);
        [
            (
                "span",
                format!(
                    "{} GiB, sectors {first} to {end} (end excluded)",
                    three_digits(self.span_gib)
                ),
            ),
            (
                "footprint",
                format!(
                    "{} GiB in blocks of 4 KiB ({exact})",
                    three_digits(self.footprint_gib)
                ),
            ),
            (
                "sequential",
                format!(
                    "{one:.1} % follow the device's last request, {many:.1} % one of its last 32"
                ),
            ),
        ]
    }
}

impl TraceSummary {
    fn facts(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.add_row([
            "duration".to_owned(),
            format!("{} s", three_digits(self.duration_s)),
        ]);
        if let (Some(iops), Some(mb_per_s)) = (self.iops, self.mb_per_s) {
            table.add_row([
                "rate".to_owned(),
                format!(
                    "{} requests/s, {} MB/s",
                    three_digits(iops),
                    three_digits(mb_per_s)
                ),
            ]);
        }
        for operation in &self.operations {
            let share = operation.share * 100.0;
            let text = format!(
                "{} ({share:.1} %), {} GiB",
                operation.requests,
                three_digits(operation.total_gib)
            );
            table.add_row([operation.operation.to_owned(), text]);
        }
        for (name, text) in self.addresses.iter().flat_map(AddressSummary::facts) {
            table.add_row([name.to_owned(), text]);
        }
        let Completions {
            known,
            unknown,
            doubtful,
        } = self.completions;
        if known > 0 && unknown + doubtful > 0 {
            let share = share(known, self.requests) * 100.0;
            let text =
                format!("{known} known ({share:.1} %), {unknown} unknown, {doubtful} doubtful");
            table.add_row(["completions".to_owned(), text]);
        }
        table.add_row(["devices".to_owned(), self.devices.len().to_string()]);
        table.trim_fmt()
    }

    fn spreads(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["", "mean", "stddev", "min", "p50", "p90", "p99", "max"]);
        let mut add = |name: String, distribution: &Option<SummaryDistribution>| {
            let Some(d) = distribution else { return };
            let figures = [d.mean, d.stddev, d.min, d.p50, d.p90, d.p99, d.max];
            table.add_row(std::iter::once(name).chain(figures.map(three_digits)));
        };
        add("size KiB".to_owned(), &self.size_kib);
        for operation in &self.operations {
            add(format!("  {}", operation.operation), &operation.size_kib);
        }
        add("inter-arrival ms".to_owned(), &self.interarrival_ms);
        add("response ms".to_owned(), &self.response_ms);
        for operation in &self.operations {
            add(format!("  {}", operation.operation), &operation.response_ms);
        }
        add("service ms".to_owned(), &self.service_ms);
        add("queue depth".to_owned(), &self.queue_depth);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.trim_fmt()
    }
}

#[cfg(test)]
mod tests;
