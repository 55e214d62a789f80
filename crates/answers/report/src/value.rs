//! Numbers of an answer, as the page shows them.
//!
//! Each stands in an element `data` whose value is the number to its last digit, as `--json`
//! prints it; what is read is rounded.

use crate::markup::Markup;
use fullstroke_measure::number;
use serde_json::Value;

/// The value at `path`, dotted; null if there is none.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, key| &value[key])
}

/// The number at `path`.
pub(crate) fn float(value: &Value, path: &str) -> Option<f64> {
    at(value, path).as_f64()
}

/// The text at `path`; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The items at `path`; none if it is no list.
pub(crate) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// How a number is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// As it is, with three decimals or fewer.
    Plain,
    /// With its sign.
    Signed,
    /// A share, in per cent.
    Percent,
    /// A share that may be very small.
    Small,
    /// Bytes, in the decimal units of drives.
    Bytes,
    /// A count.
    Whole,
}

impl Shown {
    pub(crate) fn words(self, value: f64) -> String {
        match self {
            Shown::Plain => number(value),
            Shown::Signed if value >= 0.0 => format!("+{}", number(value)),
            Shown::Signed => number(value),
            Shown::Percent => format!("{:.1} %", 100.0 * value),
            Shown::Small if value < 1e-4 => format!("{:.2e} %", 100.0 * value),
            Shown::Small => format!("{:.2} %", 100.0 * value),
            Shown::Bytes if value >= 1e12 => format!("{:.2} TB", value / 1e12),
            Shown::Bytes => format!("{:.1} GB", value / 1e9),
            Shown::Whole => format!("{value:.0}"),
        }
    }
}

/// Writes the number `value`; a dash if it is none.
pub(crate) fn show(markup: &mut Markup, value: &Value, shown: Shown) {
    match value {
        Value::Number(exact) => {
            let words = exact
                .as_f64()
                .map_or_else(|| exact.to_string(), |value| shown.words(value));
            markup.element("data", &[("value", &exact.to_string())], &words);
        }
        Value::String(text) => {
            markup.text(text);
        }
        Value::Array(items) if items.is_empty() => {
            markup.text("–");
        }
        Value::Array(items) => {
            // Texts, or what has one that says why.
            let words = items
                .iter()
                .filter_map(|item| item.as_str().or_else(|| item["why"].as_str()));
            markup.text(&words.collect::<Vec<_>>().join("; "));
        }
        Value::Bool(value) => {
            markup.text(if *value { "yes" } else { "no" });
        }
        _ => {
            markup.text("–");
        }
    }
}

/// Texts of more letters than this may break.
const LONG: usize = 24;

/// One column of a table: its heading, where its values stand in a row, and how they are read.
pub(crate) struct Column<'a> {
    pub(crate) heading: &'a str,
    pub(crate) path: &'a str,
    pub(crate) shown: Shown,
}

/// A column of numbers.
pub(crate) fn column<'a>(heading: &'a str, path: &'a str, shown: Shown) -> Column<'a> {
    Column {
        heading,
        path,
        shown,
    }
}

/// Whether there is nothing to show.
fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Whether it is text that may break.
fn is_long(value: &Value) -> bool {
    value.is_array() || value.as_str().is_some_and(|text| text.len() > LONG)
}

/// How all cells of a column stand: texts at the left, of which long ones may break, and numbers at the right.
fn class_of(path: &str, rows: &[(String, &Value)]) -> &'static str {
    let values = || rows.iter().map(|(_, row)| at(row, path));
    match () {
        () if values().any(is_long) => "text",
        () if values().any(|value| value.is_string() || value.is_boolean()) => "word",
        () => "short",
    }
}

/// A table with a row for each item: its name, then the columns. Columns that are empty in all
/// rows are left out.
pub(crate) fn table(
    markup: &mut Markup,
    caption: &str,
    columns: &[Column<'_>],
    rows: &[(String, &Value)],
) {
    let used: Vec<(&Column<'_>, &'static str)> = columns
        .iter()
        .filter(|column| rows.iter().any(|(_, row)| !is_empty(at(row, column.path))))
        .map(|column| (column, class_of(column.path, rows)))
        .collect();
    let scroll = [
        ("class", "scroll"),
        ("role", "region"),
        ("tabindex", "0"),
        ("aria-label", caption),
    ];
    markup.within("div", &scroll, |markup| {
        markup.within("table", &[("class", "sortable")], |markup| {
            markup.element("caption", &[], caption);
            markup.within("thead", &[], |markup| {
                markup.within("tr", &[], |markup| {
                    markup.element("th", &[("scope", "col")], "name");
                    for (column, class) in &used {
                        markup.element("th", &[("scope", "col"), ("class", class)], column.heading);
                    }
                });
            });
            markup.within("tbody", &[], |markup| {
                for (name, row) in rows {
                    markup.within("tr", &[], |markup| {
                        markup.element("th", &[("scope", "row")], name);
                        for (column, class) in &used {
                            let value = at(row, column.path);
                            markup.within("td", &[("class", class)], |markup| {
                                show(markup, value, column.shown)
                            });
                        }
                    });
                }
            });
        });
    });
}
