//! A server's status as tables.

use fullstroke_counters::{Counter, Total};
use fullstroke_lab::capacity;
use fullstroke_live::{DriveStatus, ExportStatus, OperationStatus, ServerStatus};
use fullstroke_measure::{number, table};

/// Returns the text of the whole status.
pub(super) fn text(status: &ServerStatus) -> String {
    let speed = status.speed.map_or("no request waits".to_owned(), |speed| {
        format!("{speed}x the real clock")
    });
    let ServerStatus {
        version,
        uptime_s,
        clients,
        ..
    } = status;
    let mut text = format!("fullstroke {version}, up {uptime_s:.0} s, {speed}, {clients} clients");
    for export in &status.exports {
        text.push_str("\n\n");
        text.push_str(&export_text(export, status.speed));
    }
    text
}

fn export_text(export: &ExportStatus, speed: Option<f64>) -> String {
    let ExportStatus {
        name,
        layout,
        in_flight,
        lateness,
        scrubbed_share,
        health,
        ..
    } = export;
    let scrub = scrubbed_share.map_or(String::new(), |share| {
        format!("\ncomparing redundancy: {:.1} %", share * 100.0)
    });
    let size = capacity(export.usable_bytes);
    let world_s = number(export.world_ns as f64 / 1e9);
    let health = health.words()
        + &health
            .rebuilds
            .iter()
            .map(|rebuild| format!("\nrebuilding {}", rebuild.words()))
            .collect::<String>()
        + &health
            .gears
            .iter()
            .map(|geared| format!("\n{}", geared.words()))
            .collect::<String>()
        + &health.comparing.map_or(String::new(), |comparing| {
            format!("\n{}", comparing.words())
        });
    format!(
        "{name}: {layout}, {size}, {world_s} simulated s, {in_flight} in flight\n\
         {health}\n\
         answers late by {} us (median), {} us (p99), {} us (latest) of the host's time{}{scrub}\n\n{}\n\n{}",
        number(lateness.p50_us),
        number(lateness.p99_us),
        number(lateness.max_us),
        in_simulated_time(lateness.p99_us, speed),
        operations(export),
        drives(&export.drives)
    )
}

/// Returns the lateness in simulated time, if simulated time is faster or slower than the host's
/// clock.
fn in_simulated_time(p99_us: f64, speed: Option<f64>) -> String {
    match speed {
        // At the pace of the host's clock both times are the same.
        Some(speed) if speed != 1.0 => {
            format!(" (p99: {} us of simulated time)", number(p99_us * speed))
        }
        _ => String::new(),
    }
}

fn operations(export: &ExportStatus) -> String {
    let mut table = table(["operation", "requests", "MB", "errors", "mean ms"], &[0]);
    for (name, operation) in export.operations.by_name() {
        let OperationStatus {
            requests,
            bytes,
            errors,
            response_s,
            ..
        } = operation;
        table.add_row([
            name.to_owned(),
            requests.to_string(),
            number(*bytes as f64 / 1e6),
            errors.to_string(),
            // The mean is NaN without requests; the table shows that.
            number(response_s * 1000.0 / operation.served() as f64),
        ]);
    }
    table.trim_fmt()
}

fn drives(drives: &[DriveStatus]) -> String {
    let totals = Counter::all_served().map(|served| served.column);
    let header: Vec<&str> = ["drive", "state", "queue", "cylinder"]
        .into_iter()
        .chain(totals)
        .collect();
    let mut table = table(header, &[0, 1]);
    for drive in drives {
        let DriveStatus {
            name,
            queue_length,
            head_cylinder,
            totals,
            ..
        } = drive;
        let place = [
            name.clone(),
            state(drive),
            queue_length.to_string(),
            head_cylinder.to_string(),
        ];
        table.add_row(
            place
                .into_iter()
                .chain(totals.all().map(|(_, total)| shown(total))),
        );
    }
    table.trim_fmt()
}

fn shown(total: Total) -> String {
    match total {
        Total::Count(count) => count.to_string(),
        // Megabytes of 10^6 bytes, as in all rates of the program.
        Total::Bytes(bytes) => number(bytes as f64 / 1e6),
        Total::Seconds(_) | Total::Joules(_) => number(total.value()),
    }
}

/// Returns the state of a drive, with the progress of its rebuild, or with its slowness.
fn state(drive: &DriveStatus) -> String {
    let state = drive.state.name();
    match (drive.rebuilt_share, drive.slowness) {
        (Some(share), _) => format!("{state} {:.1} %", 100.0 * share),
        (None, Some(factor)) => format!("{state}, {}x slow", number(factor)),
        (None, None) => state.to_owned(),
    }
}
