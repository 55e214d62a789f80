//! Contents of a page: the answers of commands in their own types.

use fullstroke_advise::Advice;
use fullstroke_lab::{LargestLoad, MostRanking, Ranking, Tuned, WholeLoad};
use fullstroke_measure::Report;
use fullstroke_study::CheckedClaims;

/// An answer of a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandAnswer<'a> {
    /// Answer of the command, by command.
    pub found: AnswerBody<'a>,
    /// Version of the program.
    pub version: &'a str,
    /// Wall-clock seconds of the command; `None` if the command does not print them.
    pub wall_s: Option<f64>,
}

/// Answer of a command.
#[derive(Clone, Copy, Debug)]
pub enum AnswerBody<'a> {
    /// `run`: one run.
    Run(&'a Report),
    /// `compare`: ranked candidates.
    Ranking(&'a Ranking),
    /// `tune`: candidates of a race, and the best of them on the whole load.
    Tuned(&'a Tuned, &'a [WholeLoad]),
    /// `run --find`: largest load or number of streams of one stack, and its run at this load.
    Sustained(&'a LargestLoad, &'a [WholeLoad]),
    /// `compare --find`: largest load or number of streams of each stack, and runs of the best at
    /// this load.
    LoadRanking(&'a MostRanking, &'a [WholeLoad]),
    /// `advise`: a layout for wishes.
    Advice {
        /// Title of the wish file; empty if the file has none.
        title: &'a str,
        /// The advice.
        advice: &'a Advice,
    },
    /// `study`: claims of studies.
    Studies {
        /// Number of claims that hold; `None` if nothing was checked.
        verdict: Option<&'a str>,
        /// The studies.
        checked: &'a [CheckedClaims<'a>],
    },
}

impl<'a> CommandAnswer<'a> {
    /// Returns the answer of one run. The report itself has the version and the seconds.
    pub fn of_run(report: &'a Report) -> CommandAnswer<'a> {
        CommandAnswer {
            found: AnswerBody::Run(report),
            version: &report.repeat.version,
            wall_s: report.cost.wall_s,
        }
    }

    /// Returns the ranking; `None` if no candidates were compared.
    pub(crate) fn ranking(&self) -> Option<&'a Ranking> {
        match self.found {
            AnswerBody::Ranking(ranking) => Some(ranking),
            AnswerBody::Advice { advice, .. } => Some(&advice.ranking),
            _ => None,
        }
    }

    /// Returns the advice; `None` for other answers.
    pub(crate) fn advice(&self) -> Option<&'a Advice> {
        match self.found {
            AnswerBody::Advice { advice, .. } => Some(advice),
            _ => None,
        }
    }

    /// Returns the metric of the ranking; empty without a ranking.
    pub(crate) fn by(&self) -> &'a str {
        match self.found {
            AnswerBody::Tuned(tuned, _) => &tuned.by,
            AnswerBody::LoadRanking(ranking, _) => ranking.by,
            _ => self.ranking().map_or("", |ranking| &ranking.by),
        }
    }

    /// Returns the verdict in one sentence, if there is one.
    pub(crate) fn verdict(&self) -> Option<&'a str> {
        match self.found {
            AnswerBody::Tuned(tuned, _) => Some(&tuned.verdict),
            AnswerBody::LoadRanking(ranking, _) => ranking.verdict.as_deref(),
            AnswerBody::Studies { verdict, .. } => verdict,
            _ => self.ranking()?.verdict.as_deref(),
        }
    }

    /// Returns true if a larger value of the metric is better.
    pub(crate) fn more_is_better(&self) -> bool {
        match self.found {
            AnswerBody::Tuned(tuned, _) => tuned.more_is_better,
            _ => self.ranking().is_some_and(|ranking| ranking.more_is_better),
        }
    }

    /// Returns the seed of all randomness; `None` if the answer has several seeds.
    pub(crate) fn seed(&self) -> Option<u64> {
        match self.found {
            AnswerBody::Run(report) => Some(report.repeat.seed),
            AnswerBody::Tuned(tuned, _) => Some(tuned.seed),
            _ => None,
        }
    }

    /// Returns the number of candidates of the ranking, including candidates without a run.
    pub(crate) fn entrants(&self) -> usize {
        match self.found {
            AnswerBody::Tuned(tuned, _) => tuned.candidates.len(),
            AnswerBody::LoadRanking(ranking, _) => ranking.candidates.len(),
            _ => self.ranking().map_or(0, |ranking| ranking.candidates.len()),
        }
    }

    /// Returns true if the answer is a ranking.
    pub(crate) fn is_ranking(&self) -> bool {
        matches!(self.found, AnswerBody::Tuned(..)) || self.ranking().is_some()
    }

    /// Returns the values of the key `key` in the order given.
    pub(crate) fn given(&self, key: &str) -> &'a [String] {
        let varied = match self.found {
            AnswerBody::Tuned(tuned, _) => Some(&tuned.varied),
            _ => self.ranking().map(|ranking| &ranking.varied),
        };
        varied.map_or(&[], |varied| varied.of_key(key))
    }
}
