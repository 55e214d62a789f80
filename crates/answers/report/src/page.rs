//! The page, section by section.

use crate::advice::{is_advice, recommendation, would_change};
use crate::candidate::{self, Candidate, IN_A_CHART, LINES, candidates, saw_the_same};
use crate::chart::{self, Bar};
use crate::found::{borne, found, tried};
use crate::loads::{self, together};
use crate::markup::Markup;
use crate::metric::{axis, words};
use crate::studies::{self, is_of_studies};
use crate::svg::Drawing;
use crate::value::{Shown, at, column, float, list, show, table, text};
use serde_json::Value;

/// No page is longer.
pub const BYTES_MAX: usize = 300_000;

/// Candidates and studies get charts of their own as long as the page is shorter than these, the first of
/// which leads to a page that is short enough.
const ROOMS_FOR_CHARTS: [usize; 4] = [245_000, 210_000, 170_000, 120_000];
/// Files are shown as long as it is shorter than this.
const ROOM_FOR_FILES: usize = 285_000;
/// Room for the script, and to say which file is not shown.
const FOR_THE_END: usize = 4_000;
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

/// How long the page may be when something is added that it could do without.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Charts of one candidate.
    charts: usize,
    /// Tables of one candidate, and figures of studies.
    tables: usize,
    /// Published numbers beside those of studies.
    published: usize,
}

impl Room {
    fn new(charts: usize) -> Room {
        Room {
            charts,
            tables: charts + 10_000,
            published: charts + 25_000,
        }
    }
}

/// What a command prints with `--json`, as a page of at most [`BYTES_MAX`] bytes.
pub fn page(answer: &Value, source: &Source) -> String {
    let mut page = String::new();
    for charts in ROOMS_FOR_CHARTS {
        page = within(answer, source, Room::new(charts));
        if page.len() + FOR_THE_END / 2 <= BYTES_MAX {
            break;
        }
    }
    page
}

fn within(answer: &Value, source: &Source, room: Room) -> String {
    let candidates = candidates(answer);
    let title = title(answer, &candidates);
    let mut page = Markup::new();
    page.code("<!DOCTYPE html>\n");
    page.within("html", &[("lang", "en")], |page| {
        page.within("head", &[], |page| {
            page.void("meta", &[("charset", "utf-8")]);
            page.void(
                "meta",
                &[
                    ("name", "viewport"),
                    ("content", "width=device-width, initial-scale=1"),
                ],
            );
            page.void(
                "meta",
                &[("name", "color-scheme"), ("content", "light dark")],
            );
            page.void(
                "meta",
                &[
                    ("http-equiv", "Content-Security-Policy"),
                    ("content", POLICY),
                ],
            );
            page.element("title", &[], &title);
            page.within("style", &[], |page| {
                page.code(include_str!("looks.css"))
                    .code(include_str!("style.css"));
            });
        });
        page.within("body", &[], |page| {
            page.code(include_str!("patterns.svg"));
            page.within("main", &[], |page| {
                page.element("h1", &[], &title);
                sections(page, answer, &candidates, room);
                reproduce(page, answer, &candidates, source);
            });
            page.within("script", &[], |page| {
                page.code(include_str!("script.js"));
            });
        });
    });
    page.into_text()
}

/// What an answer is called.
pub(crate) fn title(answer: &Value, candidates: &[Candidate<'_>]) -> String {
    match (candidates, text(answer, "by")) {
        _ if is_of_studies(answer) => studies::title(answer),
        _ if !text(answer, "title").is_empty() => text(answer, "title").to_owned(),
        ([], "") => format!("{}: what it bears", text(answer, "name")),
        ([one], "") => format!("{}: one run", one.label),
        (all, by) => {
            format!(
                "{} candidates by {}",
                all.len().max(list(answer, "candidates").len()),
                words(by)
            )
        }
    }
}

fn section(page: &mut Markup, id: &'static str, heading: &str, inside: impl FnOnce(&mut Markup)) {
    page.within("section", &[("id", id)], |page| {
        page.element("h2", &[], heading);
        inside(page);
    });
}

fn sections(page: &mut Markup, answer: &Value, candidates: &[Candidate<'_>], room: Room) {
    let shown = &candidates[..candidates.len().min(IN_A_CHART)];
    let found = found(answer);
    if !found.is_empty() {
        section(page, "winner", "What is borne", |page| {
            verdict(page, answer);
            borne(page, &found);
        });
        on_the_whole_load(page, answer, room);
        section(page, "tried", "How it was found", |page| {
            tried(page, &found, room.tables)
        });
        return;
    }
    if is_of_studies(answer) {
        section(
            page,
            "winner",
            "Which claims hold, and is it real?",
            |page| {
                verdict(page, answer);
                studies::verdicts(page, answer, room.charts);
            },
        );
        if studies::has_figures(answer) {
            section(page, "figures", "The figures", |page| {
                studies::figures(page, answer, room.tables)
            });
        }
        section(page, "published", "Beside what was published", |page| {
            studies::published(page, answer, room.published);
        });
        section(page, "sensitivity", "What survives", |page| {
            studies::survives(page, answer, ROOM_FOR_FILES)
        });
        return;
    }
    if is_advice(answer) {
        section(page, "recommendation", "The recommendation", |page| {
            recommendation(page, answer)
        });
    }
    if at(answer, "candidates").is_array() {
        let heading = match is_advice(answer) {
            true => format!(
                "The best of each layout by {}, and is it real?",
                words(text(answer, "by"))
            ),
            false => "Who wins, and is it real?".to_owned(),
        };
        section(page, "winner", &heading, |page| winner(page, answer, shown));
        section(page, "candidates", "The candidates", |page| {
            ranking(page, answer, candidates)
        });
    } else {
        section(page, "summary", "What was measured", |page| {
            summary(page, candidates, room.tables)
        });
    }
    left_out(page, candidates.len(), shown.len());
    if shown.is_empty() {
        return;
    }
    if shown
        .iter()
        .any(|candidate| candidate.report["time_ms"].is_object())
    {
        measured(page, shown, room);
    } else {
        on_the_whole_load(page, answer, room);
    }
    if is_advice(answer) {
        section(
            page,
            "sensitivity",
            "What would change the answer",
            |page| would_change(page, answer),
        );
    } else if shown.iter().any(|candidate| {
        at(candidate.ranked, "varied")
            .as_object()
            .is_some_and(|keys| !keys.is_empty())
    }) {
        section(page, "sensitivity", "What changes the answer", |page| {
            chart::sensitivity(page, answer, candidates);
        });
    } else if !at(answer, "candidates").is_array() {
        section(page, "sensitivity", "What changes the answer", |page| {
            let how = "One run does not say. fullstroke compare with this stack and --vary KEY=VALUE,... runs it at \
                       other values of a key, on the same requests.";
            page.element("p", &[], how);
        });
    }
}

/// What the best of a search measured, and its nearest rivals.
fn on_the_whole_load(page: &mut Markup, answer: &Value, room: Room) {
    let ran = candidate::on_the_whole_load(answer);
    if ran.is_empty() {
        return;
    }
    let which = match ran.len() {
        1 => "one run".to_owned(),
        runs => format!("one run each of the first {runs}"),
    };
    let load = match found(answer).is_empty() {
        true => "the whole workload, of which the race saw parts",
        false => "the most that it bears",
    };
    page.element(
        "p",
        &[("class", "note")],
        &format!("What follows is of {which}, on {load}."),
    );
    measured(page, &ran, room);
}

/// What the runs of the candidates measured.
fn measured(page: &mut Markup, shown: &[Candidate<'_>], room: Room) {
    section(page, "time", "Where the time went", |page| {
        time(page, shown)
    });
    if shown
        .iter()
        .any(|candidate| candidate.report["timeline"].is_object())
    {
        let own = OwnCharts::new(shown, room.charts.saturating_sub(page.len()));
        section(page, "latency", "Response times", |page| {
            latency(page, shown, &own)
        });
        section(page, "drives", "The drives over time", |page| {
            own.show(page, &own.drives);
            members(page, shown, room.tables);
        });
    } else {
        section(page, "drives", "The drives", |page| {
            members(page, shown, room.tables)
        });
    }
    if shown
        .iter()
        .any(|candidate| candidate.report["energy"].is_object())
    {
        section(page, "energy", "Energy", |page| energy(page, shown));
    }
}

fn left_out(page: &mut Markup, all: usize, shown: usize) {
    if all > shown {
        let note = format!("Charts of candidates show the first {shown} of {all}; --json has all.");
        page.element("p", &[("class", "note")], &note);
    }
}

fn verdict(page: &mut Markup, answer: &Value) {
    if let Some(verdict) = at(answer, "verdict").as_str() {
        page.element("p", &[("class", "verdict")], verdict);
    }
}

fn winner(page: &mut Markup, answer: &Value, candidates: &[Candidate<'_>]) {
    match is_advice(answer) {
        // The verdict of that page is its recommendation, which more than one number decides.
        true => {
            page.within("p", &[], |page| {
                page.element("strong", &[], "Recommended: ")
                    .text(text(answer, "recommended"))
                    .text(". ");
                page.text(text(answer, "verdict"));
            });
        }
        false => verdict(page, answer),
    }
    for reason in list(answer, "reasons") {
        page.within("p", &[], |page| {
            page.element("strong", &[], "Why: ")
                .text(text(reason, "sentence"));
        });
    }
    if at(answer, "same_number_of_requests") == &Value::Bool(false) {
        page.element(
            "p",
            &[],
            "The candidates were given different numbers of requests: not one workload.",
        );
    }
    show_drawing(page, ranking_bars(answer, candidates));
    let by = text(answer, "by");
    chart::differences(page, by, candidates);
    notes(page, candidates);
    for candidate in unmeasured(candidates) {
        page.element(
            "p",
            &[],
            &format!("{}: nothing was measured by {by}.", candidate.label),
        );
    }
}

/// Those of a ranking that have no value.
fn unmeasured<'a, 'b>(candidates: &'b [Candidate<'a>]) -> impl Iterator<Item = &'b Candidate<'a>> {
    candidates
        .iter()
        .filter(|candidate| float(candidate.ranked, "value").is_none())
}

/// The values of a ranking; none if nothing was measured. Of a race those that saw as many parts of the workload as
/// the best: the values of others are of other parts.
pub(crate) fn ranking_bars(answer: &Value, candidates: &[Candidate<'_>]) -> Option<Drawing> {
    let parts = at(candidates.first()?.ranked, "batches");
    let comparable = |candidate: &&Candidate<'_>| at(candidate.ranked, "batches") == parts;
    let bar = |candidate: &Candidate<'_>| {
        let value = float(candidate.ranked, "value")?;
        Some((
            candidate.label.clone(),
            value,
            float(candidate.ranked, "ci95_half_width"),
        ))
    };
    let bars: Vec<Bar> = candidates
        .iter()
        .filter(comparable)
        .filter_map(bar)
        .collect();
    let by = text(answer, "by");
    let better = if at(answer, "more_is_better") == &Value::Bool(true) {
        "more"
    } else {
        "less"
    };
    let intervals = bars.iter().any(|(_, _, half_width)| half_width.is_some());
    let intervals = if intervals {
        "; with 95 % intervals"
    } else {
        ""
    };
    let seen = match saw_the_same(candidates) {
        true => String::new(),
        false => format!("; of those that saw {parts} parts of the workload, as the best did"),
    };
    let title = format!(
        "{}: {better} is better{intervals}{seen}",
        capital(&words(by))
    );
    (!bars.is_empty()).then(|| chart::bars("ranking", &title, &axis(by), &bars))
}

fn show_drawing(page: &mut Markup, drawing: Option<Drawing>) {
    if let Some(drawing) = drawing {
        drawing.show(page);
    }
}

/// With a capital at its beginning.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// What is to be known before a candidate's times are read.
fn notes(page: &mut Markup, candidates: &[Candidate<'_>]) {
    for candidate in candidates {
        let overload = at(candidate.report, "overload.sentence").as_str();
        let trace = list(candidate.report, "trace_notes")
            .iter()
            .filter_map(Value::as_str);
        for sentence in overload.into_iter().chain(trace) {
            page.element("p", &[], &format!("{}: {sentence}", candidate.label));
        }
    }
}

fn ranking(page: &mut Markup, answer: &Value, candidates: &[Candidate<'_>]) {
    let by = text(answer, "by");
    let rows: Vec<(String, &Value)> = candidates
        .iter()
        .take(ROWS)
        .map(|candidate| (candidate.label.clone(), candidate.ranked))
        .collect();
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
        column(
            "share carried",
            "report.overload.carried_share",
            Shown::Percent,
        ),
    ];
    let order = match saw_the_same(candidates) {
        true => "the best first",
        false => "in the order of the differences to the best, those that dropped out last",
    };
    match unmeasured(candidates).count() == candidates.len() {
        true => table(
            page,
            &format!("Candidates: nothing was measured by {by}"),
            &columns[1..],
            &rows,
        ),
        false => table(
            page,
            &format!("Candidates by {by}, {order}"),
            &columns,
            &rows,
        ),
    }
    if !saw_the_same(candidates) {
        let note = "A value is of the parts of the workload that its candidate saw, and so is a difference: only values \
                    of the same parts can be compared.";
        page.element("p", &[("class", "note")], note);
    }
    let columns = [
        column("layout", "volume.layout", Shown::Plain),
        column("drives", "volume.drives", Shown::Whole),
        column("usable", "volume.usable_bytes", Shown::Bytes),
        column("of", "volume.raw_bytes", Shown::Bytes),
        column(
            "drive failures survived",
            "volume.failures_survived",
            Shown::Whole,
        ),
    ];
    if candidates
        .iter()
        .any(|candidate| at(candidate.ranked, "volume").is_object())
    {
        table(
            page,
            "What their volumes amount to",
            &columns,
            &rows[..rows.len().min(IN_A_CHART)],
        );
    }
    if candidates.len() > ROWS {
        let note = format!("{} candidates more are in --json.", candidates.len() - ROWS);
        page.element("p", &[("class", "note")], &note);
    }
}

fn summary(page: &mut Markup, candidates: &[Candidate<'_>], room: usize) {
    notes(page, candidates);
    let columns = [
        column("requests", "requests", Shown::Whole),
        column("IOPS", "iops", Shown::Plain),
        column("MB/s", "mb_per_s", Shown::Plain),
        column("simulated s", "simulated_s", Shown::Plain),
        column("rebuild MB/s", "rebuild.mb_per_s", Shown::Plain),
        column("rebuild, hours", "rebuild.hours", Shown::Plain),
    ];
    table(page, "The run", &columns, &reports(candidates));
    times(page, candidates);
    for run in candidates {
        loads::of_run(page, run, room);
    }
}

fn reports<'a>(candidates: &[Candidate<'a>]) -> Vec<(String, &'a Value)> {
    candidates
        .iter()
        .map(|candidate| (candidate.label.clone(), candidate.report))
        .collect()
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
        column(
            "flushes, mean",
            "operations.flush.response_ms.mean",
            Shown::Plain,
        ),
        column(
            "discards, mean",
            "operations.discard.response_ms.mean",
            Shown::Plain,
        ),
    ];
    table(page, "Response times (ms)", &columns, &reports(candidates));
}

fn time(page: &mut Markup, candidates: &[Candidate<'_>]) {
    show_drawing(page, chart::time_parts(candidates));
    let columns = [
        column("mean", "response_ms.mean", Shown::Plain),
        column("queue", "time_ms.queue", Shown::Plain),
        column("parity", "time_ms.parity", Shown::Plain),
        column("overhead", "time_ms.overhead", Shown::Plain),
        column("seek", "time_ms.seek", Shown::Plain),
        column("rotation", "time_ms.rotation", Shown::Plain),
        column("transfer", "time_ms.transfer", Shown::Plain),
    ];
    table(
        page,
        "Parts of the mean response time (ms)",
        &columns,
        &reports(candidates),
    );
    together(page, candidates);
}

fn latency(page: &mut Markup, candidates: &[Candidate<'_>], own: &OwnCharts) {
    own.show(page, &own.heat);
    chart::percentiles(page, candidates);
    if candidates.len() > LINES {
        let note = format!("The curves are those of the first {LINES} candidates.");
        page.element("p", &[("class", "note")], &note);
    }
    together(page, candidates);
    if candidates
        .iter()
        .any(|candidate| candidate.ranked != candidate.report)
    {
        times(page, candidates);
        loads::streams(page, candidates);
        loads::workloads(page, candidates);
    }
}

/// The charts that are of one candidate alone, as far as there is room for them: the map, the offsets and the queues of
/// the first, then those of the second, and so on.
struct OwnCharts {
    heat: Vec<Markup>,
    drives: Vec<Markup>,
    candidates: usize,
}

impl OwnCharts {
    fn new(candidates: &[Candidate<'_>], room: usize) -> OwnCharts {
        let mut own = OwnCharts {
            heat: Vec::new(),
            drives: Vec::new(),
            candidates: candidates.len(),
        };
        let mut used = 0;
        'each: for (order, candidate) in candidates.iter().enumerate() {
            let (mut heat, mut drives) = (Markup::new(), Markup::new());
            chart::heat(&mut heat, order, candidate);
            chart::offsets(&mut drives, order, candidate);
            chart::queues(&mut drives, order, candidate);
            for (charts, one) in [(&mut own.heat, heat), (&mut own.drives, drives)] {
                used += one.len();
                if used > room {
                    break 'each;
                }
                charts.push(one);
            }
        }
        own
    }

    /// Those of `charts`, and how many there are not.
    fn show(&self, page: &mut Markup, charts: &[Markup]) {
        charts.iter().for_each(|one| _ = page.add(one));
        let left = self.candidates - charts.len();
        if left > 0 {
            let note =
                format!("No room is left for those of {left} candidates more; --json has them.");
            page.element("p", &[("class", "note")], &note);
        }
    }
}

fn members(page: &mut Markup, candidates: &[Candidate<'_>], room: usize) {
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
    for (order, candidate) in candidates.iter().enumerate() {
        let members = list(candidate.report, "members");
        let rows: Vec<(String, &Value)> = members
            .iter()
            .take(ROWS)
            .map(|member| (format!("drive {}", text(member, "name")), member))
            .collect();
        let mut own = Markup::new();
        table(
            &mut own,
            &format!("{}: what each drive did", candidate.label),
            &columns,
            &rows,
        );
        if members.len() > rows.len() {
            let note = format!("{} drives more are in --json.", members.len() - rows.len());
            own.element("p", &[("class", "note")], &note);
        }
        if page.len() + own.len() > room {
            let left = candidates.len() - order;
            let note = format!(
                "No room is left for what each drive of {left} candidates more did; --json has it."
            );
            page.element("p", &[("class", "note")], &note);
            return;
        }
        page.add(&own);
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
    show_drawing(page, chart::power_states(candidates));
}

fn reproduce(page: &mut Markup, answer: &Value, candidates: &[Candidate<'_>], source: &Source) {
    section(page, "reproduce", "How to reproduce", |page| {
        page.element(
            "p",
            &[],
            "The same version and files give the same numbers, to the bit:",
        );
        page.within("pre", &[], |page| {
            let command = command_line(&source.command);
            let kept: String = command.chars().take(COMMAND_MAX).collect();
            page.element("code", &[("class", "command")], &kept);
        });
        page.within("p", &[], |page| {
            let version = at(answer, "version").as_str();
            let of_run = candidates
                .first()
                .map(|first| text(first.report, "version"));
            page.text("fullstroke ")
                .text(version.or(of_run).unwrap_or_default())
                .text(".");
            if let seed @ Value::Number(_) = at(answer, "seed") {
                page.text(" Seed ");
                show(page, seed, Shown::Whole);
                page.text(".");
            }
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
        let whole = candidate::on_the_whole_load(answer);
        let ran = if whole.is_empty() { candidates } else { &whole };
        let rows: Vec<(String, &Value)> = reports(ran).into_iter().take(IN_A_CHART).collect();
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
    } else if name.len() < 1000 && page.len() < BYTES_MAX - FOR_THE_END {
        page.element(
            "p",
            &[("class", "note")],
            &format!("{name} is too long to stand here."),
        );
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
