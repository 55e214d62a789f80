//! A device's requests and their answers.
//!
//! One thread owns all tags of the device, because the kernel accepts a tag's answer only from the
//! thread that fetched the tag. Other threads add their answers to a list and wake this thread.

use crate::socket::Waker;
use crate::ublk::UblkError;
use crate::ublk::wire::{self, DESCRIPTION_BYTES, Description, UblkOperation};
use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::FileExt as _;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Queue depth: as many requests as an NBD client may have in flight.
pub(crate) const DEPTH: u16 = 128;
/// Tag of the waker's entry in the ring.
const WOKEN: u64 = u64::MAX;

/// The receiver of requests.
pub trait Serves: Send + Sync + 'static {
    /// Receives a request for the device. The answer is given by [`UblkRequest::answer`], on any
    /// thread. A dropped request is answered with an error.
    fn asked(&self, request: UblkRequest);
}

/// State shared by the queue's thread and the answering threads.
pub(crate) struct QueueShared {
    /// The character device.
    file: File,
    answers: Mutex<Vec<TaggedAnswer>>,
    waker: Waker,
    over: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
struct TaggedAnswer {
    tag: u16,
    result: i32,
}

impl QueueShared {
    pub(crate) fn new(file: File) -> io::Result<Arc<QueueShared>> {
        let (answers, over) = (Mutex::default(), AtomicBool::new(false));
        Ok(Arc::new(QueueShared {
            file,
            answers,
            waker: Waker::new()?,
            over,
        }))
    }

    fn answers(&self) -> MutexGuard<'_, Vec<TaggedAnswer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the device is no longer served.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

/// A request for the device.
pub struct UblkRequest {
    shared: Arc<QueueShared>,
    tag: u16,
    operation: UblkOperation,
    durable: bool,
    offset_bytes: u64,
    length_bytes: u64,
    is_answered: bool,
}

impl UblkRequest {
    /// Returns the operation.
    pub fn operation(&self) -> UblkOperation {
        self.operation
    }

    /// Returns true if the written data must be durable before the answer (FUA).
    pub fn is_durable(&self) -> bool {
        self.durable
    }

    /// Returns the offset from the beginning of the device; meaningless for a flush.
    pub fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    /// Returns the length in bytes; 0 for a flush.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Copies the data of a write into `into`.
    ///
    /// # Errors
    /// An error of the kernel: the request no longer exists.
    pub fn take(&self, into: &mut [u8]) -> io::Result<()> {
        assert!(
            into.len() as u64 <= self.length_bytes,
            "{} bytes of a request of {}",
            into.len(),
            self.length_bytes
        );
        self.shared
            .file
            .read_exact_at(into, wire::data_at(self.tag))
    }

    /// Copies the data of a read from `from`.
    ///
    /// # Errors
    /// An error of the kernel: the request no longer exists.
    pub fn give(&self, from: &[u8]) -> io::Result<()> {
        assert!(
            from.len() as u64 <= self.length_bytes,
            "{} bytes for a request of {}",
            from.len(),
            self.length_bytes
        );
        self.shared.file.write_all_at(from, wire::data_at(self.tag))
    }

    /// Answers the request with success, or with an error number (`EIO`).
    pub fn answer(mut self, done: Result<(), i32>) {
        self.send(done);
    }

    fn send(&mut self, done: Result<(), i32>) {
        let result = match (done, self.operation) {
            // The count fits into an i32, because it is at most the longest request.
            (Ok(()), UblkOperation::Read | UblkOperation::Write) => self.length_bytes as i32,
            (Ok(()), _) => 0,
            (Err(number), _) => -number.abs(),
        };
        assert!(!self.is_answered, "a request is answered once");
        self.is_answered = true;
        self.shared.answers().push(TaggedAnswer {
            tag: self.tag,
            result,
        });
        self.shared.waker.wake();
    }
}

impl Drop for UblkRequest {
    fn drop(&mut self) {
        if !self.is_answered {
            self.send(Err(libc::EIO));
        }
    }
}

/// Table of request descriptions by tag, written by the kernel.
struct Descriptions {
    start: *mut libc::c_void,
    length: usize,
}

impl Descriptions {
    #[expect(unsafe_code, reason = "memory that the kernel writes")]
    fn of(file: &File) -> io::Result<Descriptions> {
        let length = usize::from(DEPTH) * DESCRIPTION_BYTES;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address chosen by the kernel. No references point into it.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                ProtFlags::READ,
                flags,
                file.as_fd(),
                0,
            )
        }?;
        Ok(Descriptions { start, length })
    }

    /// Returns the description of a tag handed over by the kernel.
    #[expect(unsafe_code, reason = "memory that the kernel writes")]
    fn of_tag(&self, tag: u16) -> Description {
        assert!(tag < DEPTH, "the kernel has named a tag that is none");
        let at = usize::from(tag) * DESCRIPTION_BYTES;
        // SAFETY: the tag is within the mapping. The kernel writes there only while it owns the
        // tag.
        let bytes = unsafe {
            ptr::read_volatile(
                self.start
                    .cast::<u8>()
                    .add(at)
                    .cast::<[u8; DESCRIPTION_BYTES]>(),
            )
        };
        Description::from_bytes(&bytes)
    }
}

impl Drop for Descriptions {
    #[expect(unsafe_code, reason = "the counterpart of its mapping")]
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, and unmapped once.
        let _ = unsafe { munmap(self.start, self.length) };
    }
}

/// State of the queue's thread.
struct QueueState {
    ring: IoUring,
    descriptions: Descriptions,
    shared: Arc<QueueShared>,
    serves: Arc<dyn Serves>,
    /// Number of tags still to be handed over by the kernel.
    alive: u16,
}

/// Serves the device until the kernel has taken back all tags. Sends to `ready` when the device may
/// be started, or why not.
pub(crate) fn run(
    shared: Arc<QueueShared>,
    serves: Arc<dyn Serves>,
    ready: &Sender<Result<(), UblkError>>,
) {
    // The thread that started this one waits for the message.
    match QueueState::begin(&shared, serves) {
        Ok(queue) => {
            let _ = ready.send(Ok(()));
            if let Err(error) = queue.serve() {
                eprintln!("fullstroke: the block device is served no more: {error}");
            }
        }
        Err(error) => drop(ready.send(Err(error))),
    }
    shared.over.store(true, Ordering::SeqCst);
}

impl QueueState {
    fn begin(shared: &Arc<QueueShared>, serves: Arc<dyn Serves>) -> Result<QueueState, UblkError> {
        let refused = UblkError::refused;
        let mut queue = QueueState {
            // Room for the tags and the waker.
            ring: IoUring::new(2 * u32::from(DEPTH)).map_err(refused("make a ring for"))?,
            descriptions: Descriptions::of(&shared.file).map_err(refused("map the requests of"))?,
            shared: Arc::clone(shared),
            serves,
            alive: DEPTH,
        };
        queue.push_waker();
        for tag in 0..DEPTH {
            queue.push_tag(wire::FETCH, TaggedAnswer { tag, result: 0 });
        }
        queue
            .ring
            .submit()
            .map_err(refused("fetch the requests of"))?;
        // The kernel reports a refused fetch at once.
        let refusal = queue
            .ring
            .completion()
            .find(|entry| entry.user_data() != WOKEN);
        match refusal {
            Some(entry) => {
                let source = io::Error::from_raw_os_error(entry.result().saturating_neg());
                Err(refused("fetch the requests of")(source))
            }
            None => Ok(queue),
        }
    }

    fn push_waker(&mut self) {
        let waker = Fd(self.shared.waker.as_fd().as_raw_fd());
        self.push(
            opcode::PollAdd::new(waker, libc::POLLIN as u32)
                .build()
                .user_data(WOKEN),
        );
    }

    fn push_tag(&mut self, number: u32, answer: TaggedAnswer) {
        let words = wire::answer(answer.tag, answer.result);
        let file = Fd(self.shared.file.as_raw_fd());
        let entry = opcode::UringCmd16::new(file, number).cmd(words).build();
        self.push(entry.user_data(answer.tag.into()));
    }

    #[expect(unsafe_code, reason = "entries of a ring")]
    fn push(&mut self, entry: squeue::Entry) {
        // SAFETY: neither kind of entry refers to memory.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(
            pushed.is_ok(),
            "there is an entry for each tag and for what wakes"
        );
    }

    fn serve(mut self) -> io::Result<()> {
        let mut ended = Vec::new();
        while self.alive > 0 {
            if let Err(error) = self.ring.submit_and_wait(1)
                && !is_passing(&error)
            {
                return Err(error);
            }
            ended.extend(
                self.ring
                    .completion()
                    .map(|entry| (entry.user_data(), entry.result())),
            );
            for (user, result) in ended.drain(..) {
                match u16::try_from(user) {
                    Ok(tag) if result == 0 => self.hand_on(tag),
                    // The kernel has taken back the tag: UBLK_IO_RES_ABORT.
                    Ok(_) => self.alive -= 1,
                    Err(_) => {
                        self.shared.waker.clear();
                        self.push_waker();
                    }
                }
            }
            let answers = mem::take(&mut *self.shared.answers());
            for answer in answers {
                self.push_tag(wire::COMMIT_AND_FETCH, answer);
            }
        }
        Ok(())
    }

    fn hand_on(&mut self, tag: u16) {
        let Description {
            operation,
            durable,
            offset_bytes,
            length_bytes,
        } = self.descriptions.of_tag(tag);
        let Some(operation) = operation else {
            return self.push_tag(
                wire::COMMIT_AND_FETCH,
                TaggedAnswer {
                    tag,
                    result: -libc::EOPNOTSUPP,
                },
            );
        };
        let shared = Arc::clone(&self.shared);
        let is_answered = false;
        self.serves.asked(UblkRequest {
            shared,
            tag,
            operation,
            durable,
            offset_bytes,
            length_bytes,
            is_answered,
        });
    }
}

/// Returns true if a wait only ended early. The caller tries again.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ETIME)
    )
}
