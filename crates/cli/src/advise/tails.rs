//! The table of tails: slow requests of each finalist in the four states of an array.

use super::dash;
use fullstroke_advise::{ArrayOutcome, Finalist};
use fullstroke_measure::{BEYOND_MIN, STAR, number, table as empty_table};

/// Returns the table of the 99.9th percentile of each finalist with all drives, with a failed
/// drive, during a rebuild and with a slow drive, beside the other numbers with a slow drive.
/// `None` if no finalist has run with a slow drive.
pub(super) fn table(finalists: &[Finalist], slow_factor: f64) -> Option<String> {
    if finalists.iter().all(|one| one.slow.is_none()) {
        return None;
    }
    let header = [
        "",
        "layout",
        "p99.9 ms",
        "one failed",
        "rebuilding",
        "one slow",
        "p99, one slow",
        "MB/s, one slow",
    ];
    let mut table = empty_table(header, &[1]);
    // The star has a rule of its own here: of a thousand requests one lies beyond this percentile,
    // so that runs that settle the 99th percentile may not settle this one.
    let p999 = |outcome: &ArrayOutcome| with_star(outcome.p999_ms, outcome.p999_beyond);
    for one in finalists {
        let slow = one.slow.as_ref();
        table.add_row([
            one.place.to_string(),
            one.name.clone(),
            p999(&one.healthy),
            one.degraded.as_ref().map_or_else(dash, p999),
            one.rebuilding.as_ref().map_or_else(dash, p999),
            slow.map_or_else(dash, p999),
            slow.map_or_else(dash, |slow| with_star(slow.p99_ms, slow.p99_beyond)),
            slow.map_or_else(dash, |slow| number(slow.mb_per_s)),
        ]);
    }
    let table = table.trim_fmt();
    let star = match table.contains('*') {
        true => format!("{STAR}\n"),
        false => String::new(),
    };
    Some(format!(
        "{table}\n{star}\nOne slow: one drive takes {} times as long without failing (--slow-factor). docs/slow.md has policies against slow drives.",
        number(slow_factor)
    ))
}

/// Returns a percentile, marked if few requests lie beyond.
fn with_star(ms: f64, beyond: u64) -> String {
    match beyond < BEYOND_MIN {
        true => format!("{}*", number(ms)),
        false => number(ms),
    }
}
