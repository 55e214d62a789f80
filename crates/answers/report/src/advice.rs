//! What `advise` recommends, and what it held beside it.

use crate::chart::{self, Bar};
use crate::markup::Markup;
use crate::svg::Drawing;
use crate::value::{Shown, at, column, float, list, table, text};
use serde_json::{Value, json};

/// Whether an answer is advice.
pub(crate) fn is_advice(answer: &Value) -> bool {
    at(answer, "recommendation").is_array()
}

/// The recommendation in sentences, and the best of each layout beside each other.
pub(crate) fn recommendation(page: &mut Markup, answer: &Value) {
    let sentences = list(answer, "recommendation")
        .iter()
        .filter_map(Value::as_str);
    for (order, sentence) in sentences.enumerate() {
        let class: &[(&'static str, &str)] = if order == 0 {
            &[("class", "verdict")]
        } else {
            &[]
        };
        page.element("p", class, sentence);
    }
    finalists(page, answer);
    page.element("p", &[("class", "note")], text(answer, "assumed"));
}

/// With which wishes, without which drive, and at how much more load the answer is another.
pub(crate) fn would_change(page: &mut Markup, answer: &Value) {
    let sentences = list(answer, "would_change")
        .iter()
        .filter_map(Value::as_str);
    page.within("ul", &[], |page| {
        let mut said = 0;
        for sentence in sentences {
            page.element("li", &[], sentence);
            said += 1;
        }
        if said == 0 {
            page.element("li", &[], "Nothing of what was tried.");
        }
    });
    without_a_drive(page, answer);
    let at_loads: Vec<(String, &Value)> = list(answer, "at_loads")
        .iter()
        .map(|at_load| (format!("{} times the load", at(at_load, "load")), at_load))
        .collect();
    if !at_loads.is_empty() {
        let columns = [
            column("load", "load", Shown::Plain),
            column("take", "recommended", Shown::Plain),
            column("as recommended", "same", Shown::Plain),
            column("meets every wish with all drives", "meets", Shown::Plain),
        ];
        table(page, "At more load", &columns, &at_loads);
    }
}

/// The number that was wished: its key in a condition of a finalist, and what it is called.
fn wished(answer: &Value) -> (&'static str, &'static str) {
    let wished = |wish: &str| !at(answer, "wishes")[wish].is_null();
    match () {
        () if wished("streams") => ("underruns", "underruns (runs of all seeds)"),
        () if wished("p99") => ("p99_ms", "99th percentile of response times (ms)"),
        () if wished("mb_per_s") => ("mb_per_s", "data moved (MB/s)"),
        () => ("mean_ms", "mean response time (ms)"),
    }
}

/// The number that was wished, of each finalist with all drives.
pub(crate) fn wished_bars(answer: &Value) -> Option<Drawing> {
    let (key, axis) = wished(answer);
    let bar = |finalist: &Value| {
        Some((
            text(finalist, "name").to_owned(),
            float(&finalist["healthy"], key)?,
            None,
        ))
    };
    let bars: Vec<Bar> = list(answer, "finalists").iter().filter_map(bar).collect();
    let title = "The best of each layout, with all drives";
    (!bars.is_empty()).then(|| chart::bars("finalists", title, axis, &bars))
}

/// The number that was wished, of each finalist with all drives, with one gone, and while one is filled.
fn without_a_drive(page: &mut Markup, answer: &Value) {
    const CONDITIONS: [(&str, &str); 3] = [
        ("healthy", "all drives"),
        ("degraded", "one drive gone"),
        ("rebuilding", "while one is filled"),
    ];
    let (key, axis) = wished(answer);
    let finalists = list(answer, "finalists");
    let of = |finalist: &Value, condition: &str| finalist[condition][key].clone();
    let values = finalists
        .iter()
        .flat_map(|one| CONDITIONS.map(|(condition, _)| float(&one[condition], key)));
    let high = values.flatten().fold(0.0, f64::max);
    let line = |finalist: &Value| {
        let points = CONDITIONS.map(|(condition, _)| json!({ "value": of(finalist, condition) }));
        json!({ "name": text(finalist, "name"), "points": points })
    };
    let ticks: Vec<Value> = CONDITIONS
        .iter()
        .enumerate()
        .map(|(place, (_, name))| json!({ "at": place, "name": name }))
        .collect();
    let drawn = json!({
        "title": "What a missing drive costs the best of each layout", "x": "condition", "y": axis,
        "ordinate": { "low": 0.0, "high": high * 1.05 }, "ticks": ticks,
        "lines": finalists.iter().map(line).collect::<Vec<_>>(),
    });
    if high > 0.0 {
        chart::lines(page, "conditions", &drawn);
    }
}

fn finalists(page: &mut Markup, answer: &Value) {
    let rows: Vec<(String, &Value)> = list(answer, "finalists")
        .iter()
        .map(|finalist| (text(finalist, "name").to_owned(), finalist))
        .collect();
    let columns = [
        column("place", "place", Shown::Whole),
        column("usable", "volume.usable_bytes", Shown::Bytes),
        column("survives", "volume.failures_survived", Shown::Whole),
        column("price", "price", Shown::Plain),
        column("p99 ms", "healthy.p99_ms", Shown::Plain),
        column("one drive gone", "degraded.p99_ms", Shown::Plain),
        column("rebuilding", "rebuilding.p99_ms", Shown::Plain),
        column("underruns", "healthy.underruns", Shown::Whole),
        column("MB/s", "healthy.mb_per_s", Shown::Plain),
        column("W", "healthy.mean_w", Shown::Plain),
    ];
    table(page, "The best of each layout", &columns, &rows);
    let columns = [
        column("rebuild, hours", "rebuilding.rebuild_hours", Shown::Plain),
        column("loss within a year", "loss.chance_a_year", Shown::Small),
        column("mean time to loss, years", "loss.mttdl_years", Shown::Plain),
        column(
            "a sector cannot be read then",
            "loss.unreadable_chance",
            Shown::Percent,
        ),
    ];
    table(
        page,
        "How long a rebuild takes, and the chance of loss",
        &columns,
        &rows,
    );
    let columns = [
        column("settings", "settings", Shown::Plain),
        column("misses", "misses", Shown::Plain),
        column(
            "misses without a drive",
            "misses_without_a_drive",
            Shown::Plain,
        ),
    ];
    table(page, "With what, and what it misses", &columns, &rows);
    let rows: Vec<(String, &Value)> = list(answer, "left_out")
        .iter()
        .map(|one| {
            (
                format!("{} of {}", text(one, "layout"), at(one, "drives")),
                one,
            )
        })
        .collect();
    if !rows.is_empty() {
        table(
            page,
            "Left out before anything was run",
            &[column("why", "why", Shown::Plain)],
            &rows,
        );
    }
}
