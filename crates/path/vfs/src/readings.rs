//! Readings of calls and programs.

use crate::kernel::VfsKernel;
use crate::tally::{CallTally, DurationTally};
use fullstroke_contract::{
    EventTimes, HostReadings, LatencyDistribution, OperationReadings, ProgramReadings,
};
use fullstroke_programs::{CallKind, Program};
use fullstroke_units::Duration;

fn event_times(times: &DurationTally) -> EventTimes {
    EventTimes {
        count: times.count,
        latency_ms: LatencyDistribution {
            mean: times.mean_ms(),
            p50: times.quantile_ms(0.5),
            p95: times.quantile_ms(0.95),
            p99: times.quantile_ms(0.99),
            max: times.max_ms(),
        },
    }
}

/// Returns the readings of one program over `elapsed`.
pub(crate) fn of_program(
    name: &str,
    program: &dyn Program,
    tally: &CallTally,
    elapsed: Duration,
) -> ProgramReadings {
    let report = program.report();
    ProgramReadings {
        name: name.to_owned(),
        elapsed,
        transactions: tally
            .transactions()
            .map(|(kind, times)| (kind, event_times(times)))
            .collect(),
        figures: report.figures,
        text: report.text,
        notes: report.notes,
    }
}

/// Returns the readings of a host over `elapsed`.
pub(crate) fn of_host(kernel: &VfsKernel, tally: &CallTally, elapsed: Duration) -> HostReadings {
    let operations = CallKind::ALL.into_iter().filter_map(|kind| {
        let calls = kernel.accounts.costs().calls(kind);
        let cost = kernel.accounts.costs().of(kind);
        (calls > 0).then(|| {
            let times = tally.of(kind);
            OperationReadings {
                kind: kind.name(),
                times: times.map(event_times).unwrap_or_default(),
                failed: times.map_or(0, |times| times.failed),
                bytes: times.map_or(0, |times| times.bytes),
                device_reads: cost.reads,
                device_writes: cost.writes,
                calls,
            }
        })
    });
    HostReadings {
        elapsed,
        operations: operations.collect(),
        ..HostReadings::default()
    }
}
