//! NBD clients over threads.
//!
//! A thread for each client takes its requests in and hands them on. Whoever has an
//! answer gives it, on any thread, and sends as much as the socket takes at once;
//! what it does not take, a second thread of the client sends when it does. So
//! nobody waits for a client that takes no answers.

use crate::socket::admission::Admission;
use crate::socket::channel::Channel;
use crate::socket::sockets::{Listener, Stream};
use crate::socket::tls::TlsConfig;
use crate::socket::waker::Waker;
use fullstroke_nbd::{Connection, Event, Exports, Limits, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What a client may have under way: as many requests as the kernel's NBD client
/// sends, and so much to write or read.
const LIMITS: Limits = Limits {
    requests: 128,
    payload_bytes: 64 << 20,
    output_bytes: 8 << 20,
};
/// A client that takes no answers for so long is cut off.
const STALLED: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};
/// Until it is tried again to accept, if the host refuses.
const RETRY: Duration = Duration::from_millis(100);
/// So much is copied to be sent while others give their answers; more is sent from where it is, and they wait.
const COPIED_BYTES: usize = 32 << 10;

/// Who carries requests out.
pub trait Serves: Send + Sync + 'static {
    /// A client asks for something. It is answered by [`NbdClient::answer`], now or
    /// later. False where nothing is served any more.
    fn asked(&self, client: &Arc<NbdClient>, request: Request, payload: Vec<u8>) -> bool;
}

/// Serves NBD clients until it is dropped; then all of them are cut off, and the
/// socket files are gone.
pub struct NbdServer {
    shared: Arc<Shared>,
    waker: Arc<Waker>,
    threads: Vec<JoinHandle<()>>,
    uris: Vec<String>,
}

struct Shared {
    exports: Arc<Exports>,
    serves: Arc<dyn Serves>,
    admission: Admission,
    /// Their threads keep them; whoever has gone is here until the next comes, without its socket.
    clients: Mutex<Vec<Weak<NbdClient>>>,
}

impl NbdServer {
    /// Accepts clients who are admitted at `listeners`, which do not block.
    ///
    /// # Errors
    /// The host has no thread.
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
        let shared = Arc::new(Shared {
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

    /// Where clients find it.
    pub fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Nothing more is taken from clients; what they have asked for is answered.
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
            // It ends in any case; a panic in it has been reported.
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

impl Shared {
    fn clients(&self) -> MutexGuard<'_, Vec<Weak<NbdClient>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, stream: Stream) -> io::Result<()> {
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

/// Accepts until it is woken.
fn accept_until_woken(listener: &Listener, waker: &Waker, shared: &Shared) {
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
            // Who was begun and finds no thread is cut off by that.
            Ok(stream) => drop(shared.begin(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // No descriptor is free: later, perhaps.
            Err(_) => thread::sleep(RETRY),
        }
    }
}

/// A client, as those see it who answer it.
pub struct NbdClient {
    side: Mutex<Side>,
    /// There may be room for more requests.
    room: Condvar,
    /// The socket has not taken all, or nothing more is to be sent.
    rest: Condvar,
    stream: Stream,
    serves: Arc<dyn Serves>,
    /// What the connection is encrypted with, if the client asks for TLS.
    tls: Option<TlsConfig>,
}

struct Side {
    connection: Connection,
    /// The socket under TLS, once TLS has begun.
    encrypted: Option<Channel>,
    /// Nothing more comes.
    input_over: bool,
    /// Its first thread waits for room.
    waits: bool,
    /// Memory to send from; nothing while somebody sends, who sends also what others add meanwhile.
    copy: Option<Vec<u8>>,
    /// The socket has not taken all: the rest is sent by the client's own thread.
    blocked: bool,
    /// Nothing more can be sent, or is to be.
    gone: bool,
}

impl Side {
    /// Whether all is answered and nothing more comes.
    fn is_over(&self) -> bool {
        let ends = self.input_over || self.connection.has_ended();
        self.gone || ends && self.connection.in_flight() == 0 && !self.has_output()
    }

    /// Whether something waits for the socket.
    fn has_output(&self) -> bool {
        !self.connection.output().is_empty()
            || self.encrypted.as_ref().is_some_and(Channel::is_unsent)
    }

    /// Takes in what has come.
    fn receive(&mut self, stream: &Stream) -> io::Result<usize> {
        let space = self.connection.space();
        match &mut self.encrypted {
            Some(channel) => channel.read(space),
            None => Ok(recv(stream, space, RecvFlags::DONTWAIT)?.0),
        }
    }

    /// Encrypts what the socket takes, and sends it.
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
    /// Answers one of its requests.
    pub fn answer(self: &Arc<NbdClient>, give: impl FnOnce(&mut Connection)) {
        let mut side = self.lock();
        give(&mut side.connection);
        self.hand_on(&mut side);
        self.wake(self.send(side));
    }

    /// Wakes who has something to do now, and nobody else: most answers are sent by whoever gives them, and each
    /// thread that is woken for nothing costs as much as a read from memory.
    fn wake(&self, side: MutexGuard<'_, Side>) {
        let has_room = side.waits && (side.gone || !side.connection.is_paused());
        let is_over = side.is_over();
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

    /// Takes in what comes, straight to where it is needed, until nothing does.
    fn receive(self: Arc<NbdClient>) {
        let mut side = self.send(self.lock());
        while !side.gone && !side.connection.has_ended() {
            if side.connection.is_paused() {
                // It has as much under way as it may: the next answer makes room.
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
                    // What TLS itself has to say.
                    side = self.send(side);
                    drop(side);
                    // What is wrong with it, the next call says.
                    let _ = poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], None);
                    side = self.lock();
                }
                Err(_) => break,
            }
        }
        side.input_over = true;
        self.wake(side);
    }

    /// Hands on what it asks for.
    fn hand_on(self: &Arc<NbdClient>, side: &mut Side) {
        while !side.gone {
            match side.connection.next_event() {
                Ok(Some(Event::Request { request, payload })) => {
                    side.gone |= !self.serves.asked(self, request, payload);
                }
                Ok(Some(Event::Opened { .. } | Event::Disconnect)) => {}
                // What is said of an error is still sent.
                Ok(None) | Err(_) => return,
                Ok(Some(Event::StartTls)) => side.gone |= self.start_tls(side).is_err(),
            }
        }
    }

    /// Encrypts from now on, but for what was answered before.
    fn start_tls(&self, side: &mut Side) -> io::Result<()> {
        let config = self.tls.clone().ok_or(io::ErrorKind::Unsupported)?;
        let mut channel = Channel::new(self.stream.try_clone()?);
        channel.start_tls(config, side.connection.output().len())?;
        side.encrypted = Some(channel);
        Ok(())
    }

    /// Sends what the socket takes at once. Others may add answers meanwhile, which go as well; only one sends.
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
                drop(side);
                let sent = send(&self.stream, &copy, flags);
                side = self.lock();
                sent
            };
            match sent {
                Ok(count) => {
                    side.connection.consumed(count);
                    // TLS may have begun meanwhile.
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

    /// Sends what the socket did not take, until there is nothing more to be said.
    fn send_rest(self: Arc<NbdClient>) {
        let mut side = self.lock();
        while !side.is_over() {
            if !side.blocked {
                side = self.rest.wait(side).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
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

    /// Nothing more goes either way.
    fn leave(&self) {
        let mut side = self.lock();
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
        // One that is gone is shut.
        let _ = shutdown(&self.stream, how);
    }
}

#[cfg(test)]
mod tests;
