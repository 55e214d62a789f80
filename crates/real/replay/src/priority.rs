//! The scheduling priority of the issuing thread.

use std::io;
use std::thread::available_parallelism;

/// Gives this thread priority over all threads that are not real-time, so that the thread has a
/// processor when a request is due. Returns a description of the result; if not permitted, with the
/// consequence.
pub(crate) fn raise() -> String {
    // With one processor, a thread that spins at real-time priority would stop the thread that
    // reads the trace.
    if available_parallelism().map_or(1, usize::from) < 2 {
        return format!("not real-time, as there is one processor, which others need: {LATE}");
    }
    match set_first_in_first_out() {
        Ok(()) => "real-time (SCHED_FIFO, priority 1)".to_owned(),
        Err(error) => {
            format!(
                "not real-time ({error}; it takes CAP_SYS_NICE, or a limit: `ulimit -r 1`): {LATE}"
            )
        }
    }
}

const LATE: &str = "requests are late by what the scheduler gives to others";

#[expect(
    unsafe_code,
    reason = "neither the standard library nor rustix sets scheduling policies"
)]
fn set_first_in_first_out() -> io::Result<()> {
    // SAFETY: a structure of integers, all of which may be 0. musl's structure has more fields than
    // glibc's.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    // Threads started by this one read and write files, and must not be real-time.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `sched_setscheduler` only reads the structure, which outlives the call. Thread 0 is
    // the caller.
    let result = unsafe { libc::sched_setscheduler(0, policy, &parameters) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
