//! Who is scheduled when a request is due.

use std::io;
use std::thread::available_parallelism;

/// Puts this thread before all that are not real-time, so that it is on a processor when a request
/// is due. What it did; where that is not permitted, what follows.
pub(crate) fn raise() -> String {
    // A thread that spins at real-time priority on the only processor would keep the others from
    // reading the trace.
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
    // SAFETY: a structure of integers, all of which may be 0; musl's has more of them than glibc's.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    // Threads that this one begins read and write files, and are not to be real-time.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `sched_setscheduler` reads the structure that it is given, which outlives the call;
    // thread 0 is the caller.
    let result = unsafe { libc::sched_setscheduler(0, policy, &parameters) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
