//! The candidates of an answer.

use crate::answer::{AnswerBody, CommandAnswer};
use fullstroke_lab::{Ranked, TunedCandidate, VolumeReport, WholeLoad};
use fullstroke_measure::{Difference, Report};

/// Largest number of candidates in a chart.
pub(crate) const IN_A_CHART: usize = 40;
/// Largest number of letters of a name. A longer name keeps begin and end, because names
/// differ there.
const LABEL_MAX: usize = 160;
/// Largest number of lines of a chart that a reader can distinguish.
pub(crate) const LINES: usize = 8;

/// One candidate: place, and report of the run.
#[derive(Clone, Debug)]
pub(crate) struct CandidateReport<'a> {
    /// Name with the values of the varied keys.
    pub(crate) label: String,
    pub(crate) place: CandidateOrigin<'a>,
}

/// Origin of a candidate, which determines the data besides the run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CandidateOrigin<'a> {
    /// A single run.
    Run(&'a Report),
    /// A place in a ranking.
    Ranked(&'a Ranked),
    /// A place in a race, which has no report of a single run.
    Tuned(&'a TunedCandidate),
    /// One of the best of a search, on the whole load.
    WholeLoad(&'a WholeLoad),
}

impl<'a> CandidateOrigin<'a> {
    fn name(self) -> &'a str {
        match self {
            CandidateOrigin::Run(report) => &report.name,
            CandidateOrigin::Ranked(ranked) => &ranked.name,
            CandidateOrigin::Tuned(tuned) => &tuned.name,
            CandidateOrigin::WholeLoad(run) => &run.name,
        }
    }

    /// Returns the varied keys with their values.
    fn varied(self) -> Vec<(&'a str, &'a str)> {
        let varied = match self {
            CandidateOrigin::Run(_) => return Vec::new(),
            CandidateOrigin::Ranked(ranked) => &ranked.varied,
            CandidateOrigin::Tuned(tuned) => &tuned.varied,
            CandidateOrigin::WholeLoad(run) => &run.varied,
        };
        let mut each: Vec<_> = varied.each().collect();
        // By key, so that candidates with the same keys in another order have the same label.
        each.sort_unstable();
        each
    }
}

impl<'a> CandidateReport<'a> {
    /// Returns the report of the run; `None` for a candidate of a race, which ran in parts.
    pub(crate) fn report(&self) -> Option<&'a Report> {
        match self.place {
            CandidateOrigin::Run(report) => Some(report),
            CandidateOrigin::Ranked(ranked) => Some(&ranked.report),
            CandidateOrigin::WholeLoad(run) => Some(&run.report),
            CandidateOrigin::Tuned(_) => None,
        }
    }

    /// Returns the name without the varied values.
    pub(crate) fn name(&self) -> &'a str {
        self.place.name()
    }

    /// Returns the varied keys with their values.
    pub(crate) fn varied(&self) -> Vec<(&'a str, &'a str)> {
        self.place.varied()
    }

    /// Returns the rank, from 1.
    pub(crate) fn rank(&self) -> Option<usize> {
        match self.place {
            CandidateOrigin::Ranked(ranked) => Some(ranked.rank),
            CandidateOrigin::Tuned(tuned) => Some(tuned.rank),
            _ => None,
        }
    }

    /// Returns the value of the ranking's metric, if one was measured.
    pub(crate) fn value(&self) -> Option<f64> {
        let value = match self.place {
            CandidateOrigin::Ranked(ranked) => Some(ranked.value),
            CandidateOrigin::Tuned(tuned) => Some(tuned.value),
            _ => None,
        };
        // A run without a request has NaN, which has no place on an axis and no form in JSON.
        value.filter(|value| value.is_finite())
    }

    /// Returns half the width of the interval of the value.
    pub(crate) fn half_width(&self) -> Option<f64> {
        match self.place {
            CandidateOrigin::Ranked(ranked) => {
                ranked.ci95_half_width.filter(|width| width.is_finite())
            }
            _ => None,
        }
    }

    /// Returns the difference to the best candidate; `None` for the best.
    pub(crate) fn difference(&self) -> Option<&'a Difference> {
        match self.place {
            CandidateOrigin::Ranked(ranked) => ranked.difference_to_best.as_ref(),
            CandidateOrigin::Tuned(tuned) => tuned.difference_to_best.as_ref(),
            _ => None,
        }
    }

    /// Returns the number of parts of the workload that the candidate saw in a race.
    pub(crate) fn batches(&self) -> Option<usize> {
        self.tuned().map(|tuned| tuned.batches)
    }

    /// Returns the place in a race.
    pub(crate) fn tuned(&self) -> Option<&'a TunedCandidate> {
        match self.place {
            CandidateOrigin::Tuned(tuned) => Some(tuned),
            _ => None,
        }
    }

    /// Returns true if the candidate carries the load; `None` if this was not determined.
    pub(crate) fn carries(&self) -> Option<bool> {
        match self.place {
            CandidateOrigin::Ranked(ranked) => Some(ranked.carries),
            _ => None,
        }
    }

    /// Returns size and redundancy of the volume, if known.
    pub(crate) fn volume(&self) -> Option<&'a VolumeReport> {
        match self.place {
            CandidateOrigin::Ranked(ranked) => Some(&ranked.volume),
            _ => None,
        }
    }

    /// Returns true for a single run.
    pub(crate) fn is_run_alone(&self) -> bool {
        matches!(self.place, CandidateOrigin::Run(_))
    }
}

/// Returns the candidates of an answer: those of a ranking in order, or the single run. Searches
/// and studies have none.
pub(crate) fn candidates<'a>(answer: &CommandAnswer<'a>) -> Vec<CandidateReport<'a>> {
    match answer.found {
        AnswerBody::Run(report) => named(&[CandidateOrigin::Run(report)]),
        AnswerBody::Tuned(tuned, _) => named(
            &tuned
                .candidates
                .iter()
                .map(CandidateOrigin::Tuned)
                .collect::<Vec<_>>(),
        ),
        _ => answer.ranking().map_or_else(Vec::new, |ranking| {
            named(
                &ranking
                    .candidates
                    .iter()
                    .map(CandidateOrigin::Ranked)
                    .collect::<Vec<_>>(),
            )
        }),
    }
}

/// Returns the candidates of a search that were run on the whole load.
pub(crate) fn on_the_whole_load<'a>(answer: &CommandAnswer<'a>) -> Vec<CandidateReport<'a>> {
    match answer.found {
        AnswerBody::Tuned(_, ran)
        | AnswerBody::Sustained(_, ran)
        | AnswerBody::LoadRanking(_, ran) => named(
            &ran.iter()
                .map(CandidateOrigin::WholeLoad)
                .collect::<Vec<_>>(),
        ),
        _ => Vec::new(),
    }
}

/// Returns true if all candidates ran the whole workload, or saw the same number of parts in a
/// race.
pub(crate) fn saw_the_same(candidates: &[CandidateReport<'_>]) -> bool {
    candidates
        .windows(2)
        .all(|two| two[0].batches() == two[1].batches())
}

fn named<'a>(all: &[CandidateOrigin<'a>]) -> Vec<CandidateReport<'a>> {
    let parts = LabelParts::of(all);
    let each = all.iter().map(|place| CandidateReport {
        label: parts.label(*place),
        place: *place,
    });
    each.collect()
}

/// Parts of a label that distinguish a candidate from the others.
struct LabelParts {
    /// True if the names of the stacks differ, so that the label contains the name.
    by_name: bool,
    /// True if the last part of a key identifies the key.
    short: bool,
}

impl LabelParts {
    fn of(all: &[CandidateOrigin<'_>]) -> LabelParts {
        let keys = all.first().map(|first| first.varied()).unwrap_or_default();
        let mut lasts: Vec<&str> = keys.iter().map(|(key, _)| last(key)).collect();
        // Sorted, so that `dedup` finds keys whose last parts are equal.
        lasts.sort_unstable();
        lasts.dedup();
        LabelParts {
            // Settings of one stack file share the name of the file, so the name tells them apart
            // only if it differs.
            by_name: keys.is_empty() || all.iter().any(|one| one.name() != all[0].name()),
            short: lasts.len() == keys.len(),
        }
    }

    /// Returns the label of a candidate. A label that is too long keeps begin and end.
    fn label(&self, place: CandidateOrigin<'_>) -> String {
        let name = Some(place.name().to_owned()).filter(|_| self.by_name);
        let values = place.varied().into_iter().map(|(key, value)| {
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
    // Counted in letters, because a cut inside a letter of several bytes would panic.
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
