//! Peers on a socket beside the event loop: a thread for each, a bounded number of peers, and a
//! deadline for every exchange.

use crate::socket::sockets::{ClientSocket, Listener};
use crate::socket::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Largest number of peers. Beyond, the peer that has been silent longest is disconnected. If all
/// peers are being answered, the new peer is refused.
pub const PEERS_MAX: usize = 16;
/// Largest number of threads, including those whose peer was disconnected and that have not ended.
const THREADS_MAX: usize = 2 * PEERS_MAX;

/// Pause before the next accept, if the host refuses.
const RETRY: Duration = Duration::from_millis(100);

/// A service for peers.
pub trait PeerService: Send + Sync + 'static {
    /// Serves a peer until either side ends.
    fn serve(&self, peer: &Peer);

    /// Returns true if the other end may connect.
    fn admits(&self, _stream: &ClientSocket) -> bool {
        true
    }

    /// Tells a peer, without waiting, that too many are connected.
    fn refuse(&self, peer: &Peer);
}

/// Accepts peers until dropped. Then all peers are disconnected and all threads end.
pub struct AcceptLoop {
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

/// The connection to a peer.
pub struct Peer {
    stream: Arc<ClientSocket>,
    idle_since: IdleSince,
}

/// Time since which a peer has sent no request; `None` while a request is being answered.
type IdleSince = Arc<Mutex<Option<Instant>>>;

/// A connected peer.
struct PeerThread {
    /// Only the thread keeps the socket alive. So the socket is closed when the thread ends, and
    /// not later, when the next peer comes.
    stream: Weak<ClientSocket>,
    idle_since: IdleSince,
    handle: JoinHandle<()>,
    /// True when the thread has served its peer.
    has_ended: Arc<AtomicBool>,
    cut_off: bool,
}

/// Reason why a wait ended.
enum WaitEnd {
    /// A peer connects.
    Connected,
    /// A peer's thread has ended.
    Ended,
    /// The loop must stop.
    Stopped,
}

impl AcceptLoop {
    /// Accepts from `listener`, which must not block, in threads with the name `name`.
    ///
    /// # Errors
    /// If the host provides no thread.
    pub fn open(
        listener: Listener,
        name: &str,
        service: impl PeerService,
    ) -> io::Result<AcceptLoop> {
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
            // The thread ends in any case. A panic in it has been reported.
            let _ = thread.join();
        }
    }
}

/// Accepts peers until woken, then ends all threads.
fn accept_until_woken(
    listener: &Listener,
    waker: &Waker,
    name: &str,
    service: &Arc<impl PeerService>,
) {
    let mut threads: Vec<PeerThread> = Vec::new();
    // Without a descriptor for this waker, ended threads are joined when the next peer comes.
    let ended = Waker::new().ok().map(Arc::new);
    loop {
        match wait(listener, waker, ended.as_deref()) {
            WaitEnd::Stopped => break,
            WaitEnd::Ended => {
                ended.iter().for_each(|ended| ended.clear());
                join_ended(&mut threads);
            }
            WaitEnd::Connected => {
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

/// Joins the finished threads. The joins return at once.
fn join_ended(threads: &mut Vec<PeerThread>) {
    // From the end, because `swap_remove` moves the last entry to the freed place, and the last was
    // looked at before.
    for index in (0..threads.len()).rev() {
        // Acquire pairs with the Release in `Ending`: all that the thread has done is visible.
        if threads[index].has_ended.load(Ordering::Acquire) {
            // A panic in the thread has been reported.
            let _ = threads.swap_remove(index).handle.join();
        }
    }
}

impl PeerThread {
    fn hang_up(&self) {
        if let Some(stream) = self.stream.upgrade() {
            // The peer may have disconnected before.
            let _ = shutdown(&*stream, Shutdown::Both);
        }
    }
}

/// Waits until a peer connects, a thread ends, or the loop must end.
fn wait(listener: &Listener, waker: &Waker, ended: Option<&Waker>) -> WaitEnd {
    let mut waiting = vec![
        PollFd::new(waker, PollFlags::IN),
        PollFd::new(listener, PollFlags::IN),
    ];
    waiting.extend(ended.map(|ended| PollFd::new(ended, PollFlags::IN)));
    loop {
        match poll(&mut waiting, None) {
            Ok(_) if !waiting[0].revents().is_empty() => return WaitEnd::Stopped,
            Ok(_) if !waiting[1].revents().is_empty() => return WaitEnd::Connected,
            Ok(_) => return WaitEnd::Ended,
            Err(Errno::INTR) => {}
            Err(_) => return WaitEnd::Stopped,
        }
    }
}

/// Reports the end of a thread's service, even if the thread panics.
struct Ending {
    has_ended: Arc<AtomicBool>,
    waker: Option<Arc<Waker>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        // The mark comes before the wake-up, or the loop would look too early and sleep again.
        self.has_ended.store(true, Ordering::Release);
        self.waker.iter().for_each(|waker| waker.wake());
    }
}

fn accept_all(
    listener: &Listener,
    name: &str,
    service: &Arc<impl PeerService>,
    ended: Option<&Arc<Waker>>,
    threads: &mut Vec<PeerThread>,
) {
    loop {
        let stream = match listener.accept() {
            Ok(stream) => Arc::new(stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            // No descriptor is free. One may be free later.
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
            // Declared first and so dropped last, when the peer's socket is closed.
            let _ending = ending;
            let peer = peer;
            service.serve(&peer);
            // The accept loop may hold the stream as well, to disconnect the peer.
            let _ = shutdown(&*peer.stream, Shutdown::Both);
        });
        // If there is no thread, dropping the stream disconnects the peer.
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

/// Returns true if there is room for another peer. If necessary, the peer that has been silent
/// longest is disconnected, so that no peer blocks others by silence.
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
    /// Creates a peer on `stream`, which must not block.
    pub fn new(stream: ClientSocket) -> Peer {
        Peer {
            stream: Arc::new(stream),
            idle_since: IdleSince::default(),
        }
    }

    /// Returns the local address of the connection; `None` for a unix socket.
    pub fn local(&self) -> Option<std::net::IpAddr> {
        self.stream.local()
    }

    /// Records the beginning of the wait for a request. A peer that sends none may have to make
    /// room for others.
    pub fn awaits_request(&self) {
        self.set_idle_since(Some(Instant::now()));
    }

    /// Records the arrival of a request.
    pub fn has_request(&self) {
        self.set_idle_since(None);
    }

    fn set_idle_since(&self, since: Option<Instant>) {
        *self
            .idle_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Waits for data and reads them. Returns 0 at the end of the peer's output.
    ///
    /// # Errors
    /// An error of the host, or a missed deadline.
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
    /// An error of the host, or a missed deadline.
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

    /// Ends the output to the peer.
    pub fn end_output(&self) {
        // The peer may have disconnected before.
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
