//! What a page is made of: the answers of commands as their own types.

use fullstroke_advise::Advice;
use fullstroke_lab::{Borne, MostRanking, Ranking, Tuned, WholeLoad};
use fullstroke_measure::Report;
use fullstroke_study::Checked;

/// An answer of a command.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What was asked, and what was found.
    pub found: Found<'a>,
    /// The version of the program that answers.
    pub version: &'a str,
    /// Seconds that the answer took; `None` where the command does not print them.
    pub wall_s: Option<f64>,
}

/// What a command found.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// `run`: one run.
    Run(&'a Report),
    /// `compare`: candidates in their order.
    Ranking(&'a Ranking),
    /// `tune`: candidates of a race, and the best of them on the whole load.
    Tuned(&'a Tuned, &'a [WholeLoad]),
    /// `run --find`: what one stack bears at most, and its run at that load.
    Borne(&'a Borne, &'a [WholeLoad]),
    /// `compare --find`: what each stack bears at most, and runs of the best at that load.
    Most(&'a MostRanking, &'a [WholeLoad]),
    /// `advise`: a layout for wishes.
    Advice {
        /// The title of the file of wishes; empty if it has none.
        title: &'a str,
        /// The advice.
        advice: &'a Advice,
    },
    /// `study`: claims of studies.
    Studies {
        /// How many claims hold; `None` where nothing was checked.
        verdict: Option<&'a str>,
        /// The studies.
        checked: &'a [Checked<'a>],
    },
}

impl<'a> Answer<'a> {
    /// One run. The report itself has the version and the seconds.
    pub fn of_run(report: &'a Report) -> Answer<'a> {
        Answer {
            found: Found::Run(report),
            version: &report.repeat.version,
            wall_s: report.cost.wall_s,
        }
    }

    /// The ranking, if candidates were compared.
    pub(crate) fn ranking(&self) -> Option<&'a Ranking> {
        match self.found {
            Found::Ranking(ranking) => Some(ranking),
            Found::Advice { advice, .. } => Some(&advice.ranking),
            _ => None,
        }
    }

    /// The advice, if the answer is one.
    pub(crate) fn advice(&self) -> Option<&'a Advice> {
        match self.found {
            Found::Advice { advice, .. } => Some(advice),
            _ => None,
        }
    }

    /// The metric by which candidates stand in their order; empty where there is no order.
    pub(crate) fn by(&self) -> &'a str {
        match self.found {
            Found::Tuned(tuned, _) => &tuned.by,
            Found::Most(ranking, _) => ranking.by,
            _ => self.ranking().map_or("", |ranking| &ranking.by),
        }
    }

    /// The verdict in one sentence, if there is one.
    pub(crate) fn verdict(&self) -> Option<&'a str> {
        match self.found {
            Found::Tuned(tuned, _) => Some(&tuned.verdict),
            Found::Most(ranking, _) => ranking.verdict.as_deref(),
            Found::Studies { verdict, .. } => verdict,
            _ => self.ranking()?.verdict.as_deref(),
        }
    }

    /// True if a larger value of the metric is the better one.
    pub(crate) fn more_is_better(&self) -> bool {
        match self.found {
            Found::Tuned(tuned, _) => tuned.more_is_better,
            _ => self.ranking().is_some_and(|ranking| ranking.more_is_better),
        }
    }

    /// The seed of all randomness, where one seed is that of the whole answer.
    pub(crate) fn seed(&self) -> Option<u64> {
        match self.found {
            Found::Run(report) => Some(report.repeat.seed),
            Found::Tuned(tuned, _) => Some(tuned.seed),
            _ => None,
        }
    }

    /// How many candidates stand in the order, those without a run included.
    pub(crate) fn entrants(&self) -> usize {
        match self.found {
            Found::Tuned(tuned, _) => tuned.candidates.len(),
            Found::Most(ranking, _) => ranking.candidates.len(),
            _ => self.ranking().map_or(0, |ranking| ranking.candidates.len()),
        }
    }

    /// True if candidates stand in an order.
    pub(crate) fn is_ranking(&self) -> bool {
        matches!(self.found, Found::Tuned(..)) || self.ranking().is_some()
    }

    /// The values of the key `key` in the order in which they were given.
    pub(crate) fn given(&self, key: &str) -> &'a [String] {
        let varied = match self.found {
            Found::Tuned(tuned, _) => Some(&tuned.varied),
            _ => self.ranking().map(|ranking| &ranking.varied),
        };
        varied.map_or(&[], |varied| varied.of_key(key))
    }
}
