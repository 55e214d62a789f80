//! Stacks with names.

use crate::{LabError, Varied, Vary};
use fullstroke_measure::{PerfettoWindow, Stop};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Duration;
use serde_json::json;
use std::path::{Path, PathBuf};

/// A stack in a comparison.
pub struct ComparedStack {
    /// The stack's name.
    pub name: String,
    /// Values of the varied keys.
    pub varied: Varied,
    /// Stack of the run.
    pub stack: Stack,
    /// Factor by which requests arrive faster than in the stack file. Default 1. Other values need
    /// open arrivals.
    pub load: f64,
    /// True if the run keeps a timeline for pictures.
    pub timeline: bool,
    /// Length of the windows of arrivals whose mean response times are kept; `None` (default) keeps
    /// none.
    pub windows: Option<Duration>,
    /// True if the run keeps the power of the drives over time.
    pub watts: bool,
    /// Part of the run for a trace for Perfetto; `None` (default) keeps none.
    pub perfetto: Option<PerfettoWindow>,
    /// Beginning of the run that the speed of a rebuild leaves out. Default 0.
    pub rebuild_settling: Duration,
    /// Signal to end the run early, which is an error.
    pub stop: Stop,
}

/// Recipe for a candidate. Searches build a new candidate from the recipe at each step.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The candidate's name.
    pub name: String,
    /// Values of the varied keys.
    pub varied: Varied,
    /// The stack file.
    pub file: PathBuf,
    /// Changes to the stack file.
    pub overrides: Overrides,
}

/// Factor of a slow member, unless the user gives another one. Hao et al. ("The Tail at Store", FAST
/// 2016, section 3) count a disk as slow if the disk takes more than twice as long as the median of
/// its RAID group, and find such a disk in 1.5 % of the hours of a RAID. 2.5 lies beyond this limit.
pub const SLOW_FACTOR: f64 = 2.5;

/// State of a volume in a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// A member has failed.
    Degraded,
    /// A member is new, and a rebuild runs while requests are served.
    Rebuilding,
    /// The first member takes this factor as long without failing.
    Slow(f64),
}

impl Condition {
    /// All conditions.
    pub(crate) const ALL: [Condition; 3] = [
        Condition::Degraded,
        Condition::Rebuilding,
        Condition::Slow(SLOW_FACTOR),
    ];

    /// Returns the name of the candidate `name` in this condition.
    pub(crate) fn name_of(self, name: &str) -> String {
        format!("{name} {}", self.label())
    }

    /// Returns the word after a candidate's name.
    fn label(self) -> &'static str {
        match self {
            Condition::Degraded => "degraded",
            Condition::Rebuilding => "rebuilding",
            Condition::Slow(_) => "slow",
        }
    }

    /// Returns the assignment to put a redundant volume into this condition.
    fn assignment(self) -> String {
        match self {
            Condition::Degraded => "failed=[0]".to_owned(),
            Condition::Rebuilding => "rebuild=0".to_owned(),
            Condition::Slow(factor) => format!("slow={{ member = 0, factor = {factor:?} }}"),
        }
    }
}

impl ComparedStack {
    /// Returns a candidate at its own load without optional records.
    pub fn new(name: String, varied: Varied, stack: Stack) -> ComparedStack {
        ComparedStack {
            name,
            varied,
            stack,
            load: 1.0,
            timeline: false,
            windows: None,
            watts: false,
            perfetto: None,
            rebuild_settling: Duration::ZERO,
            stop: Stop::default(),
        }
    }

    /// Returns the name and the values of the varied keys.
    pub fn label(&self) -> String {
        self.varied.label(&self.name)
    }

    /// Returns true if all arrivals are open, so that `load` may differ from 1. A source whose
    /// requests wait for completions has no open arrivals.
    ///
    /// # Errors
    /// Errors of the stack.
    pub fn can_be_hurried(&self) -> Result<bool, LabError> {
        let run = self
            .stack
            .build()
            .map_err(|source| self.varied.refused(source))?;
        Ok(!run
            .hosts
            .iter()
            .any(|host| host.source.depends_on_completions()))
    }
}

impl Recipe {
    /// Returns the name and the values of the varied keys.
    pub fn label(&self) -> String {
        self.varied.label(&self.name)
    }

    /// Loads the stack. An error names the values of the varied keys.
    fn load(&self) -> Result<Stack, LabError> {
        Stack::load(&self.file, &self.overrides).map_err(|source| self.varied.refused(source))
    }

    /// Builds the candidate.
    ///
    /// # Errors
    /// Errors of the stack.
    pub fn candidate(&self) -> Result<ComparedStack, LabError> {
        let stack = self.load()?;
        let (name, varied) = (self.name.clone(), self.varied.clone());
        Ok(ComparedStack::new(name, varied, stack))
    }

    /// Limits the replayed part of each trace. The end is excluded.
    pub(crate) fn limit_trace(&mut self, [from, to]: [Duration; 2]) {
        let keys = &mut self.overrides.trace_keys;
        keys.insert("from".to_owned(), json!(from));
        keys.insert("to".to_owned(), json!(to));
    }

    /// Returns copies of the recipe with `seeds` consecutive seeds, beginning with the seed of the
    /// stack. If all workloads are traces and `seeds` is above 1, each drive begins at a random angle
    /// (`volume.spindles = "apart"`), because nothing else depends on the seed.
    ///
    /// # Errors
    /// Errors of the stack.
    pub fn with_seeds(&self, seeds: usize) -> Result<Vec<Recipe>, LabError> {
        let stack = self.load()?;
        let first = stack.seed().0;
        // Nothing in a trace is random, so the seed of a trace chooses the angles of the platters at
        // the begin: the array meets the trace at other moments.
        let angles = seeds > 1 && stack.only_angles_are_random();
        let recipe = |seed: u64| {
            let mut recipe = self.clone();
            if angles {
                recipe
                    .overrides
                    .set
                    .push("volume.spindles=apart".to_owned());
            }
            recipe
                .overrides
                .set
                .push(format!("seed={}", first.wrapping_add(seed)));
            recipe
        };
        Ok((0..seeds as u64).map(recipe).collect())
    }

    /// Returns the recipe in another condition. `None` if the volume has no redundancy, or has lost
    /// some redundancy already.
    ///
    /// # Errors
    /// Errors of the stack.
    pub fn in_condition(&self, condition: Condition) -> Result<Option<Recipe>, LabError> {
        let stack = self.load()?;
        Ok(stack.redundant_volume().map(|path| {
            let mut recipe = self.clone();
            recipe
                .overrides
                .set
                .push(format!("{path}.{}", condition.assignment()));
            recipe.name = condition.name_of(&recipe.name);
            recipe
        }))
    }
}

/// Returns a recipe for every stack file at every combination of the varied keys, in this order. If
/// two files have the same name, the names of the candidates are the files' paths.
pub fn recipes(files: &[PathBuf], overrides: &Overrides, varied: &[Vary]) -> Vec<Recipe> {
    let combinations = Vary::combinations(varied);
    let mut recipes = Vec::with_capacity(files.len() * combinations.len());
    for file in files {
        let alike = files
            .iter()
            .filter(|other| other.file_stem() == file.file_stem())
            .count();
        recipes.extend(
            combinations
                .iter()
                .map(|combination| recipe(file, overrides, combination, alike > 1)),
        );
    }
    recipes
}

/// Returns the candidates of [`recipes`].
///
/// # Errors
/// The error of the first invalid stack.
pub fn candidates(
    files: &[PathBuf],
    overrides: &Overrides,
    varied: &[Vary],
) -> Result<Vec<ComparedStack>, LabError> {
    recipes(files, overrides, varied)
        .iter()
        .map(Recipe::candidate)
        .collect()
}

fn recipe(file: &Path, overrides: &Overrides, combination: &[String], by_path: bool) -> Recipe {
    let mut overrides = overrides.clone();
    overrides.set.extend_from_slice(combination);
    // Same name as `Stack::name`.
    let stem = file.file_stem().filter(|_| !by_path);
    let name = stem.map_or_else(
        || file.display().to_string(),
        |stem| match stem == "-" {
            true => "stdin".to_owned(),
            false => stem.to_string_lossy().into(),
        },
    );
    Recipe {
        name,
        varied: Varied::new(combination),
        file: file.to_owned(),
        overrides,
    }
}
