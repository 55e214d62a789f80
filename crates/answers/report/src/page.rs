//! The page, section by section.

use crate::advice::{recommendation, would_change};
use crate::answer::{AnswerBody, CommandAnswer};
use crate::candidate::{self, CandidateReport, IN_A_CHART, LINES, candidates, saw_the_same};
use crate::chart::{self, Bar};
use crate::found::{searches, sustained_loads, tried};
use crate::loads::{self, together};
use crate::markup::Markup;
use crate::metric::{axis, words};
use crate::studies;
use crate::svg::Drawing;
use crate::value::{NumberFormat, ReportColumn, TableCell, column, filled, table};
use fullstroke_counters::{Counter, ReportNumber};
use fullstroke_lab::VolumeReport;
use fullstroke_measure::{EnergyReport, MemberReport, OperationReport, Report};

/// Largest length of a page, in bytes.
pub const BYTES_MAX: usize = 300_000;

/// Page lengths up to which candidates and studies get charts of their own. The first length counts
/// that gives a page within [`BYTES_MAX`].
const ROOMS_FOR_CHARTS: [usize; 4] = [245_000, 210_000, 170_000, 120_000];
/// Page length up to which files are shown.
const ROOM_FOR_FILES: usize = 285_000;
/// Bytes reserved for the script and for notes on files that are not shown.
const FOR_THE_END: usize = 4_000;
/// Largest number of letters of a command line.
const COMMAND_MAX: usize = 8000;
/// Largest number of rows of the table of candidates.
const ROWS: usize = 100;

/// Content security policy: a browser runs only the script with this digest (SHA-256).
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                      script-src 'sha256-gydQUhZO/SPjVN36/HgPuZcEane70OoVRECceh2+dxA='; base-uri 'none'; form-action 'none'";

/// Origin of an answer.
#[derive(Clone, Debug, Default)]
pub struct AnswerSource {
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Names and texts of the input files that people write.
    pub files: Vec<(String, String)>,
}

/// Page lengths up to which optional parts are added.
#[derive(Clone, Copy, Debug)]
struct LengthLimits {
    /// Page length for charts of one candidate.
    charts: usize,
    /// Page length for tables of one candidate, and figures of studies.
    tables: usize,
    /// Page length for published numbers beside those of studies.
    published: usize,
}

impl LengthLimits {
    fn new(charts: usize) -> LengthLimits {
        LengthLimits {
            charts,
            tables: charts + 10_000,
            published: charts + 25_000,
        }
    }
}

/// Returns an answer as a page of at most [`BYTES_MAX`] bytes. Each number of a table has the form
/// of `--json`.
pub fn page(answer: &CommandAnswer<'_>, source: &AnswerSource) -> String {
    let mut page = String::new();
    for charts in ROOMS_FOR_CHARTS {
        page = within(answer, source, LengthLimits::new(charts));
        // The lengths are estimates, because charts are added whole. A page that became too long is
        // made again with fewer charts.
        if page.len() + FOR_THE_END / 2 <= BYTES_MAX {
            break;
        }
    }
    page
}

fn within(answer: &CommandAnswer<'_>, source: &AnswerSource, limits: LengthLimits) -> String {
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
            // In the body and before any chart, because each chart refers to the patterns by their
            // ids.
            page.code(include_str!("patterns.svg"));
            page.within("main", &[], |page| {
                page.element("h1", &[], &title);
                sections(page, answer, &candidates, limits);
                reproduce(page, answer, &candidates, source);
            });
            // The script is last, because a browser runs the script where it stands, and by then
            // all tables must exist.
            page.within("script", &[], |page| {
                page.code(include_str!("script.js"));
            });
        });
    });
    page.into_text()
}

/// Returns the title of an answer.
pub(crate) fn title(answer: &CommandAnswer<'_>, candidates: &[CandidateReport<'_>]) -> String {
    match (answer.found, candidates) {
        (AnswerBody::Studies { checked, .. }, _) => studies::title(checked),
        (AnswerBody::Advice { title, .. }, _) if !title.is_empty() => title.to_owned(),
        (AnswerBody::Sustained(load, _), _) => format!("{}: largest sustained load", load.name()),
        (AnswerBody::Run(_), [run]) => format!("{}: one run", run.label),
        _ => format!("{} candidates by {}", answer.entrants(), words(answer.by())),
    }
}

fn section(page: &mut Markup, id: &'static str, heading: &str, inside: impl FnOnce(&mut Markup)) {
    page.within("section", &[("id", id)], |page| {
        page.element("h2", &[], heading);
        inside(page);
    });
}

fn sections(
    page: &mut Markup,
    answer: &CommandAnswer<'_>,
    candidates: &[CandidateReport<'_>],
    limits: LengthLimits,
) {
    let found = searches(answer);
    if !found.is_empty() {
        section(page, "winner", "Largest sustained load", |page| {
            verdict(page, answer);
            sustained_loads(page, found);
        });
        on_the_whole_load(page, answer, limits);
        section(page, "tried", "How it was found", |page| {
            tried(page, found, limits.tables)
        });
    } else if let AnswerBody::Studies { checked, .. } = answer.found {
        section(page, "winner", "Verdicts of the claims", |page| {
            verdict(page, answer);
            studies::verdicts(page, checked, limits.charts);
        });
        if studies::has_figures(checked) {
            section(page, "figures", "The figures", |page| {
                studies::figures(page, checked, limits.tables)
            });
        }
        section(
            page,
            "published",
            "Comparison with the publication",
            |page| {
                studies::published(page, checked, limits.published);
            },
        );
        section(page, "sensitivity", "What survives", |page| {
            studies::survives(page, checked, ROOM_FOR_FILES)
        });
    } else {
        of_candidates(page, answer, candidates, limits);
    }
}

/// Writes the sections of one run, or of ranked candidates.
fn of_candidates(
    page: &mut Markup,
    answer: &CommandAnswer<'_>,
    candidates: &[CandidateReport<'_>],
    limits: LengthLimits,
) {
    let shown = &candidates[..candidates.len().min(IN_A_CHART)];
    if let Some(advice) = answer.advice() {
        section(page, "recommendation", "The recommendation", |page| {
            recommendation(page, advice)
        });
    }
    if answer.is_ranking() {
        let heading = match answer.advice() {
            Some(_) => format!(
                "The best of each layout by {}, with intervals",
                words(answer.by())
            ),
            None => "Ranking with intervals".to_owned(),
        };
        section(page, "winner", &heading, |page| winner(page, answer, shown));
        section(page, "candidates", "The candidates", |page| {
            ranking(page, answer, candidates)
        });
    } else {
        section(page, "summary", "Measured values", |page| {
            summary(page, candidates, limits.tables)
        });
    }
    left_out(page, candidates.len(), shown.len());
    if shown.is_empty() {
        return;
    }
    if shown.iter().any(|candidate| candidate.report().is_some()) {
        measured(page, shown, limits);
    } else {
        on_the_whole_load(page, answer, limits);
    }
    what_changes(page, answer, candidates, shown);
}

/// Writes the changes that alter the answer.
fn what_changes(
    page: &mut Markup,
    answer: &CommandAnswer<'_>,
    candidates: &[CandidateReport<'_>],
    shown: &[CandidateReport<'_>],
) {
    if let Some(advice) = answer.advice() {
        section(
            page,
            "sensitivity",
            "Conditions that would change the answer",
            |page| would_change(page, advice),
        );
    } else if shown.iter().any(|candidate| !candidate.varied().is_empty()) {
        section(page, "sensitivity", "Sensitivity of the answer", |page| {
            chart::sensitivity(page, answer, candidates);
        });
    } else if !answer.is_ranking() {
        section(page, "sensitivity", "Sensitivity of the answer", |page| {
            let how = "One run does not show this. fullstroke compare with this stack and --vary KEY=VALUE,... runs the stack at other values of a key, on the same requests.";
            page.element("p", &[], how);
        });
    }
}

/// Writes the measures of the best candidate of a search and of its nearest rivals.
fn on_the_whole_load(page: &mut Markup, answer: &CommandAnswer<'_>, limits: LengthLimits) {
    let ran = candidate::on_the_whole_load(answer);
    if ran.is_empty() {
        return;
    }
    let which = match ran.len() {
        1 => "one run".to_owned(),
        runs => format!("one run each of the first {runs}"),
    };
    let load = match searches(answer).is_empty() {
        true => "the whole workload; the race saw parts of the workload",
        false => "the largest sustained value",
    };
    page.element(
        "p",
        &[("class", "note")],
        &format!("The following sections show {which}, on {load}."),
    );
    measured(page, &ran, limits);
}

/// Writes the measures of the candidates' runs.
fn measured(page: &mut Markup, shown: &[CandidateReport<'_>], limits: LengthLimits) {
    section(page, "time", "Where the time went", |page| {
        time(page, shown)
    });
    if shown
        .iter()
        .filter_map(CandidateReport::report)
        .any(|report| report.over_time.timeline.is_some())
    {
        // The charts share the room that the page has left here, so that the first candidates keep
        // theirs.
        let own = CandidateCharts::new(shown, limits.charts.saturating_sub(page.len()));
        section(page, "latency", "Response times", |page| {
            latency(page, shown, &own)
        });
        section(page, "drives", "The drives over time", |page| {
            own.show(page, &own.drives);
            members(page, shown, limits.tables);
        });
    } else {
        section(page, "drives", "The drives", |page| {
            members(page, shown, limits.tables)
        });
    }
    if shown
        .iter()
        .filter_map(CandidateReport::report)
        .any(|report| report.array.energy.is_some())
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

fn verdict(page: &mut Markup, answer: &CommandAnswer<'_>) {
    if let Some(verdict) = answer.verdict() {
        page.element("p", &[("class", "verdict")], verdict);
    }
}

fn winner(page: &mut Markup, answer: &CommandAnswer<'_>, candidates: &[CandidateReport<'_>]) {
    match answer.advice() {
        // The verdict of an advice is its recommendation, because more than one number decides.
        Some(advice) => {
            page.within("p", &[], |page| {
                page.element("strong", &[], "Recommended: ")
                    .text(&advice.recommended)
                    .text(". ");
                page.text(answer.verdict().unwrap_or_default());
            });
        }
        None => verdict(page, answer),
    }
    if let Some(ranking) = answer.ranking() {
        for reason in &ranking.reasons {
            page.within("p", &[], |page| {
                page.element("strong", &[], "Why: ").text(&reason.sentence);
            });
        }
        if !ranking.same_number_of_requests {
            page.element(
                "p",
                &[],
                "The candidates received different numbers of requests, so the workloads differ.",
            );
        }
    }
    show_drawing(page, ranking_bars(answer, candidates));
    let by = answer.by();
    chart::differences(page, by, candidates);
    notes(page, candidates);
    for candidate in unmeasured(candidates) {
        page.element(
            "p",
            &[],
            &format!("{}: no value of {by} was measured.", candidate.label),
        );
    }
}

/// Returns the candidates of a ranking without a value.
fn unmeasured<'a, 'b>(
    candidates: &'b [CandidateReport<'a>],
) -> impl Iterator<Item = &'b CandidateReport<'a>> {
    candidates
        .iter()
        .filter(|candidate| candidate.value().is_none())
}

/// Returns the values of a ranking as bars; `None` if nothing was measured. Of a race, only
/// candidates that saw as many parts of the workload as the best are included, because other values
/// describe other parts.
pub(crate) fn ranking_bars(
    answer: &CommandAnswer<'_>,
    candidates: &[CandidateReport<'_>],
) -> Option<Drawing> {
    let parts = candidates.first()?.batches();
    let comparable = |candidate: &&CandidateReport<'_>| candidate.batches() == parts;
    let bar = |candidate: &CandidateReport<'_>| {
        Some((
            candidate.label.clone(),
            candidate.value()?,
            candidate.half_width(),
        ))
    };
    let bars: Vec<Bar> = candidates
        .iter()
        .filter(comparable)
        .filter_map(bar)
        .collect();
    let by = answer.by();
    let better = if answer.more_is_better() {
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
    let seen = match parts.filter(|_| !saw_the_same(candidates)) {
        None => String::new(),
        Some(parts) => {
            format!("; of the candidates that saw {parts} parts of the workload, as the best did")
        }
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

/// Returns `words` with a capital first letter.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Writes the notes that a reader needs before a candidate's times.
fn notes(page: &mut Markup, candidates: &[CandidateReport<'_>]) {
    for candidate in candidates {
        let Some(report) = candidate.report() else {
            continue;
        };
        let overload = report.arrived.overload.as_ref();
        let overload = overload.map(|overload| &overload.sentence);
        let notes = report
            .arrived
            .trace_notes
            .iter()
            .chain(&report.array.drive_notes)
            .chain(&report.array.media_notes);
        for sentence in overload.into_iter().chain(notes) {
            page.element("p", &[], &format!("{}: {sentence}", candidate.label));
        }
    }
}

/// Returns the columns of a ranking by the metric `by`, the rank first.
fn ranking_columns<'a>(by: &'a str) -> [ReportColumn<'a, CandidateReport<'a>>; 12] {
    type One<'a> = CandidateReport<'a>;
    [
        column("rank", NumberFormat::Whole, |one: &One<'_>| one.rank()),
        column(by, NumberFormat::Plain, |one: &One<'_>| one.value()),
        column("± 95 %", NumberFormat::Plain, |one: &One<'_>| {
            one.half_width()
        }),
        column("to the best", NumberFormat::Signed, |one: &One<'_>| {
            one.difference().map(|difference| difference.value)
        }),
        column("±", NumberFormat::Plain, |one: &One<'_>| {
            one.difference().map(|difference| difference.half_width)
        }),
        column("how sure", NumberFormat::Plain, |one: &One<'_>| {
            one.difference()
                .map(|difference| TableCell::from(difference.significance.name()))
        }),
        column("carries", NumberFormat::Plain, |one: &One<'_>| {
            one.carries()
        }),
        column("parts seen", NumberFormat::Whole, |one: &One<'_>| {
            one.batches()
        }),
        column("dropped out", NumberFormat::Plain, |one: &One<'_>| {
            one.tuned().map(|tuned| tuned.dropped)
        }),
        column("may be best", NumberFormat::Plain, |one: &One<'_>| {
            one.tuned().map(|tuned| tuned.may_be_best)
        }),
        column(
            "chance of being better",
            NumberFormat::Percent,
            |one: &One<'_>| one.tuned().map(|tuned| tuned.chance_better),
        ),
        column("share carried", NumberFormat::Percent, |one: &One<'_>| {
            let overload = one
                .report()
                .and_then(|report| report.arrived.overload.as_ref());
            overload.map(|overload| overload.carried_share)
        }),
    ]
}

fn ranking(page: &mut Markup, answer: &CommandAnswer<'_>, candidates: &[CandidateReport<'_>]) {
    let by = answer.by();
    let rows: Vec<(String, &CandidateReport<'_>)> = candidates
        .iter()
        .take(ROWS)
        .map(|candidate| (candidate.label.clone(), candidate))
        .collect();
    let columns = ranking_columns(by);
    let order = match saw_the_same(candidates) {
        true => "the best first",
        false => "in the order of the differences to the best; eliminated candidates last",
    };
    // Without any value the candidates have no order, so the column of ranks is left out.
    match unmeasured(candidates).count() == candidates.len() {
        true => table(
            page,
            &format!("Candidates without a value of {by}"),
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
        let note = "A value covers the parts of the workload that the candidate saw, and so does a difference. Only values of the same parts can be compared.";
        page.element("p", &[("class", "note")], note);
    }
    volumes(page, &rows[..rows.len().min(IN_A_CHART)]);
    if candidates.len() > ROWS {
        let note = format!("{} candidates more are in --json.", candidates.len() - ROWS);
        page.element("p", &[("class", "note")], &note);
    }
}

/// Writes size and redundancy of the candidates' volumes, if known.
fn volumes(page: &mut Markup, rows: &[(String, &CandidateReport<'_>)]) {
    let rows: Vec<_> = rows
        .iter()
        .filter_map(|(name, one)| Some((name.clone(), one.volume()?)))
        .collect();
    let columns = [
        column("layout", NumberFormat::Plain, |volume: &VolumeReport| {
            TableCell::from(&volume.layout)
        }),
        column("drives", NumberFormat::Whole, |volume: &VolumeReport| {
            volume.drives
        }),
        column("usable", NumberFormat::Bytes, |volume: &VolumeReport| {
            volume.usable_bytes
        }),
        column("of", NumberFormat::Bytes, |volume: &VolumeReport| {
            volume.raw_bytes
        }),
        column(
            "drive failures survived",
            NumberFormat::Whole,
            |volume: &VolumeReport| volume.failures_survived,
        ),
    ];
    filled(page, "Volumes", &columns, &rows);
}

fn summary(page: &mut Markup, candidates: &[CandidateReport<'_>], room: usize) {
    notes(page, candidates);
    let columns = [
        column("requests", NumberFormat::Whole, |run: &Report| {
            run.arrived.requests
        }),
        column("IOPS", NumberFormat::Plain, |run: &Report| run.rates.iops),
        column("MB/s", NumberFormat::Plain, |run: &Report| {
            run.rates.mb_per_s
        }),
        column("simulated s", NumberFormat::Plain, |run: &Report| {
            run.rates.simulated_s
        }),
        column("rebuild MB/s", NumberFormat::Plain, |run: &Report| {
            run.array.rebuild.as_ref().map(|rebuild| rebuild.mb_per_s)
        }),
        column("rebuild, hours", NumberFormat::Plain, |run: &Report| {
            run.array.rebuild.as_ref().map(|rebuild| rebuild.hours)
        }),
    ];
    table(page, "The run", &columns, &reports(candidates));
    times(page, candidates);
    for run in candidates {
        loads::of_run(page, run, room);
    }
}

fn reports<'a>(candidates: &[CandidateReport<'a>]) -> Vec<(String, &'a Report)> {
    candidates
        .iter()
        .filter_map(|candidate| Some((candidate.label.clone(), candidate.report()?)))
        .collect()
}

fn times(page: &mut Markup, candidates: &[CandidateReport<'_>]) {
    let mean = |operation: &Option<OperationReport>| {
        operation
            .as_ref()
            .map(|operation| operation.response_ms.mean)
    };
    let columns = [
        column("mean", NumberFormat::Plain, |run: &Report| {
            run.times.response_ms.mean
        }),
        column("± 95 %", NumberFormat::Plain, |run: &Report| {
            run.times.response_ms.ci95_half_width
        }),
        column("p50", NumberFormat::Plain, |run: &Report| {
            run.times.response_ms.p50
        }),
        column("p90", NumberFormat::Plain, |run: &Report| {
            run.times.response_ms.p90
        }),
        column("p99", NumberFormat::Plain, |run: &Report| {
            run.times.response_ms.p99
        }),
        column("p99.9", NumberFormat::Plain, |run: &Report| {
            run.times.response_ms.p999
        }),
        column("max", NumberFormat::Plain, |run: &Report| {
            run.times.response_ms.max
        }),
        column("reads, mean", NumberFormat::Plain, |run: &Report| {
            mean(&run.kinds.reads)
        }),
        column("writes, mean", NumberFormat::Plain, |run: &Report| {
            mean(&run.kinds.writes)
        }),
        column("flushes, mean", NumberFormat::Plain, |run: &Report| {
            mean(&run.kinds.operations.flush)
        }),
        column("discards, mean", NumberFormat::Plain, |run: &Report| {
            mean(&run.kinds.operations.discard)
        }),
    ];
    table(page, "Response times (ms)", &columns, &reports(candidates));
}

fn time(page: &mut Markup, candidates: &[CandidateReport<'_>]) {
    show_drawing(page, chart::time_parts(candidates));
    let columns = [
        column("mean", NumberFormat::Plain, |run: &Report| {
            run.times.response_ms.mean
        }),
        column("queue", NumberFormat::Plain, |run: &Report| {
            run.times.time_ms.queue
        }),
        column("parity", NumberFormat::Plain, |run: &Report| {
            run.times.time_ms.parity
        }),
        column("overhead", NumberFormat::Plain, |run: &Report| {
            run.times.time_ms.overhead
        }),
        column("seek", NumberFormat::Plain, |run: &Report| {
            run.times.time_ms.seek
        }),
        column("rotation", NumberFormat::Plain, |run: &Report| {
            run.times.time_ms.rotation
        }),
        column("transfer", NumberFormat::Plain, |run: &Report| {
            run.times.time_ms.transfer
        }),
    ];
    table(
        page,
        "Parts of the mean response time (ms)",
        &columns,
        &reports(candidates),
    );
    together(page, candidates);
}

fn latency(page: &mut Markup, candidates: &[CandidateReport<'_>], own: &CandidateCharts) {
    own.show(page, &own.heat);
    chart::percentiles(page, candidates);
    if candidates.len() > LINES {
        let note = format!("The figure shows the first {LINES} candidates.");
        page.element("p", &[("class", "note")], &note);
    }
    together(page, candidates);
    if candidates.iter().any(|candidate| !candidate.is_run_alone()) {
        times(page, candidates);
        loads::streams(page, candidates);
        loads::workloads(page, candidates);
    }
}

/// Charts of single candidates, as far as there is room: the map, the offsets and the queues of the
/// first candidate, then those of the second, and so on.
struct CandidateCharts {
    heat: Vec<Markup>,
    drives: Vec<Markup>,
    candidates: usize,
}

impl CandidateCharts {
    fn new(candidates: &[CandidateReport<'_>], room: usize) -> CandidateCharts {
        let mut own = CandidateCharts {
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
                // Stops at the first chart that does not fit, so that the page has the charts of
                // the first candidates without a gap.
                if used > room {
                    break 'each;
                }
                charts.push(one);
            }
        }
        own
    }

    /// Writes `charts`, and the number of charts that are left out.
    fn show(&self, page: &mut Markup, charts: &[Markup]) {
        charts.iter().for_each(|one| _ = page.add(one));
        let left = self.candidates - charts.len();
        if left > 0 {
            let note = format!(
                "The charts of {left} more candidates do not fit on the page; --json contains all."
            );
            page.element("p", &[("class", "note")], &note);
        }
    }
}

fn members(page: &mut Markup, candidates: &[CandidateReport<'_>], room: usize) {
    let counted = |heading, shown, counter: Counter| {
        column(heading, shown, move |drive: &MemberReport| {
            match drive.number(counter) {
                Some(ReportNumber::Whole(count)) => TableCell::from(count),
                Some(ReportNumber::Real(number)) => TableCell::from(number),
                None => TableCell::Nothing,
            }
        })
    };
    let columns = [
        counted("I/Os", NumberFormat::Whole, Counter::REQUESTS),
        counted("reads", NumberFormat::Whole, Counter::READS),
        counted("writes", NumberFormat::Whole, Counter::WRITES),
        counted("busy", NumberFormat::Percent, Counter::BUSY),
        counted("depth", NumberFormat::Plain, Counter::QUEUE_LENGTH),
        counted("queue ms", NumberFormat::Plain, Counter::QUEUE),
        counted("seek ms", NumberFormat::Plain, Counter::SEEK),
        counted("rotation ms", NumberFormat::Plain, Counter::ROTATION),
        counted("transfer ms", NumberFormat::Plain, Counter::TRANSFER),
        counted("MB/s", NumberFormat::Plain, Counter::BYTES),
        counted("W", NumberFormat::Plain, Counter::POWER),
    ];
    for (order, candidate) in candidates.iter().enumerate() {
        let members = candidate
            .report()
            .map_or(&[][..], |report| &report.array.members);
        let rows: Vec<(String, &MemberReport)> = members
            .iter()
            .take(ROWS)
            .map(|member| (format!("drive {}", member.name), member))
            .collect();
        let mut own = Markup::new();
        table(
            &mut own,
            &format!("{}: activity of each drive", candidate.label),
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
                "The drive tables of {left} more candidates do not fit on the page; --json contains all."
            );
            page.element("p", &[("class", "note")], &note);
            return;
        }
        page.add(&own);
    }
}

fn energy(page: &mut Markup, candidates: &[CandidateReport<'_>]) {
    let of = |heading, shown, number: fn(&EnergyReport) -> TableCell| {
        column(heading, shown, move |run: &Report| {
            run.array.energy.as_ref().map(number)
        })
    };
    let columns = [
        of("drives", NumberFormat::Whole, |energy| energy.drives.into()),
        of("J", NumberFormat::Plain, |energy| energy.total_j.into()),
        of("W, all drives", NumberFormat::Plain, |energy| {
            energy.mean_w.into()
        }),
        of("J an I/O", NumberFormat::Plain, |energy| {
            energy.j_per_io.into()
        }),
        of("stops", NumberFormat::Whole, |energy| {
            energy.spin_downs.into()
        }),
        of("starts", NumberFormat::Whole, |energy| {
            energy.spin_ups.into()
        }),
    ];
    table(page, "Power of the drives", &columns, &reports(candidates));
    show_drawing(page, chart::power_states(candidates));
}

fn reproduce(
    page: &mut Markup,
    answer: &CommandAnswer<'_>,
    candidates: &[CandidateReport<'_>],
    source: &AnswerSource,
) {
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
            page.text("fullstroke ").text(answer.version).text(".");
            if let Some(seed) = answer.seed() {
                page.text(" Seed ");
                TableCell::from(seed).show(page, NumberFormat::Whole);
                page.text(".");
            }
            if let Some(wall_s) = answer.wall_s {
                page.text(" It took ");
                TableCell::from(wall_s).show(page, NumberFormat::Plain);
                page.text(" s.");
            }
        });
        let columns = [
            column("seed", NumberFormat::Whole, |run: &Report| run.repeat.seed),
            column("configuration", NumberFormat::Plain, |run: &Report| {
                TableCell::from(&run.repeat.config_digest)
            }),
            column("requests", NumberFormat::Whole, |run: &Report| {
                run.arrived.requests
            }),
        ];
        let whole = candidate::on_the_whole_load(answer);
        let ran = if whole.is_empty() { candidates } else { &whole };
        let rows: Vec<(String, &Report)> = reports(ran).into_iter().take(IN_A_CHART).collect();
        if !rows.is_empty() {
            table(page, "Inputs of the run", &columns, &rows);
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
        // A longer name would itself be too long for the room at the end.
        page.element(
            "p",
            &[("class", "note")],
            &format!("{name} is too long to stand here."),
        );
    }
}

/// Returns words as a command line with the quotes of a shell.
fn command_line(words: &[String]) -> String {
    // Letters without a meaning in a POSIX shell (POSIX.1-2017, volume XCU, section 2.2). Words
    // with others need quotes.
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        // A shell has no escape inside single quotes: the string ends, an escaped quote follows,
        // and the string begins again.
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
