//! PostMark's report.

use super::instance::{Instance, InstanceCounts};
use super::settings::{PostmarkSettings, Style};
use crate::program::ProgramReport;
use fullstroke_units::Time;
use std::fmt::Write as _;

/// PostMark's megabyte in bytes.
const MEGABYTE: f64 = 1_048_576.0;

/// Returns the figures of the last run and the reports of all runs.
pub(super) fn of(
    runs: &[PostmarkSettings],
    notes: &[String],
    instances: &[Instance],
) -> ProgramReport {
    let mut report = ProgramReport {
        notes: notes.to_vec(),
        ..ProgramReport::default()
    };
    for instance in instances {
        for (settings, outcome) in runs.iter().zip(instance.outcomes()) {
            if instances.len() > 1 {
                _ = writeln!(report.text, "Instance {}", instance.number());
            }
            match (outcome.out_of_files, outcome.ended) {
                (true, _) => report.text.push_str("out of files!\n"),
                (false, Some(_)) => print(&mut report.text, settings, outcome),
                (false, None) => {}
            }
        }
    }
    let latest: Vec<&InstanceCounts> = instances
        .iter()
        .filter_map(|instance| instance.outcomes().get(runs.len() - 1))
        .filter(|outcome| outcome.pool_made.is_some())
        .collect();
    report.figures = figures(&latest);
    let sum = |count: fn(&InstanceCounts) -> u32| -> u64 {
        instances
            .iter()
            .flat_map(Instance::outcomes)
            .map(|outcome| u64::from(count(outcome)))
            .sum()
    };
    for (count, note) in [
        (
            sum(|outcome| outcome.full),
            "appends chose a file of maximum length and wrote nothing, as in PostMark",
        ),
        (
            sum(|outcome| outcome.no_room),
            "creations found no free entry in the file table and created nothing, as in PostMark",
        ),
        (
            sum(|outcome| u32::from(outcome.out_of_files)),
            "runs had no files left before their last transaction, and end there, as in PostMark",
        ),
    ] {
        if count > 0 {
            report.notes.push(format!("{count} {note}."));
        }
    }
    report
}

/// Returns the seconds from one time to another. A future time counts as the present.
fn seconds(from: Option<Time>, to: Option<Time>, outcome: &InstanceCounts) -> f64 {
    let from = from.unwrap_or(outcome.now);
    to.unwrap_or(outcome.now)
        // A phase that has not ended has no duration yet.
        .saturating_since(from)
        .as_secs_f64()
}

fn whole(outcome: &InstanceCounts) -> f64 {
    seconds(Some(outcome.began), outcome.ended, outcome)
}

fn pool(outcome: &InstanceCounts) -> f64 {
    seconds(Some(outcome.began), outcome.pool_made, outcome)
}

fn mixed(outcome: &InstanceCounts) -> f64 {
    seconds(outcome.pool_made, outcome.transactions_ended, outcome)
}

fn last(outcome: &InstanceCounts) -> f64 {
    seconds(outcome.transactions_ended, outcome.ended, outcome)
}

/// Returns means over the instances. A phase without duration has no rate.
fn figures(outcomes: &[&InstanceCounts]) -> Vec<(&'static str, f64)> {
    let mut figures = Vec::new();
    let mut mean = |name, figure: fn(&InstanceCounts) -> (f64, f64)| {
        let rates: Vec<f64> = outcomes
            .iter()
            .map(|outcome| figure(outcome))
            .filter(|&(_, over)| over > 0.0)
            .map(|(amount, over)| amount / over)
            .collect();
        // The figure is left out if one run lacks it. A mean over fewer runs would be of other
        // work.
        if !rates.is_empty() && rates.len() == outcomes.len() {
            figures.push((name, rates.iter().sum::<f64>() / rates.len() as f64));
        }
    };
    mean("transactions_per_s", |o| {
        (f64::from(o.transactions), mixed(o))
    });
    mean("created_per_s", |o| (f64::from(o.created), whole(o)));
    mean("created_alone_per_s", |o| {
        (f64::from(o.created_alone), pool(o))
    });
    mean("created_mixed_per_s", |o| {
        (f64::from(o.created - o.created_alone), mixed(o))
    });
    mean("read_per_s", |o| (f64::from(o.read), mixed(o)));
    mean("appended_per_s", |o| (f64::from(o.appended), mixed(o)));
    mean("deleted_per_s", |o| (f64::from(o.deleted), whole(o)));
    mean("deleted_alone_per_s", |o| {
        (f64::from(o.deleted_alone), last(o))
    });
    mean("deleted_mixed_per_s", |o| {
        (f64::from(o.deleted - o.deleted_alone), mixed(o))
    });
    mean("read_mb_per_s", |o| (o.bytes_read as f64 / 1e6, whole(o)));
    mean("written_mb_per_s", |o| {
        (o.bytes_written as f64 / 1e6, whole(o))
    });
    mean("elapsed_s", |o| (whole(o), 1.0));
    mean("transactions_s", |o| (mixed(o), 1.0));
    let total: f64 = outcomes
        .iter()
        .map(|o| f64::from(o.transactions) / mixed(o))
        .sum();
    // A run without mixed transactions divides by 0.
    if total.is_finite() && total > 0.0 {
        figures.push(("transactions_per_s_total", total));
    }
    figures
}

/// Returns the whole seconds between two times of `time(2)`, but at least 1 (`diff_time`).
fn whole_seconds(from: Time, to: Time) -> u64 {
    let second = |time: Time| time.as_nanos() / 1_000_000_000;
    (second(to) - second(from)).max(1)
}

/// Prints the report of a finished run.
fn print(text: &mut String, settings: &PostmarkSettings, outcome: &InstanceCounts) {
    let ended = outcome.ended.unwrap_or(outcome.now);
    let made = outcome.pool_made.unwrap_or(ended);
    let transacted = outcome.transactions_ended.unwrap_or(ended);
    let times = ReportSeconds {
        all: whole_seconds(outcome.began, ended),
        pool: whole_seconds(outcome.began, made),
        mixed: whole_seconds(made, transacted),
        last: whole_seconds(transacted, ended),
    };
    match settings.style {
        Style::Verbose => verbose(text, outcome, &times),
        Style::Terse => terse(text, outcome, &times),
    }
}

/// Durations in whole seconds.
struct ReportSeconds {
    all: u64,
    pool: u64,
    mixed: u64,
    last: u64,
}

fn verbose(text: &mut String, outcome: &InstanceCounts, times: &ReportSeconds) {
    let rate = |count: u32, seconds: u64| u64::from(count) / seconds;
    let mut line = |tabs: usize, words: String| _ = writeln!(text, "{}{words}", "\t".repeat(tabs));
    let counted = |name: &str, count, seconds| {
        format!("{count} {name} ({} per second)", rate(count, seconds))
    };
    let phase = |name: &str, count, seconds| {
        format!(
            "{name}: {count} files ({} per second)",
            rate(count, seconds)
        )
    };
    let data = |name: &str, bytes: u64| {
        format!(
            "{} {name} ({} per second)",
            scaled(bytes as f64),
            scaled(bytes as f64 / times.all as f64)
        )
    };
    line(0, "Time:".into());
    line(1, format!("{} seconds total", times.all));
    let done = rate(outcome.transactions, times.mixed);
    line(
        1,
        format!(
            "{} seconds of transactions ({done} per second)",
            times.mixed
        ),
    );
    line(0, "\nFiles:".into());
    line(1, counted("created", outcome.created, times.all));
    line(
        2,
        phase("Creation alone", outcome.created_alone, times.pool),
    );
    line(
        2,
        phase(
            "Mixed with transactions",
            outcome.created - outcome.created_alone,
            times.mixed,
        ),
    );
    line(1, counted("read", outcome.read, times.mixed));
    line(1, counted("appended", outcome.appended, times.mixed));
    line(1, counted("deleted", outcome.deleted, times.all));
    line(
        2,
        phase("Deletion alone", outcome.deleted_alone, times.last),
    );
    line(
        2,
        phase(
            "Mixed with transactions",
            outcome.deleted - outcome.deleted_alone,
            times.mixed,
        ),
    );
    line(0, "\nData:".into());
    line(1, data("read", outcome.bytes_read));
    line(1, data("written", outcome.bytes_written));
}

/// Prints one line of numbers. The order is: seconds in all and of transactions; transactions per
/// second; files created per second in all, alone and mixed; read and appended; deleted in all,
/// alone and mixed; bytes read and written per second.
fn terse(text: &mut String, outcome: &InstanceCounts, times: &ReportSeconds) {
    let rate = |count: u32, seconds: u64| f64::from(count) / seconds as f64;
    let numbers = [
        rate(outcome.transactions, times.mixed),
        rate(outcome.created, times.all),
        rate(outcome.created_alone, times.pool),
        rate(outcome.created - outcome.created_alone, times.mixed),
        rate(outcome.read, times.mixed),
        rate(outcome.appended, times.mixed),
        rate(outcome.deleted, times.all),
        rate(outcome.deleted_alone, times.last),
        rate(outcome.deleted - outcome.deleted_alone, times.mixed),
        outcome.bytes_read as f64 / times.all as f64,
        outcome.bytes_written as f64 / times.all as f64,
    ];
    let numbers: Vec<String> = numbers
        .iter()
        .map(|number| format!("{number:.2}"))
        .collect();
    _ = writeln!(text, "{} {} {}", times.all, times.mixed, numbers.join(" "));
}

/// Returns a number of bytes in PostMark's format.
fn scaled(bytes: f64) -> String {
    if bytes > MEGABYTE {
        format!("{:.2} megabytes", bytes / MEGABYTE)
    } else if bytes > 0.0 {
        format!("{:.2} kilobytes", bytes / 1024.0)
    } else {
        format!("{bytes:.6} bytes")
    }
}
