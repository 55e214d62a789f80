//! Properties of every page: all numbers come from the answer, files cannot inject tags, the page
//! is short, and the only script is that of the crate.

#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]

use fullstroke_advise::{Advice, ArrayOutcome, Finalist, Wishes};
use fullstroke_contract::{CounterReading, MemberStatistics, PowerState};
use fullstroke_lab::{
    FoundLoad, LargestLoad, MostRanking, Ranked, Ranking, Reason, Settled, TriedLoad, Tuned,
    TunedCandidate, Varied, VariedValues, VolumeReport,
};
use fullstroke_measure::{
    ArrayReport, Arrived, CallReport, Cause, CauseReport, CellReport, Difference, Distribution,
    DriveTimeline, EnergyReport, HostReport, LayerReport, MemberReport, OverTime, PercentileReport,
    ProgramReport, ReadWriteRates, ReadWriteTimes, Repeat, Report, Significance, StateShares,
    StreamsReport, TimeParts, TimelineReport, TransactionReport, WorkloadReport,
};
use fullstroke_report::{AnswerBody, AnswerSource, BYTES_MAX, CommandAnswer, page, plot};
use fullstroke_study::{
    AxisEnds, ChangedClaims, CheckedClaims, ClaimKind, ClaimVerdict, DrawnLine, DrawnPoint,
    FigureNumbers, JudgedClaim, Tick,
};
use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

fn timeline(columns: usize) -> TimelineReport {
    let cell = |index: usize| CellReport {
        column: index % columns,
        row: index / columns + 10,
        requests: 1 + index as u64 % 200,
        cause: [Cause::Queue, Cause::Seek, Cause::Rotation, Cause::Parity][index % 4],
    };
    let bound = |row: i32| match row {
        0 => 0.0,
        _ => 0.01 * 10f64.powf(f64::from(row - 1) / 6.0),
    };
    let list = |value: f64| vec![value; columns];
    let drive = |name: &str| DriveTimeline {
        name: name.to_owned(),
        requests: vec![7; columns],
        ahead_mean: list(1.5),
        ahead_max: list(4.0),
        offset_gb_mean: list(10.25),
        offset_gb_min: list(0.0),
        offset_gb_max: list(20.5),
    };
    let cause = |(cause, mean_ms)| CauseReport { cause, mean_ms };
    TimelineReport {
        column_s: 1.024,
        rows_ms: (0..42).map(bound).collect(),
        cells: (0..columns * 20).map(cell).collect(),
        causes_ms: [
            (Cause::Queue, 1.25),
            (Cause::Seek, 2.5),
            (Cause::Rotation, 3.0),
            (Cause::Parity, 0.5),
        ]
        .map(cause)
        .to_vec(),
        percentiles: [(0.5, 4.5), (0.99, 40.75)]
            .map(|(share, response_ms)| PercentileReport { share, response_ms })
            .to_vec(),
        drives: vec![drive("0"), drive("1")],
    }
}

fn report(name: &str, columns: usize) -> Report {
    Report {
        name: name.to_owned(),
        arrived: Arrived {
            requests: 12_345,
            trace_notes: vec![format!("of {name}")],
            ..Arrived::default()
        },
        times: ReadWriteTimes {
            response_ms: Distribution {
                mean: 7.25,
                p50: 5.5,
                p90: 12.0,
                p99: 40.75,
                p999: 80.5,
                max: 90.125,
                ci95_half_width: Some(0.375),
                ..Distribution::default()
            },
            time_ms: TimeParts {
                queue: 1.25,
                parity: 0.5,
                seek: 2.5,
                rotation: 3.0,
                ..TimeParts::default()
            },
            ..ReadWriteTimes::default()
        },
        rates: ReadWriteRates {
            iops: 98.765,
            mb_per_s: 1.5,
            simulated_s: 125.5,
        },
        array: ArrayReport {
            energy: Some(EnergyReport {
                drives: 2,
                total_j: 2500.5,
                mean_w: 19.925,
                j_per_io: 0.2,
                spin_downs: 3,
                spin_ups: 2,
                wakes: 0,
                residency_share: StateShares::from_states(|state| match state {
                    PowerState::IdleA => 0.75,
                    PowerState::Read => 0.25,
                    _ => 0.0,
                }),
            }),
            members: vec![MemberReport {
                name: "0".to_owned(),
                statistics: MemberStatistics {
                    reads: 6000,
                    ..MemberStatistics::default()
                },
                seconds: 125.5,
            }],
            ..ArrayReport::default()
        },
        over_time: OverTime {
            timeline: Some(timeline(columns)),
            ..OverTime::default()
        },
        repeat: Repeat {
            seed: 17,
            config_digest: name.to_owned(),
            version: "0.1.0".to_owned(),
        },
        ..Report::default()
    }
}

fn ranked(rank: usize, name: &str, columns: usize) -> Ranked {
    let chunk = format!("volume.chunk={}KiB", 1 << rank.min(20));
    Ranked {
        rank,
        name: name.to_owned(),
        varied: Varied::new(&[chunk, format!("volume.x={name}")]),
        value: 7.25,
        ci95_half_width: Some(0.375),
        varies_with_seed: None,
        equal_to_best: false,
        difference_to_best: Some(Difference {
            value: 1.75,
            half_width: Some(0.5),
            batches_above: 0,
            batches_below: 0,
            significance: Significance::Significant,
        }),
        beyond: None,
        complete: true,
        carries: true,
        volume: VolumeReport {
            layout: name.to_owned(),
            drives: 2,
            usable_bytes: 96_000_000_000_000,
            raw_bytes: 96_000_000_000_000,
            failures_survived: 1,
            pool: None,
        },
        report: report(name, columns),
    }
}

fn of_ranked(candidates: Vec<Ranked>, verdict: String, reason: Option<&str>) -> Ranking {
    Ranking {
        by: "response_ms.mean".to_owned(),
        more_is_better: false,
        confidence: 0.95,
        seeds: 1,
        same_number_of_requests: true,
        verdict: Some(verdict),
        varied: VariedValues::of(candidates.iter().map(|one| &one.varied)),
        candidates,
        reasons: reason
            .map(|sentence| Reason {
                better: String::new(),
                worse: String::new(),
                sentence: sentence.to_owned(),
            })
            .into_iter()
            .collect(),
    }
}

fn ranking(names: &[&str], columns: usize) -> Ranking {
    // Candidates far behind have no charts.
    let columns = |place: usize| if place < 20 { columns } else { 1 };
    let each = names
        .iter()
        .enumerate()
        .map(|(place, name)| ranked(place + 1, name, columns(place)));
    of_ranked(
        each.collect(),
        format!("{} is best", names[0]),
        Some(names[0]),
    )
}

fn answer(found: AnswerBody<'_>) -> CommandAnswer<'_> {
    CommandAnswer {
        found,
        version: "0.1.0",
        wall_s: Some(1.5),
    }
}

/// Returns claims, some of which hold.
fn claims(name: &str, claims: usize) -> Vec<JudgedClaim> {
    let claim = |number: usize| {
        let verdict = [
            ClaimVerdict::Holds,
            ClaimVerdict::Fragile,
            ClaimVerdict::DoesNotHold,
        ][number % 3];
        let flips = if verdict == ClaimVerdict::Fragile {
            vec![format!("seeds 4 to 6: {name}")]
        } else {
            Vec::new()
        };
        JudgedClaim {
            id: format!("{name}-{number}"),
            says: name.to_owned(),
            quote: Some(name.to_owned()),
            at: Some("table 2".to_owned()),
            ours: false,
            kind: ClaimKind::Near,
            published: "21 %".to_owned(),
            holds_if: "10 to 30 %".to_owned(),
            shown: "19.5 ± 1.25 %".to_owned(),
            obtained: Some(0.195 + number as f64 / 64.0),
            ci_half_width: Some(0.0125),
            verdict,
            why: Some(name.to_owned()),
            flips,
            undecided_with: Vec::new(),
            estimate_holds: verdict != ClaimVerdict::DoesNotHold,
            headline: None,
        }
    };
    (0..claims).map(claim).collect()
}

fn figure(name: &str) -> FigureNumbers {
    let point = |place: usize, line: usize| DrawnPoint {
        value: Some((place + 3 * line) as f64 / 7.0),
        ci_half_width: Some(0.3),
        published: (line == 0).then_some(place as f64 / 8.0),
    };
    let line = |line: usize| DrawnLine {
        name: format!("{name} {line}"),
        points: (0..4).map(|place| point(place, line)).collect(),
    };
    FigureNumbers {
        id: name.to_owned(),
        title: name.to_owned(),
        x: name.to_owned(),
        y: name.to_owned(),
        caption: Some(name.to_owned()),
        ordinate: AxisEnds {
            low: 0.0,
            high: 5.0,
        },
        ticks: (0..4)
            .map(|place| Tick {
                at: f64::from(place),
                name: format!("{name} {place}"),
            })
            .collect(),
        lines: (0..10).map(line).collect(),
    }
}

/// Returns names of studies, which [`of_studies`] borrows.
fn study_names(name: &str, studies: usize) -> Vec<String> {
    (0..studies)
        .map(|number| format!("{name}/{number}"))
        .collect()
}

/// Returns studies with claims, some of which hold.
fn of_studies<'a>(name: &'a str, studies: &'a [String], of_each: usize) -> Vec<CheckedClaims<'a>> {
    let study = |study: &'a String| CheckedClaims {
        study,
        title: name,
        question: name,
        source: name,
        tried: vec![name.to_owned()],
        claims: claims(name, of_each),
        variants: vec![ChangedClaims {
            title: name,
            claims: claims(name, of_each),
        }],
        figures: vec![figure(name), figure(name)],
    };
    studies.iter().map(study).collect()
}

fn page_of_studies(name: &str, studies: usize, of_each: usize, source: &AnswerSource) -> String {
    let names = study_names(name, studies);
    let checked = of_studies(name, &names, of_each);
    let verdict = format!("some claims of {name} hold");
    let found = AnswerBody::Studies {
        verdict: Some(&verdict),
        checked: &checked,
    };
    // `study check` prints no wall-clock seconds.
    let answer = CommandAnswer {
        wall_s: None,
        ..answer(found)
    };
    page(&answer, source)
}

fn source(text: &str) -> AnswerSource {
    AnswerSource {
        command: vec!["fullstroke".to_owned(), text.to_owned()],
        files: vec![(text.to_owned(), text.to_owned())],
    }
}

/// Returns the names of tags and attributes as a browser parses them.
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

/// Collects the numbers of an answer as JSON writes them.
fn numbers(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Number(number) => _ = found.insert(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, found)),
        Value::Object(keys) => keys.values().for_each(|item| numbers(item, found)),
        _ => {}
    }
}

/// Returns the texts between `from` and `to`.
fn between<'a>(text: &'a str, from: &'a str, to: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(from)
        .skip(1)
        .filter_map(move |rest| rest.split(to).next())
}

#[test]
fn every_number_of_a_table_is_in_the_answer() {
    let (ranking, run) = (ranking(&["a", "b", "c"], 40), report("a", 40));
    for (answer, printed) in [
        (
            answer(AnswerBody::Ranking(&ranking)),
            serde_json::to_value(&ranking).unwrap(),
        ),
        (
            CommandAnswer::of_run(&run),
            serde_json::to_value(&run).unwrap(),
        ),
    ] {
        let page = page(&answer, &source("x"));
        let mut known = BTreeSet::new();
        numbers(&printed, &mut known);
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
    let page = page_of_studies("a", 2, 6, &source("x"));
    let names = study_names("a", 2);
    let printed = serde_json::to_value(of_studies("a", &names, 6)).unwrap();
    let mut known = BTreeSet::new();
    numbers(&printed, &mut known);
    let shown: Vec<&str> = between(&page, "<data value=\"", "\"").collect();
    // The obtained value and half an interval of each claim, in the study and in the variant.
    let of_claims = 2 * 2 * 6 * 2;
    // In addition the values of the ten lines of two figures; one of the lines was published.
    assert_eq!(shown.len(), of_claims + 2 * 2 * 4 * (2 * 10 + 1));
    assert!(
        shown.iter().all(|number| known.contains(*number)),
        "{shown:?}"
    );
    for cell in between(&page, "<td class=", "</td>").filter(|cell| !cell.contains("<data")) {
        let words = cell.split_once('>').unwrap().1.replace("&#39;", "'");
        assert!(
            words == "–" || printed.to_string().contains(&words),
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
        // Eight lines have styles of their own. The legend above the drawing contains them and the
        // crosses.
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
        "<p>fullstroke 0.1.0.",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn a_page_of_many_studies_stays_short_and_says_what_it_leaves_out() {
    let page = page_of_studies(
        &"long words ".repeat(20),
        40,
        30,
        &source(&"x".repeat(50_000)),
    );
    assert!(page.len() <= BYTES_MAX, "{}", page.len());
    assert!(page.contains("more studies do not fit on the page"));
}

#[test]
fn a_page_has_its_sections_in_order_and_every_figure_has_words() {
    let page = page(
        &answer(AnswerBody::Ranking(&ranking(&["a", "b"], 40))),
        &source("x"),
    );
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
    let page = page(&answer(AnswerBody::Ranking(&ranking(&names, 90))), &source);
    assert!(page.len() <= BYTES_MAX, "{}", page.len());
    for words in [
        "first 40 of 400",
        "more candidates do not fit on the page",
        "do not fit on the page",
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
        let page = page(
            &answer(AnswerBody::Ranking(&ranking(&names, 90))),
            &source("x"),
        );
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
        // The page says how many charts are left out.
        let left = candidates.min(40) - offsets;
        assert_eq!(
            page.contains(&format!("of {left} more candidates do not fit")),
            left > 0,
            "{candidates} candidates"
        );
        let tables = page.matches(": activity of each drive").count() / 2;
        let left = candidates.min(40) - tables;
        assert_eq!(
            page.contains(&format!("The drive tables of {left} more candidates")),
            left > 0,
            "{candidates} candidates"
        );
    }
}

/// Returns a search of two candidates.
fn searched() -> MostRanking {
    let one = |name: &str, load: f64| {
        LargestLoad::Load(FoundLoad {
            name: name.to_owned(),
            load,
            too_much: Some(load * 1.01),
            iops: 100.5,
            p99_ms: 20.25,
            p99_ms_max: None,
            load_at_half_length: Some(load),
            settled: Settled::default(),
            tried: vec![TriedLoad {
                load,
                held: true,
                carried_share: 1.0,
                iops: 100.5,
                p99_ms: 20.25,
                p99_beyond: 100,
                utilisation_max: 0.5,
            }],
        })
    };
    MostRanking {
        by: "load",
        verdict: Some("a bears most".to_owned()),
        candidates: vec![one("a", 1.5), one("b", 0.75)],
    }
}

#[test]
fn the_main_figure_of_each_kind_of_answer_stands_alone() {
    let by_mean = ranking(&["a", "b"], 8);
    let by_p99 = Ranking {
        by: "response_ms.p99".to_owned(),
        ..by_mean.clone()
    };
    let (run, searched) = (report("a", 8), searched());
    let names = study_names("s", 2);
    let checked = of_studies("s", &names, 3);
    for (found, parts) in [
        (
            AnswerBody::Ranking(&by_mean),
            &[
                "mean response time (ms)",
                "id=\"ranking-title\"",
                "rotation",
                "2 candidates",
            ][..],
        ),
        (
            AnswerBody::Ranking(&by_p99),
            &["99th percentile of response times (ms)"],
        ),
        (
            AnswerBody::Run(&run),
            &[
                "a: one run",
                "arrival (s)",
                "response (ms)",
                "cause-rotation",
            ],
        ),
        (
            AnswerBody::LoadRanking(&searched, &[]),
            &["load (multiples of this one)", "2 candidates by load"],
        ),
        (
            AnswerBody::Studies {
                verdict: None,
                checked: &checked,
            },
            &["s 0", "published", "series-7"],
        ),
    ] {
        let svg = plot(&answer(found)).unwrap();
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
        // Each open tag must be closed in order.
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
    let one = |number: usize| Ranked {
        varied: Varied::new(&[format!("key={number}")]),
        ..ranked(number + 1, "a", 1)
    };
    let ranking = of_ranked((0..60).map(one).collect(), String::new(), None);
    let page = page(&answer(AnswerBody::Ranking(&ranking)), &source("x"));
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
    let mean = |mean: f64| Distribution {
        mean,
        ..Distribution::default()
    };
    let workload = |name: &str| WorkloadReport {
        name: name.to_owned(),
        requests: 2171,
        response_ms: mean(3.355),
        iops: 1.0,
        mb_per_s: 1.0,
        reads: None,
        writes: None,
    };
    run.sources.workloads = vec![workload("mail"), workload("copy")];
    run.streams = Some(StreamsReport {
        started: 120,
        playing: 120,
        nominal_mbit_per_s: 8.0,
        within_latency: None,
        sustained: 72,
        underruns: 203,
        with_underruns: 48,
        deadlines_missed_share: 0.125,
        longest_stall_ms: 10.0,
        start_up_ms: mean(550.5),
        recordings: 0,
        overruns: 0,
        with_overruns: 0,
        lost_ms: 0.0,
        each: Vec::new(),
    });
    let program = |name: &str, elapsed_s: f64, text: &str| ProgramReport {
        name: name.to_owned(),
        elapsed_s,
        transactions: Default::default(),
        figures: Default::default(),
        text: text.to_owned(),
        notes: Vec::new(),
    };
    let times = |count: u64| fullstroke_contract::EventTimes {
        count,
        ..Default::default()
    };
    let mut postmark = program("postmark", 4.75, "Files:\n\t709 created");
    let transaction = TransactionReport {
        times: times(600),
        per_s: 126.0,
    };
    postmark.transactions.insert("transaction", transaction);
    let mut dbench = program("dbench", 5.75, "");
    dbench.figures.insert("throughput_mb_per_s", 31.25);
    run.sources.hosts = vec![HostReport {
        name: "mail".to_owned(),
        operations: vec![CallReport {
            kind: "unlink",
            times: times(709),
            per_s: 1.0,
            failed: 0,
            mb_per_s: 0.0,
            device_reads_each: 0.0,
            device_writes_each: 0.0,
        }],
        programs: vec![postmark, dbench],
        dirty_mb: Vec::new(),
    }];
    run.array.layers = vec![LayerReport {
        layer: "page cache of mail".to_owned(),
        readings: vec![CounterReading {
            name: "memory_hit_share",
            value: 0.9375,
        }],
    }];
    let page = page(&CommandAnswer::of_run(&run), &source("x"));
    for words in [
        "<data value=\"203\">203</data>",
        "<data value=\"48\">48</data>",
        "<th scope=\"row\">copy</th>",
        "<th scope=\"row\">unlink</th>",
        "709 created</code>",
        "Transactions of postmark",
        "<data value=\"31.25\">31.2</data>",
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
    compared.candidates[1].report = run;
    let page = fullstroke_report::page(&answer(AnswerBody::Ranking(&compared)), &source("x"));
    assert!(
        page.contains(note) && page.contains("<th scope=\"row\">b chunk=4KiB x=b: copy</th>"),
        "{page}"
    );
}

#[test]
fn readings_leave_a_page_short() {
    let mut run = report("a", 90);
    let reading = CounterReading {
        name: "memory_hit_share",
        value: 0.5,
    };
    run.array.layers = vec![LayerReport {
        layer: "many".to_owned(),
        readings: vec![reading; 4000],
    }];
    let page = page(&CommandAnswer::of_run(&run), &source("x"));
    assert!(page.len() <= BYTES_MAX && page.contains("The further tables do not fit on the page"));
}

#[test]
fn values_of_a_race_are_drawn_beside_those_of_the_same_parts() {
    let one = |rank: usize, batches: usize, value: f64| TunedCandidate {
        rank,
        name: "a".to_owned(),
        varied: Varied::new(&[format!("key={rank}")]),
        value,
        difference_to_best: (rank > 1).then_some(Difference {
            value: 1.75,
            half_width: Some(0.5),
            batches_above: 0,
            batches_below: 0,
            significance: Significance::Significant,
        }),
        batches,
        ..TunedCandidate::default()
    };
    let tuned = Tuned {
        by: "response_ms.mean".to_owned(),
        candidates: vec![
            one(1, 8, 13.5),
            one(2, 8, 15.5),
            one(3, 4, 68.5),
            one(4, 4, 48.25),
        ],
        ..Tuned::default()
    };
    let page = page(&answer(AnswerBody::Tuned(&tuned, &[])), &source("x"));
    let chart = |id: &str| {
        let (_, rest) = page.split_once(&format!("<figure id=\"{id}\"")).unwrap();
        rest.split_once("</figure>").unwrap().0
    };
    let bars = chart("ranking");
    assert_eq!(bars.matches("class=\"bar\"").count(), 2, "{bars}");
    assert!(
        bars.contains("of the candidates that saw 8 parts"),
        "{bars}"
    );
    assert_eq!(chart("differences").matches("middle sign").count(), 3 + 4);
    assert!(
        chart("sensitivity-0").contains("4 1.75"),
        "differences are of the same parts"
    );
    assert!(page.contains("eliminated candidates last") && !page.contains("the best first"));
}

#[test]
fn a_ranking_without_values_has_no_first_and_says_so() {
    let mut ranking = ranking(&["a", "b"], 4);
    ranking.reasons.clear();
    for candidate in &mut ranking.candidates {
        candidate.value = f64::NAN;
        candidate.difference_to_best = None;
    }
    let page = page(&answer(AnswerBody::Ranking(&ranking)), &source("x"));
    for label in ["a chunk=2KiB x=a", "b chunk=4KiB x=b"] {
        assert!(page.contains(&format!(
            "<p>{label}: no value of response_ms.mean was measured.</p>"
        )));
    }
    assert!(page.contains("<caption>Candidates without a value of response_ms.mean</caption>"));
    assert!(!page.contains(">rank</th>") && !page.contains("the best first"));
    assert!(
        !page.contains("<figure id=\"ranking\"") && !page.contains("<figure id=\"sensitivity-0\"")
    );
}

#[test]
fn the_figure_of_advice_is_of_the_number_that_was_wished() {
    let finalist = |name: &str, underruns: u64| Finalist {
        name: name.to_owned(),
        healthy: ArrayOutcome {
            underruns: Some(underruns),
            p99_ms: 7.5,
            ..ArrayOutcome::default()
        },
        ..Finalist::default()
    };
    let mut advice = Advice {
        recommendation: vec!["Take a.".to_owned()],
        finalists: vec![finalist("raid10 of 4", 0), finalist("raid5 of 4", 12)],
        ranking: Ranking {
            by: "response_ms.p99".to_owned(),
            ..ranking(&["a", "b"], 4)
        },
        ..Advice::default()
    };
    let (streams, p99) = (Some(100), "100ms".parse().ok());
    for (wishes, axis) in [
        (
            Wishes {
                streams,
                ..Wishes::default()
            },
            "underruns (runs of all seeds)",
        ),
        (
            Wishes {
                p99,
                ..Wishes::default()
            },
            "99th percentile of response times (ms)",
        ),
    ] {
        advice.wishes = wishes;
        let found = AnswerBody::Advice {
            title: "",
            advice: &advice,
        };
        let svg = plot(&answer(found)).unwrap();
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
    nothing.candidates[0].value = f64::NAN;
    let names = study_names("s", 1);
    let mut unmeasured = of_studies("s", &names, 1);
    unmeasured[0].figures.clear();
    let idle = Report::default();
    for (found, why) in [
        (
            AnswerBody::Ranking(&nothing),
            "no value of mean response time (ms) was measured",
        ),
        (
            AnswerBody::Studies {
                verdict: None,
                checked: &unmeasured,
            },
            "no figure with results",
        ),
        (AnswerBody::Run(&idle), "no request"),
    ] {
        let error = plot(&answer(found)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn the_policy_lets_its_own_script_run_and_no_other() {
    let page = page(&CommandAnswer::of_run(&report("a", 4)), &source("x"));
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
        let of = |names: &[&str], text: &str| {
            tags(&page(&answer(AnswerBody::Ranking(&ranking(names, 6))), &source(text)))
        };
        prop_assert!(of(&[&name, "b"], &name) == of(&["a", "b"], "a"), "{name:?} changes the tags");
        let drawn = |names: &[&str]| tags(&plot(&answer(AnswerBody::Ranking(&ranking(names, 6)))).unwrap());
        prop_assert!(drawn(&[&name, "b"]) == drawn(&["a", "b"]), "{name:?} changes the tags of a figure");
        let hostile = tags(&page_of_studies(&name, 2, 3, &source(&name)));
        // Long names have no room below an abscissa.
        let alike = "a".repeat(name.chars().count());
        let harmless = tags(&page_of_studies(&alike, 2, 3, &source("a")));
        // An empty name gives an empty question, source and note. The page leaves an empty note
        // out.
        prop_assert!(name.is_empty() || hostile == harmless, "{name:?} changes the tags of studies");
    }
}
