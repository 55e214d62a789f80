//! NBD clients over threads.
//!
//! One thread per client receives the client's requests and passes them on. The thread that has an
//! answer adds it and sends as much as the socket accepts at once. A second thread of the client
//! sends the rest when the socket accepts more. So a client that takes no answers blocks no other
//! thread.

use crate::socket::admission::Admission;
use crate::socket::channel::Channel;
use crate::socket::sockets::{ClientSocket, Listener};
use crate::socket::tls::TlsConfig;
use crate::socket::waker::Waker;
use fullstroke_nbd::{Connection, ConnectionEvent, Exports, Limits, NbdRequest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Limits of a client: as many requests as the kernel's NBD client sends, and bounded data.
const LIMITS: Limits = Limits {
    // 128 is the queue depth of the kernel's NBD device (`nbd_dev_add` in drivers/block/nbd.c).
    requests: 128,
    payload_bytes: 64 << 20,
    output_bytes: 8 << 20,
};
/// Time until a client is disconnected for taking no answers.
const STALLED: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};
/// Pause before the next accept, if the host refuses.
const RETRY: Duration = Duration::from_millis(100);
/// Largest output that is copied and sent without the lock, so that other threads can add answers.
/// Larger output is sent directly from the connection, and other threads wait.
const COPIED_BYTES: usize = 32 << 10;

/// The receiver of requests.
pub trait Serves: Send + Sync + 'static {
    /// Receives a request of a client. The answer is given by [`NbdClient::answer`], now or later.
    /// Returns false if the service has ended.
    fn asked(&self, client: &Arc<NbdClient>, request: NbdRequest, payload: Vec<u8>) -> bool;
}

/// Serves NBD clients until dropped. Then all clients are disconnected, and the socket files are
/// removed.
pub struct NbdServer {
    shared: Arc<ServerShared>,
    waker: Arc<Waker>,
    threads: Vec<JoinHandle<()>>,
    uris: Vec<String>,
}

struct ServerShared {
    exports: Arc<Exports>,
    serves: Arc<dyn Serves>,
    admission: Admission,
    /// Clients, kept alive by their threads. The entry of a client that has left stays until the
    /// next connects, but without its socket.
    clients: Mutex<Vec<Weak<NbdClient>>>,
}

impl NbdServer {
    /// Accepts admitted clients at `listeners`, which must not block.
    ///
    /// # Errors
    /// If the host provides no thread.
    pub fn open(
        listeners: Vec<Listener>,
        exports: Arc<Exports>,
        serves: Arc<dyn Serves>,
        admission: Admission,
    ) -> io::Result<NbdServer> {
        let uris = listeners
            .iter()
            .map(|listener| admission.uri(listener))
            .collect();
        let shared = Arc::new(ServerShared {
            exports,
            serves,
            admission,
            clients: Mutex::default(),
        });
        let waker = Arc::new(Waker::new()?);
        let mut server = NbdServer {
            shared,
            waker,
            threads: Vec::new(),
            uris,
        };
        for listener in listeners {
            let (shared, waker) = (Arc::clone(&server.shared), Arc::clone(&server.waker));
            let accept = move || accept_until_woken(&listener, &waker, &shared);
            server
                .threads
                .push(thread::Builder::new().name("accept".into()).spawn(accept)?);
        }
        Ok(server)
    }

    /// Returns the addresses for clients.
    pub fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Ends the input from all clients. Received requests are still answered.
    pub fn end_input(&self) {
        self.shared
            .clients()
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|client| client.shut(Shutdown::Read));
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.waker.wake();
        for thread in self.threads.drain(..) {
            // The thread ends in any case. A panic in it has been reported.
            let _ = thread.join();
        }
        let clients: Vec<_> = self
            .shared
            .clients()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        clients.iter().for_each(|client| client.leave());
    }
}

impl ServerShared {
    fn clients(&self) -> MutexGuard<'_, Vec<Weak<NbdClient>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, stream: ClientSocket) -> io::Result<()> {
        if !self.admission.admits(&stream) {
            return Ok(());
        }
        let mut connection = Connection::with_limits(Arc::clone(&self.exports), LIMITS);
        if let Some(encryption) = self.admission.encryption() {
            connection.set_encryption(encryption);
        }
        let side = Mutex::new(Side {
            connection,
            encrypted: None,
            input_over: false,
            waits: false,
            copy: Some(Vec::new()),
            blocked: false,
            gone: false,
        });
        let serves = Arc::clone(&self.serves);
        let (room, rest) = (Condvar::new(), Condvar::new());
        let client = Arc::new(NbdClient {
            side,
            room,
            rest,
            stream,
            serves,
            tls: self.admission.tls_config(),
        });
        let (reader, writer) = (Arc::clone(&client), Arc::clone(&client));
        thread::Builder::new()
            .name("answers".into())
            .spawn(move || writer.send_rest())?;
        let reading = thread::Builder::new()
            .name("client".into())
            .spawn(move || reader.receive());
        if reading.is_err() {
            client.leave();
        }
        let mut clients = self.clients();
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(&client));
        reading.map(drop)
    }
}

/// Accepts clients until woken.
fn accept_until_woken(listener: &Listener, waker: &Waker, shared: &ServerShared) {
    loop {
        let mut waiting = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(waker, PollFlags::IN),
        ];
        match poll(&mut waiting, None) {
            Ok(_) if waiting[1].revents().is_empty() => {}
            Err(Errno::INTR) => continue,
            _ => return,
        }
        match listener.accept() {
            // If a client gets no thread, dropping its stream disconnects it.
            Ok(stream) => drop(shared.begin(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // No descriptor is free. One may be free later.
            Err(_) => thread::sleep(RETRY),
        }
    }
}

/// The server's view of one client connection.
pub struct NbdClient {
    side: Mutex<Side>,
    /// Signal: there may be room for more requests.
    room: Condvar,
    /// Signal: the socket has not accepted all, or nothing more is to be sent.
    rest: Condvar,
    stream: ClientSocket,
    serves: Arc<dyn Serves>,
    /// TLS configuration, used if the client asks for TLS.
    tls: Option<TlsConfig>,
}

struct Side {
    connection: Connection,
    /// The socket under TLS, once TLS has begun.
    encrypted: Option<Channel>,
    /// True if no more input comes.
    input_over: bool,
    /// True if the receiving thread waits for room.
    waits: bool,
    /// Buffer for sending. `None` while a thread sends; this thread also sends answers that others
    /// add meanwhile.
    copy: Option<Vec<u8>>,
    /// True if the socket has not accepted all. The client's own thread sends the rest.
    blocked: bool,
    /// True if nothing more can or should be sent.
    gone: bool,
}

impl Side {
    /// Returns true if all requests are answered and no more input comes.
    fn is_over(&self) -> bool {
        let ends = self.input_over || self.connection.has_ended();
        self.gone || ends && self.connection.in_flight() == 0 && !self.has_output()
    }

    /// Returns true if data wait for the socket.
    fn has_output(&self) -> bool {
        !self.connection.output().is_empty()
            || self.encrypted.as_ref().is_some_and(Channel::is_unsent)
    }

    /// Receives available data.
    fn receive(&mut self, stream: &ClientSocket) -> io::Result<usize> {
        let space = self.connection.space();
        match &mut self.encrypted {
            Some(channel) => channel.read(space),
            None => Ok(recv(stream, space, RecvFlags::DONTWAIT)?.0),
        }
    }

    /// Encrypts and sends as much as the socket accepts.
    fn send_encrypted(&mut self) -> io::Result<()> {
        while let Some(channel) = &mut self.encrypted
            && (!self.connection.output().is_empty() || channel.is_unsent())
        {
            let output = self.connection.output();
            match channel.send(output)? {
                0 if !output.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
                count => self.connection.consumed(count),
            }
        }
        Ok(())
    }
}

impl NbdClient {
    /// Answers one of the client's requests.
    pub fn answer(self: &Arc<NbdClient>, give: impl FnOnce(&mut Connection)) {
        let mut side = self.lock();
        give(&mut side.connection);
        self.hand_on(&mut side);
        self.wake(self.send(side));
    }

    /// Wakes only the threads that have something to do. Most answers are sent by the answering
    /// thread. A needless wake-up costs as much as a read from memory.
    fn wake(&self, side: MutexGuard<'_, Side>) {
        let has_room = side.waits && (side.gone || !side.connection.is_paused());
        let is_over = side.is_over();
        // The lock is free before the wake-up: the woken thread needs it first of all.
        drop(side);
        if has_room {
            self.room.notify_all();
        }
        if is_over {
            self.rest.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Side> {
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives data directly to their place, until no more come.
    fn receive(self: Arc<NbdClient>) {
        let mut side = self.send(self.lock());
        while !side.gone && !side.connection.has_ended() {
            if side.connection.is_paused() {
                // The client has as many requests in flight as permitted. The next answer makes
                // room.
                side.waits = true;
                side = self.room.wait(side).unwrap_or_else(PoisonError::into_inner);
                side.waits = false;
                self.hand_on(&mut side);
                side = self.send(side);
                continue;
            }
            match side.receive(&self.stream) {
                Ok(0) => break,
                Ok(count) => {
                    side.connection.filled(count);
                    self.hand_on(&mut side);
                    side = self.send(side);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if side.encrypted.as_ref().is_some_and(Channel::has_unread) {
                        continue;
                    }
                    // Messages of TLS itself.
                    side = self.send(side);
                    drop(side);
                    // The next call reports an error of the socket.
                    let _ = poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], None);
                    side = self.lock();
                }
                Err(_) => break,
            }
        }
        side.input_over = true;
        self.wake(side);
    }

    /// Passes the client's requests on.
    fn hand_on(self: &Arc<NbdClient>, side: &mut Side) {
        while !side.gone {
            match side.connection.next_event() {
                Ok(Some(ConnectionEvent::Request { request, payload })) => {
                    side.gone |= !self.serves.asked(self, request, payload);
                }
                Ok(Some(ConnectionEvent::Opened { .. } | ConnectionEvent::Disconnect)) => {}
                // The answer that describes the error is still sent.
                Ok(None) | Err(_) => return,
                Ok(Some(ConnectionEvent::StartTls)) => side.gone |= self.start_tls(side).is_err(),
            }
        }
    }

    /// Starts encryption behind the earlier answers.
    fn start_tls(&self, side: &mut Side) -> io::Result<()> {
        let config = self.tls.clone().ok_or(io::ErrorKind::Unsupported)?;
        let mut channel = Channel::new(self.stream.try_clone()?);
        channel.start_tls(config, side.connection.output().len())?;
        side.encrypted = Some(channel);
        Ok(())
    }

    /// Sends as much as the socket accepts at once. Other threads may add answers meanwhile, which
    /// are sent as well. Only one thread sends at a time.
    fn send<'a>(&'a self, mut side: MutexGuard<'a, Side>) -> MutexGuard<'a, Side> {
        let Some(mut copy) = side.copy.take() else {
            return side;
        };
        while !side.gone && !side.blocked && side.has_output() {
            if side.encrypted.is_some() {
                match side.send_encrypted() {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        side.blocked = true;
                        self.rest.notify_all();
                    }
                    Err(_) => side.gone = true,
                }
                continue;
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let output = side.connection.output();
            let sent = if output.len() > COPIED_BYTES {
                send(&self.stream, output, flags)
            } else {
                copy.clear();
                copy.extend_from_slice(output);
                // The socket may block. Other threads add answers meanwhile.
                drop(side);
                let sent = send(&self.stream, &copy, flags);
                side = self.lock();
                sent
            };
            match sent {
                Ok(count) => {
                    side.connection.consumed(count);
                    // TLS may have begun while the lock was released.
                    if let Some(channel) = &mut side.encrypted {
                        channel.sent_in_clear(count);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    side.blocked = true;
                    self.rest.notify_all();
                }
                Err(_) => side.gone = true,
            }
        }
        side.copy = Some(copy);
        side
    }

    /// Sends the data not yet accepted by the socket, until nothing more is to be sent.
    fn send_rest(self: Arc<NbdClient>) {
        let mut side = self.lock();
        while !side.is_over() {
            if !side.blocked {
                side = self.rest.wait(side).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // The wait for the socket may take seconds, and answers must be added meanwhile.
            drop(side);
            let taken = poll(
                &mut [PollFd::new(&self.stream, PollFlags::OUT)],
                Some(&STALLED),
            );
            side = self.lock();
            match taken {
                Ok(0) => side.gone = true,
                Ok(_) | Err(Errno::INTR) => side.blocked = false,
                Err(_) => side.gone = true,
            }
            side = self.send(side);
            self.hand_on(&mut side);
            if side.waits && (side.gone || !side.connection.is_paused()) {
                self.room.notify_all();
            }
        }
        side.gone = true;
        drop(side);
        self.leave();
    }

    /// Ends both directions of the connection.
    fn leave(&self) {
        let mut side = self.lock();
        // The mark comes before the shutdown, so that a woken thread sees that the client has gone.
        side.gone = true;
        if let Some(channel) = &mut side.encrypted {
            channel.say_goodbye();
        }
        drop(side);
        self.shut(Shutdown::Both);
        self.room.notify_all();
        self.rest.notify_all();
    }

    fn shut(&self, how: Shutdown) {
        // An error means that the socket is already shut down.
        let _ = shutdown(&self.stream, how);
    }
}

#[cfg(test)]
mod tests;
