//! Does missing runs on all cores, and stores each result at once.

use crate::StudyError;
use crate::digests::Digests;
use crate::metrics::{RunNumber, keep_beside, of_equations, of_windows};
use crate::parallel::in_parallel;
use crate::predicted::{Equations, WINDOW};
use crate::store::StoreWriter;
use crate::study::overrides;
use crate::task::Task;
use fullstroke_lab::{ComparedStack, Varied, run};
use fullstroke_stack::Stack;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does the runs of `tasks`, up to `jobs` at a time, each on one thread, and adds the results to
/// the store. `progress` is called with the number of finished runs.
///
/// # Errors
/// If some runs failed: their number, and the first error. The other runs are done and stored
/// nevertheless.
pub fn run_tasks(
    tasks: &[Task],
    jobs: usize,
    writer: StoreWriter,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<(), StudyError> {
    let done = AtomicUsize::new(0);
    let writer = Mutex::new(writer);
    let outcomes = in_parallel(tasks, jobs, &|task| {
        let outcome = task
            .stack()
            .and_then(|stack| task.run(stack))
            .and_then(|kept| {
                // The lock is taken after the run, so that runs do not wait for each other's files.
                let mut writer = writer.lock().expect("nobody panics while writing");
                writer.add(task, &kept)
            });
        // Relaxed: the number is only shown.
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        outcome
    });
    let merged = writer.lock().map_or(Ok(()), |mut writer| writer.merge());
    StudyError::of_runs(outcomes.into_iter().filter_map(Result::err), tasks.len()).and(merged)
}

impl Task {
    fn stack(&self) -> Result<Stack, StudyError> {
        Ok(Stack::load(
            &self.stack,
            &overrides(&self.set, Some(self.key.1)),
        )?)
    }

    fn run(&self, stack: Stack) -> Result<Vec<RunNumber>, StudyError> {
        let mut candidate = ComparedStack::new(self.name.clone(), Varied::default(), stack);
        candidate.windows = self
            .paths
            .iter()
            .any(|path| of_windows(path))
            .then_some(WINDOW);
        let ran = run(&candidate, None, &|_, _| {})?;
        let at = |source| StudyError::Metric {
            study: self.name.clone(),
            source,
        };
        let predicted = match self.paths.iter().any(|path| of_equations(path)) {
            true => {
                let equations = Equations::of(&candidate.stack)?.map_err(|none| at(none.into()))?;
                Some(equations.answer(&candidate.stack, &ran.measured.report)?)
            }
            false => None,
        };
        keep_beside(&ran, predicted.as_ref(), &self.paths).map_err(at)
    }

    /// Does the run for another process, perhaps on another machine.
    ///
    /// # Errors
    /// Errors of the run; also a stack, drives or a trace that differ on this machine.
    pub fn run_elsewhere(&self, known: &Digests) -> Result<Vec<RunNumber>, StudyError> {
        let stack = self.stack()?;
        if known.of(&stack)? != self.key.0 {
            return Err(StudyError::Another {
                name: self.name.clone(),
            });
        }
        self.run(stack)
    }
}
