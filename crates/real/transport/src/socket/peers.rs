//! Peers on a socket beside the event loop: a thread each, a bounded number
//! of them, and a deadline for every exchange.

use crate::socket::sockets::{Listener, Stream};
use crate::socket::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Peers at a time. Beyond, whoever has been silent longest is cut off; if all
/// are being answered, the new one is refused.
pub const PEERS_MAX: usize = 16;
/// With those that were cut off, and whose threads have not noticed yet.
const THREADS_MAX: usize = 2 * PEERS_MAX;

/// Until it is tried again to accept, if the host refuses.
const RETRY: Duration = Duration::from_millis(100);

/// What peers are told.
pub trait Service: Send + Sync + 'static {
    /// Talks to a peer, until one of the two has had enough.
    fn serve(&self, peer: &Peer);

    /// True if whoever is at the other end may come in.
    fn admits(&self, _stream: &Stream) -> bool {
        true
    }

    /// Says, without waiting for anything, that too many are connected.
    fn refuse(&self, peer: &Peer);
}

/// Accepts peers until it is dropped; then all of them are cut off, and no
/// thread is left.
pub struct AcceptLoop {
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

/// The connection to a peer.
pub struct Peer {
    stream: Arc<Stream>,
    idle_since: IdleSince,
}

/// Since when a peer has sent no request; `None` while one is being answered.
type IdleSince = Arc<Mutex<Option<Instant>>>;

/// A peer that is being served.
struct PeerThread {
    /// The thread alone keeps the socket: the socket is closed when the thread ends, and not when the next
    /// peer comes.
    stream: Weak<Stream>,
    idle_since: IdleSince,
    handle: JoinHandle<()>,
    /// The thread has served its peer.
    has_ended: Arc<AtomicBool>,
    cut_off: bool,
}

/// What a wait has ended with.
enum Woken {
    /// Somebody connects.
    Connected,
    /// A peer's thread has ended.
    Ended,
    /// No more peers are served.
    Stopped,
}

impl AcceptLoop {
    /// Accepts from `listener`, which does not block, in threads of this name.
    ///
    /// # Errors
    /// The host has no thread.
    pub fn open(listener: Listener, name: &str, service: impl Service) -> io::Result<AcceptLoop> {
        let waker = Arc::new(Waker::new()?);
        let thread = {
            let (waker, peers) = (Arc::clone(&waker), name.to_owned());
            let accept = move || accept_until_woken(&listener, &waker, &peers, &Arc::new(service));
            thread::Builder::new().name(name.to_owned()).spawn(accept)?
        };
        Ok(AcceptLoop {
            waker,
            thread: Some(thread),
        })
    }
}

impl Drop for AcceptLoop {
    fn drop(&mut self) {
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // It ends in any case; a panic in it has been reported.
            let _ = thread.join();
        }
    }
}

/// Accepts until it is woken, then ends all threads.
fn accept_until_woken(listener: &Listener, waker: &Waker, name: &str, service: &Arc<impl Service>) {
    let mut threads: Vec<PeerThread> = Vec::new();
    // Without a descriptor for it, ended threads wait for the next peer.
    let ended = Waker::new().ok().map(Arc::new);
    loop {
        match wait(listener, waker, ended.as_deref()) {
            Woken::Stopped => break,
            Woken::Ended => {
                ended.iter().for_each(|ended| ended.clear());
                join_ended(&mut threads);
            }
            Woken::Connected => {
                join_ended(&mut threads);
                accept_all(listener, name, service, ended.as_ref(), &mut threads);
            }
        }
    }
    threads.iter().for_each(PeerThread::hang_up);
    for thread in threads {
        let _ = thread.handle.join();
    }
}

/// Joins the threads whose peers have been served: they return at once.
fn join_ended(threads: &mut Vec<PeerThread>) {
    for index in (0..threads.len()).rev() {
        if threads[index].has_ended.load(Ordering::Acquire) {
            // A panic in it has been reported.
            let _ = threads.swap_remove(index).handle.join();
        }
    }
}

impl PeerThread {
    fn hang_up(&self) {
        if let Some(stream) = self.stream.upgrade() {
            // The peer may have gone by itself.
            let _ = shutdown(&*stream, Shutdown::Both);
        }
    }
}

/// Waits until somebody connects, a thread ends, or the loop is to end.
fn wait(listener: &Listener, waker: &Waker, ended: Option<&Waker>) -> Woken {
    let mut waiting = vec![
        PollFd::new(waker, PollFlags::IN),
        PollFd::new(listener, PollFlags::IN),
    ];
    waiting.extend(ended.map(|ended| PollFd::new(ended, PollFlags::IN)));
    loop {
        match poll(&mut waiting, None) {
            Ok(_) if !waiting[0].revents().is_empty() => return Woken::Stopped,
            Ok(_) if !waiting[1].revents().is_empty() => return Woken::Connected,
            Ok(_) => return Woken::Ended,
            Err(Errno::INTR) => {}
            Err(_) => return Woken::Stopped,
        }
    }
}

/// Says that a thread has served its peer, also if the thread panics.
struct Ending {
    has_ended: Arc<AtomicBool>,
    waker: Option<Arc<Waker>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Release);
        self.waker.iter().for_each(|waker| waker.wake());
    }
}

fn accept_all(
    listener: &Listener,
    name: &str,
    service: &Arc<impl Service>,
    ended: Option<&Arc<Waker>>,
    threads: &mut Vec<PeerThread>,
) {
    loop {
        let stream = match listener.accept() {
            Ok(stream) => Arc::new(stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            // No descriptor is free: later, perhaps.
            Err(_) => return thread::sleep(RETRY),
        };
        if !service.admits(&stream) {
            continue;
        }
        let (kept, has_ended) = (Arc::downgrade(&stream), Arc::new(AtomicBool::new(false)));
        let ending = Ending {
            has_ended: Arc::clone(&has_ended),
            waker: ended.cloned(),
        };
        let peer = Peer {
            stream,
            idle_since: IdleSince::default(),
        };
        peer.awaits_request();
        let idle_since = Arc::clone(&peer.idle_since);
        if !make_room(threads) {
            service.refuse(&peer);
            continue;
        }
        let service = Arc::clone(service);
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Dropped last, when the peer's socket is closed.
            let _ending = ending;
            let peer = peer;
            service.serve(&peer);
            // The accept loop may be about to cut the peer off, and hold the stream as well.
            let _ = shutdown(&*peer.stream, Shutdown::Both);
        });
        // Without a thread to spare, dropping the stream says it.
        if let Ok(handle) = spawned {
            threads.push(PeerThread {
                stream: kept,
                idle_since,
                handle,
                has_ended,
                cut_off: false,
            });
        }
    }
}

/// Whether there is room for another peer; if need be, the one that has been
/// silent longest is cut off, so that nobody keeps others out by saying nothing.
fn make_room(threads: &mut Vec<PeerThread>) -> bool {
    join_ended(threads);
    let served = threads.iter().filter(|thread| !thread.cut_off).count();
    if served < PEERS_MAX {
        return true;
    }
    if threads.len() >= THREADS_MAX {
        return false;
    }
    let silent = threads
        .iter_mut()
        .filter(|thread| !thread.cut_off)
        .filter_map(|thread| {
            let since = *thread
                .idle_since
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            Some((since?, thread))
        })
        .min_by_key(|(since, _)| *since);
    let Some((_, thread)) = silent else {
        return false;
    };
    thread.cut_off = true;
    thread.hang_up();
    true
}

impl Peer {
    /// The stream to whoever is at the other end; it must not block.
    pub fn new(stream: Stream) -> Peer {
        Peer {
            stream: Arc::new(stream),
            idle_since: IdleSince::default(),
        }
    }

    /// The address at which the peer has reached this host, if it is one of a network.
    pub fn local(&self) -> Option<std::net::IpAddr> {
        self.stream.local()
    }

    /// A request is waited for from now on: whoever sends none may have to make
    /// room for others.
    pub fn awaits_request(&self) {
        self.set_idle_since(Some(Instant::now()));
    }

    /// A request is there, and is being answered.
    pub fn has_request(&self) {
        self.set_idle_since(None);
    }

    fn set_idle_since(&self, since: Option<Instant>) {
        *self
            .idle_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Reads what has come, once there is something; 0 when the peer has said
    /// all.
    ///
    /// # Errors
    /// The host's, or the deadline has passed.
    pub fn read_by(&self, deadline: Instant, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match recv(&*self.stream, &mut *into, RecvFlags::empty()) {
                Ok((count, _)) => return Ok(count),
                Err(Errno::WOULDBLOCK) => self.wait(PollFlags::IN, deadline)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// The host's, or the deadline has passed.
    pub fn write_by(&self, deadline: Instant, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(&*self.stream, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::WOULDBLOCK) => self.wait(PollFlags::OUT, deadline)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Says that nothing more will be written.
    pub fn end_output(&self) {
        // The peer may have gone by itself.
        let _ = shutdown(&*self.stream, Shutdown::Write);
    }

    fn wait(&self, what: PollFlags, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&*self.stream, what)], Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
