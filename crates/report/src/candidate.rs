//! The candidates of an answer.

use crate::value::{at, text};
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
    let each = |ranked| match at(ranked, "report") {
        Value::Null => None,
        report => Some(Candidate { label: label(ranked), ranked, report }),
    };
    match at(answer, "candidates") {
        Value::Array(all) => all.iter().filter_map(each).collect(),
        _ if at(answer, "response_ms").is_object() => {
            vec![Candidate { label: label(answer), ranked: answer, report: answer }]
        }
        _ => Vec::new(),
    }
}

/// The name with the values that were varied; the ends of one that is too long.
pub(crate) fn label(ranked: &Value) -> String {
    let mut label = text(ranked, "name").to_owned();
    for (key, value) in varied(ranked) {
        label.push_str(&format!(" {key}={value}"));
    }
    shortened(label)
}

fn shortened(label: String) -> String {
    let letters = label.chars().count();
    if letters <= LABEL_MAX {
        return label;
    }
    let of =
        |range: std::ops::Range<usize>| label.chars().skip(range.start).take(range.len()).collect::<String>();
    format!("{}…{}", of(0..LABEL_MAX / 2), of(letters - LABEL_MAX / 2..letters))
}

/// What was varied, in its order.
pub(crate) fn varied(ranked: &Value) -> Vec<(&str, &str)> {
    let keys = at(ranked, "varied").as_object();
    let each = keys.into_iter().flatten();
    each.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect()
}
