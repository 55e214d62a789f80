//! Measures of each workload, host, program and stream of a run, and readings of its layers.

use crate::candidate::CandidateReport;
use crate::markup::Markup;
use crate::value::{NumberFormat, TableCell, column, filled};
use fullstroke_measure::{
    CallReport, GroupReport, HostReport, OperationReport, ProcessReport, ProgramReport, Report,
    StreamsReport, TransactionReport, WorkloadReport,
};

/// Largest number of processes that are shown individually.
const PROCESSES: usize = 32;

/// Writes a note that the numbers above cover all workloads of a candidate together, if there are
/// several.
pub(crate) fn together(page: &mut Markup, candidates: &[CandidateReport<'_>]) {
    let mut several = candidates
        .iter()
        .filter_map(CandidateReport::report)
        .map(|report| &report.sources.workloads);
    if let Some(workloads) = several.find(|workloads| workloads.len() > 1) {
        let names: Vec<&str> = workloads
            .iter()
            .map(|workload| workload.name.as_str())
            .collect();
        let note = format!(
            "Of all requests together, those of the workloads {}.",
            names.join(", ")
        );
        page.element("p", &[("class", "note")], &note);
    }
}

/// Writes all tables of one run, up to a page length of `room`.
pub(crate) fn of_run(page: &mut Markup, run: &CandidateReport<'_>, room: usize) {
    let Some(report) = run.report() else {
        return;
    };
    let one = std::slice::from_ref(run);
    let mut tables = Vec::new();
    let mut add = |write: &dyn Fn(&mut Markup)| {
        let mut own = Markup::new();
        write(&mut own);
        tables.push(own);
    };
    add(&|page| streams(page, one));
    add(&|page| workloads(page, one));
    for host in &report.sources.hosts {
        add(&|page| of_host(page, host));
    }
    add(&|page| processes(page, report));
    add(&|page| layers(page, report));
    for own in &tables {
        if page.len() + own.len() > room {
            page.element(
                "p",
                &[("class", "note")],
                "The further tables do not fit on the page; --json contains them.",
            );
            return;
        }
        page.add(own);
    }
}

/// Writes the streams of each candidate; nothing without streams.
pub(crate) fn streams(page: &mut Markup, candidates: &[CandidateReport<'_>]) {
    type All = StreamsReport;
    let columns = [
        column("started", NumberFormat::Whole, |all: &All| all.started),
        column("in time", NumberFormat::Whole, |all: &All| {
            all.within_latency
        }),
        column("playing at the end", NumberFormat::Whole, |all: &All| {
            all.playing
        }),
        column("Mbit/s, nominally", NumberFormat::Plain, |all: &All| {
            all.nominal_mbit_per_s
        }),
        column("underruns", NumberFormat::Whole, |all: &All| all.underruns),
        column("streams with any", NumberFormat::Whole, |all: &All| {
            all.with_underruns
        }),
        column("deadlines missed", NumberFormat::Percent, |all: &All| {
            all.deadlines_missed_share
        }),
        column("longest stall ms", NumberFormat::Plain, |all: &All| {
            all.longest_stall_ms
        }),
        column("start-up ms, mean", NumberFormat::Plain, |all: &All| {
            all.start_up_ms.mean
        }),
        column("p99", NumberFormat::Plain, |all: &All| all.start_up_ms.p99),
        column("max", NumberFormat::Plain, |all: &All| all.start_up_ms.max),
    ];
    let each = candidates
        .iter()
        .filter_map(|one| Some((one.label.clone(), one.report()?.streams.as_ref()?)));
    filled(page, "Streams", &columns, &each.collect::<Vec<_>>());
}

/// Writes the workloads of each candidate, with its name if there are several candidates. Writes
/// nothing for a single workload.
pub(crate) fn workloads(page: &mut Markup, candidates: &[CandidateReport<'_>]) {
    type One = WorkloadReport;
    let mean = |operation: &Option<OperationReport>| {
        operation
            .as_ref()
            .map(|operation| operation.response_ms.mean)
    };
    let columns = [
        column("requests", NumberFormat::Whole, |one: &One| one.requests),
        column("IOPS", NumberFormat::Plain, |one: &One| one.iops),
        column("MB/s", NumberFormat::Plain, |one: &One| one.mb_per_s),
        column("mean", NumberFormat::Plain, |one: &One| {
            one.response_ms.mean
        }),
        column("p50", NumberFormat::Plain, |one: &One| one.response_ms.p50),
        column("p99", NumberFormat::Plain, |one: &One| one.response_ms.p99),
        column("max", NumberFormat::Plain, |one: &One| one.response_ms.max),
        column("reads, mean", NumberFormat::Plain, |one: &One| {
            mean(&one.reads)
        }),
        column("writes, mean", NumberFormat::Plain, |one: &One| {
            mean(&one.writes)
        }),
    ];
    let name = |candidate: &CandidateReport<'_>, workload: &One| match candidates.len() {
        1 => workload.name.clone(),
        _ => format!("{}: {}", candidate.label, workload.name),
    };
    let mut rows: Vec<(String, &One)> = Vec::new();
    for candidate in candidates {
        let own = candidate
            .report()
            .map_or(&[][..], |report| &report.sources.workloads);
        rows.extend(
            own.iter()
                .map(|workload| (name(candidate, workload), workload)),
        );
    }
    filled(
        page,
        "Workloads, with their response times (ms)",
        &columns,
        &rows,
    );
}

/// Writes the calls and transactions of programs, and their own output.
fn of_host(page: &mut Markup, host: &HostReport) {
    let name = &host.name;
    let columns = [
        column("number", NumberFormat::Whole, |call: &CallReport| {
            call.times.count
        }),
        column("failed", NumberFormat::Whole, |call: &CallReport| {
            call.failed
        }),
        column("mean", NumberFormat::Plain, |call: &CallReport| {
            call.times.latency_ms.mean
        }),
        column("p50", NumberFormat::Plain, |call: &CallReport| {
            call.times.latency_ms.p50
        }),
        column("p99", NumberFormat::Plain, |call: &CallReport| {
            call.times.latency_ms.p99
        }),
        column("max", NumberFormat::Plain, |call: &CallReport| {
            call.times.latency_ms.max
        }),
        column("MB/s", NumberFormat::Plain, |call: &CallReport| {
            call.mb_per_s
        }),
        column("reads each", NumberFormat::Plain, |call: &CallReport| {
            call.device_reads_each
        }),
        column("writes each", NumberFormat::Plain, |call: &CallReport| {
            call.device_writes_each
        }),
    ];
    let mut calls: Vec<(String, &CallReport)> = host
        .operations
        .iter()
        .map(|call| (call.kind.to_owned(), call))
        .collect();
    calls.sort_by(|one, other| one.0.cmp(&other.0));
    filled(page, &format!("Calls of {name} (ms)"), &columns, &calls);
    let elapsed = [column(
        "elapsed s",
        NumberFormat::Plain,
        |program: &ProgramReport| program.elapsed_s,
    )];
    let rows: Vec<(String, &ProgramReport)> = host
        .programs
        .iter()
        .map(|one| (one.name.clone(), one))
        .collect();
    filled(page, &format!("Programs of {name}"), &elapsed, &rows);
    for program in &host.programs {
        of_program(page, program);
    }
}

fn of_program(page: &mut Markup, program: &ProgramReport) {
    type Kind = TransactionReport;
    let name = &program.name;
    let columns = [
        column("number", NumberFormat::Whole, |kind: &Kind| {
            kind.times.count
        }),
        column("a second", NumberFormat::Plain, |kind: &Kind| kind.per_s),
        column("mean", NumberFormat::Plain, |kind: &Kind| {
            kind.times.latency_ms.mean
        }),
        column("p50", NumberFormat::Plain, |kind: &Kind| {
            kind.times.latency_ms.p50
        }),
        column("p95", NumberFormat::Plain, |kind: &Kind| {
            kind.times.latency_ms.p95
        }),
        column("p99", NumberFormat::Plain, |kind: &Kind| {
            kind.times.latency_ms.p99
        }),
        column("max", NumberFormat::Plain, |kind: &Kind| {
            kind.times.latency_ms.max
        }),
    ];
    let kinds: Vec<(String, &Kind)> = program
        .transactions
        .iter()
        .map(|(kind, times)| ((*kind).to_owned(), times))
        .collect();
    filled(
        page,
        &format!("Transactions of {name} (ms)"),
        &columns,
        &kinds,
    );
    match program.text.as_str() {
        "" => readings(
            page,
            &format!("Figures of {name}"),
            program
                .figures
                .iter()
                .map(|(figure, value)| (*figure, *value)),
        ),
        words => {
            page.within("pre", &[], |page| {
                _ = page.element("code", &[], words.trim_end())
            });
        }
    }
    for note in &program.notes {
        page.element("p", &[("class", "note")], note);
    }
}

/// Writes the processes by name, and individually if there are few.
fn processes(page: &mut Markup, report: &Report) {
    let (groups, each) = (&report.shares.groups, &report.shares.processes);
    by_name(page, groups);
    match each.len() {
        // Each name has a single process, so the table by name shows them all.
        few if few <= groups.len() => {}
        many if many > PROCESSES => {
            page.element(
                "p",
                &[("class", "note")],
                &format!("{many} processes; --json tells of each."),
            );
        }
        _ => one_by_one(page, each),
    }
}

fn by_name(page: &mut Markup, groups: &[GroupReport]) {
    type Group = GroupReport;
    let columns = [
        column("processes", NumberFormat::Whole, |group: &Group| {
            group.processes
        }),
        column("reads", NumberFormat::Whole, |group: &Group| group.reads),
        column("writes", NumberFormat::Whole, |group: &Group| group.writes),
        column("MB/s", NumberFormat::Plain, |group: &Group| group.mb_per_s),
        column("each", NumberFormat::Plain, |group: &Group| {
            group.process_mb_per_s.mean
        }),
        column("least", NumberFormat::Plain, |group: &Group| {
            group.process_mb_per_s.min
        }),
        column("most", NumberFormat::Plain, |group: &Group| {
            group.process_mb_per_s.max
        }),
        column("fairness", NumberFormat::Plain, |group: &Group| {
            group.fairness
        }),
        column("mean", NumberFormat::Plain, |group: &Group| {
            group.response_ms.mean
        }),
        column("stddev", NumberFormat::Plain, |group: &Group| {
            group.response_ms.stddev
        }),
        column("max", NumberFormat::Plain, |group: &Group| {
            group.response_ms.max
        }),
    ];
    let rows: Vec<(String, &Group)> = groups.iter().map(|one| (one.name.clone(), one)).collect();
    filled(
        page,
        "Processes by name, with their response times (ms)",
        &columns,
        &rows,
    );
}

fn one_by_one(page: &mut Markup, each: &[ProcessReport]) {
    type One = ProcessReport;
    let columns = [
        column("name", NumberFormat::Plain, |one: &One| {
            TableCell::from(&one.name)
        }),
        column("reads", NumberFormat::Whole, |one: &One| one.reads),
        column("writes", NumberFormat::Whole, |one: &One| one.writes),
        column("MB/s", NumberFormat::Plain, |one: &One| one.mb_per_s),
        column("mean", NumberFormat::Plain, |one: &One| {
            one.response_ms.mean
        }),
        column("stddev", NumberFormat::Plain, |one: &One| {
            one.response_ms.stddev
        }),
        column("max", NumberFormat::Plain, |one: &One| one.response_ms.max),
    ];
    let rows: Vec<(String, &One)> = each
        .iter()
        .map(|one| (format!("process {}", one.process), one))
        .collect();
    filled(
        page,
        "Each process, with its response times (ms)",
        &columns,
        &rows,
    );
}

/// Writes the readings of layers.
fn layers(page: &mut Markup, report: &Report) {
    for layer in &report.array.layers {
        let mut own: Vec<(&str, f64)> = layer
            .readings
            .iter()
            .map(|reading| (reading.name, reading.value))
            .collect();
        own.sort_by_key(|(name, _)| *name);
        readings(
            page,
            &format!("Readings of {}", layer.layer),
            own.into_iter(),
        );
    }
}

/// Writes numbers with their names.
fn readings<'a>(page: &mut Markup, caption: &str, numbers: impl Iterator<Item = (&'a str, f64)>) {
    let values: Vec<(String, f64)> = numbers
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let rows: Vec<(String, &f64)> = values
        .iter()
        .map(|(name, value)| (name.clone(), value))
        .collect();
    filled(
        page,
        caption,
        &[column("value", NumberFormat::Plain, |value: &f64| *value)],
        &rows,
    );
}
