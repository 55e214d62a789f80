//! Runs what is missing, on all cores, and keeps each result at once.

use crate::StudyError;
use crate::metrics::keep;
use crate::parallel::in_parallel;
use crate::run_list::Task;
use crate::store::StoreWriter;
use crate::study::overrides;
use fullstroke_lab::{Candidate, Varied, run};
use fullstroke_stack::Stack;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `tasks`, up to `jobs` at a time, each on one thread, and adds what comes
/// out to the store. `progress` is told how many are done.
///
/// # Errors
/// If some failed: how many, and the first of them. The others are run all the
/// same, and kept.
pub fn run_tasks(
    tasks: &[Task],
    jobs: usize,
    writer: StoreWriter,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<(), StudyError> {
    let done = AtomicUsize::new(0);
    let writer = Mutex::new(writer);
    let outcomes = in_parallel(tasks, jobs, &|task| {
        let outcome = run_one(task, &writer);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        outcome
    });
    let merged = writer.lock().map_or(Ok(()), |mut writer| writer.merge());
    let failures: Vec<StudyError> = outcomes.into_iter().filter_map(Result::err).collect();
    let failed = failures.len();
    match failures.into_iter().next() {
        Some(first) => Err(StudyError::Runs { failed, runs: tasks.len(), first: Box::new(first) }),
        None => merged,
    }
}

fn run_one(task: &Task, writer: &Mutex<StoreWriter>) -> Result<(), StudyError> {
    let (_, seed) = task.key;
    let stack = Stack::load(&task.stack, &overrides(&task.set, Some(seed)))?;
    let ran = run(
        &Candidate {
            name: task.name.clone(),
            varied: Varied::default(),
            stack,
            load: 1.0,
            timeline: false,
            watts: false,
        },
        None,
        &|_, _| {},
    )?;
    let kept = keep(&ran, &task.paths)
        .map_err(|message| StudyError::Metric { study: task.name.clone(), message })?;
    let settings = format!("{} {}", task.stack.display(), task.set.join(" "));
    let mut writer = writer.lock().expect("nobody panics while writing");
    writer.add(&task.key, &settings, &kept)
}
