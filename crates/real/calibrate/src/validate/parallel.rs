//! Work shared among threads.

use crate::validate::ValidateError;
use std::thread;

/// Returns the result of `task` for each item, in order. As many tasks run at once as there are
/// processors.
///
/// # Errors
/// The error of the first item that has one.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    task: impl Fn(&T) -> Result<R, ValidateError> + Sync,
) -> Result<Vec<R>, ValidateError> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut results = Vec::with_capacity(items.len());
    for part in items.chunks(threads) {
        let found: Vec<Result<R, ValidateError>> = thread::scope(|scope| {
            let begun: Vec<_> = part.iter().map(|item| scope.spawn(|| task(item))).collect();
            let joined = begun.into_iter().map(|thread| thread.join());
            joined
                .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        for result in found {
            results.push(result?);
        }
    }
    Ok(results)
}
