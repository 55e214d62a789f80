//! Stacks with names.

use crate::{LabError, Varied, Vary};
use fullstroke_measure::{PerfettoWindow, Stop};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Duration;
use std::path::{Path, PathBuf};

/// A stack that takes part in a comparison.
pub struct Candidate {
    /// The stack's name.
    pub name: String,
    /// The values that were varied.
    pub varied: Varied,
    /// What is run.
    pub stack: Stack,
    /// How many times faster requests arrive than the stack says; only where
    /// they arrive by their own times.
    pub load: f64,
    /// Whether what happened when is kept, for pictures.
    pub timeline: bool,
    /// The length of windows of the arrivals whose mean responses are kept, if they are.
    pub windows: Option<Duration>,
    /// Whether what drives draw over time is kept.
    pub watts: bool,
    /// What part of the run is kept as a trace for Perfetto, if any is.
    pub perfetto: Option<PerfettoWindow>,
    /// Ends its run early, which is an error then.
    pub stop: Stop,
}

/// What a candidate is made of, for searches that make it anew at each step.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The candidate's name.
    pub name: String,
    /// The values that were varied.
    pub varied: Varied,
    /// The stack file.
    pub file: PathBuf,
    /// What is changed in it.
    pub overrides: Overrides,
}

/// The state in which a volume takes part in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A member has failed.
    Degraded,
    /// A member is new, and is filled while requests are served.
    Rebuilding,
}

impl Condition {
    /// All of them.
    pub(crate) const ALL: [Condition; 2] = [Condition::Degraded, Condition::Rebuilding];

    /// What the candidate `name` is called in this condition.
    pub(crate) fn name_of(self, name: &str) -> String {
        format!("{name} {}", self.label())
    }

    /// What stands behind a candidate's name.
    fn label(self) -> &'static str {
        match self {
            Condition::Degraded => "degraded",
            Condition::Rebuilding => "rebuilding",
        }
    }

    /// What is set in a volume with redundancy.
    fn assignment(self) -> &'static str {
        match self {
            Condition::Degraded => "failed=[0]",
            Condition::Rebuilding => "rebuild=0",
        }
    }
}

impl Candidate {
    /// One at its own load, of which nothing is kept but what all runs tell.
    pub fn new(name: String, varied: Varied, stack: Stack) -> Candidate {
        Candidate {
            name,
            varied,
            stack,
            load: 1.0,
            timeline: false,
            windows: None,
            watts: false,
            perfetto: None,
            stop: Stop::default(),
        }
    }

    /// The name, with the values that were varied.
    pub fn label(&self) -> String {
        self.varied.label(&self.name)
    }

    /// Whether its requests arrive by their own times, so that `load` may be other than 1: none of them waits for
    /// completions.
    ///
    /// # Errors
    /// That of its stack.
    pub fn can_be_hurried(&self) -> Result<bool, LabError> {
        let run = self
            .stack
            .build()
            .map_err(|source| self.varied.refused(source))?;
        Ok(!run.hosts.iter().any(|host| host.source.heeds_completions()))
    }
}

impl Recipe {
    /// The name, with the values that were varied.
    pub fn label(&self) -> String {
        self.varied.label(&self.name)
    }

    /// Its stack; an error names the values that were varied.
    fn load(&self) -> Result<Stack, LabError> {
        Stack::load(&self.file, &self.overrides).map_err(|source| self.varied.refused(source))
    }

    /// The candidate.
    ///
    /// # Errors
    /// That of its stack.
    pub fn candidate(&self) -> Result<Candidate, LabError> {
        let stack = self.load()?;
        let (name, varied) = (self.name.clone(), self.varied.clone());
        Ok(Candidate::new(name, varied, stack))
    }

    /// The same with so many seeds: the stack's, and those that follow it.
    ///
    /// # Errors
    /// That of its stack.
    pub fn with_seeds(&self, seeds: usize) -> Result<Vec<Recipe>, LabError> {
        let first = self.load()?.seed().0;
        let recipe = |seed: u64| {
            let mut recipe = self.clone();
            recipe
                .overrides
                .set
                .push(format!("seed={}", first.wrapping_add(seed)));
            recipe
        };
        Ok((0..seeds as u64).map(recipe).collect())
    }

    /// The same in another condition; `None` if the volume has no redundancy,
    /// or has lost some already.
    ///
    /// # Errors
    /// That of its stack.
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

/// Every stack file at every combination of the varied keys, in this order.
/// Where two files have one name, the files' paths tell them apart.
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

/// The candidates of [`recipes`].
///
/// # Errors
/// That of the first stack that cannot be used.
pub fn candidates(
    files: &[PathBuf],
    overrides: &Overrides,
    varied: &[Vary],
) -> Result<Vec<Candidate>, LabError> {
    recipes(files, overrides, varied)
        .iter()
        .map(Recipe::candidate)
        .collect()
}

fn recipe(file: &Path, overrides: &Overrides, combination: &[String], by_path: bool) -> Recipe {
    let mut overrides = overrides.clone();
    overrides.set.extend_from_slice(combination);
    // As `Stack::name` has it.
    let stem = file.file_stem().filter(|_| !by_path);
    let name = stem.map_or_else(
        || file.display().to_string(),
        |stem| stem.to_string_lossy().into(),
    );
    Recipe {
        name,
        varied: Varied::new(combination),
        file: file.to_owned(),
        overrides,
    }
}
