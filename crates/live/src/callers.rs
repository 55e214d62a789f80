//! Callers on a socket beside the event loop: a thread each, a bounded number
//! of them, and a deadline for every exchange.

#[cfg(test)]
pub(crate) mod testing;

use crate::poll::Bell;
use crate::socket::{Listener, Stream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Callers at a time. Beyond, whoever has been silent longest is cut off; if all
/// are being answered, the new one is turned away.
pub(crate) const CALLERS_MAX: usize = 16;
/// With those that were cut off, and whose threads have not noticed yet.
const THREADS_MAX: usize = 2 * CALLERS_MAX;

/// Until it is tried again to accept, if the host refuses.
const RETRY: Duration = Duration::from_millis(100);

/// What callers are told.
pub(crate) trait Service: Send + Sync + 'static {
    /// Talks to a caller, until one of the two has had enough.
    fn talk(&self, caller: &Caller);

    /// Says, without waiting for anything, that too many are calling.
    fn turn_away(&self, caller: &Caller);
}

/// Accepts callers until it is dropped; then all of them are cut off, and no
/// thread is left.
pub(crate) struct Reception {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

/// A caller's end of the line.
pub(crate) struct Caller {
    line: Arc<Stream>,
    silence: Silence,
}

/// Since when a caller has owed a question; `None` while it is being answered.
type Silence = Arc<Mutex<Option<Instant>>>;

/// A caller that is being talked to.
struct Conversation {
    line: Arc<Stream>,
    silence: Silence,
    thread: JoinHandle<()>,
    cut_off: bool,
}

impl Reception {
    /// Accepts from `listener`, which does not block, in threads of this name.
    pub(crate) fn open(listener: Listener, name: &str, service: impl Service) -> io::Result<Reception> {
        let bell = Arc::new(Bell::new()?);
        let thread = {
            let (bell, callers) = (Arc::clone(&bell), name.to_owned());
            let receive = move || receive(&listener, &bell, &callers, &Arc::new(service));
            thread::Builder::new().name(name.to_owned()).spawn(receive)?
        };
        Ok(Reception { bell, thread: Some(thread) })
    }
}

impl Drop for Reception {
    fn drop(&mut self) {
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            // It ends in any case; a panic in it has been reported.
            let _ = thread.join();
        }
    }
}

/// Accepts until the bell rings, then ends all conversations.
fn receive(listener: &Listener, bell: &Bell, name: &str, service: &Arc<impl Service>) {
    let mut conversations: Vec<Conversation> = Vec::new();
    while wait_for_caller(listener, bell) {
        conversations.retain(|conversation| !conversation.thread.is_finished());
        accept_all(listener, name, service, &mut conversations);
    }
    for conversation in &conversations {
        // The caller may have gone by itself.
        let _ = shutdown(&*conversation.line, Shutdown::Both);
    }
    for conversation in conversations {
        let _ = conversation.thread.join();
    }
}

/// Whether somebody calls, rather than that the bell rings.
fn wait_for_caller(listener: &Listener, bell: &Bell) -> bool {
    let mut waiting = [PollFd::new(listener, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
    loop {
        match poll(&mut waiting, None) {
            Ok(_) => return waiting[1].revents().is_empty(),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn accept_all(
    listener: &Listener,
    name: &str,
    service: &Arc<impl Service>,
    conversations: &mut Vec<Conversation>,
) {
    loop {
        let line = match listener.accept() {
            Ok(stream) => Arc::new(stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            // No descriptor is free: later, perhaps.
            Err(_) => return thread::sleep(RETRY),
        };
        let caller = Caller { line: Arc::clone(&line), silence: Silence::default() };
        caller.listens();
        let silence = Arc::clone(&caller.silence);
        if !make_room(conversations) {
            service.turn_away(&caller);
            continue;
        }
        let service = Arc::clone(service);
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || {
            service.talk(&caller);
            // The reception holds the line as well, so that dropping it here
            // would not hang up.
            let _ = shutdown(&*caller.line, Shutdown::Both);
        });
        // Without a thread to spare, dropping the line says it.
        if let Ok(thread) = spawned {
            conversations.push(Conversation { line, silence, thread, cut_off: false });
        }
    }
}

/// Whether there is room for another caller; if need be, the one that has been
/// silent longest is cut off, so that nobody keeps others out by saying nothing.
fn make_room(conversations: &mut Vec<Conversation>) -> bool {
    conversations.retain(|conversation| !conversation.thread.is_finished());
    let talking = conversations.iter().filter(|conversation| !conversation.cut_off).count();
    if talking < CALLERS_MAX {
        return true;
    }
    if conversations.len() >= THREADS_MAX {
        return false;
    }
    let silent = conversations
        .iter_mut()
        .filter(|conversation| !conversation.cut_off)
        .filter_map(|conversation| {
            let since = *conversation.silence.lock().unwrap_or_else(PoisonError::into_inner);
            Some((since?, conversation))
        })
        .min_by_key(|(since, _)| *since);
    let Some((_, conversation)) = silent else { return false };
    conversation.cut_off = true;
    // The caller may have gone by itself.
    let _ = shutdown(&*conversation.line, Shutdown::Both);
    true
}

impl Caller {
    /// The line to whoever is at the other end; it must not block.
    pub(crate) fn new(stream: Stream) -> Caller {
        Caller { line: Arc::new(stream), silence: Silence::default() }
    }

    /// A question is waited for from now on: whoever owes one may have to make
    /// room for others.
    pub(crate) fn listens(&self) {
        self.owes_since(Some(Instant::now()));
    }

    /// A question is there, and is being answered.
    pub(crate) fn answers(&self) {
        self.owes_since(None);
    }

    fn owes_since(&self, since: Option<Instant>) {
        *self.silence.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Reads what has come, once there is something; 0 when the caller has said
    /// all.
    pub(crate) fn read_by(&self, deadline: Instant, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match recv(&*self.line, &mut *into, RecvFlags::empty()) {
                Ok((count, _)) => return Ok(count),
                Err(Errno::WOULDBLOCK) => self.wait(PollFlags::IN, deadline)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes all of `bytes`.
    pub(crate) fn write_by(&self, deadline: Instant, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(&*self.line, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::WOULDBLOCK) => self.wait(PollFlags::OUT, deadline)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Says that nothing more will be written.
    pub(crate) fn end_output(&self) {
        // The caller may have gone by itself.
        let _ = shutdown(&*self.line, Shutdown::Write);
    }

    fn wait(&self, what: PollFlags, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&*self.line, what)], Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
