//! Metrics in words.

use fullstroke_measure::Metric;

/// Names of times.
const TIMES: [(&str, &str); 5] = [
    ("response_ms", "response time"),
    ("service_ms", "service time"),
    ("queue_ms", "time in queues"),
    ("latency_ms", "latency"),
    ("duration_ms", "duration"),
];

/// Names of statistics of times.
const STATISTICS: [(&str, &str); 8] = [
    ("mean", "mean"),
    ("stddev", "standard deviation of"),
    ("p50", "median"),
    ("p90", "90th percentile of"),
    ("p95", "95th percentile of"),
    ("p99", "99th percentile of"),
    ("p999", "99.9th percentile of"),
    ("max", "longest"),
];

/// Names of numbers that are no statistics of times.
const OTHERS: [(&str, &str); 6] = [
    ("iops", "I/Os completed"),
    ("mb_per_s", "data moved"),
    ("utilisation", "share of the time busy"),
    ("mean_w", "mean power"),
    ("j_per_io", "energy an I/O"),
    ("elapsed_s", "elapsed time"),
];

/// Returns a metric, given by its dotted name, in words with its unit: `99th percentile of response
/// times of reads (ms)`. A metric without words keeps its dotted name.
pub(crate) fn axis(name: &str) -> String {
    let unit = match Metric::parse(name).map(|metric| metric.unit()) {
        Ok("10^6 B/s") => " (MB/s)".to_owned(),
        Ok(unit) if unit != "1" => format!(" ({unit})"),
        _ => String::new(),
    };
    format!("{}{unit}", words(name))
}

/// Returns the metric in words without its unit.
pub(crate) fn words(name: &str) -> String {
    let find = |known: &[(&str, &'static str)], key: &str| {
        known
            .iter()
            .find(|(own, _)| *own == key)
            .map(|(_, words)| *words)
    };
    let parts: Vec<&str> = name.split('.').collect();
    let (words, scope) = match parts[..] {
        [ref scope @ .., time, statistic] if find(&TIMES, time).is_some() => {
            let (Some(time), Some(statistic)) = (find(&TIMES, time), find(&STATISTICS, statistic))
            else {
                return name.to_owned();
            };
            // "Mean response time", but "median of response times".
            let many = if statistic.ends_with(" of") && time.ends_with("time") {
                "s"
            } else {
                ""
            };
            (format!("{statistic} {time}{many}"), scope)
        }
        [ref scope @ .., last] => match find(&OTHERS, last).or_else(|| find(&TIMES, last)) {
            Some(words) if TIMES.iter().any(|(time, _)| *time == last) => {
                (format!("mean {words}"), scope)
            }
            Some(words) => (words.to_owned(), scope),
            // The user sees an unknown name as typed.
            None => return name.to_owned(),
        },
        [] => return name.to_owned(),
    };
    // These parts of a name only group other parts, and add nothing to the words.
    let of = scope
        .iter()
        .filter(|part| !["workloads", "hosts", "operations", "energy"].contains(part));
    let of: Vec<&str> = of
        .map(|part| if *part == "members" { "drives" } else { part })
        .collect();
    if of.is_empty() {
        words
    } else {
        format!("{words} of {}", of.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_words_and_units_and_what_has_no_words_keeps_its_name() {
        for (name, read) in [
            ("response_ms.mean", "mean response time (ms)"),
            ("response_ms", "mean response time (ms)"),
            (
                "reads.response_ms.p99",
                "99th percentile of response times of reads (ms)",
            ),
            (
                "workloads.postgres.response_ms.max",
                "longest response time of postgres (ms)",
            ),
            ("iops", "I/Os completed (1/s)"),
            ("writes.mb_per_s", "data moved of writes (MB/s)"),
            (
                "members.utilisation",
                "share of the time busy of drives (0 to 1)",
            ),
            ("no such metric", "no such metric"),
            ("", ""),
        ] {
            assert_eq!(axis(name), read, "{name}");
        }
    }

    #[test]
    fn every_metric_that_has_a_unit_shows_it() {
        for metric in Metric::all()
            .into_iter()
            .filter(|metric| metric.unit() != "1")
        {
            let name = metric.name();
            assert!(axis(&name).ends_with(')'), "{name}: {}", axis(&name));
        }
    }
}
