//! Devices that hang. A request beyond the time limit counts as failed.
//!
//! A thread waiting for the kernel cannot be interrupted. So another thread makes the request, with
//! memory of its own, and the caller waits no longer than the limit. After that the device has
//! hung: this request and all later ones fail at once, as with an I/O error, and the array
//! continues without the member. The hanging thread stays behind with its memory, and ends when the
//! kernel releases it. Requests through io_uring have the same limit (`transfer/ring.rs`). The
//! opening of a device has a limit in the same way.

use crate::device::{Aligned, EndedRead, TakeRead};
use crate::limit::{Limit, no_answer};
use crate::stop_control::Standby;
use crate::{ArrayError, Device, FileDevice, OpenPurpose};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

impl FileDevice {
    /// Opens a device or file as [`open`](FileDevice::open) does, within a time limit; zero means
    /// no limit.
    ///
    /// # Errors
    /// As [`open`](FileDevice::open). A device that does not answer within the limit is
    /// [gone](ArrayError::Gone).
    pub fn open_within(
        path: &Path,
        access: OpenPurpose,
        limit: Duration,
    ) -> Result<FileDevice, ArrayError> {
        let own = path.to_owned();
        let open = move || FileDevice::open(&own, access);
        opened_within(&path.display().to_string(), limit, open)
    }
}

fn opened_within<T: Send + 'static>(
    name: &str,
    limit: Duration,
    open: impl FnOnce() -> Result<T, ArrayError> + Send + 'static,
) -> Result<T, ArrayError> {
    if limit.is_zero() {
        return open();
    }
    let (say, hear) = sync_channel(1);
    let begun = std::thread::Builder::new()
        .name("opening".into())
        .spawn(move || {
            // After the limit nobody listens, and a device that opens late is closed again.
            let _ = say.send(open());
        });
    begun.map_err(|error| ArrayError::device(name.to_owned(), "open", error))?;
    match hear.recv_timeout(limit) {
        Ok(opened) => opened,
        Err(RecvTimeoutError::Disconnected) => Err(ArrayError::Refused(format!(
            "`{name}`: the thread that opens the device has ended early"
        ))),
        Err(RecvTimeoutError::Timeout) => Err(ArrayError::Gone {
            device: name.to_owned(),
            source: no_answer(limit),
        }),
    }
}

/// A device whose requests have a time limit.
pub struct Timed {
    inner: Arc<dyn Device>,
    limit: Arc<Limit>,
    hands: Arc<RequestThreads>,
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that make requests.
#[derive(Default)]
struct RequestThreads {
    state: Mutex<TimedQueue>,
    more: Condvar,
}

#[derive(Default)]
struct TimedQueue {
    jobs: VecDeque<Job>,
    idle: usize,
    is_over: bool,
}

impl Timed {
    /// The device, with a limit for each request; the device itself if the limit is zero.
    pub fn limited(inner: Arc<dyn Device>, each: Duration) -> Arc<dyn Device> {
        if each.is_zero() {
            return inner;
        }
        Arc::new(Timed {
            inner,
            limit: Arc::new(Limit::new(each)),
            hands: Arc::default(),
        })
    }

    fn within<T: Send + 'static>(
        &self,
        act: impl FnOnce(&dyn Device) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.limit.check()?;
        let (say, hear) = sync_channel(1);
        let inner = Arc::clone(&self.inner);
        self.hands.give(Box::new(move || {
            // The caller may have given up.
            let _ = say.send(act(&*inner));
        }))?;
        match hear.recv_timeout(self.limit.each()) {
            Ok(result) => result,
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::Other.into()),
            Err(RecvTimeoutError::Timeout) => {
                self.limit.note_timeout();
                Err(no_answer(self.limit.each()))
            }
        }
    }
}

impl RequestThreads {
    /// Passes a job to an idle thread, or to a new one.
    fn give(self: &Arc<RequestThreads>, job: Job) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs.push_back(job);
        // A thread that was notified counts as idle until it runs, and its job is still in the
        // queue.
        if state.idle >= state.jobs.len() {
            drop(state);
            self.more.notify_one();
            return Ok(());
        }
        let hands = Arc::clone(self);
        let begun = std::thread::Builder::new()
            .name("member".into())
            .spawn(move || hands.work());
        if begun.is_err() {
            // The last job is still this one, because the state was locked all the time.
            state.jobs.pop_back();
        }
        begun.map(drop)
    }

    fn work(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            } else if state.is_over {
                return;
            } else {
                state.idle += 1;
                state = self
                    .more
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                assert!(state.idle > 0, "more threads go on than have waited");
                state.idle -= 1;
            }
        }
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        let mut state = self
            .hands
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        drop(state);
        self.hands.more.notify_all();
    }
}

impl Device for Timed {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
    fn block_bytes(&self) -> u64 {
        self.inner.block_bytes()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let length = into.len();
        let began = Instant::now();
        let mut read = self.within(move |device| {
            let mut buffer = Aligned::default();
            device.read(at, buffer.of(length)).map(|()| buffer)
        })?;
        self.limit.note_read(began.elapsed());
        into.copy_from_slice(read.of(length));
        Ok(())
    }
    fn begin_read(&self, at: u64, bytes: usize, take: TakeRead) -> io::Result<Option<u64>> {
        self.limit.check()?;
        let (inner, limit) = (Arc::clone(&self.inner), Arc::clone(&self.limit));
        let began = Instant::now();
        let number = self.limit.begin_read(began);
        let given = self.hands.give(Box::new(move || {
            let mut buffer = Aligned::default();
            let result = inner.read(at, buffer.of(bytes)).map(|()| buffer);
            let took = began.elapsed();
            if result.is_ok() {
                limit.note_read(took);
            }
            // Whoever waits for the last read under way may open the device again.
            drop(inner);
            let is_left = limit.end_read(number);
            take(EndedRead {
                result,
                took,
                is_left,
            });
        }));
        match given {
            Ok(()) => Ok(Some(number)),
            Err(error) => {
                self.limit.end_read(number);
                Err(error)
            }
        }
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let length = from.len();
        let mut buffer = Aligned::default();
        buffer.of(length).copy_from_slice(from);
        self.within(move |device| device.write(at, buffer.of(length)))
    }
    fn flush(&self) -> io::Result<()> {
        self.within(|device| device.flush())
    }
    fn trims(&self) -> bool {
        self.inner.trims()
    }
    fn trim(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.within(move |device| device.trim(at, bytes))
    }
    fn allocate(&self) -> io::Result<()> {
        self.inner.allocate()
    }
    fn next_data(&self, at: u64, bytes: u64) -> io::Result<Option<Range<u64>>> {
        self.inner.next_data(at, bytes)
    }
    fn is_volatile(&self) -> bool {
        self.inner.is_volatile()
    }
    fn is_zero(&self) -> bool {
        self.inner.is_zero()
    }
    fn is_cached(&self) -> bool {
        self.inner.is_cached()
    }
    fn descriptor(&self) -> Option<RawFd> {
        // A device that has hung fails at once through its own calls, so io_uring does not get it.
        self.inner
            .descriptor()
            .filter(|_| self.limit.check().is_ok())
    }
    fn standby(&self) -> Option<&Standby> {
        self.inner.standby()
    }
    fn limit(&self) -> Option<&Limit> {
        Some(&self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LIMIT: Duration = Duration::from_millis(200);
    const AMPLE: Duration = Duration::from_secs(60);

    #[test]
    fn a_device_that_hangs_while_it_is_opened_is_gone_and_named() {
        let (release, wait) = channel::<()>();
        let (closed, hear) = channel();
        struct Late(std::sync::mpsc::Sender<()>);
        impl Drop for Late {
            fn drop(&mut self) {
                self.0.send(()).unwrap();
            }
        }
        let open = move || {
            wait.recv().unwrap();
            Ok(Late(closed))
        };
        let Err(error) = opened_within("/dev/sdx", LIMIT, open) else {
            panic!("the device has not answered");
        };
        assert!(matches!(error, ArrayError::Gone { .. }));
        assert_eq!(error.to_string(), "`/dev/sdx`: no answer within 0.2 s");
        release.send(()).unwrap();
        hear.recv_timeout(AMPLE)
            .expect("a device that opens late is closed");
    }

    #[test]
    fn a_device_that_opens_within_the_limit_is_opened_as_without_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        for limit in [Duration::ZERO, AMPLE] {
            let open = || FileDevice::open_within(&path, OpenPurpose::Look, limit);
            assert!(matches!(open(), Err(ArrayError::Gone { .. })), "{limit:?}");
            std::fs::write(&path, [7; 4096]).unwrap();
            assert_eq!(open().unwrap().bytes(), 4096);
            std::fs::remove_file(&path).unwrap();
        }
    }
}
