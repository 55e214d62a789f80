//! Runs what is missing, on all cores, and keeps each result at once.

use crate::StudyError;
use crate::metrics::keep;
use crate::plan::Task;
use crate::store::StoreWriter;
use crate::study::overrides;
use fullstroke_lab::{Candidate, run};
use fullstroke_stack::Stack;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Runs `tasks`, up to `jobs` at a time, each on one thread, and adds what comes
/// out to the store. `progress` is told how many are done.
///
/// # Errors
/// The first that failed; no further one is begun after a failure, and what was
/// finished before is kept.
pub fn run_tasks(
    tasks: &[Task],
    jobs: usize,
    writer: StoreWriter,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<(), StudyError> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = AtomicBool::new(false);
    let failure = Mutex::new(None);
    let writer = Mutex::new(writer);
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            match run_one(task, &writer) {
                Ok(()) => progress(done.fetch_add(1, Ordering::Relaxed) + 1),
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    if let Ok(mut failure) = failure.lock() {
                        failure.get_or_insert(error);
                    }
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let merged = writer.lock().map_or(Ok(()), |mut writer| writer.merge());
    match failure.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => merged,
    }
}

fn run_one(task: &Task, writer: &Mutex<StoreWriter>) -> Result<(), StudyError> {
    let (_, seed) = task.key;
    let stack = Stack::load(&task.stack, &overrides(&task.set, Some(seed)))?;
    let ran = run(&Candidate { name: task.name.clone(), stack }, None, &|_, _| {})?;
    let kept = keep(&ran, &task.paths)
        .map_err(|message| StudyError::Metric { study: task.name.clone(), message })?;
    let settings = format!("{} {}", task.stack.display(), task.set.join(" "));
    let mut writer = writer.lock().expect("nobody panics while writing");
    writer.add(&task.key, &settings, &kept)
}
