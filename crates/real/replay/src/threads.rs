//! Threads with `pread` and `pwrite`, for kernels without a ring.
//!
//! Each thread waits for one piece of a request at a time. So the number of threads limits the
//! number of outstanding pieces. A thread must wake before it can issue a request, so each thread
//! reports its time of issue.

use crate::calls::Calls;
use crate::issued::Action;
use crate::piece_answer::PieceAnswer;
use crate::priority;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Number of threads: twice the queue depth of a disk (32 commands by SATA's NCQ).
pub(crate) const THREADS: usize = 64;
/// Stack of a thread, which does nothing but call the kernel.
pub(crate) const STACK_BYTES: usize = 128 << 10;

/// A pool of threads over one file.
pub(crate) struct Threads {
    shared: Arc<PoolShared>,
    threads: Vec<JoinHandle<()>>,
    /// Pieces added, but not submitted.
    added: Vec<ThreadJob>,
    /// Number of added, unanswered pieces.
    outstanding: usize,
}

#[derive(Clone, Copy)]
struct ThreadJob {
    action: Action,
    start: u64,
    bytes: u64,
    user: u64,
}

/// State shared by all threads. The state lives as long as a thread is in the kernel.
struct PoolShared {
    calls: Calls,
    state: Mutex<PoolState>,
    /// Signal: there are jobs, or the pool is closed.
    work: Condvar,
    /// Signal: a job was done.
    done: Condvar,
    /// Number of completed pieces not yet reaped. Readable without the lock.
    finished: AtomicUsize,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<ThreadJob>,
    answers: Vec<PieceAnswer>,
    closed: bool,
}

impl Threads {
    /// Starts the threads, at real-time priority if permitted.
    ///
    /// # Errors
    /// If the system provides no thread.
    pub(crate) fn new(file: &File) -> io::Result<Threads> {
        let shared = Arc::new(PoolShared {
            calls: Calls::new(file)?,
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            finished: AtomicUsize::new(0),
        });
        let mut pool = Threads {
            shared,
            threads: Vec::new(),
            added: Vec::new(),
            outstanding: 0,
        };
        for _ in 0..THREADS {
            let shared = Arc::clone(&pool.shared);
            let builder = Builder::new()
                .name("replay-io".to_owned())
                .stack_size(STACK_BYTES);
            pool.threads.push(builder.spawn(move || shared.serve())?);
        }
        Ok(pool)
    }

    pub(crate) fn push(&mut self, action: Action, start: u64, bytes: u64, user: u64) -> bool {
        self.added.push(ThreadJob {
            action,
            start,
            bytes,
            user,
        });
        self.outstanding += 1;
        true
    }

    pub(crate) fn submit(&mut self) {
        let count = self.added.len();
        self.shared.state().jobs.extend(self.added.drain(..));
        for _ in 0..count.min(THREADS) {
            self.shared.work.notify_one();
        }
    }

    pub(crate) fn is_submitted(&self) -> bool {
        self.added.is_empty()
    }

    pub(crate) fn wait(&self, limit: Duration) {
        let state = self.shared.state();
        // Acquire pairs with the Release of the thread that has answered: its answer is in the list
        // when the counter is seen.
        let nothing = |_: &mut PoolState| self.shared.finished.load(Ordering::Acquire) == 0;
        drop(
            self.shared
                .done
                .wait_timeout_while(state, limit, nothing)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    pub(crate) fn reap(&mut self, answers: &mut Vec<PieceAnswer>) {
        // Looked at without the lock, because most looks find nothing and the threads need the
        // lock.
        if self.shared.finished.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut state = self.shared.state();
        answers.append(&mut state.answers);
        // The answers were taken under the lock under which the threads count, so list and counter
        // agree.
        self.outstanding -= self.shared.finished.swap(0, Ordering::AcqRel);
    }
}

impl PoolShared {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one thread.
    fn serve(&self) {
        priority::raise();
        while let Some(job) = self.take() {
            let result = self.calls.carry_out(job.action, job.start, job.bytes);
            let mut state = self.state();
            state.answers.push(PieceAnswer::Done {
                user: job.user,
                result,
            });
            // Counted under the lock, so that `reap` never finds more finished jobs than answers.
            self.finished.fetch_add(1, Ordering::AcqRel);
            // The lock is free before the wake-up, or the woken thread would wait for it at once.
            drop(state);
            self.done.notify_one();
        }
    }

    /// Takes the next job. The time stamp is taken under the lock, so that beginnings are reported
    /// in order.
    fn take(&self) -> Option<ThreadJob> {
        let nothing = |state: &mut PoolState| state.jobs.is_empty() && !state.closed;
        let state = self.work.wait_while(self.state(), nothing);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let job = state.jobs.pop_front()?;
        state.answers.push(PieceAnswer::Begun {
            user: job.user,
            at: Instant::now(),
        });
        Some(job)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.closed = true;
        // Jobs that have not begun are dropped; their requests were never issued.
        state.jobs.clear();
        drop(state);
        self.shared.work.notify_all();
        // A thread that hangs in the kernel is left there.
        // All threads are idle and end when they see that the pool is closed.
        if self.outstanding == 0 {
            self.threads
                .drain(..)
                .for_each(|thread| drop(thread.join()));
        }
    }
}
