//! Bonnie's report: one line of numbers below three lines of headings.

use super::plan::{BonniePlan, Phase, PhaseResult};
use crate::program::ProgramReport;
use std::fmt::Write as _;

const HEAD: &str = "              -------Sequential Output-------- ---Sequential Input-- --Random--\n              \
                    -Per Char- --Block--- -Rewrite-- -Per Char- --Block--- --Seeks---\n\
                    Machine    MB K/sec %CPU K/sec %CPU K/sec %CPU K/sec %CPU K/sec %CPU  /sec %CPU\n";

pub(super) fn of(plan: &BonniePlan, outcomes: &[PhaseResult]) -> ProgramReport {
    let mut text = HEAD.to_owned();
    // Bonnie's megabyte has 2^20 bytes, its kilobyte below 2^10.
    let _ = write!(text, "         {:>4}", plan.size >> 20);
    for phase in Phase::ALL {
        let outcome = outcomes.iter().find(|outcome| outcome.phase == phase);
        let Some((rate, outcome)) = outcome.and_then(|outcome| Some((rate(outcome)?, outcome)))
        else {
            text.push_str("           ");
            continue;
        };
        let cpu = 100.0 * outcome.computed.as_secs_f64() / outcome.took.as_secs_f64();
        let _ = match phase {
            Phase::Seek => write!(text, " {rate:>5.1} {cpu:>4.1}"),
            _ => write!(text, " {:>5.0} {cpu:>4.1}", rate / 1024.0),
        };
    }
    text.push('\n');
    let figures = outcomes.iter().filter_map(|outcome| {
        let rate = rate(outcome)?;
        Some((
            name(outcome.phase),
            if outcome.phase == Phase::Seek {
                rate
            } else {
                rate / 1e6
            },
        ))
    });
    ProgramReport {
        figures: figures.collect(),
        text,
        notes: Vec::new(),
    }
}

/// Returns bytes or seeks per second; `None` for a phase without duration.
fn rate(outcome: &PhaseResult) -> Option<f64> {
    let seconds = outcome.took.as_secs_f64();
    (seconds > 0.0).then(|| outcome.done as f64 / seconds)
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Putc => "putc_mb_per_s",
        Phase::Write => "write_mb_per_s",
        Phase::Rewrite => "rewrite_mb_per_s",
        Phase::Getc => "getc_mb_per_s",
        Phase::Read => "read_mb_per_s",
        Phase::Seek => "seeks_per_s",
    }
}
