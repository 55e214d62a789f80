//! The page, section by section.

use crate::advice::{is_advice, recommendation};
use crate::candidate::{Candidate, IN_A_CHART, LINES, candidates};
use crate::chart;
use crate::found::{borne, found, tried};
use crate::markup::Markup;
use crate::studies::{self, is_of_studies};
use crate::value::{Shown, at, column, float, list, show, table, text};
use serde_json::Value;

/// No page is longer.
pub const BYTES_MAX: usize = 300_000;

/// Candidates get charts of their own as long as the page is shorter than this.
const ROOM_FOR_CHARTS: usize = 170_000;
/// Studies have their figures as long as it is shorter than this.
const ROOM_FOR_FIGURES: usize = 210_000;
/// Studies have their published numbers beside theirs as long as it is shorter than this.
const ROOM_FOR_PUBLISHED: usize = 240_000;
/// Files are shown as long as it is shorter than this.
const ROOM_FOR_FILES: usize = 270_000;
/// Letters of a command line.
const COMMAND_MAX: usize = 8000;
/// Rows of the table of candidates.
const ROWS: usize = 100;

/// The only script that a browser carries out: that with this digest (SHA-256).
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                      script-src 'sha256-gydQUhZO/SPjVN36/HgPuZcEane70OoVRECceh2+dxA='; base-uri 'none'; form-action 'none'";

/// How an answer came about.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The command line, word by word.
    pub command: Vec<String>,
    /// The files that it read and that people write: their names and their text.
    pub files: Vec<(String, String)>,
}

/// What a command prints with `--json`, as a page.
pub fn page(answer: &Value, source: &Source) -> String {
    let candidates = candidates(answer);
    let title = title(answer, &candidates);
    let mut page = Markup::new();
    page.code("<!DOCTYPE html>\n");
    page.within("html", &[("lang", "en")], |page| {
        page.within("head", &[], |page| {
            page.void("meta", &[("charset", "utf-8")]);
            page.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
            page.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
            page.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
            page.element("title", &[], &title);
            page.within("style", &[], |page| {
                page.code(include_str!("style.css"));
            });
        });
        page.within("body", &[], |page| {
            page.code(include_str!("patterns.svg"));
            page.within("main", &[], |page| {
                page.element("h1", &[], &title);
                sections(page, answer, &candidates);
                reproduce(page, answer, &candidates, source);
            });
            page.within("script", &[], |page| {
                page.code(include_str!("script.js"));
            });
        });
    });
    page.into_text()
}

fn title(answer: &Value, candidates: &[Candidate<'_>]) -> String {
    match (candidates, text(answer, "by")) {
        _ if is_of_studies(answer) => studies::title(answer),
        _ if !text(answer, "title").is_empty() => text(answer, "title").to_owned(),
        ([], "") => format!("{}: what it bears", text(answer, "name")),
        ([one], "") => format!("{}: one run", one.label),
        (all, by) => format!("{} candidates by {by}", all.len().max(list(answer, "candidates").len())),
    }
}

fn section(page: &mut Markup, id: &'static str, heading: &str, inside: impl FnOnce(&mut Markup)) {
    page.within("section", &[("id", id)], |page| {
        page.element("h2", &[], heading);
        inside(page);
    });
}

fn sections(page: &mut Markup, answer: &Value, candidates: &[Candidate<'_>]) {
    let shown = &candidates[..candidates.len().min(IN_A_CHART)];
    let found = found(answer);
    if !found.is_empty() {
        section(page, "winner", "What is borne", |page| {
            verdict(page, answer);
            borne(page, &found);
        });
        section(page, "tried", "How it was found", |page| tried(page, &found, ROOM_FOR_CHARTS));
        return;
    }
    if is_of_studies(answer) {
        section(page, "winner", "Which claims hold, and is it real?", |page| {
            verdict(page, answer);
            studies::verdicts(page, answer, ROOM_FOR_CHARTS);
        });
        if studies::has_figures(answer) {
            section(page, "figures", "The figures", |page| studies::figures(page, answer, ROOM_FOR_FIGURES));
        }
        section(page, "published", "Beside what was published", |page| {
            studies::published(page, answer, ROOM_FOR_PUBLISHED);
        });
        section(page, "sensitivity", "What survives", |page| studies::survives(page, answer, ROOM_FOR_FILES));
        return;
    }
    if is_advice(answer) {
        section(page, "recommendation", "The recommendation", |page| recommendation(page, answer));
    }
    if at(answer, "candidates").is_array() {
        section(page, "winner", "Who wins, and is it real?", |page| winner(page, answer, shown));
        section(page, "candidates", "The candidates", |page| ranking(page, answer, candidates));
    } else {
        section(page, "summary", "What was measured", |page| summary(page, candidates));
    }
    left_out(page, candidates.len(), shown.len());
    if shown.is_empty() {
        return;
    }
    if shown.iter().any(|candidate| candidate.report["time_ms"].is_object()) {
        measured(page, shown);
    }
    if shown
        .iter()
        .any(|candidate| at(candidate.ranked, "varied").as_object().is_some_and(|keys| !keys.is_empty()))
    {
        let by = text(answer, "by");
        section(page, "sensitivity", "What changes the answer", |page| chart::sensitivity(page, by, shown));
    }
}

/// What the runs of the candidates measured.
fn measured(page: &mut Markup, shown: &[Candidate<'_>]) {
    section(page, "time", "Where the time went", |page| time(page, shown));
    if shown.iter().any(|candidate| candidate.report["timeline"].is_object()) {
        section(page, "latency", "Response times", |page| latency(page, shown));
        section(page, "drives", "The drives over time", |page| drives(page, shown));
    } else {
        section(page, "drives", "The drives", |page| members(page, shown));
    }
    if shown.iter().any(|candidate| candidate.report["energy"].is_object()) {
        section(page, "energy", "Energy", |page| energy(page, shown));
    }
}

fn left_out(page: &mut Markup, all: usize, shown: usize) {
    if all > shown {
        let note = format!("Charts show the first {shown} of {all} candidates; --json has all.");
        page.element("p", &[("class", "note")], &note);
    }
}

fn verdict(page: &mut Markup, answer: &Value) {
    if let Some(verdict) = at(answer, "verdict").as_str() {
        page.element("p", &[("class", "verdict")], verdict);
    }
}

fn winner(page: &mut Markup, answer: &Value, candidates: &[Candidate<'_>]) {
    verdict(page, answer);
    for reason in list(answer, "reasons") {
        page.within("p", &[], |page| {
            page.element("strong", &[], "Why: ").text(text(reason, "sentence"));
        });
    }
    if at(answer, "same_number_of_requests") == &Value::Bool(false) {
        page.element("p", &[], "The candidates were given different numbers of requests: not one workload.");
    }
    let by = text(answer, "by");
    let better = if at(answer, "more_is_better") == &Value::Bool(true) { "more" } else { "less" };
    let bars: Vec<(String, f64, Option<f64>)> = candidates
        .iter()
        .filter_map(|candidate| {
            let value = float(candidate.ranked, "value")?;
            Some((candidate.label.clone(), value, float(candidate.ranked, "ci95_half_width")))
        })
        .collect();
    if !bars.is_empty() {
        let title = format!("{by}: {better} is better; with 95 % intervals");
        chart::bars(page, "ranking", &title, by, &bars);
    }
    chart::differences(page, by, candidates);
    notes(page, candidates);
}

/// What is to be known before a candidate's times are read.
fn notes(page: &mut Markup, candidates: &[Candidate<'_>]) {
    for candidate in candidates {
        let overload = at(candidate.report, "overload.sentence").as_str();
        let trace = list(candidate.report, "trace_notes").iter().filter_map(Value::as_str);
        for sentence in overload.into_iter().chain(trace) {
            page.element("p", &[], &format!("{}: {sentence}", candidate.label));
        }
    }
}

fn ranking(page: &mut Markup, answer: &Value, candidates: &[Candidate<'_>]) {
    let by = text(answer, "by");
    let rows: Vec<(String, &Value)> =
        candidates.iter().take(ROWS).map(|candidate| (candidate.label.clone(), candidate.ranked)).collect();
    let columns = [
        column("rank", "rank", Shown::Whole),
        column(by, "value", Shown::Plain),
        column("± 95 %", "ci95_half_width", Shown::Plain),
        column("to the best", "difference_to_best.value", Shown::Signed),
        column("±", "difference_to_best.half_width", Shown::Plain),
        column("how sure", "difference_to_best.significance", Shown::Plain),
        column("carries", "carries", Shown::Plain),
        column("parts seen", "batches", Shown::Whole),
        column("dropped out", "dropped", Shown::Plain),
        column("may be best", "may_be_best", Shown::Plain),
        column("chance that it is better", "chance_better", Shown::Percent),
        column("share carried", "report.overload.carried_share", Shown::Percent),
    ];
    table(page, &format!("Candidates by {by}, the best first"), &columns, &rows);
    let columns = [
        column("layout", "volume.layout", Shown::Plain),
        column("drives", "volume.drives", Shown::Whole),
        column("usable", "volume.usable_bytes", Shown::Bytes),
        column("of", "volume.raw_bytes", Shown::Bytes),
        column("drive failures survived", "volume.failures_survived", Shown::Whole),
    ];
    if candidates.iter().any(|candidate| at(candidate.ranked, "volume").is_object()) {
        table(page, "What their volumes amount to", &columns, &rows[..rows.len().min(IN_A_CHART)]);
    }
    if candidates.len() > ROWS {
        let note = format!("{} candidates more are in --json.", candidates.len() - ROWS);
        page.element("p", &[("class", "note")], &note);
    }
}

fn summary(page: &mut Markup, candidates: &[Candidate<'_>]) {
    notes(page, candidates);
    let columns = [
        column("requests", "requests", Shown::Whole),
        column("IOPS", "iops", Shown::Plain),
        column("MB/s", "mb_per_s", Shown::Plain),
        column("simulated s", "simulated_s", Shown::Plain),
    ];
    table(page, "The run", &columns, &reports(candidates));
    times(page, candidates);
}

fn reports<'a>(candidates: &[Candidate<'a>]) -> Vec<(String, &'a Value)> {
    candidates.iter().map(|candidate| (candidate.label.clone(), candidate.report)).collect()
}

fn times(page: &mut Markup, candidates: &[Candidate<'_>]) {
    let columns = [
        column("mean", "response_ms.mean", Shown::Plain),
        column("± 95 %", "response_ms.ci95_half_width", Shown::Plain),
        column("p50", "response_ms.p50", Shown::Plain),
        column("p90", "response_ms.p90", Shown::Plain),
        column("p99", "response_ms.p99", Shown::Plain),
        column("p99.9", "response_ms.p999", Shown::Plain),
        column("max", "response_ms.max", Shown::Plain),
        column("reads, mean", "reads.response_ms.mean", Shown::Plain),
        column("writes, mean", "writes.response_ms.mean", Shown::Plain),
    ];
    table(page, "Response times (ms)", &columns, &reports(candidates));
}

fn time(page: &mut Markup, candidates: &[Candidate<'_>]) {
    chart::time_parts(page, candidates);
    let columns = [
        column("mean", "response_ms.mean", Shown::Plain),
        column("queue", "time_ms.queue", Shown::Plain),
        column("parity", "time_ms.parity", Shown::Plain),
        column("overhead", "time_ms.overhead", Shown::Plain),
        column("seek", "time_ms.seek", Shown::Plain),
        column("rotation", "time_ms.rotation", Shown::Plain),
        column("transfer", "time_ms.transfer", Shown::Plain),
    ];
    table(page, "Parts of the mean response time (ms)", &columns, &reports(candidates));
}

fn latency(page: &mut Markup, candidates: &[Candidate<'_>]) {
    chart::percentiles(page, candidates);
    if candidates.len() > LINES {
        let note = format!("The curves are those of the first {LINES} candidates.");
        page.element("p", &[("class", "note")], &note);
    }
    if candidates.iter().any(|candidate| candidate.ranked != candidate.report) {
        times(page, candidates);
    }
    in_turn(page, candidates, chart::heat);
}

fn drives(page: &mut Markup, candidates: &[Candidate<'_>]) {
    in_turn(page, candidates, |page, order, candidate| {
        chart::queues(page, order, candidate);
        chart::offsets(page, order, candidate);
    });
    members(page, candidates);
}

/// Each candidate's own charts, as long as there is room.
fn in_turn(
    page: &mut Markup,
    candidates: &[Candidate<'_>],
    draw: impl Fn(&mut Markup, usize, &Candidate<'_>),
) {
    for (order, candidate) in candidates.iter().enumerate() {
        let mut own = Markup::new();
        draw(&mut own, order, candidate);
        if page.len() + own.len() > ROOM_FOR_CHARTS {
            let left = candidates.len() - order;
            let note = format!("No room is left for those of {left} candidates more; --json has them.");
            page.element("p", &[("class", "note")], &note);
            return;
        }
        page.add(&own);
    }
}

fn members(page: &mut Markup, candidates: &[Candidate<'_>]) {
    let columns = [
        column("I/Os", "requests", Shown::Whole),
        column("reads", "reads", Shown::Whole),
        column("writes", "writes", Shown::Whole),
        column("busy", "utilisation", Shown::Percent),
        column("depth", "queue_depth", Shown::Plain),
        column("queue ms", "queue_ms", Shown::Plain),
        column("seek ms", "seek_ms", Shown::Plain),
        column("rotation ms", "rotation_ms", Shown::Plain),
        column("transfer ms", "transfer_ms", Shown::Plain),
        column("MB/s", "mb_per_s", Shown::Plain),
        column("W", "mean_w", Shown::Plain),
    ];
    for candidate in candidates {
        if page.len() > ROOM_FOR_CHARTS {
            return;
        }
        let members = list(candidate.report, "members").iter().take(ROWS);
        let rows: Vec<(String, &Value)> =
            members.map(|member| (format!("drive {}", text(member, "name")), member)).collect();
        table(page, &format!("{}: what each drive did", candidate.label), &columns, &rows);
    }
}

fn energy(page: &mut Markup, candidates: &[Candidate<'_>]) {
    let columns = [
        column("drives", "energy.drives", Shown::Whole),
        column("J", "energy.total_j", Shown::Plain),
        column("W, all drives", "energy.mean_w", Shown::Plain),
        column("J an I/O", "energy.j_per_io", Shown::Plain),
        column("stops", "energy.spin_downs", Shown::Whole),
        column("starts", "energy.spin_ups", Shown::Whole),
    ];
    table(page, "What the drives drew", &columns, &reports(candidates));
    chart::power_states(page, candidates);
}

fn reproduce(page: &mut Markup, answer: &Value, candidates: &[Candidate<'_>], source: &Source) {
    section(page, "reproduce", "How to reproduce", |page| {
        page.element("p", &[], "The same version and files give the same numbers, to the bit:");
        page.within("pre", &[], |page| {
            let command = command_line(&source.command);
            let kept: String = command.chars().take(COMMAND_MAX).collect();
            page.element("code", &[("class", "command")], &kept);
        });
        page.within("p", &[], |page| {
            let version = at(answer, "version").as_str();
            let of_run = candidates.first().map(|first| text(first.report, "version"));
            page.text("fullstroke ").text(version.or(of_run).unwrap_or_default()).text(".");
            if let Some(wall_s) = at(answer, "wall_s").as_f64() {
                page.text(" It took ");
                show(page, &Value::from(wall_s), Shown::Plain);
                page.text(" s.");
            }
        });
        let columns = [
            column("seed", "seed", Shown::Whole),
            column("configuration", "config_digest", Shown::Plain),
            column("requests", "requests", Shown::Whole),
        ];
        let rows: Vec<(String, &Value)> = reports(candidates).into_iter().take(IN_A_CHART).collect();
        if !rows.is_empty() {
            table(page, "What was run", &columns, &rows);
        }
        for (name, contents) in &source.files {
            file(page, name, contents);
        }
    });
}

fn file(page: &mut Markup, name: &str, contents: &str) {
    let mut own = Markup::new();
    own.within("details", &[], |own| {
        own.element("summary", &[], name);
        own.within("pre", &[], |own| {
            own.element("code", &[], contents);
        });
    });
    if page.len() + own.len() <= ROOM_FOR_FILES {
        page.add(&own);
    } else if name.len() < 1000 && page.len() < BYTES_MAX - 10_000 {
        page.element("p", &[("class", "note")], &format!("{name} is too long to stand here."));
    }
}

/// Words as a shell takes them.
fn command_line(words: &[String]) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
