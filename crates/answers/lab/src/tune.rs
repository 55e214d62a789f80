//! Finds the best of many combinations of values in a race.

use crate::{
    Batches, CandidateResult, Combinations, ComparedStack, LabError, Point, Race, RaceRules,
    Recipe, RunResult, Varied, VariedValues, Vary, run_all,
};
use fullstroke_measure::{Difference, Metric, Report, Significance, Stop, number, table};
use fullstroke_stack::Stack;
use fullstroke_units::Random;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

/// Number of runs in a group. The stacks of a group are built at once, so the group size bounds the
/// memory.
const AT_A_TIME: usize = 64;
/// Number of candidates in the text.
const SHOWN: usize = 12;
/// Largest number of candidates in a sentence.
const NAMED_MAX: usize = 4;
/// Largest number of points checked to find a possible one.
const LOOKED_AT_MAX: usize = 4096;
/// The best candidate is not run on the whole load if that takes more than this multiple of the
/// race.
const WHOLE_COST_MAX: usize = 16;

/// Parameters of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneSearch {
    /// Metric that decides.
    pub by: Metric,
    /// Number of points at the start. Neighbours of the best point join later. All points start if
    /// there are no more than this.
    pub sample: usize,
    /// Parts of the workload.
    pub batches: usize,
    /// Number of parts that all starting points see.
    pub first: usize,
    /// Probability that the best candidate does not drop out, 0 to 1.
    pub confidence: f64,
    /// Number of runs at the same time.
    pub jobs: usize,
    /// End of the search.
    pub end: SearchEnd,
}

/// When a search ends. Default: one candidate is left, or all parts are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchEnd {
    /// Largest number of parts that a candidate sees.
    pub parts: usize,
    /// Number of candidates that need no further rung.
    pub left: usize,
}

impl Default for SearchEnd {
    fn default() -> SearchEnd {
        SearchEnd {
            parts: usize::MAX,
            left: 1,
        }
    }
}

/// Runs of a search that a caller may need again. Runs on parts of a trace are not kept, because
/// nobody else makes the same runs.
#[derive(Clone, Debug, Default)]
pub struct KeptRuns {
    /// Number of seeds, from the first one, whose runs are kept. Default 0.
    pub seeds: usize,
    /// Runs by the digest and the seed of their stack.
    runs: BTreeMap<(String, u64), RunResult>,
}

impl KeptRuns {
    /// Keeps the runs of the first `seeds` seeds.
    pub fn of_seeds(seeds: usize) -> KeptRuns {
        KeptRuns {
            seeds,
            runs: BTreeMap::new(),
        }
    }

    fn keep(&mut self, ran: RunResult) {
        let repeat = &ran.measured.report.repeat;
        let stack = (repeat.config_digest.clone(), repeat.seed);
        self.runs.insert(stack, ran);
    }

    /// Returns the run of this stack, and keeps the run no longer. `None` if there is no such run.
    pub fn take(&mut self, stack: &Stack) -> Option<RunResult> {
        self.runs
            .remove(&(stack.digest().to_owned(), stack.seed().0))
    }
}

/// A running search: a race that neighbours of the best point join between rungs. The search does
/// no I/O except to ask which points are possible.
pub struct Tuner<'a> {
    space: Combinations,
    race: Race,
    points: Vec<Point>,
    known: BTreeSet<Point>,
    is_possible: IsPossible<'a>,
    /// Number of candidates that need no further rung. Default 1.
    enough: usize,
}

/// Returns true if a point, given as `key=value` for each key, can be run.
type IsPossible<'a> = Box<dyn FnMut(&[String]) -> bool + 'a>;

/// Result of a search.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tuned {
    /// The metric's dotted name.
    pub by: String,
    /// True if a larger value is better.
    pub more_is_better: bool,
    /// Probability that the best of the tried candidates did not drop out.
    pub confidence: f64,
    /// Seed of the stack.
    pub seed: u64,
    /// Number of combinations.
    pub points: usize,
    /// Number of tried combinations.
    pub tried: usize,
    /// Number of parts of the workload.
    pub batches: usize,
    /// Kind of the parts: parts of a `trace`, or runs with `seeds`.
    pub batches_are: &'static str,
    /// Mean number of requests of a part.
    pub batch_requests: u64,
    /// Value of the first candidate on the whole workload in one run, which differs from its mean
    /// over parts. `null` if the candidate did not serve every request, or if that run takes more
    /// than 16 times the runs of the race.
    pub whole_load_value: Option<f64>,
    /// Impossible combinations. The search leaves them out.
    pub impossible: Vec<ImpossibleCombination>,
    /// Number of runs, each of one candidate on one part.
    pub runs: usize,
    /// Number of runs of an exhaustive search: all combinations on all parts.
    pub exhaustive_runs: usize,
    /// `runs` divided by `exhaustive_runs`.
    pub cost_share: f64,
    /// Lower bound of the chance that the first candidate, or one that is equal to the first, is
    /// the best of those tried.
    pub probability_correct: f64,
    /// Number of possibly best candidates. The best and the candidates equal to the best are
    /// included.
    pub not_told_apart: usize,
    /// Number of candidates with the value of the best in every part, without the best.
    pub equal_to_best: usize,
    /// Conclusion, in sentences.
    pub verdict: String,
    /// The varied keys and their values.
    pub varied: VariedValues,
    /// Tried candidates, the best first.
    pub candidates: Vec<TunedCandidate>,
}

/// An impossible combination.
#[derive(Clone, Debug, Serialize)]
pub struct ImpossibleCombination {
    /// The values, by key.
    pub varied: Varied,
    /// Error of the stack.
    pub why: String,
}

/// A tried combination.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TunedCandidate {
    /// Rank, from 1.
    pub rank: usize,
    /// The stack's name.
    pub name: String,
    /// The values, by key.
    pub varied: Varied,
    /// Mean over the parts of this candidate.
    pub value: f64,
    /// Mean of the best candidate over the same parts.
    pub best_value: f64,
    /// `value` less `best_value`; `None` for the best.
    pub difference_to_best: Option<Difference>,
    /// Number of parts of this candidate.
    pub batches: usize,
    /// True if the candidate dropped out.
    pub dropped: bool,
    /// True if the candidate cannot be told from the best.
    pub may_be_best: bool,
    /// Chance that the candidate is better than the best in spite of the measured values. 0 if both
    /// are equal; `None` for the best.
    pub chance_better: Option<f64>,
    /// True if the value equals that of the best in every part that both saw.
    pub equal_to_best: bool,
}

impl<'a> Tuner<'a> {
    /// Creates a search of `space` that begins with `sample` points. Impossible points are left
    /// out.
    pub fn new(
        space: Combinations,
        rules: RaceRules,
        sample: usize,
        random: &mut Random,
        is_possible: IsPossible<'a>,
    ) -> Tuner<'a> {
        let first = space.sample(sample, random);
        let (points, known) = (Vec::new(), BTreeSet::new());
        let mut tuner = Tuner {
            space,
            race: Race::new(rules),
            points,
            known,
            is_possible,
            enough: 1,
        };
        first.into_iter().for_each(|point| _ = tuner.join(point));
        // If no point of the sample is possible, the first possible point of the space starts
        // alone.
        for number in 0..tuner.space.points().min(LOOKED_AT_MAX) {
            if !tuner.points.is_empty() {
                break;
            }
            tuner.join(tuner.space.point(number));
        }
        tuner
    }

    /// Adds a point to the race. Returns true if the point is new and possible.
    fn join(&mut self, point: Point) -> bool {
        let joins =
            // Known first: the question whether a point is possible builds a stack.
            self.known.insert(point.clone()) && (self.is_possible)(&self.space.assignments(&point));
        if joins {
            let number = self.race.join();
            assert_eq!(number, self.points.len(), "a runner is a point's");
            self.points.push(point);
        }
        joins
    }

    /// Returns the batches of each point that are due next.
    pub fn due(&self) -> Vec<(usize, Range<usize>)> {
        self.race.due()
    }

    /// Adds a point's values in the batches that were due.
    pub fn add_values(&mut self, point: usize, values: &[f64]) {
        self.race.add_values(point, values);
    }

    /// Judges the values. Returns `false` if the search is over.
    pub fn judge(&mut self) -> bool {
        self.race.judge();
        // Neighbours join only once the leader is settled: an early leader is often chance.
        let goes_on = !self.race.is_settled() || self.neighbours_join();
        goes_on || (self.race.running() > self.enough && self.race.advance())
    }

    /// Adds the leader's neighbours that are not known yet. Returns true if a point joined.
    fn neighbours_join(&mut self) -> bool {
        let Some(leader) = self.race.leader() else {
            return false;
        };
        let mut joined = false;
        for point in self.space.neighbours(&self.points[leader]) {
            joined |= self.join(point);
        }
        joined
    }

    /// Returns the race.
    pub fn race(&self) -> &Race {
        &self.race
    }

    /// Returns the point of a candidate of the race.
    pub fn point(&self, candidate: usize) -> &Point {
        &self.points[candidate]
    }

    /// Returns a point as `key=value` for each key.
    pub fn assignments(&self, point: usize) -> Vec<String> {
        self.space.assignments(&self.points[point])
    }
}

impl TuneSearch {
    /// Finds the best values of some keys of the stack of `recipe`. `progress` is called with the
    /// number of finished runs and the number of candidates that still run.
    ///
    /// # Errors
    /// The error of the first combination if no combination can be built, or the error of a run.
    pub fn run(
        &self,
        recipe: &Recipe,
        varied: &[Vary],
        progress: &dyn Fn(usize, usize),
    ) -> Result<Tuned, LabError> {
        let kept = &mut KeptRuns::default();
        self.run_until(&Stop::default(), recipe, varied, progress, kept)
    }

    /// Runs the search as [`run`](TuneSearch::run), and keeps runs for further use.
    ///
    /// # Errors
    /// As [`run`](TuneSearch::run).
    pub fn run_keeping(
        &self,
        recipe: &Recipe,
        varied: &[Vary],
        kept: &mut KeptRuns,
    ) -> Result<Tuned, LabError> {
        self.run_until(&Stop::default(), recipe, varied, &|_, _| {}, kept)
    }

    /// Runs the search until the end or until `stop` is set.
    ///
    /// # Errors
    /// As [`TuneSearch::run`], and the error of the run that was stopped.
    fn run_until(
        &self,
        stop: &Stop,
        recipe: &Recipe,
        varied: &[Vary],
        progress: &dyn Fn(usize, usize),
        kept: &mut KeptRuns,
    ) -> Result<Tuned, LabError> {
        let space = Combinations::new(varied);
        let points = space.points();
        // The stack may be invalid without a value of a varied key, so the parts are taken from a
        // possible combination.
        let whole = possible(recipe, &space)?;
        let batches = Batches::new(&whole, self.batches)?;
        let rules = self.rules(batches.count(), points);
        let seed = whole.candidate()?.stack.seed();
        let impossible = RefCell::new(Vec::new());
        let is_possible = |assignments: &[String]| match with(recipe, assignments).candidate() {
            Ok(_) => true,
            Err(error) => {
                impossible
                    .borrow_mut()
                    .push(ImpossibleCombination::new(assignments, &error));
                false
            }
        };
        // A stream of its own, so that the sample does not depend on the random numbers of the
        // runs.
        let random = &mut seed.stream("tune");
        let mut tuner = Tuner::new(space, rules, self.sample, random, Box::new(is_possible));
        tuner.enough = self.end.left;
        let mut requests = 0;
        loop {
            let due = tuner.due();
            let tasks: Vec<(usize, usize)> = due
                .iter()
                .flat_map(|(point, of)| of.clone().map(move |batch| (*point, batch)))
                .collect();
            let mut values = Vec::with_capacity(tasks.len());
            for some in tasks.chunks(AT_A_TIME) {
                let recipes = some.iter().map(|(point, batch)| {
                    batches.recipe(&with(recipe, &tuner.assignments(*point)), *batch)
                });
                let ran = self.ran(&recipes.collect::<Vec<_>>(), stop)?;
                for ((_, batch), ran) in some.iter().zip(ran) {
                    let report = &ran.measured.report;
                    requests += report.arrived.requests;
                    values.push(self.value(report));
                    // Windows of a trace are runs that nobody else asks for.
                    if *batch < kept.seeds && !batches.are_windows() {
                        kept.keep(ran);
                    }
                }
                progress(
                    tuner.race().value_count() + values.len(),
                    tuner.race().running(),
                );
            }
            let mut values = values.into_iter();
            for (point, of) in due {
                tuner.add_values(point, &values.by_ref().take(of.len()).collect::<Vec<_>>());
            }
            if !tuner.judge() {
                break;
            }
        }
        // Every value was NaN: no candidate served every request.
        if tuner.race().leader().is_none() {
            return Err(LabError::NothingMeasured { by: self.by.name() });
        }
        let parts = RaceWorkload {
            batches: &batches,
            requests: requests / tuner.race().value_count() as u64,
        };
        let impossible = impossible.borrow().clone();
        Ok(Tuned::new(
            &tuner, recipe, self, varied, &parts, seed.0, impossible,
        ))
    }

    /// Runs the search, then the best candidate on the whole load in one run. The last run is left
    /// out if it takes far longer than the race.
    ///
    /// # Errors
    /// As [`run`](TuneSearch::run), and the error of the run that was stopped.
    pub fn run_with_whole_load(
        &self,
        stop: &Stop,
        recipe: &Recipe,
        varied: &[Vary],
        progress: &dyn Fn(usize, usize),
    ) -> Result<Tuned, LabError> {
        let kept = &mut KeptRuns::default();
        let mut tuned = self.run_until(stop, recipe, varied, progress, kept)?;
        if let Some(best) = tuned
            .candidates
            .first()
            .filter(|_| tuned.can_afford_whole_load())
        {
            let whole = self.ran(&[with(recipe, &best.varied.assignments())], stop)?;
            tuned.whole_load_value = whole.first().map(|ran| self.value(&ran.measured.report));
            tuned.verdict = tuned.in_words();
        }
        Ok(tuned)
    }

    /// Returns the rules of a race of `points` candidates.
    fn rules(&self, parts: usize, points: usize) -> RaceRules {
        // A race needs two batches for its first interval.
        let most = parts.min(self.end.parts).max(2);
        RaceRules {
            batches: most,
            first: self.first.clamp(2, most),
            confidence: self.confidence,
            more_is_better: self.by.more_is_better(),
            candidates: points,
        }
    }

    /// Runs the recipes.
    fn ran(&self, recipes: &[Recipe], stop: &Stop) -> Result<Vec<RunResult>, LabError> {
        let stopped_by = |candidate| ComparedStack {
            stop: stop.clone(),
            ..candidate
        };
        let candidates: Vec<ComparedStack> = recipes
            .iter()
            .map(|recipe| recipe.candidate().map(stopped_by))
            .collect::<Result<_, _>>()?;
        let ran = run_all(&candidates, self.jobs, &|_| {})?;
        // The hours of a rebuild or scrub are estimated from windows that a race over short parts
        // does not have.
        let is_long = |ran: &RunResult| {
            let rebuild = ran.measured.report.array.rebuild.as_ref();
            self.by.name().starts_with("rebuild.")
                && rebuild.is_some_and(|rebuild| rebuild.estimated)
        };
        if self.by.is_of_scrub() || ran.iter().any(is_long) {
            return Err(LabError::BehindTheLoad { by: self.by.name() });
        }
        if let Some(first) = ran.first() {
            // Names of programs and workloads are known only from a run, and one run tells for all.
            self.by.check(&[&first.measured.report])?;
        }
        Ok(ran)
    }

    /// Returns the value of the metric; NaN for a run that did not serve every request.
    fn value(&self, report: &Report) -> f64 {
        if report.arrived.completed == report.arrived.requests {
            self.by.value(report)
        } else {
            f64::NAN
        }
    }
}

/// Parts of the workload of a race.
struct RaceWorkload<'a> {
    batches: &'a Batches,
    /// Mean number of requests of a part.
    requests: u64,
}

/// Returns the recipe at the first possible point.
fn possible(recipe: &Recipe, space: &Combinations) -> Result<Recipe, LabError> {
    let at = |number: usize| with(recipe, &space.assignments(&space.point(number)));
    let able = (0..space.points().min(LOOKED_AT_MAX))
        .map(at)
        .find(|recipe| recipe.candidate().is_ok());
    // Without a possible point, the error of the first says why.
    able.map_or_else(|| at(0).candidate().map(|_| at(0)), Ok)
}

/// Returns the recipe with some keys set.
fn with(recipe: &Recipe, assignments: &[String]) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.overrides.set.extend_from_slice(assignments);
    recipe.varied = Varied::new(assignments);
    recipe
}

impl ImpossibleCombination {
    fn new(assignments: &[String], error: &LabError) -> ImpossibleCombination {
        let why = match error {
            LabError::Combination { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        ImpossibleCombination {
            varied: Varied::new(assignments),
            why,
        }
    }
}

impl Tuned {
    fn new(
        tuner: &Tuner<'_>,
        recipe: &Recipe,
        search: &TuneSearch,
        varied: &[Vary],
        parts: &RaceWorkload<'_>,
        seed: u64,
        impossible: Vec<ImpossibleCombination>,
    ) -> Tuned {
        let (points, batches) = (Combinations::new(varied).points(), parts.batches.count());
        let race = tuner.race();
        let candidates: Vec<TunedCandidate> = race
            .standings()
            .iter()
            .enumerate()
            .map(|(place, standing)| {
                let varied = Varied::new(&tuner.assignments(standing.candidate));
                TunedCandidate::new(place, standing, &recipe.name, varied)
            })
            .collect();
        // Only for a share in the text.
        let exhaustive_runs = (points - impossible.len()).saturating_mul(batches);
        let mut tuned = Tuned {
            by: search.by.name(),
            more_is_better: search.by.more_is_better(),
            confidence: search.confidence,
            seed,
            points,
            tried: candidates.len(),
            batches,
            batches_are: if parts.batches.are_windows() {
                "trace"
            } else {
                "seeds"
            },
            batch_requests: parts.requests,
            whole_load_value: None,
            impossible,
            runs: race.value_count(),
            exhaustive_runs,
            cost_share: race.value_count() as f64 / exhaustive_runs as f64,
            probability_correct: race.probability_correct(),
            not_told_apart: candidates
                .iter()
                .filter(|candidate| candidate.may_be_best)
                .count(),
            equal_to_best: candidates
                .iter()
                .filter(|candidate| candidate.equal_to_best)
                .count(),
            verdict: String::new(),
            varied: varied.into(),
            candidates,
        };
        tuned.verdict = tuned.in_words();
        tuned
    }

    fn in_words(&self) -> String {
        let Some(best) = self.candidates.first() else {
            return String::new();
        };
        let label = |candidate: &TunedCandidate| candidate.varied.to_string();
        let mut words = format!(
            "{} is best by {}: {}, {}. {}",
            label(best),
            self.by,
            number(best.value),
            self.mean(best.batches),
            self.on_the_whole_load()
        );
        let with_equals = match self.equal_to_best {
            0 => "it is",
            _ => "it and those that are equal to it are",
        };
        if self.equal_to_best > 0 {
            let equal = self.named(|candidate| candidate.equal_to_best);
            words.push_str(&format!(" Equal in every part of the workload: {equal}."));
        }
        match self.tried - self.equal_to_best {
            0..=1 if self.tried > 1 => words.push_str(" The keys do not change this metric."),
            _ => words.push_str(&format!(
                " Of the {} combinations that were tried {with_equals} the best with a chance of at least {:.1} %.",
                self.tried,
                100.0 * self.probability_correct
            )),
        }
        let alike = |candidate: &TunedCandidate| {
            candidate.rank > 1 && candidate.may_be_best && !candidate.equal_to_best
        };
        match self.candidates.iter().any(alike) {
            true => words.push_str(&format!(
                " Not significantly different from the best: {}.",
                self.named(alike)
            )),
            false if self.equal_to_best + 1 < self.tried => {
                words.push_str(" All others are significantly worse.");
            }
            false => {}
        }
        words.push_str(&format!(
            " {} runs of {} ({:.1} % of all combinations on all parts of the workload).",
            self.runs,
            self.exhaustive_runs,
            100.0 * self.cost_share
        ));
        let never = self.points - self.tried - self.impossible.len();
        if never > 0 {
            words.push_str(&format!(" {never} combinations were not tried."));
        }
        words + &self.left_out()
    }

    /// Returns the description of a value: a mean over parts or over seeds.
    fn mean(&self, parts: usize) -> String {
        let what = if self.batches_are == "trace" {
            "parts of the trace"
        } else {
            "runs with a seed each"
        };
        format!(
            "the mean over {parts} {what}, of {} requests on average and each from rest",
            self.batch_requests
        )
    }

    /// Returns true if a run of the whole load takes no more than `WHOLE_COST_MAX` times the runs
    /// of the race.
    fn can_afford_whole_load(&self) -> bool {
        // The whole trace is as long as all its windows together; with seeds each part is a whole
        // run.
        let runs = if self.batches_are == "trace" {
            self.batches
        } else {
            1
        };
        runs <= WHOLE_COST_MAX * self.runs
    }

    /// Returns a sentence with the value of the best candidate on the whole load.
    fn on_the_whole_load(&self) -> String {
        match self.whole_load_value {
            Some(value) if value.is_nan() => {
                "In one run of the whole load, the best does not serve every request.".to_owned()
            }
            Some(value) => format!("One run of the whole load: {}.", number(value)),
            None if self.can_afford_whole_load() => {
                "The best was not run on the whole load.".to_owned()
            }
            None => {
                "The best was not run on the whole load, which takes far longer than this search."
                    .to_owned()
            }
        }
    }

    /// Returns a sentence about impossible combinations.
    fn left_out(&self) -> String {
        let each = self
            .impossible
            .iter()
            .map(|one| format!("{} ({})", one.varied, one.why));
        match self.impossible.len() {
            0 => String::new(),
            1..=NAMED_MAX => {
                format!(
                    " Impossible combination: {}.",
                    each.collect::<Vec<_>>().join("; ")
                )
            }
            many => {
                format!(
                    " Impossible combinations: {many}, the first is {}.",
                    each.take(1).collect::<String>()
                )
            }
        }
    }
}

impl Tuned {
    /// Returns the values of the candidates that fulfil `of`. If there are many, returns their
    /// number and the first.
    fn named(&self, of: impl Fn(&TunedCandidate) -> bool) -> String {
        let labels: Vec<String> = self
            .candidates
            .iter()
            .filter(|candidate| of(candidate))
            .map(|candidate| candidate.varied.to_string())
            .collect();
        match labels.len() {
            0..=NAMED_MAX => labels.join("; "),
            more => format!("{more} others, {} first", labels[0]),
        }
    }
}

impl TunedCandidate {
    fn new(place: usize, standing: &CandidateResult, name: &str, varied: Varied) -> TunedCandidate {
        let apart = |difference: Difference| difference.significance == Significance::Significant;
        TunedCandidate {
            rank: place + 1,
            name: name.to_owned(),
            varied,
            value: standing.value,
            best_value: standing.leader_value,
            difference_to_best: standing.difference,
            batches: standing.batches,
            dropped: standing.dropped,
            may_be_best: !standing.dropped && !standing.difference.is_some_and(apart),
            chance_better: standing.difference.map(|_| standing.chance_better),
            equal_to_best: standing.equal,
        }
    }
}

impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self
            .candidates
            .first()
            .map(|best| best.varied.keys().collect())
            .unwrap_or_default();
        let mut header = vec![""];
        header.extend(&keys);
        let mean = format!("mean of parts, {}", self.by);
        header.extend([mean.as_str(), "to the best", "±", "parts", ""]);
        let mut table = table(header, &[keys.len() + 5]);
        for candidate in self.candidates.iter().take(SHOWN) {
            let mut row = vec![candidate.rank.to_string()];
            row.extend(
                keys.iter()
                    .map(|key| candidate.varied.get(key).unwrap_or("-").to_owned()),
            );
            let difference = candidate.difference_to_best;
            let half_width = difference.and_then(|difference| difference.half_width);
            row.push(number(candidate.value));
            row.push(
                difference.map_or_else(|| "best".to_owned(), |difference| number(difference.value)),
            );
            row.push(half_width.map_or_else(|| "-".to_owned(), number));
            row.push(candidate.batches.to_string());
            let note = match (candidate.equal_to_best, candidate.may_be_best) {
                (true, _) => "equal",
                (_, true) => "may be best",
                _ => "",
            };
            row.push(note.to_owned());
            table.add_row(row);
        }
        writeln!(f, "{}", table.trim_fmt())?;
        if self.candidates.len() > SHOWN {
            writeln!(f, "{} more in --json", self.candidates.len() - SHOWN)?;
        }
        write!(f, "\n{}", self.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{VALLEY, valley};
    use fullstroke_units::Seed;

    fn space() -> Combinations {
        let varied = ["a=1..5", "b=1..5", "c=1..8"];
        Combinations::new(&varied.map(|argument| argument.parse().unwrap()))
    }

    fn search(sample: usize, seed: u64, enough: usize) -> Tuner<'static> {
        let rules = RaceRules {
            batches: 128,
            first: 8,
            confidence: 0.95,
            more_is_better: false,
            candidates: 200,
        };
        let random = &mut Seed(seed).stream("tune");
        let mut tuner = Tuner::new(space(), rules, sample, random, Box::new(|_| true));
        tuner.enough = enough;
        let noisy = valley(seed);
        loop {
            for (candidate, batches) in tuner.due() {
                let number = tuner
                    .point(candidate)
                    .iter()
                    .zip(VALLEY)
                    .fold(0, |number, (value, values)| number * values + value);
                tuner.add_values(candidate, &noisy.values(number, batches));
            }
            if !tuner.judge() {
                return tuner;
            }
        }
    }

    /// Returns the number of seeds that find the lowest point, and the share of the exhaustive
    /// cost.
    fn over_seeds(sample: usize, seeds: u64) -> (u64, f64) {
        let (mut right, mut told) = (0, 0);
        for seed in 0..seeds {
            let tuner = search(sample, seed, 1);
            right += u64::from(
                tuner.race().leader().map(|leader| tuner.point(leader)) == Some(&vec![3, 1, 5]),
            );
            told += tuner.race().value_count();
        }
        (right, told as f64 / (seeds as usize * 200 * 128) as f64)
    }

    #[test]
    fn neighbours_of_the_best_lead_to_it_from_a_small_sample() {
        let (right, share) = over_seeds(24, 40);
        println!(
            "from 24 points: {right} of 40 right at {:.1} % of the exhaustive cost",
            100.0 * share
        );
        assert!(right >= 38 && share <= 0.15, "{right} of 40 at {share}");
    }

    #[test]
    fn a_search_that_may_leave_many_points_ends_after_its_first_rung_with_the_best_among_them() {
        for seed in 0..5 {
            let (many, one) = (search(200, seed, 199), search(200, seed, 1));
            assert_eq!(many.race().value_count(), 200 * 8);
            assert!(many.race().value_count() < one.race().value_count());
            let standings = many.race().standings();
            let left = standings.iter().take(many.race().running());
            let points: Vec<_> = left.map(|one| many.point(one.candidate)).collect();
            assert!(points.contains(&&vec![3, 1, 5]), "seed {seed}");
        }
    }

    #[test]
    fn a_search_of_all_points_finds_it_as_well() {
        let (right, share) = over_seeds(200, 10);
        println!(
            "from all points: {right} of 10 right at {:.1} % of the exhaustive cost",
            100.0 * share
        );
        assert!(right >= 9 && share <= 0.2, "{right} of 10 at {share}");
    }
}
