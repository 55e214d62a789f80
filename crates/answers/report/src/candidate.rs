//! The candidates of an answer.

use crate::value::{at, list, text};
use serde_json::Value;

/// The most candidates that a chart shows.
pub(crate) const IN_A_CHART: usize = 40;
/// Letters of a name; what differs stands at the beginning or the end.
const LABEL_MAX: usize = 160;
/// The most lines that one set of axes holds and that can still be told apart.
pub(crate) const LINES: usize = 8;

/// One candidate: its own numbers, and the report of its run.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<'a> {
    /// Its name, with the values that were varied.
    pub(crate) label: String,
    /// Its place in a ranking; the same as the report for a run alone.
    pub(crate) ranked: &'a Value,
    pub(crate) report: &'a Value,
}

/// All of an answer: those of a ranking in their order, or the one run that it is.
pub(crate) fn candidates(answer: &Value) -> Vec<Candidate<'_>> {
    let all = match at(answer, "candidates") {
        Value::Array(all) => all.as_slice(),
        _ if at(answer, "response_ms").is_object() => std::slice::from_ref(answer),
        _ => &[],
    };
    named(all)
}

/// Those of a search that were run on the whole load.
pub(crate) fn on_the_whole_load(answer: &Value) -> Vec<Candidate<'_>> {
    named(list(answer, "whole_load"))
}

/// Whether all ran the whole workload, or saw the same number of parts in a race.
pub(crate) fn saw_the_same(candidates: &[Candidate<'_>]) -> bool {
    let parts = |candidate: &Candidate<'_>| at(candidate.ranked, "batches").as_u64();
    candidates
        .windows(2)
        .all(|two| parts(&two[0]) == parts(&two[1]))
}

fn named(all: &[Value]) -> Vec<Candidate<'_>> {
    let naming = Naming::of(all);
    let each = all.iter().filter_map(|ranked| {
        // One that was tuned has no report of a run, but what was found of it; a run alone is its own.
        let report = match at(ranked, "report") {
            Value::Null
                if ["batches", "response_ms"]
                    .iter()
                    .all(|key| at(ranked, key).is_null()) =>
            {
                None
            }
            Value::Null => Some(ranked),
            report => Some(report),
        };
        Some(Candidate {
            label: naming.label(ranked),
            ranked,
            report: report?,
        })
    });
    each.collect()
}

/// What is said of a candidate to tell it from the others.
struct Naming {
    /// Whether its stack's name does.
    by_name: bool,
    /// Whether the last part of a key says which key it is.
    short: bool,
}

impl Naming {
    fn of(all: &[Value]) -> Naming {
        let keys = all.first().map(varied).unwrap_or_default();
        let mut lasts: Vec<&str> = keys.iter().map(|(key, _)| last(key)).collect();
        lasts.sort_unstable();
        lasts.dedup();
        Naming {
            by_name: keys.is_empty()
                || all
                    .iter()
                    .any(|one| text(one, "name") != text(&all[0], "name")),
            short: lasts.len() == keys.len(),
        }
    }

    /// The ends of one that is too long.
    fn label(&self, ranked: &Value) -> String {
        let name = Some(text(ranked, "name").to_owned()).filter(|_| self.by_name);
        let values = varied(ranked).into_iter().map(|(key, value)| {
            let key = if self.short { last(key) } else { key };
            format!("{key}={value}")
        });
        shortened(name.into_iter().chain(values).collect::<Vec<_>>().join(" "))
    }
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn shortened(label: String) -> String {
    let letters = label.chars().count();
    if letters <= LABEL_MAX {
        return label;
    }
    let of = |range: std::ops::Range<usize>| {
        label
            .chars()
            .skip(range.start)
            .take(range.len())
            .collect::<String>()
    };
    format!(
        "{}…{}",
        of(0..LABEL_MAX / 2),
        of(letters - LABEL_MAX / 2..letters)
    )
}

/// What was varied, in its order.
pub(crate) fn varied(ranked: &Value) -> Vec<(&str, &str)> {
    let keys = at(ranked, "varied").as_object();
    let each = keys.into_iter().flatten();
    each.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect()
}
