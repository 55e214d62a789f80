//! The list of runs of studies, each once.

use crate::StudyError;
use crate::claims::Claim;
use crate::digests::Digests;
use crate::expression::{Estimate, ResultSource};
use crate::metrics;
use crate::parallel::in_parallel;
use crate::store::Results;
use crate::study::{Study, overrides};
use crate::task::{RunKey, Task};
use crate::variation::{Extent, Variation};
use fullstroke_stack::{Stack, StackError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The runs of some studies.
#[derive(Clone, Debug, Default)]
pub struct RunList {
    /// The runs, each once.
    pub tasks: Vec<Task>,
    /// Runs of each study, in the order given, by variation.
    tables: Vec<BTreeMap<Variation, StudyRuns>>,
}

/// The runs of one study in one way.
#[derive(Clone, Debug, Default)]
struct StudyRuns {
    seeds: Vec<u64>,
    /// Digest of the stack of each point; `None` if the point is not run.
    digests: Vec<Option<String>>,
}

/// A stack file and the keys set in the file.
type Setup = (PathBuf, Vec<String>);

/// Variations of a study, each with its seeds.
type WithSeeds = Vec<(Variation, Vec<u64>)>;

impl RunList {
    /// Lists the runs of `studies` and of their variants, with the keys `set` in every stack;
    /// `jobs` stacks are read at a time.
    ///
    /// # Errors
    /// The first point whose stack cannot be used.
    pub fn new(studies: &[Study], set: &[String], jobs: usize) -> Result<RunList, StudyError> {
        let ways = |study: &Study| with_seeds(study, study.variations(), None);
        RunList::of(studies, &ways, set, jobs)
    }

    /// Lists the runs of `studies` and of their variants, and the runs with the other seeds and
    /// choices of `extent`.
    ///
    /// # Errors
    /// The first point whose stack cannot be used.
    pub fn held_out(
        studies: &[Study],
        extent: &Extent,
        set: &[String],
        jobs: usize,
    ) -> Result<RunList, StudyError> {
        let ways = |study: &Study| {
            let mut ways = with_seeds(study, study.variations(), None);
            ways.extend(with_seeds(
                study,
                study.held_out(extent),
                extent.replications,
            ));
            ways
        };
        RunList::of(studies, &ways, set, jobs)
    }

    fn of(
        studies: &[Study],
        ways: &dyn Fn(&Study) -> WithSeeds,
        set: &[String],
        jobs: usize,
    ) -> Result<RunList, StudyError> {
        let mut setups: Vec<(Setup, usize, usize)> = Vec::new();
        let mut number: BTreeMap<Setup, usize> = BTreeMap::new();
        let mut tables: Vec<Vec<RunVariation>> = Vec::new();
        for (index, study) in studies.iter().enumerate() {
            let mut table = Vec::new();
            for (variation, seeds) in ways(study) {
                let mut points = Vec::new();
                for point in study.points_of(variation) {
                    let Some((stack, mut all)) = study.stack(point, variation) else {
                        continue;
                    };
                    // The keys of the command line replace those of the study, because they come
                    // later.
                    all.extend(set.iter().cloned());
                    let setup = (stack, all);
                    let new = number.len();
                    let at = *number.entry(setup.clone()).or_insert(new);
                    if at == new {
                        setups.push((setup, index, point));
                    }
                    points.push((point, at));
                }
                table.push(RunVariation {
                    variation,
                    seeds,
                    points,
                });
            }
            tables.push(table);
        }
        // Only now: each setup is read once, and several at a time.
        let digests = digests(studies, &setups, jobs)?;
        assert_eq!(digests.len(), setups.len(), "each setup has its digest");
        check_paths(studies, set)?;
        let mut run_list = RunList::default();
        let mut known: BTreeMap<RunKey, usize> = BTreeMap::new();
        for (study, table) in studies.iter().zip(tables) {
            let mut found = BTreeMap::new();
            for way in table {
                assert!(
                    !way.seeds.is_empty(),
                    "{}: a point is run with a seed",
                    study.id
                );
                let mut runs = StudyRuns {
                    seeds: way.seeds,
                    digests: vec![None; study.matrix.points().len()],
                };
                for (point, setup) in way.points {
                    for &seed in &runs.seeds {
                        let key = (digests[setup].clone(), seed);
                        run_list.add(key, study, point, &setups[setup].0, &mut known);
                    }
                    runs.digests[point] = Some(digests[setup].clone());
                }
                found.insert(way.variation, runs);
            }
            run_list.tables.push(found);
        }
        assert_eq!(
            run_list.tables.len(),
            studies.len(),
            "each study has its table"
        );
        Ok(run_list)
    }

    /// Adds a run of a study at a point.
    fn add(
        &mut self,
        key: RunKey,
        study: &Study,
        point: usize,
        setup: &Setup,
        known: &mut BTreeMap<RunKey, usize>,
    ) {
        let new = self.tasks.len();
        let at = *known.entry(key.clone()).or_insert(new);
        if at == new {
            let values = study.matrix.describe(&study.matrix.points()[point]);
            let name = format!("{} {values} seed={}", study.id, key.1);
            let (stack, set) = setup.clone();
            self.tasks.push(Task {
                key,
                name,
                stack,
                set,
                paths: Vec::new(),
            });
        }
        let kept = &mut self.tasks[at].paths;
        for path in study.paths() {
            if !kept.contains(&path) {
                kept.push(path);
            }
        }
    }

    /// Returns the keys of all runs.
    pub fn keys(&self) -> BTreeSet<RunKey> {
        self.tasks.iter().map(|task| task.key.clone()).collect()
    }

    /// Returns the runs with a number that `results` lacks.
    pub fn missing(&self, results: &Results) -> Vec<Task> {
        self.tasks
            .iter()
            .filter(|task| !results.has(&task.key, &task.paths))
            .cloned()
            .collect()
    }

    /// Returns the results of study number `index` in the order given to `new`.
    pub fn table<'a>(
        &'a self,
        index: usize,
        study: &'a Study,
        variation: Variation,
        results: &'a Results,
    ) -> StudyTable<'a> {
        StudyTable {
            study,
            runs: self.runs(index, variation),
            results,
        }
    }

    /// Returns true if a variation changes the runs of a point that a claim reads.
    pub fn touches(&self, index: usize, variation: Variation, claim: &Claim) -> bool {
        let (Some(base), Some(other)) = (
            self.runs(index, Variation::Base),
            self.runs(index, variation),
        ) else {
            return false;
        };
        let differs = |&point: &usize| base.digests.get(point) != other.digests.get(point);
        // Digests do not contain the seed, so they are equal with other seeds.
        matches!(variation, Variation::Seeds(_)) || claim.touched.iter().any(differs)
    }

    fn runs(&self, index: usize, variation: Variation) -> Option<&StudyRuns> {
        self.tables.get(index)?.get(&variation)
    }
}

/// A variation of a study while its runs are listed.
struct RunVariation {
    variation: Variation,
    seeds: Vec<u64>,
    /// Points, each with the index of its setup.
    points: Vec<(usize, usize)>,
}

fn with_seeds(study: &Study, variations: Vec<Variation>, replications: Option<u32>) -> WithSeeds {
    variations
        .into_iter()
        .map(|variation| (variation, study.seeds(variation, replications)))
        .collect()
}

/// The results of one study.
#[derive(Clone, Copy, Debug)]
pub struct StudyTable<'a> {
    study: &'a Study,
    runs: Option<&'a StudyRuns>,
    results: &'a Results,
}

impl StudyTable<'_> {
    /// Returns true if every point of the variation has its results.
    pub fn is_complete(&self) -> bool {
        let paths = self.study.paths();
        let Some(runs) = self.runs else {
            return self.study.matrix.points().is_empty();
        };
        let complete = |digest: &String| {
            runs.seeds
                .iter()
                .all(|&seed| self.results.has(&(digest.clone(), seed), &paths))
        };
        runs.digests.iter().flatten().all(complete)
    }
}

impl ResultSource for StudyTable<'_> {
    fn value(&self, point: usize, metric: usize) -> Option<Estimate> {
        let runs = self.runs?;
        let digest = runs.digests.get(point)?.as_ref()?;
        let metric = self.study.metrics.get(metric)?;
        let of_seed = |&seed: &u64| self.results.get(&(digest.clone(), seed), metric);
        let each: Option<Vec<(f64, Option<f64>)>> = runs.seeds.iter().map(of_seed).collect();
        match each?.as_slice() {
            [(value, half_width)] => Some(Estimate::of_run(*value, *half_width)),
            many => {
                let values = many.iter().map(|(value, _)| *value).collect();
                Some(Estimate::of_seeds(values, self.study.config.confidence))
            }
        }
    }
}

/// Returns the digest of each setup.
fn digests(
    studies: &[Study],
    setups: &[(Setup, usize, usize)],
    jobs: usize,
) -> Result<Vec<String>, StudyError> {
    let known = Digests::default();
    let found = in_parallel(setups, jobs, &|((stack, set), study, point)| {
        let study = &studies[*study];
        let digest = leaves_the_seed(set)
            .and_then(|()| Stack::load(stack, &overrides(set, None)))
            .and_then(|stack| known.of(&stack));
        digest.map_err(|error| StudyError::Point {
            study: study.id.clone(),
            point: study.matrix.describe(&study.matrix.points()[*point]),
            error: Box::new(error),
        })
    });
    found.into_iter().collect()
}

/// Refuses an assignment of the seed, because the study chooses the seeds and results are stored by
/// seed.
fn leaves_the_seed(set: &[String]) -> Result<(), StackError> {
    let key = |assignment: &str| assignment.split('=').next().map(str::trim) == Some("seed");
    match set.iter().find(|assignment| key(assignment)) {
        None => Ok(()),
        Some(assignment) => {
            let message = "the seeds are the study's; give its keys `seed` and `replications`";
            Err(StackError::whole(format!("--set {assignment}"), message))
        }
    }
}

/// Checks that the paths of each study lead to a number on each of its stack files.
fn check_paths(studies: &[Study], set: &[String]) -> Result<(), StudyError> {
    for study in studies.iter().filter(|study| !study.paths().is_empty()) {
        let mut seen = BTreeSet::new();
        for point in 0..study.matrix.points().len() {
            let Some((path, mut all)) = study.stack(point, Variation::Base) else {
                continue;
            };
            if seen.insert(path.clone()) {
                all.extend(set.iter().cloned());
                let stack = Stack::load(&path, &overrides(&all, None))?;
                metrics::check(&stack, &study.paths())?.map_err(|source| StudyError::Metric {
                    study: study.id.clone(),
                    source,
                })?;
            }
        }
    }
    Ok(())
}
