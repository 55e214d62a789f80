//! IOzone's report: a table of kB/s, or the throughput of its processes.

use super::{AccessKind, Config};
use crate::program::ProgramReport;
use fullstroke_units::Time;
use std::fmt::Write as _;

// The columns of IOzone's own report, in its order.
const HEAD: &str = "                                                     random   random     bkwd  record   stride\n      kB  reclen    write  rewrite     read   reread     read    write     read rewrite     read\n";

/// Returns the report from the begin and end of each kind, by process.
pub(super) fn of(config: &Config, spans: &[&[(Time, Time)]]) -> ProgramReport {
    let mut report = ProgramReport::default();
    // Only the first run of each kind counts.
    let rates: Vec<Option<f64>> = AccessKind::ALL
        .iter()
        .map(|kind| {
            let at = config.kinds.iter().position(|known| known == kind)?;
            // IOzone's "children see throughput": the sum of the processes' rates.
            spans
                .iter()
                .map(|spans| rate(config.size.0, spans.get(at)?))
                .sum()
        })
        .collect();
    for (kind, rate) in AccessKind::ALL.iter().zip(&rates) {
        report
            .figures
            .extend(rate.map(|rate| (name(*kind), rate / 1e6)));
    }
    if spans.len() == 1 {
        let _ = write!(
            report.text,
            "{HEAD}{:>8}{:>8}",
            config.size.0 / 1024,
            config.record.0 / 1024
        );
        for rate in &rates {
            let text = rate.map_or_else(String::new, |rate| format!("{:.0}", rate / 1024.0));
            let _ = write!(report.text, "{text:>9}");
        }
        report.text.push('\n');
    } else {
        for (kind, rate) in AccessKind::ALL.iter().zip(&rates) {
            if let Some(rate) = rate {
                let (kind, rate) = (words(*kind), rate / 1024.0);
                let count = spans.len();
                let _ = writeln!(
                    report.text,
                    "Children see throughput for {count:>2} {kind} = {rate:>10.2} kB/sec"
                );
            }
        }
    }
    report
}

/// Returns bytes per second; `None` for a span without duration.
fn rate(bytes: u64, &(began, ended): &(Time, Time)) -> Option<f64> {
    let seconds = ended.saturating_since(began).as_secs_f64();
    (seconds > 0.0).then(|| bytes as f64 / seconds)
}

fn name(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Write => "write_mb_per_s",
        AccessKind::Rewrite => "rewrite_mb_per_s",
        AccessKind::Read => "read_mb_per_s",
        AccessKind::Reread => "reread_mb_per_s",
        AccessKind::RandomRead => "random_read_mb_per_s",
        AccessKind::RandomWrite => "random_write_mb_per_s",
        AccessKind::BackwardRead => "backward_read_mb_per_s",
        AccessKind::RecordRewrite => "record_rewrite_mb_per_s",
        AccessKind::StridedRead => "strided_read_mb_per_s",
    }
}

fn words(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Write => "initial writers",
        AccessKind::Rewrite => "rewriters",
        AccessKind::Read => "readers",
        AccessKind::Reread => "re-readers",
        AccessKind::RandomRead => "random readers",
        AccessKind::RandomWrite => "random writers",
        AccessKind::BackwardRead => "reverse readers",
        AccessKind::RecordRewrite => "record rewriters",
        AccessKind::StridedRead => "stride readers",
    }
}
