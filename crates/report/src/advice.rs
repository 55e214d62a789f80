//! What `advise` recommends, and what it held beside it.

use crate::markup::Markup;
use crate::value::{Shown, at, column, list, table, text};
use serde_json::Value;

/// Whether an answer is advice.
pub(crate) fn is_advice(answer: &Value) -> bool {
    at(answer, "recommendation").is_array()
}

/// The recommendation in sentences, and the best of each layout beside each other.
pub(crate) fn recommendation(page: &mut Markup, answer: &Value) {
    let sentences = list(answer, "recommendation").iter().filter_map(Value::as_str);
    for (order, sentence) in sentences.enumerate() {
        let class: &[(&'static str, &str)] = if order == 0 { &[("class", "verdict")] } else { &[] };
        page.element("p", class, sentence);
    }
    finalists(page, answer);
    sentences_of(page, "What would change this", list(answer, "would_change"));
    page.element("p", &[("class", "note")], text(answer, "assumed"));
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
        column("a sector cannot be read then", "loss.unreadable_chance", Shown::Percent),
    ];
    table(page, "How long a rebuild takes, and the chance of loss", &columns, &rows);
    let columns = [column("settings", "settings", Shown::Plain), column("misses", "misses", Shown::Plain)];
    table(page, "With what, and what it misses", &columns, &rows);
    let rows: Vec<(String, &Value)> = list(answer, "left_out")
        .iter()
        .map(|one| (format!("{} of {}", text(one, "layout"), at(one, "drives")), one))
        .collect();
    if !rows.is_empty() {
        table(page, "Left out before anything was run", &[column("why", "why", Shown::Plain)], &rows);
    }
}

fn sentences_of(page: &mut Markup, heading: &str, sentences: &[Value]) {
    if sentences.is_empty() {
        return;
    }
    page.element("h3", &[], heading);
    page.within("ul", &[], |page| {
        for sentence in sentences.iter().filter_map(Value::as_str) {
            page.element("li", &[], sentence);
        }
    });
}
