//! Which runs studies need, each once.

use crate::StudyError;
use crate::expression::{Data, Estimate};
use crate::metrics;
use crate::parallel::in_parallel;
use crate::store::{Key, Results};
use crate::study::{Study, Variant, hex, overrides};
use fullstroke_stack::{Stack, StackError};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What its results are kept under.
    pub key: Key,
    /// The study and the point that asked for it first, for people.
    pub name: String,
    /// The stack file.
    pub stack: PathBuf,
    /// What is set in it.
    pub set: Vec<String>,
    /// Numbers that are kept beside the metrics.
    pub paths: Vec<String>,
}

/// The runs of some studies.
#[derive(Clone, Debug, Default)]
pub struct RunList {
    /// The runs, each once.
    pub tasks: Vec<Task>,
    /// For each study, in the order given, the digests of its points.
    tables: Vec<BTreeMap<Variant, Vec<String>>>,
}

/// A stack file and what is set in it.
type Setup = (PathBuf, Vec<String>);

impl RunList {
    /// The runs of `studies`, with further keys set in every stack; `jobs`
    /// stacks are read at a time.
    ///
    /// # Errors
    /// The first point whose stack cannot be used.
    pub fn new(studies: &[Study], set: &[String], jobs: usize) -> Result<RunList, StudyError> {
        let mut setups: Vec<(Setup, usize, usize)> = Vec::new();
        let mut number: BTreeMap<Setup, usize> = BTreeMap::new();
        let mut tables: Vec<BTreeMap<Variant, Vec<usize>>> = Vec::new();
        for (index, study) in studies.iter().enumerate() {
            let mut table = BTreeMap::new();
            for variant in study.variants() {
                let mut points = Vec::new();
                for point in 0..study.matrix.points().len() {
                    let Some((stack, mut all)) = study.stack(point, variant) else { continue };
                    all.extend(set.iter().cloned());
                    let setup = (stack, all);
                    let new = number.len();
                    let at = *number.entry(setup.clone()).or_insert(new);
                    if at == new {
                        setups.push((setup, index, point));
                    }
                    points.push(at);
                }
                table.insert(variant, points);
            }
            tables.push(table);
        }
        let digests = digests(studies, &setups, jobs)?;
        check_paths(studies, set)?;
        let mut run_list = RunList::default();
        let mut tasks: BTreeMap<Key, usize> = BTreeMap::new();
        for (study, table) in studies.iter().zip(tables) {
            let paths = study.paths();
            for points in table.values() {
                for (point, &setup) in points.iter().enumerate() {
                    for seed in study.seeds() {
                        let key = (digests[setup].clone(), seed);
                        let new = run_list.tasks.len();
                        let at = *tasks.entry(key.clone()).or_insert(new);
                        if at == new {
                            let values = study.matrix.describe(&study.matrix.points()[point]);
                            let ((stack, set), ..) = setups[setup].clone();
                            let name = format!("{} {values} seed={seed}", study.id);
                            run_list.tasks.push(Task { key, name, stack, set, paths: Vec::new() });
                        }
                        let kept = &mut run_list.tasks[at].paths;
                        kept.extend(
                            paths.iter().filter(|path| !kept.contains(path)).cloned().collect::<Vec<_>>(),
                        );
                    }
                }
            }
            let named = |points: Vec<usize>| points.into_iter().map(|setup| digests[setup].clone()).collect();
            run_list
                .tables
                .push(table.into_iter().map(|(variant, points)| (variant, named(points))).collect());
        }
        Ok(run_list)
    }

    /// The keys of all runs.
    pub fn keys(&self) -> BTreeSet<Key> {
        self.tasks.iter().map(|task| task.key.clone()).collect()
    }

    /// The runs of which `results` lacks a number.
    pub fn missing(&self, results: &Results) -> Vec<Task> {
        self.tasks.iter().filter(|task| !results.has(&task.key, &task.paths)).cloned().collect()
    }

    /// What `results` has of study number `index` as it was given to `new`.
    pub fn table<'a>(
        &'a self,
        index: usize,
        study: &'a Study,
        variant: Variant,
        results: &'a Results,
    ) -> StudyTable<'a> {
        let digests = self.tables.get(index).and_then(|tables| tables.get(&variant));
        StudyTable { study, digests: digests.map_or(&[], Vec::as_slice), results }
    }
}

/// The results of one study.
#[derive(Clone, Copy, Debug)]
pub struct StudyTable<'a> {
    study: &'a Study,
    digests: &'a [String],
    results: &'a Results,
}

impl StudyTable<'_> {
    /// Whether every point has its results.
    pub fn is_complete(&self) -> bool {
        let paths = self.study.paths();
        let complete = |digest: &String| {
            self.study.seeds().all(|seed| self.results.has(&(digest.clone(), seed), &paths))
        };
        self.digests.len() == self.study.matrix.points().len() && self.digests.iter().all(complete)
    }
}

impl Data for StudyTable<'_> {
    fn value(&self, point: usize, metric: usize) -> Option<Estimate> {
        let (digest, metric) = (self.digests.get(point)?, self.study.metrics.get(metric)?);
        let each: Option<Vec<(f64, Option<f64>)>> =
            self.study.seeds().map(|seed| self.results.get(&(digest.clone(), seed), metric)).collect();
        match each?.as_slice() {
            [(value, half_width)] => Some(Estimate::of_run(*value, *half_width)),
            many => Some(Estimate::of_seeds(many.iter().map(|(value, _)| *value).collect())),
        }
    }
}

/// The digest of each setup.
fn digests(
    studies: &[Study],
    setups: &[(Setup, usize, usize)],
    jobs: usize,
) -> Result<Vec<String>, StudyError> {
    let traces = Mutex::new(BTreeMap::new());
    let found = in_parallel(setups, jobs, &|((stack, set), study, point)| {
        let study = &studies[*study];
        let digest = leaves_the_seed(set)
            .and_then(|()| Stack::load(stack, &overrides(set, None)))
            .and_then(|stack| digest(&stack, &traces));
        digest.map_err(|error| StudyError::Point {
            study: study.id.clone(),
            point: study.matrix.describe(&study.matrix.points()[*point]),
            error: Box::new(error),
        })
    });
    found.into_iter().collect()
}

/// Results are kept by their seeds, which are the study's to give.
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

/// What a stack's results are kept under: its own digest, and that of its trace.
fn digest(stack: &Stack, traces: &Mutex<BTreeMap<PathBuf, String>>) -> Result<String, StackError> {
    let Some(trace) = stack.trace_file() else { return Ok(stack.digest().to_owned()) };
    let known = traces.lock().ok().and_then(|traces| traces.get(&trace).cloned());
    let of_trace = match known {
        Some(known) => known,
        None => {
            let found = digest_of_files(&stack.trace_files()).map_err(|error| {
                StackError::whole(trace.display().to_string(), format!("cannot be read: {error}"))
            })?;
            if let Ok(mut traces) = traces.lock() {
                traces.insert(trace, found.clone());
            }
            found
        }
    };
    Ok(hex(&Sha256::digest(format!("{} {of_trace}", stack.digest()))))
}

fn digest_of_files(paths: &[PathBuf]) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    for path in paths {
        let mut file = File::open(path)?;
        loop {
            match io::Read::read(&mut file, &mut buffer)? {
                0 => break,
                length => hash.update(&buffer[..length]),
            }
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Whether the paths of each study lead somewhere, on each of its stack files.
fn check_paths(studies: &[Study], set: &[String]) -> Result<(), StudyError> {
    for study in studies.iter().filter(|study| !study.paths().is_empty()) {
        let mut seen = BTreeSet::new();
        for point in 0..study.matrix.points().len() {
            let Some((path, mut all)) = study.stack(point, None) else { continue };
            if seen.insert(path.clone()) {
                all.extend(set.iter().cloned());
                let stack = Stack::load(&path, &overrides(&all, None))?;
                metrics::check(&stack, &study.paths())?
                    .map_err(|message| StudyError::Metric { study: study.id.clone(), message })?;
            }
        }
    }
    Ok(())
}
