//! A report as text.

use crate::distribution::{BEYOND_MIN, requests_beyond};
use crate::words::parity_in_words;
use crate::{
    AcrossProcesses, Distribution, EnergyReport, GroupReport, HostReport, LayerReport,
    MemberReport, Metric, ProcessReport, ProgramReport, RebuildReport, Report, ScrubReport,
    StateShares, StreamsReport, WorkloadReport,
};
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, presets};
use fullstroke_contract::PowerState;
use fullstroke_counters::Counter;
use fullstroke_units::three_digits;
use std::fmt;

/// Largest number of processes that the text shows individually.
const PROCESSES_SHOWN: usize = 32;

/// Creates a table in the style of this project: a line below the header, the columns at the
/// positions `texts` aligned left, numbers aligned right.
pub fn table<'a>(header: impl IntoIterator<Item = &'a str>, texts: &[usize]) -> Table {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table.load_style(presets::NOTHING.header_separator(line));
    // The table must not depend on the terminal: the output folds a table that is too wide
    // (`fold.rs` of the command line).
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.into_iter().map(Cell::new).collect::<Vec<_>>());
    for (index, column) in table.column_iter_mut().enumerate() {
        if !texts.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        // Two blanks between columns, because a report should fit into 80 characters.
        column.set_padding((0, 1));
    }
    table
}

/// Returns `value` with three significant digits; `-` for NaN. `--json` prints all digits.
pub fn number(value: f64) -> String {
    three_digits(value)
}

/// Returns `value` of the percentile `quantile` over `count` values, with a star if fewer than
/// [`BEYOND_MIN`] values lie beyond.
pub fn percentile(value: f64, count: u64, quantile: f64) -> String {
    let is_chance = count > 0 && requests_beyond(count, quantile) < BEYOND_MIN;
    format!("{}{}", number(value), if is_chance { "*" } else { "" })
}

/// Explanation of the star of [`percentile`].
pub const STAR: &str =
    "*: fewer than 10 requests lie beyond this percentile, so single requests decide its value.";

/// Returns the 99th percentile with its interval and the number of requests beyond; `None` without
/// requests. If the run is too short, the text says by which factor.
pub fn p99_in_words(report: &Report) -> Option<String> {
    let response = &report.times.response_ms;
    let beyond = response.beyond(0.99);
    let factor = Metric::RESPONSE_P99.longer_for_interval(report)?;
    let requests = if beyond == 1 {
        "request lies"
    } else {
        "requests lie"
    };
    let interval = match report.times.response_p99_ci95_half_width {
        Some(half_width) => format!(" ± {}", number(half_width)),
        None => String::new(),
    };
    let short = match (&report.times.response_p99_ci95_half_width, report.grows()) {
        // Response times that grow with the run never get an interval, however long the run is.
        (None, false) if factor > 1.0 => format!(
            "; the run is too short for an interval by a factor of {}",
            factor_in_words(factor)
        ),
        _ => String::new(),
    };
    (response.count > 0).then(|| {
        format!(
            "p99 {}{interval} ms: {beyond} {requests} beyond{short}.",
            number(response.p99)
        )
    })
}

/// Returns a factor, rounded up to a whole number.
pub fn factor_in_words(factor: f64) -> String {
    match factor.ceil() {
        // Three significant digits would print 3 as 3.00.
        whole if whole < 1000.0 => format!("{whole:.0}"),
        large => number(large),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_heading(self, f)?;
        let times = times(self);
        let times = match times.is_empty() {
            true => String::new(),
            false => times.trim_fmt(),
        };
        if !times.is_empty() {
            writeln!(f, "\n{times}")?;
        }
        if times.contains('*') {
            writeln!(f, "{STAR}")?;
        }
        if let Some(words) = p99_in_words(self) {
            writeln!(f, "{words}")?;
        }
        if self.times.response_ms.count > 0 {
            writeln!(f, "\n{}", parts(self).trim_fmt())?;
        }
        if let Some(words) = parity_in_words(self) {
            writeln!(f, "{words}")?;
        }
        if !self.sources.workloads.is_empty() {
            let each = workloads(&self.sources.workloads).trim_fmt();
            writeln!(f, "\n{each}")?;
            // One explanation of the star is enough for a report.
            if each.contains('*') && !times.contains('*') {
                writeln!(f, "{STAR}")?;
            }
        }
        for host in &self.sources.hosts {
            write_host(f, host)?;
        }
        if !self.shares.groups.is_empty() {
            writeln!(f, "\n{}", groups(&self.shares.groups).trim_fmt())?;
        }
        // Groups of one process each say the same as the table of processes.
        if self.shares.processes.len() > self.shares.groups.len() {
            write_processes(self, f)?;
        }
        if let Some(streams) = &self.streams {
            writeln!(f, "\n{}", self::streams(streams).trim_fmt())?;
        }
        if !self.array.members.is_empty() {
            writeln!(f, "\n{}", members(&self.array.members).trim_fmt())?;
        }
        if let Some(energy) = &self.array.energy {
            write_energy(self, f, energy)?;
        }
        if self
            .array
            .layers
            .iter()
            .any(|layer| !layer.readings.is_empty())
        {
            writeln!(f, "\n{}", layers(&self.array.layers).trim_fmt())?;
        }
        for words in self.array.layers.iter().flat_map(unheld) {
            writeln!(f, "{words}")?;
        }
        write_footing(self, f)
    }
}

fn write_heading(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "{}: {} requests, {} completed",
        report.name, report.arrived.requests, report.arrived.completed
    )?;
    for (count, what) in [
        (report.arrived.lost, "touched lost data"),
        (
            report.arrived.refused,
            "were refused by drives with zones: the layer `zoned` has the reasons",
        ),
        (report.arrived.out_of_range, "were beyond the volume"),
        (
            report.arrived.skipped_rows,
            "damaged rows of the trace were left out",
        ),
        (
            report.arrived.warm_up_requests,
            "finished within the warm-up and are not counted",
        ),
        (
            report.kinds.flushes_and_discards,
            "were flushes and discards, whose times are separate",
        ),
    ] {
        if count > 0 {
            writeln!(f, "  {count} {what}")?;
        }
    }
    for note in &report.arrived.trace_notes {
        writeln!(f, "  The trace: {note}")?;
    }
    let array = &report.array;
    for note in array.drive_notes.iter().chain(&array.media_notes) {
        writeln!(f, "  {note}")?;
    }
    // Rates and response times are of reads and writes. A job of TRIMs alone has neither.
    if report.times.response_ms.count == 0 {
        writeln!(
            f,
            "No read or write was measured, so there are no rates and no response times."
        )?;
    } else {
        writeln!(
            f,
            "{} IOPS, {} MB/s over {} simulated seconds",
            number(report.rates.iops),
            number(report.rates.mb_per_s),
            number(report.rates.simulated_s)
        )?;
    }
    write_load(report, f)?;
    if let Some(scrub) = &report.array.scrub {
        writeln!(f, "scrub of all records: {}", scrub.hours_in_words())?;
    }
    let Some(rebuild) = &report.array.rebuild else {
        return Ok(());
    };
    writeln!(
        f,
        "rebuilding member {}: {} MB/s in this run, {}",
        rebuild.members.join(", "),
        number(rebuild.mb_per_s),
        rebuild.hours_in_words()
    )
}

/// Returns the ends of an interval of hours in words.
fn hours_between(hours: f64, half_width: f64) -> String {
    format!(
        "between {} and {} hours",
        number((hours - half_width).max(0.0)),
        number(hours + half_width)
    )
}

impl ScrubReport {
    /// Returns the hours of the scrub, with their interval and the simulated share.
    pub fn hours_in_words(&self) -> String {
        let simulated = number(100.0 * self.simulated_share);
        match self.windows {
            0 => format!("{} hours", number(self.hours)),
            windows => format!(
                "{}, estimated ({simulated} % simulated, in {windows} windows all over the records)",
                hours_between(self.hours, self.hours_ci95_half_width)
            ),
        }
    }
}

impl RebuildReport {
    /// Returns the hours until the members are whole, with their interval and the simulated share.
    pub fn hours_in_words(&self) -> String {
        let simulated = number(100.0 * self.simulated_share);
        match self.hours_ci95_half_width {
            _ if !self.estimated => format!("{} hours until whole", number(self.hours)),
            Some(half_width) => format!(
                "{} until whole, estimated ({simulated} % simulated, in {} windows all over the drive)",
                hours_between(self.hours, half_width),
                self.windows
            ),
            None => format!(
                "about {} hours until whole, estimated without an interval ({simulated} % simulated, all at the beginning of the drive)",
                number(self.hours)
            ),
        }
    }
}

/// Writes the notes on the load, which a reader needs before the times.
fn write_load(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (&report.arrived.overload, &report.arrived.backlog) {
        (Some(overload), _) if overload.grows => {
            writeln!(
                f,
                "{overload}.\nThe times below have no intervals; --find load finds the largest sustained load."
            )
        }
        (Some(overload), _) => writeln!(f, "{overload}."),
        (None, Some(backlog)) if backlog.bursts => writeln!(
            f,
            "The drives do not keep up with bursts: up to {} requests wait at once; {}.",
            backlog.outstanding_max,
            match backlog.outstanding_at_last_arrival {
                // A tenth of the peak at the last arrival: the load ended within a burst.
                left if 10 * left > backlog.outstanding_max => {
                    format!(
                        "the last was worked off {} s after the last arrival",
                        number(backlog.behind_s)
                    )
                }
                _ => "the backlog is worked off, and the array keeps up with the load".to_owned(),
            }
        ),
        (None, _) => Ok(()),
    }
}

fn times(report: &Report) -> Table {
    let header = ["ms", "mean", "± 95 %", "p50", "p90", "p99", "p99.9", "max"];
    let mut table = table(header, &[0]);
    let mut add =
        |name: &str, distribution: &Distribution| {
            let half_width = distribution
                .ci95_half_width
                .map_or_else(|| "-".to_owned(), number);
            let mut row = vec![
                Cell::new(name),
                Cell::new(number(distribution.mean)),
                Cell::new(half_width),
            ];
            let Distribution {
                p50,
                p90,
                p99,
                p999,
                max,
                ..
            } = *distribution;
            let percentiles = [(p50, 0.5), (p90, 0.9), (p99, 0.99), (p999, 0.999)];
            row.extend(percentiles.map(|(value, quantile)| {
                Cell::new(percentile(value, distribution.count, quantile))
            }));
            row.push(Cell::new(number(max)));
            table.add_row(row);
        };
    let measured = report.times.response_ms.count > 0;
    if measured {
        add("response", &report.times.response_ms);
    }
    for (name, operation) in [
        ("  of reads", &report.kinds.reads),
        ("  of writes", &report.kinds.writes),
    ] {
        if let Some(operation) = operation {
            add(name, &operation.response_ms);
        }
    }
    if measured {
        add("service", &report.times.service_ms);
        add("queue", &report.times.queue_ms);
    }
    for (name, operation) in [
        ("flushes", &report.kinds.operations.flush),
        ("discards", &report.kinds.operations.discard),
    ] {
        if let Some(operation) = operation {
            add(name, &operation.response_ms);
        }
    }
    table
}

fn parts(report: &Report) -> Table {
    // Of the tails in the report the text has room for one column.
    let slowest = report.times.slowest.iter().find(|one| one.share == 0.01);
    let mut header = vec!["where the time went", "mean ms", "share"];
    header.extend(slowest.map(|_| "slowest 1 %, ms"));
    let mut table = table(header, &[0]);
    for (place, (name, value)) in report.times.time_ms.named().into_iter().enumerate() {
        let share = format!(
            "{:.1} %",
            // A run whose requests all take no time has no response time to divide by.
            100.0 * value / report.times.response_ms.mean.max(f64::MIN_POSITIVE)
        );
        let mut row = vec![name.to_owned(), number(value), share];
        row.extend(slowest.map(|one| number(one.time_ms.named()[place].1)));
        table.add_row(row);
    }
    table
}

fn write_energy(report: &Report, f: &mut fmt::Formatter<'_>, energy: &EnergyReport) -> fmt::Result {
    let EnergyReport {
        drives,
        total_j,
        mean_w,
        j_per_io,
        ..
    } = energy;
    // Flash devices and drives without `[power]` have no energy, and the sum must not seem to cover
    // them.
    let of = if *drives == report.array.members.len() as u64 {
        "all".to_owned()
    } else {
        drives.to_string()
    };
    let [total_j, mean_w, j_per_io] = [total_j, mean_w, j_per_io].map(|value| number(*value));
    writeln!(
        f,
        "\nenergy of {of} drives: {total_j} J, {mean_w} W on average, {j_per_io} J an I/O"
    )?;
    writeln!(
        f,
        "{}",
        energy_table(&report.array.members, energy).trim_fmt()
    )
}

/// Writes each process, if there are no more than `PROCESSES_SHOWN`.
fn write_processes(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if report.shares.processes.len() > PROCESSES_SHOWN {
        return writeln!(
            f,
            "{} processes; --json tells of each",
            report.shares.processes.len()
        );
    }
    writeln!(f, "\n{}", processes(&report.shares.processes).trim_fmt())
}

fn write_footing(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "\nseed {}, configuration {}, version {}",
        report.repeat.seed, report.repeat.config_digest, report.repeat.version
    )?;
    if let (Some(wall_s), Some(rate)) = (report.cost.wall_s, report.cost.requests_per_wall_s) {
        write!(
            f,
            "\nsimulated in {} s, {} requests a second",
            number(wall_s),
            number(rate)
        )?;
    }
    if let Some(peak_rss_mb) = report.cost.peak_rss_mb {
        write!(f, ", {} MB at most", number(peak_rss_mb))?;
    }
    Ok(())
}

fn groups(groups: &[GroupReport]) -> Table {
    let header = [
        "processes",
        "n",
        "MB/s",
        "each",
        "least",
        "most",
        "fairness",
        "mean ms",
        "stddev",
        "max ms",
    ];
    let mut table = table(header, &[0]);
    for group in groups {
        let AcrossProcesses { mean, min, max, .. } = group.process_mb_per_s;
        let response = &group.response_ms;
        let mut row = vec![group.name.clone(), group.processes.to_string()];
        row.extend([group.mb_per_s, mean, min, max, group.fairness].map(number));
        row.extend([response.mean, response.stddev, response.max].map(number));
        table.add_row(row);
    }
    table
}

fn workloads(workloads: &[WorkloadReport]) -> Table {
    let header = [
        "workload",
        "requests",
        "IOPS",
        "MB/s",
        "response ms",
        "p50",
        "p99",
        "max",
    ];
    let mut table = table(header, &[0]);
    for workload in workloads {
        let response = &workload.response_ms;
        let mut row = vec![workload.name.clone(), workload.requests.to_string()];
        row.extend([workload.iops, workload.mb_per_s, response.mean].map(number));
        row.extend(
            [(response.p50, 0.5), (response.p99, 0.99)]
                .map(|(value, quantile)| percentile(value, response.count, quantile)),
        );
        row.push(number(response.max));
        table.add_row(row);
    }
    table
}

/// Writes the calls and transactions of programs, and their own output.
fn write_host(f: &mut fmt::Formatter<'_>, host: &HostReport) -> fmt::Result {
    let each = calls(host).trim_fmt();
    writeln!(f, "\n{each}")?;
    if each.contains('*') {
        writeln!(f, "{STAR}")?;
    }
    if let Some(words) = host.cost_in_words() {
        writeln!(f, "{words}")?;
    }
    for program in &host.programs {
        writeln!(f, "\n{}: {} s", program.name, number(program.elapsed_s))?;
        if !program.transactions.is_empty() {
            writeln!(f, "{}", transactions(program).trim_fmt())?;
        }
        if !program.text.is_empty() {
            writeln!(f, "{}", program.text.trim_end())?;
        } else {
            for (name, value) in &program.figures {
                writeln!(f, "  {name} {}", number(*value))?;
            }
        }
        for note in &program.notes {
            writeln!(f, "  {note}")?;
        }
    }
    Ok(())
}

fn calls(host: &HostReport) -> Table {
    let name = format!("calls of {}", host.name);
    let header = [
        &name,
        "number",
        "failed",
        "mean ms",
        "p50",
        "p99",
        "max",
        "MB/s",
        "reads",
        "writes each",
    ];
    let mut table = table(header, &[0]);
    for call in &host.operations {
        let latency = &call.times.latency_ms;
        let mut row = vec![
            call.kind.to_owned(),
            call.times.count.to_string(),
            call.failed.to_string(),
        ];
        row.extend([
            number(latency.mean),
            percentile(latency.p50, call.times.count, 0.5),
            percentile(latency.p99, call.times.count, 0.99),
            number(latency.max),
        ]);
        row.extend(
            [
                call.mb_per_s,
                call.device_reads_each,
                call.device_writes_each,
            ]
            .map(number),
        );
        table.add_row(row);
    }
    table
}

fn transactions(program: &ProgramReport) -> Table {
    let header = [
        "transactions",
        "number",
        "a second",
        "mean ms",
        "p50",
        "p95",
        "p99",
        "max",
    ];
    let mut table = table(header, &[0]);
    for (kind, of) in &program.transactions {
        let latency = &of.times.latency_ms;
        let mut row = vec![
            (*kind).to_owned(),
            of.times.count.to_string(),
            number(of.per_s),
        ];
        let percentiles = [(latency.p50, 0.5), (latency.p95, 0.95), (latency.p99, 0.99)];
        row.push(number(latency.mean));
        row.extend(
            percentiles.map(|(value, quantile)| percentile(value, of.times.count, quantile)),
        );
        row.push(number(latency.max));
        table.add_row(row);
    }
    table
}

fn processes(processes: &[ProcessReport]) -> Table {
    let header = [
        "process",
        "name",
        "reads",
        "writes",
        "MB/s",
        "response ms",
        "stddev",
        "max",
    ];
    let mut table = table(header, &[1]);
    for process in processes {
        let response = &process.response_ms;
        let mut row = vec![process.process.to_string(), process.name.clone()];
        row.extend([process.reads, process.writes].map(|count| count.to_string()));
        row.extend(
            [
                process.mb_per_s,
                response.mean,
                response.stddev,
                response.max,
            ]
            .map(number),
        );
        table.add_row(row);
    }
    table
}

fn streams(streams: &StreamsReport) -> Table {
    let start_up = &streams.start_up_ms;
    let started = match streams.within_latency {
        Some(within) => format!("{within} in time, {} started", streams.started),
        None => format!("{} started", streams.started),
    };
    let mut table = table(["streams", &started], &[0]);
    for (what, value) in [
        ("playing at the end", streams.playing.to_string()),
        ("Mbit/s, nominally", number(streams.nominal_mbit_per_s)),
        ("underruns", streams.underruns.to_string()),
        ("streams with any", streams.with_underruns.to_string()),
        (
            "deadlines missed",
            format!("{} %", number(100.0 * streams.deadlines_missed_share)),
        ),
        ("longest stall ms", number(streams.longest_stall_ms)),
        ("start-up ms, mean", number(start_up.mean)),
        ("start-up ms, p99", number(start_up.p99)),
        ("start-up ms, max", number(start_up.max)),
    ] {
        table.add_row([what, &value]);
    }
    if streams.recordings > 0 {
        for (what, value) in [
            ("recordings", streams.recordings.to_string()),
            ("overruns", streams.overruns.to_string()),
            ("recordings with any", streams.with_overruns.to_string()),
            ("lost ms", number(streams.lost_ms)),
        ] {
            table.add_row([what, &value]);
        }
    }
    table
}

fn members(members: &[MemberReport]) -> Table {
    let header = [
        "member",
        "I/Os",
        "busy",
        "depth",
        "queue ms",
        "seek ms",
        "rotation ms",
        "transfer ms",
        "MB/s",
    ];
    let mut table = table(header, &[0]);
    for member in members {
        table.add_row([
            member.name.clone(),
            member.statistics.requests().to_string(),
            format!("{:.1} %", 100.0 * member.value(Counter::BUSY)),
            number(member.value(Counter::QUEUE_LENGTH)),
            number(member.value(Counter::QUEUE)),
            number(member.value(Counter::SEEK)),
            number(member.value(Counter::ROTATION)),
            number(member.value(Counter::TRANSFER)),
            number(member.value(Counter::BYTES)),
        ]);
    }
    table
}

/// Returns the table of each drive's power and its time by state. States without any time are left
/// out.
fn energy_table(members: &[MemberReport], energy: &EnergyReport) -> Table {
    let share = |state| energy.residency_share.in_state(state);
    let states: Vec<PowerState> = PowerState::ALL
        .into_iter()
        .filter(|&state| share(state) > 0.0)
        .collect();
    let header = ["member", "J", "W", "stops"]
        .into_iter()
        .chain(states.iter().map(|state| state.name()));
    let mut table = table(header, &[0]);
    for member in members {
        let Some(power) = &member.statistics.power else {
            continue;
        };
        let shares = StateShares::of(power);
        let fixed = [
            member.name.clone(),
            number(power.energy().0),
            number(power.mean_power().0),
            power.spin_downs().to_string(),
        ];
        let shares = states
            .iter()
            .map(|&state| format!("{:.1} %", 100.0 * shares.in_state(state)));
        table.add_row(fixed.into_iter().chain(shares));
    }
    table
}

/// Returns a sentence for each opportunity that never held, with the values that came nearest.
fn unheld(layer: &LayerReport) -> Vec<String> {
    let read = |name: &str| layer.value(name);
    let mut words = Vec::new();
    if let Some(quiet) = read("quiet_ms_max")
        && [
            "signals_pulls",
            "verify_verified_mb",
            "verify_found",
            "scrub_passes",
        ]
        .into_iter()
        // A layer has only the readings of its opportunities.
        .all(|done| read(done).is_none_or(|value| value == 0.0))
    {
        words.push(format!(
            "No idle work was done: the longest idle time was {} ms; see `wait` of the opportunities.",
            number(quiet)
        ));
    }
    if let (Some(share), Some(hits), Some(0.0)) = (
        read("track_hit_share_max"),
        read("track_hits_max"),
        read("signals_pushes"),
    ) {
        words.push(format!(
            "No track was pushed: at each eviction at most {} % of recent reads were hits, and no evicted track had more than {hits} hits; see `hit_ratio` and `hits` of track-push.",
            number(100.0 * share)
        ));
    }
    words
}

fn layers(layers: &[LayerReport]) -> Table {
    let mut table = table(["layer", "reading", "value"], &[0, 1]);
    for layer in layers {
        for (index, reading) in layer.readings.iter().enumerate() {
            // A repeated name would hide where the next layer begins.
            let name = if index == 0 { layer.layer.as_str() } else { "" };
            table.add_row([name, reading.name, &number(reading.value)]);
        }
    }
    table
}
