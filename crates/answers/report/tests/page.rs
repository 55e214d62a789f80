//! What holds of every page: it says nothing that the answer does not, files cannot write tags
//! into it, it is short, and its only script is its own.

use fullstroke_report::{BYTES_MAX, Source, page, plot};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

fn timeline(columns: usize) -> Value {
    let cell = |index: usize| {
        let cause = ["queue", "seek", "rotation", "parity"][index % 4];
        json!({ "column": index % columns, "row": index / columns + 10, "requests": 1 + index % 200, "cause": cause })
    };
    let rows: Vec<f64> = (0..42)
        .map(|row| {
            if row == 0 {
                0.0
            } else {
                0.01 * 10f64.powf(f64::from(row - 1) / 6.0)
            }
        })
        .collect();
    let list = |value: f64| vec![value; columns];
    let drive = |name: &str| {
        json!({ "name": name, "requests": vec![7; columns], "ahead_mean": list(1.5), "ahead_max": list(4.0),
            "offset_gb_mean": list(10.25), "offset_gb_min": list(0.0), "offset_gb_max": list(20.5) })
    };
    json!({ "column_s": 1.024, "rows_ms": rows, "cells": (0..columns * 20).map(cell).collect::<Vec<_>>(),
        "causes_ms": [{ "cause": "queue", "mean_ms": 1.25 }, { "cause": "seek", "mean_ms": 2.5 },
            { "cause": "rotation", "mean_ms": 3.0 }, { "cause": "parity", "mean_ms": 0.5 }],
        "percentiles": [{ "share": 0.5, "response_ms": 4.5 }, { "share": 0.99, "response_ms": 40.75 }],
        "drives": [drive("0"), drive("1")] })
}

fn report(name: &str, columns: usize) -> Value {
    json!({ "name": name, "requests": 12_345, "iops": 98.765, "mb_per_s": 1.5, "simulated_s": 125.5,
        "response_ms": { "mean": 7.25, "p50": 5.5, "p90": 12.0, "p99": 40.75, "p999": 80.5, "max": 90.125,
            "ci95_half_width": 0.375 },
        "time_ms": { "queue": 1.25, "parity": 0.5, "overhead": 0.0, "seek": 2.5, "rotation": 3.0, "transfer": 0.0 },
        "energy": { "drives": 2, "total_j": 2500.5, "mean_w": 19.925, "j_per_io": 0.2, "spin_downs": 3,
            "spin_ups": 2, "residency_share": { "idle_a": 0.75, "read": 0.25 } },
        "members": [{ "name": "0", "requests": 6000, "utilisation": 0.5 }],
        "trace_notes": [format!("of {name}")], "timeline": timeline(columns), "seed": 17,
        "config_digest": name, "version": "0.1.0" })
}

fn ranked(rank: usize, name: &str, columns: usize) -> Value {
    let difference = json!({ "value": 1.75, "half_width": 0.5, "significance": "significant" });
    json!({ "rank": rank, "name": name, "varied": { "volume.chunk": format!("{}KiB", 1 << rank.min(20)), "volume.x": name },
        "value": 7.25, "ci95_half_width": 0.375, "difference_to_best": difference, "carries": true,
        "volume": { "layout": name, "usable_bytes": 96_000_000_000_000u64, "failures_survived": 1 },
        "report": report(name, columns) })
}

fn ranking(names: &[&str], columns: usize) -> Value {
    // Those that are far behind have no charts.
    let columns = |place: usize| if place < 20 { columns } else { 1 };
    let each = names
        .iter()
        .enumerate()
        .map(|(place, name)| ranked(place + 1, name, columns(place)));
    json!({ "by": "response_ms.mean", "more_is_better": false, "same_number_of_requests": true,
        "verdict": format!("{} is best", names[0]), "reasons": [{ "sentence": names[0] }],
        "candidates": each.collect::<Vec<_>>(), "wall_s": 1.5, "version": "0.1.0" })
}

/// Studies with claims of which some hold.
fn of_studies(name: &str, studies: usize, claims: usize) -> Value {
    let claim = |number: usize| {
        let verdict = ["holds", "fragile", "does-not-hold"][number % 3];
        let flips = if verdict == "fragile" {
            vec![format!("seeds 4 to 6: {name}")]
        } else {
            Vec::new()
        };
        json!({ "id": format!("{name}-{number}"), "says": name, "quote": name, "at": "table 2", "ours": false,
            "kind": "near", "published": "21 %", "holds_if": "10 to 30 %", "shown": "19.5 ± 1.25 %",
            "obtained": 0.195 + number as f64 / 64.0, "ci_half_width": 0.0125,
            "verdict": verdict, "why": name, "flips": flips })
    };
    let claims: Vec<Value> = (0..claims).map(claim).collect();
    let point = |place: usize, line: usize| {
        json!({ "value": (place + 3 * line) as f64 / 7.0, "ci_half_width": 0.3,
            "published": (line == 0).then_some(place as f64 / 8.0) })
    };
    let line = |line: usize| {
        json!({ "name": format!("{name} {line}"),
            "points": (0..4).map(|place| point(place, line)).collect::<Vec<_>>() })
    };
    let figure = json!({ "id": name, "title": name, "x": name, "y": name, "caption": name,
        "ordinate": { "low": 0.0, "high": 5.0 },
        "ticks": (0..4).map(|place| json!({ "at": place, "name": format!("{name} {place}") })).collect::<Vec<_>>(),
        "lines": (0..10).map(line).collect::<Vec<_>>() });
    let study = |number: usize| {
        json!({ "study": format!("{name}/{number}"), "title": name, "question": name, "source": name,
            "tried": [name], "claims": claims, "variants": [{ "title": name, "claims": claims }], "figures": [figure, figure] })
    };
    json!({ "verdict": format!("some claims of {name} hold"), "version": "0.1.0",
        "checked": (0..studies).map(study).collect::<Vec<_>>() })
}

fn source(text: &str) -> Source {
    Source {
        command: vec!["fullstroke".to_owned(), text.to_owned()],
        files: vec![(text.to_owned(), text.to_owned())],
    }
}

/// The names of tags and attributes, as a browser finds them.
fn tags(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric() && !"/!".contains(letter))
            .unwrap();
        let name = &rest[..end];
        found.push(name.to_owned());
        rest = &rest[end..];
        while !rest.starts_with('>') && !rest.starts_with("/>") {
            let at = rest.find(|letter: char| !letter.is_whitespace()).unwrap();
            rest = &rest[at..];
            let end = rest.find(['=', '>', ' ']).unwrap();
            found.push(format!("@{}", &rest[..end]));
            rest = &rest[end..];
            if let Some(value) = rest.strip_prefix("=\"") {
                rest = &value[value.find('"').unwrap() + 1..];
            }
        }
        if ["style", "script"].contains(&name) {
            rest = &rest[rest.find("</").unwrap()..];
        }
    }
    found
}

/// The numbers of an answer, as JSON writes them.
fn numbers(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Number(number) => _ = found.insert(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, found)),
        Value::Object(keys) => keys.values().for_each(|item| numbers(item, found)),
        _ => {}
    }
}

/// What stands between `from` and `to`, each time.
fn between<'a>(text: &'a str, from: &'a str, to: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(from)
        .skip(1)
        .filter_map(move |rest| rest.split(to).next())
}

#[test]
fn every_number_of_a_table_is_in_the_answer() {
    for answer in [ranking(&["a", "b", "c"], 40), report("a", 40)] {
        let page = page(&answer, &source("x"));
        let mut known = BTreeSet::new();
        numbers(&answer, &mut known);
        let mut cells = 0;
        for cell in between(&page, "<td class=", "</td>") {
            let (_, cell) = cell.split_once('>').unwrap();
            match cell
                .split_once("<data value=\"")
                .and_then(|(_, rest)| rest.split_once('"'))
            {
                Some((value, _)) => assert!(known.contains(value), "{value} is not in the answer"),
                None => assert!(
                    !cell.contains(|letter: char| letter.is_ascii_digit()),
                    "{cell}"
                ),
            }
            cells += 1;
        }
        assert!(cells > 20, "{cells}");
    }
}

#[test]
fn a_page_of_studies_shows_each_claim_with_the_numbers_of_the_answer() {
    let answer = of_studies("a", 2, 6);
    let page = page(&answer, &source("x"));
    let mut known = BTreeSet::new();
    numbers(&answer, &mut known);
    let shown: Vec<&str> = between(&page, "<data value=\"", "\"").collect();
    // Obtained and half an interval of each claim, as it stands and changed.
    let of_claims = 2 * 2 * 6 * 2;
    // And of two figures the values of ten lines, of which one was published.
    assert_eq!(shown.len(), of_claims + 2 * 2 * 4 * (2 * 10 + 1));
    assert!(
        shown.iter().all(|number| known.contains(*number)),
        "{shown:?}"
    );
    for cell in between(&page, "<td class=", "</td>").filter(|cell| !cell.contains("<data")) {
        let words = cell.split_once('>').unwrap().1.replace("&#39;", "'");
        assert!(
            words == "–" || answer.to_string().contains(&words),
            "{words}"
        );
    }
    let places: Vec<Option<usize>> = ["winner", "figures", "published", "sensitivity", "reproduce"]
        .iter()
        .map(|id| page.find(&format!("<section id=\"{id}\"")))
        .collect();
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    let figures: Vec<&str> = between(&page, "<figure", "</figure>").collect();
    assert_eq!(figures.len(), 4);
    for figure in figures {
        // Eight lines have looks of their own, and stand with the crosses in the legend above the drawing.
        let (legend, drawing) = figure.split_once("role=\"img\"").unwrap();
        assert_eq!(legend.matches("<li>").count(), 9, "{legend}");
        assert!(
            legend.contains("published")
                && drawing.contains("series-7")
                && !drawing.contains("series-8")
        );
        assert_eq!(
            drawing.matches("firm").count(),
            8 * 4 + 4,
            "intervals and crosses"
        );
    }
    let ids: Vec<&str> = between(&page, " id=\"", "\"").collect();
    assert_eq!(
        ids.len(),
        ids.iter().collect::<BTreeSet<_>>().len(),
        "an id stands twice"
    );
    for words in [
        "2 lines more are in the table",
        "some claims of a hold",
        "21 %",
        "seeds 4 to 6",
        "verdicts were held against a",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn a_page_of_many_studies_stays_short_and_says_what_it_leaves_out() {
    let page = page(
        &of_studies(&"long words ".repeat(20), 40, 30),
        &source(&"x".repeat(50_000)),
    );
    assert!(page.len() <= BYTES_MAX, "{}", page.len());
    assert!(page.contains("studies more; --json has them"));
}

#[test]
fn a_page_has_its_sections_in_order_and_every_figure_has_words() {
    let page = page(&ranking(&["a", "b"], 40), &source("x"));
    let places: Vec<usize> = [
        "winner",
        "candidates",
        "time",
        "latency",
        "drives",
        "energy",
        "sensitivity",
        "reproduce",
    ]
    .iter()
    .map(|id| {
        page.find(&format!("<section id=\"{id}\""))
            .unwrap_or_else(|| panic!("no section {id}"))
    })
    .collect();
    assert!(places.is_sorted(), "{places:?}");
    let charts: Vec<Option<usize>> = [
        "heat-0",
        "heat-1",
        "percentiles",
        "offsets-0",
        "queues-0",
        "offsets-1",
    ]
    .iter()
    .map(|id| page.find(&format!("<figure id=\"{id}\"")))
    .collect();
    assert!(charts.is_sorted() && charts[0].is_some(), "{charts:?}");
    let figures = between(&page, "<figure", "</figure>").collect::<Vec<_>>();
    assert!(figures.len() >= 9, "{}", figures.len());
    for figure in figures {
        assert!(
            figure.contains("<figcaption>")
                && figure.contains("<desc")
                && figure.contains("role=\"img\"")
        );
    }
    assert_eq!(
        page.matches("<table").count(),
        page.matches("<caption>").count()
    );
    let ids: Vec<&str> = between(&page, " id=\"", "\"").collect();
    assert_eq!(
        ids.len(),
        ids.iter().collect::<BTreeSet<_>>().len(),
        "an id stands twice"
    );
}

#[test]
fn a_page_of_many_candidates_stays_short_and_says_what_it_leaves_out() {
    let names: Vec<String> = (0..400)
        .map(|number| format!("candidate {number} {}", "x".repeat(40)))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut source = source("raid5.toml");
    source.files[0].1 = "stack\n".repeat(60_000);
    let page = page(&ranking(&names, 90), &source);
    assert!(page.len() <= BYTES_MAX, "{}", page.len());
    for words in [
        "first 40 of 400",
        "300 candidates more",
        "No room is left",
        "too long",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn the_winner_has_all_its_charts_before_another_has_any() {
    for candidates in [1, 2, 3, 4, 6, 9, 50] {
        let names: Vec<String> = (0..candidates)
            .map(|number| format!("candidate {number}"))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let page = page(&ranking(&names, 90), &source("x"));
        assert!(
            page.len() <= BYTES_MAX,
            "{candidates} candidates: {}",
            page.len()
        );
        let charts = |kind: &str| page.matches(&format!("<figure id=\"{kind}-")).count();
        let (heat, offsets, queues) = (charts("heat"), charts("offsets"), charts("queues"));
        assert!(
            offsets >= 1 && offsets == queues,
            "{candidates} candidates: {offsets} {queues}"
        );
        assert!(
            (offsets..=offsets + 1).contains(&heat),
            "{candidates} candidates: {heat} maps, {offsets} offsets"
        );
        // What is left out is said.
        let left = candidates.min(40) - offsets;
        assert_eq!(
            page.contains(&format!("those of {left} candidates more")),
            left > 0,
            "{candidates} candidates"
        );
        let tables = page.matches(": what each drive did").count() / 2;
        let left = candidates.min(40) - tables;
        assert_eq!(
            page.contains(&format!("of {left} candidates more did")),
            left > 0,
            "{candidates} candidates"
        );
    }
}

/// A search of two candidates.
fn searched() -> Value {
    let one = |name: &str, load: f64| {
        json!({ "name": name, "load": load, "too_much": load * 1.01, "iops": 100.5, "p99_ms": 20.25,
            "tried": [{ "load": load, "held": true, "p99_ms": 20.25 }] })
    };
    json!({ "by": "load", "verdict": "a bears most", "candidates": [one("a", 1.5), one("b", 0.75)] })
}

#[test]
fn the_main_figure_of_each_kind_of_answer_stands_alone() {
    let mut by_p99 = ranking(&["a", "b"], 8);
    by_p99["by"] = json!("response_ms.p99");
    for (answer, parts) in [
        (
            ranking(&["a", "b"], 8),
            &[
                "mean response time (ms)",
                "id=\"ranking-title\"",
                "rotation",
                "2 candidates",
            ][..],
        ),
        (by_p99, &["99th percentile of response times (ms)"]),
        (
            report("a", 8),
            &[
                "a: one run",
                "arrival (s)",
                "response (ms)",
                "cause-rotation",
            ],
        ),
        (
            searched(),
            &["load (multiples of this one)", "2 candidates by load"],
        ),
        (of_studies("s", 2, 3), &["s 0", "published", "series-7"]),
    ] {
        let svg = plot(&answer).unwrap();
        for part in parts {
            assert!(svg.contains(part), "{part}");
        }
        assert!(
            svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=")
                && svg.ends_with("</svg>")
        );
        assert!(svg.contains("prefers-color-scheme:dark") && !svg.contains("var(--"));
        for tag in ["figure", "ul", "li", "table", "p", "details", "data"] {
            assert!(
                !tags(&svg).iter().any(|own| own == tag),
                "{tag} is no tag of SVG"
            );
        }
        // Each tag that is opened is closed, in its order.
        let mut open: Vec<&str> = Vec::new();
        for tag in between(&svg, "<", ">") {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split_whitespace().next().unwrap()),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}

#[test]
fn what_a_key_does_is_drawn_of_all_candidates() {
    let one = |number: usize| {
        let mut one = ranked(number + 1, "a", 1);
        one["varied"] = json!({ "key": number.to_string() });
        one
    };
    let answer =
        json!({ "by": "response_ms.mean", "candidates": (0..60).map(one).collect::<Vec<_>>() });
    let page = page(&answer, &source("x"));
    let chart = between(&page, "<figure id=\"sensitivity-0\"", "</figure>")
        .next()
        .unwrap();
    let way = between(chart, "<path d=\"", "\"")
        .find(|way| way.contains('L') && way.len() > 300)
        .unwrap();
    assert_eq!(way.matches('L').count(), 59, "{way}");
}

#[test]
fn a_run_says_what_its_streams_workloads_hosts_and_layers_saw() {
    let mut run = report("a", 8);
    let latency = json!({ "mean": 0.25, "p50": 0.125, "p95": 1.5, "p99": 2.5, "max": 8.5 });
    let workload =
        |name: &str| json!({ "name": name, "requests": 2171, "response_ms": { "mean": 3.355 } });
    run["workloads"] = json!([workload("mail"), workload("copy")]);
    run["streams"] = json!({ "started": 120, "underruns": 203, "with_underruns": 48, "start_up_ms": { "mean": 550.5 } });
    run["hosts"] = json!([{ "name": "mail", "operations": { "unlink": { "count": 709, "latency_ms": latency } },
        "programs": [
            { "name": "postmark", "elapsed_s": 4.75, "text": "Files:\n\t709 created",
              "transactions": { "transaction": { "count": 600, "latency_ms": latency } } },
            { "name": "dbench", "elapsed_s": 5.75, "figures": { "throughput_mb_per_s": 31.25 } }] }]);
    run["layers"] =
        json!([{ "layer": "page cache of mail", "readings": { "memory_hit_share": 0.9375 } }]);
    let page = page(&run, &source("x"));
    for words in [
        "<data value=\"203\">203</data>",
        "<data value=\"48\">48</data>",
        "<th scope=\"row\">copy</th>",
        "<th scope=\"row\">unlink</th>",
        "709 created</code>",
        "Transactions of postmark",
        "<data value=\"31.25\">31.250</data>",
        "Readings of page cache of mail",
        "<data value=\"0.9375\">0.938</data>",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let note = "Of all requests together, those of the workloads mail, copy.";
    assert_eq!(
        page.matches(note).count(),
        2,
        "below the parts and below the percentiles"
    );
    let mut compared = ranking(&["a", "b"], 8);
    compared["candidates"][1]["report"] = run;
    let page = fullstroke_report::page(&compared, &source("x"));
    assert!(
        page.contains(note) && page.contains("<th scope=\"row\">b chunk=4KiB x=b: copy</th>"),
        "{page}"
    );
}

#[test]
fn readings_leave_a_page_short() {
    let mut run = report("a", 90);
    let readings: serde_json::Map<String, Value> = (0..4000)
        .map(|number| (format!("reading_{number}"), json!(0.5)))
        .collect();
    run["layers"] = json!([{ "layer": "many", "readings": readings }]);
    let page = page(&run, &source("x"));
    assert!(page.len() <= BYTES_MAX && page.contains("No room is left for the tables that follow"));
}

#[test]
fn values_of_a_race_are_drawn_beside_those_of_the_same_parts() {
    let one = |rank: usize, batches: u64, value: f64| {
        let mut one = ranked(rank, "a", 1);
        one["report"] = Value::Null;
        one["varied"] = json!({ "key": rank.to_string() });
        one["value"] = json!(value);
        one["batches"] = json!(batches);
        one
    };
    let mut best = one(1, 8, 13.5);
    best["difference_to_best"] = Value::Null;
    let race = [best, one(2, 8, 15.5), one(3, 4, 68.5), one(4, 4, 48.25)];
    let answer = json!({ "by": "response_ms.mean", "candidates": race });
    let page = page(&answer, &source("x"));
    let chart = |id: &str| {
        let (_, rest) = page.split_once(&format!("<figure id=\"{id}\"")).unwrap();
        rest.split_once("</figure>").unwrap().0
    };
    let bars = chart("ranking");
    assert_eq!(bars.matches("class=\"bar\"").count(), 2, "{bars}");
    assert!(bars.contains("of those that saw 8 parts"), "{bars}");
    assert_eq!(chart("differences").matches("middle sign").count(), 3 + 4);
    assert!(
        chart("sensitivity-0").contains("4 1.750"),
        "differences are of the same parts"
    );
    assert!(page.contains("those that dropped out last") && !page.contains("the best first"));
}

#[test]
fn a_ranking_without_values_has_no_first_and_says_so() {
    let mut answer = ranking(&["a", "b"], 4);
    answer["reasons"] = json!([]);
    for candidate in answer["candidates"].as_array_mut().unwrap() {
        candidate["value"] = Value::Null;
        candidate["difference_to_best"] = Value::Null;
    }
    let page = page(&answer, &source("x"));
    for label in ["a chunk=2KiB x=a", "b chunk=4KiB x=b"] {
        assert!(page.contains(&format!(
            "<p>{label}: nothing was measured by response_ms.mean.</p>"
        )));
    }
    assert!(
        page.contains("<caption>Candidates: nothing was measured by response_ms.mean</caption>")
    );
    assert!(!page.contains(">rank</th>") && !page.contains("the best first"));
    assert!(
        !page.contains("<figure id=\"ranking\"") && !page.contains("<figure id=\"sensitivity-0\"")
    );
}

#[test]
fn the_figure_of_advice_is_of_the_number_that_was_wished() {
    let finalist = |name: &str, underruns: u64| json!({ "name": name, "healthy": { "underruns": underruns, "p99_ms": 7.5 } });
    let mut answer = ranking(&["a", "b"], 4);
    answer["by"] = json!("response_ms.p99");
    answer["recommendation"] = json!(["Take a."]);
    answer["finalists"] = json!([finalist("raid10 of 4", 0), finalist("raid5 of 4", 12)]);
    for (wish, axis) in [
        ("streams", "underruns (runs of all seeds)"),
        ("p99", "99th percentile of response times (ms)"),
    ] {
        answer["wishes"] = json!({ wish: 100 });
        let svg = plot(&answer).unwrap();
        assert!(
            svg.contains(axis)
                && svg.contains("raid10 of 4")
                && svg.matches("class=\"bar\"").count() == 2,
            "{svg}"
        );
    }
}

#[test]
fn what_cannot_be_drawn_is_refused_with_the_reason() {
    let mut nothing = ranking(&["a"], 4);
    nothing["candidates"][0]["value"] = Value::Null;
    let mut unmeasured = of_studies("s", 1, 1);
    unmeasured["checked"][0]["figures"] = json!([]);
    for (answer, why) in [
        (nothing, "nothing was measured by mean response time"),
        (unmeasured, "no figure with results"),
        (json!({ "response_ms": {}, "name": "a" }), "no request"),
    ] {
        let error = plot(&answer).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn the_policy_lets_its_own_script_run_and_no_other() {
    let page = page(&report("a", 4), &source("x"));
    let script = between(&page, "<script>", "</script>").next().unwrap();
    let digest = base64(&Sha256::digest(script));
    assert!(
        page.contains(&format!("script-src &#39;sha256-{digest}&#39;")),
        "the script has {digest}"
    );
    for part in ["default-src &#39;none&#39;", "base-uri &#39;none&#39;"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "a page needs no network"
    );
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| -> String {
        let bits = (0..3).fold(0u32, |bits, index| {
            bits << 8 | u32::from(*group.get(index).unwrap_or(&0))
        });
        let letter = |place: usize| match place <= group.len() {
            true => char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]),
            false => '=',
        };
        (0..4).map(letter).collect()
    };
    bytes.chunks(3).map(group).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn nothing_that_comes_from_files_becomes_a_tag_an_attribute_or_a_script(
        name in r#"(\PC|[<>&"'=/\n\x00-\x1f]|<script>|</style>|--|\]\]>| onload=x|javascript:){0,24}"#,
    ) {
        let hostile = tags(&page(&ranking(&[&name, "b"], 6), &source(&name)));
        let harmless = tags(&page(&ranking(&["a", "b"], 6), &source("a")));
        prop_assert!(hostile == harmless, "{name:?} changes the tags");
        let hostile = tags(&plot(&ranking(&[&name, "b"], 6)).unwrap());
        let harmless = tags(&plot(&ranking(&["a", "b"], 6)).unwrap());
        prop_assert!(hostile == harmless, "{name:?} changes the tags of a figure");
        let hostile = tags(&page(&of_studies(&name, 2, 3), &source(&name)));
        // Long names have no room below an abscissa.
        let alike = "a".repeat(name.chars().count());
        let harmless = tags(&page(&of_studies(&alike, 2, 3), &source("a")));
        // A question or a source may be empty, and a note without words is none.
        prop_assert!(name.is_empty() || hostile == harmless, "{name:?} changes the tags of studies");
    }
}
