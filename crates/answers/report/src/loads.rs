//! What each workload, host, program and stream of a run saw, and what its layers read.

use crate::candidate::Candidate;
use crate::markup::Markup;
use crate::value::{Column, Shown, at, column, list, table, text};
use serde_json::{Value, json};

/// Processes that are shown one by one, at most.
const PROCESSES: usize = 32;

/// Says that what stands above is of all workloads of a candidate together, where there are several.
pub(crate) fn together(page: &mut Markup, candidates: &[Candidate<'_>]) {
    let several = candidates
        .iter()
        .map(|candidate| list(candidate.report, "workloads"));
    if let Some(workloads) = several.into_iter().find(|workloads| workloads.len() > 1) {
        let names: Vec<&str> = workloads
            .iter()
            .map(|workload| text(workload, "name"))
            .collect();
        let note = format!(
            "Of all requests together, those of the workloads {}.",
            names.join(", ")
        );
        page.element("p", &[("class", "note")], &note);
    }
}

/// All tables of one run, as far as there is `room`.
pub(crate) fn of_run(page: &mut Markup, run: &Candidate<'_>, room: usize) {
    let one = std::slice::from_ref(run);
    let mut tables = Vec::new();
    let mut add = |write: &dyn Fn(&mut Markup)| {
        let mut own = Markup::new();
        write(&mut own);
        tables.push(own);
    };
    add(&|page| streams(page, one));
    add(&|page| workloads(page, one));
    for host in list(run.report, "hosts") {
        add(&|page| of_host(page, host));
    }
    add(&|page| processes(page, run.report));
    add(&|page| layers(page, run.report));
    for own in &tables {
        if page.len() + own.len() > room {
            page.element(
                "p",
                &[("class", "note")],
                "No room is left for the tables that follow; --json has them.",
            );
            return;
        }
        page.add(own);
    }
}

/// Streams of each candidate; nothing where there are none.
pub(crate) fn streams(page: &mut Markup, candidates: &[Candidate<'_>]) {
    let columns = [
        column("started", "started", Shown::Whole),
        column("in time", "within_latency", Shown::Whole),
        column("playing at the end", "playing", Shown::Whole),
        column("Mbit/s, nominally", "nominal_mbit_per_s", Shown::Plain),
        column("underruns", "underruns", Shown::Whole),
        column("streams with any", "with_underruns", Shown::Whole),
        column("deadlines missed", "deadlines_missed_share", Shown::Percent),
        column("longest stall ms", "longest_stall_ms", Shown::Plain),
        column("start-up ms, mean", "start_up_ms.mean", Shown::Plain),
        column("p99", "start_up_ms.p99", Shown::Plain),
        column("max", "start_up_ms.max", Shown::Plain),
    ];
    let each = candidates
        .iter()
        .map(|one| (one.label.clone(), at(one.report, "streams")));
    filled(
        page,
        "Streams",
        &columns,
        &each
            .filter(|(_, streams)| streams.is_object())
            .collect::<Vec<_>>(),
    );
}

/// Workloads of each candidate, under its name where there are several; nothing where there is one.
pub(crate) fn workloads(page: &mut Markup, candidates: &[Candidate<'_>]) {
    let columns = [
        column("requests", "requests", Shown::Whole),
        column("IOPS", "iops", Shown::Plain),
        column("MB/s", "mb_per_s", Shown::Plain),
        column("mean", "response_ms.mean", Shown::Plain),
        column("p50", "response_ms.p50", Shown::Plain),
        column("p99", "response_ms.p99", Shown::Plain),
        column("max", "response_ms.max", Shown::Plain),
        column("reads, mean", "reads.response_ms.mean", Shown::Plain),
        column("writes, mean", "writes.response_ms.mean", Shown::Plain),
    ];
    let name = |candidate: &Candidate<'_>, workload: &Value| match candidates.len() {
        1 => text(workload, "name").to_owned(),
        _ => format!("{}: {}", candidate.label, text(workload, "name")),
    };
    let mut rows: Vec<(String, &Value)> = Vec::new();
    for candidate in candidates {
        let own = list(candidate.report, "workloads").iter();
        rows.extend(own.map(|workload| (name(candidate, workload), workload)));
    }
    filled(
        page,
        "Workloads, with their response times (ms)",
        &columns,
        &rows,
    );
}

/// What programs saw, in calls and transactions, and their own words.
fn of_host(page: &mut Markup, host: &Value) {
    let name = text(host, "name");
    let columns = [
        column("number", "count", Shown::Whole),
        column("failed", "failed", Shown::Whole),
        column("mean", "latency_ms.mean", Shown::Plain),
        column("p50", "latency_ms.p50", Shown::Plain),
        column("p99", "latency_ms.p99", Shown::Plain),
        column("max", "latency_ms.max", Shown::Plain),
        column("MB/s", "mb_per_s", Shown::Plain),
        column("reads each", "device_reads_each", Shown::Plain),
        column("writes each", "device_writes_each", Shown::Plain),
    ];
    filled(
        page,
        &format!("Calls of {name} (ms)"),
        &columns,
        &entries(at(host, "operations")),
    );
    let programs = list(host, "programs");
    let elapsed = [column("elapsed s", "elapsed_s", Shown::Plain)];
    let rows: Vec<(String, &Value)> = programs
        .iter()
        .map(|one| (text(one, "name").to_owned(), one))
        .collect();
    filled(page, &format!("Programs of {name}"), &elapsed, &rows);
    for program in programs {
        of_program(page, program);
    }
}

fn of_program(page: &mut Markup, program: &Value) {
    let name = text(program, "name");
    let columns = [
        column("number", "count", Shown::Whole),
        column("a second", "per_s", Shown::Plain),
        column("mean", "latency_ms.mean", Shown::Plain),
        column("p50", "latency_ms.p50", Shown::Plain),
        column("p95", "latency_ms.p95", Shown::Plain),
        column("p99", "latency_ms.p99", Shown::Plain),
        column("max", "latency_ms.max", Shown::Plain),
    ];
    filled(
        page,
        &format!("Transactions of {name} (ms)"),
        &columns,
        &entries(at(program, "transactions")),
    );
    match text(program, "text") {
        "" => readings(page, &format!("Figures of {name}"), at(program, "figures")),
        words => {
            page.within("pre", &[], |page| {
                _ = page.element("code", &[], words.trim_end())
            });
        }
    }
    for note in list(program, "notes").iter().filter_map(Value::as_str) {
        page.element("p", &[("class", "note")], note);
    }
}

/// Processes by their names, and each if they are few.
fn processes(page: &mut Markup, report: &Value) {
    let columns = [
        column("name", "name", Shown::Plain),
        column("processes", "processes", Shown::Whole),
        column("reads", "reads", Shown::Whole),
        column("writes", "writes", Shown::Whole),
        column("MB/s", "mb_per_s", Shown::Plain),
        column("each", "process_mb_per_s.mean", Shown::Plain),
        column("least", "process_mb_per_s.min", Shown::Plain),
        column("most", "process_mb_per_s.max", Shown::Plain),
        column("fairness", "fairness", Shown::Plain),
        column("mean", "response_ms.mean", Shown::Plain),
        column("stddev", "response_ms.stddev", Shown::Plain),
        column("max", "response_ms.max", Shown::Plain),
    ];
    let (groups, each) = (list(report, "groups"), list(report, "processes"));
    let rows: Vec<(String, &Value)> = groups
        .iter()
        .map(|one| (text(one, "name").to_owned(), one))
        .collect();
    filled(
        page,
        "Processes by name, with their response times (ms)",
        &columns[1..],
        &rows,
    );
    let rows: Vec<(String, &Value)> = each
        .iter()
        .map(|one| (format!("process {}", at(one, "process")), one))
        .collect();
    match rows.len() {
        few if few <= groups.len() => {}
        many if many > PROCESSES => {
            page.element(
                "p",
                &[("class", "note")],
                &format!("{many} processes; --json tells of each."),
            );
        }
        _ => filled(
            page,
            "Each process, with its response times (ms)",
            &columns,
            &rows,
        ),
    }
}

/// What layers say of themselves.
fn layers(page: &mut Markup, report: &Value) {
    for layer in list(report, "layers") {
        readings(
            page,
            &format!("Readings of {}", text(layer, "layer")),
            at(layer, "readings"),
        );
    }
}

/// Numbers by their names.
fn readings(page: &mut Markup, caption: &str, numbers: &Value) {
    let values: Vec<(String, Value)> = entries(numbers)
        .into_iter()
        .map(|(name, value)| (name, json!({ "value": value })))
        .collect();
    let rows: Vec<(String, &Value)> = values
        .iter()
        .map(|(name, value)| (name.clone(), value))
        .collect();
    filled(
        page,
        caption,
        &[column("value", "value", Shown::Plain)],
        &rows,
    );
}

fn entries(map: &Value) -> Vec<(String, &Value)> {
    map.as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value))
        .collect()
}

/// A table, if it has rows.
fn filled(page: &mut Markup, caption: &str, columns: &[Column<'_>], rows: &[(String, &Value)]) {
    if !rows.is_empty() {
        table(page, caption, columns, rows);
    }
}
