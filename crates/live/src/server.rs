//! The loop that serves: clients above, worlds below, one thread.

use crate::client::{Client, Fate};
use crate::clock::{Clock, Pace};
use crate::durability::{SyncQueue, Syncer, Waiting};
use crate::inbox::Inbox;
use crate::poll::{Interest, Poll, Ready};
use crate::socket::Listener;
use crate::watch::Ended;
use crate::world::{Carried, ClientId, Ticket, World};
use fullstroke_bytes::{StoreError, Synced, Tidy};
use fullstroke_nbd::{Command, Connection, ErrorCode, Event, Exports};
use fullstroke_units::Time;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keys of what is polled; those of clients have the highest bit.
const SIGNALS: u64 = 0;
const INBOX: u64 = 1;
const DURABLE: u64 = 2;
const FIRST_LISTENER: u64 = 16;
const CLIENT: u64 = 1 << 63;

/// Connections at a time; more are closed at once.
const CLIENTS_MAX: usize = 4096;
/// Payloads on their way, over all clients, beyond which nobody is read from.
const PAYLOAD_BYTES_MAX: u64 = 1 << 30;
/// Reads from one client before it is the others' turn.
const TURNS: usize = 16;
/// How long the loop sleeps if nothing happens.
const NAP: Duration = Duration::from_secs(1);
/// How long a client may take to read its last answers when the server ends.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often it looks whether all is done then.
const FAREWELL_LOOK: Duration = Duration::from_millis(1);
/// Events of a world without clients' requests that are hurried through between
/// two looks at the sockets.
const HURRIED: usize = 1000;

/// A server that is set up.
pub(crate) struct Server {
    pub(crate) worlds: Vec<World>,
    pub(crate) clock: Clock,
    pub(crate) pace: Pace,
    pub(crate) inbox: Inbox,
    pub(crate) clients_now: u64,
    pub(crate) began: Instant,
    exports: Arc<Exports>,
    poll: Poll,
    listeners: Vec<Listener>,
    /// Listeners rest while no descriptor is free.
    accepting: bool,
    clients: Vec<Option<Client>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    clients_so_far: u32,
    /// Clients with something to send, or that have just changed.
    touched: Vec<u32>,
    payload_bytes: u64,
    reading: bool,
    syncer: Syncer,
    sync_queues: Vec<SyncQueue>,
    answered: Vec<(usize, Ended)>,
    ended: Vec<Ended>,
    tidy_at: Duration,
    stopping: Option<Instant>,
}

impl Server {
    pub(crate) fn new(
        worlds: Vec<World>,
        exports: Arc<Exports>,
        listeners: Vec<Listener>,
        signals: &std::os::unix::net::UnixStream,
        pace: Pace,
    ) -> io::Result<Server> {
        let poll = Poll::new()?;
        let inbox = Inbox::new()?;
        let syncer = Syncer::start()?;
        poll.add(signals, SIGNALS, Interest::READ)?;
        poll.add(&*inbox.bell, INBOX, Interest::READ)?;
        poll.add(&*syncer.bell, DURABLE, Interest::READ)?;
        for (key, listener) in (FIRST_LISTENER..).zip(&listeners) {
            poll.add(listener, key, Interest::READ)?;
        }
        let speed = match pace {
            Pace::Times(speed) => speed,
            Pace::Immediate => 1.0,
        };
        Ok(Server {
            sync_queues: worlds.iter().map(|_| SyncQueue::default()).collect(),
            worlds,
            clock: Clock::start(speed),
            pace,
            inbox,
            clients_now: 0,
            began: Instant::now(),
            exports,
            poll,
            listeners,
            accepting: true,
            clients: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            clients_so_far: 0,
            touched: Vec::new(),
            payload_bytes: 0,
            reading: true,
            syncer,
            answered: Vec::new(),
            ended: Vec::new(),
            tidy_at: NAP,
            stopping: None,
        })
    }

    /// Serves until a signal says stop, and everything that was begun is done.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut ready = Vec::new();
        while !self.is_over() {
            self.go_on();
            self.send();
            self.tidy();
            let limit = self.patience();
            ready.clear();
            self.poll.wait(limit, &mut ready)?;
            for event in &ready {
                self.react(*event);
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let Some(since) = self.stopping else { return false };
        let idle = self.worlds.iter().all(|world| world.machine.in_flight() == 0)
            && self.sync_queues.iter().all(SyncQueue::is_empty);
        idle && (self.clients_now == 0 || since.elapsed() >= FAREWELL)
    }

    /// How long to wait for the next event.
    fn patience(&self) -> Duration {
        let due = self.worlds.iter().map(|world| world.machine.next_wake()).min().unwrap_or(Time::NEVER);
        let most = if self.stopping.is_some() { FAREWELL_LOOK } else { NAP };
        match self.pace {
            _ if due == Time::NEVER => most,
            Pace::Times(_) => self.clock.wait(self.clock.now(), due).min(most),
            Pace::Immediate if self.has_to_hurry() => Duration::ZERO,
            Pace::Immediate => most,
        }
    }

    fn has_to_hurry(&self) -> bool {
        self.worlds.iter().any(|world| world.machine.in_flight() > 0 || world.is_rebuilding())
    }

    /// The world's time for what arrives now.
    pub(crate) fn now(&self, world: usize) -> Time {
        match self.pace {
            Pace::Times(_) => self.clock.now(),
            Pace::Immediate => self.worlds[world].machine.now(),
        }
    }

    /// Lets the worlds go on to the present, and answers what has finished.
    fn go_on(&mut self) {
        for index in 0..self.worlds.len() {
            let world = &mut self.worlds[index];
            match self.pace {
                Pace::Times(_) => world.advance(self.clock.now()),
                Pace::Immediate => {
                    while world.machine.in_flight() > 0 {
                        world.hurry();
                    }
                    if world.is_rebuilding() {
                        (0..HURRIED).for_each(|_| world.hurry());
                    }
                }
            }
            world.carry_signals();
            std::mem::swap(&mut self.ended, &mut world.watch.ended);
            let mut ended = std::mem::take(&mut self.ended);
            for one in ended.drain(..) {
                self.answer(index, one);
            }
            self.ended = ended;
        }
    }

    /// Now and then, when the host's disks are idle: mends and forgets what
    /// would be mended when the bytes are opened again.
    fn tidy(&mut self) {
        let now = self.began.elapsed();
        if now < self.tidy_at {
            return;
        }
        self.tidy_at = now + NAP;
        for index in 0..self.worlds.len() {
            if self.sync_queues[index].is_running() {
                continue;
            }
            match self.worlds[index].store.tidy(now) {
                Ok(Tidy::Sync) => self.begin_sync(index),
                Ok(Tidy::Again) => self.tidy_at = now,
                // What the host refuses now, it may allow later.
                Ok(Tidy::Done | Tidy::At(_)) | Err(_) => {}
            }
        }
    }

    /// Carries a finished request out on the bytes and answers it.
    fn answer(&mut self, index: usize, ended: Ended) {
        let world = &mut self.worlds[index];
        let Some(mut ticket) = world.claim(&ended) else { return };
        let status = ended.finished.completion.status;
        self.payload_bytes -= ticket.payload.len() as u64;
        let mut client = client_of(&mut self.clients, ticket.client);
        let mut failure = None;
        if ticket.request.command == Command::Read {
            // Nobody else reads what a client that has gone asked for.
            if let Some(client) = &mut client {
                client.connection.reply_read(&ticket.request, |into| {
                    let carried = world.carry(&ticket, status, into);
                    failure = carried.failure();
                    failure.as_ref().map_or(Ok(()), |(code, _)| Err(*code))
                });
            }
        } else {
            let carried = world.carry(&ticket, status, &mut []);
            if matches!(carried, Carried::DoneWhenDurable) {
                return self.wait_until_durable(index, Waiting { ended, ticket });
            }
            failure = carried.failure();
            if let Some(client) = &mut client {
                match &failure {
                    None => client.connection.reply_done(&ticket.request),
                    Some((code, message)) => client.connection.reply_error(&ticket.request, *code, message),
                }
                client.connection.recycle(std::mem::take(&mut ticket.payload));
            }
        }
        world.count(&ticket.request, &ended, failure.is_some());
        self.answered.push((index, ended));
        self.touch(ticket.client);
    }

    fn wait_until_durable(&mut self, index: usize, waiting: Waiting) {
        if self.sync_queues[index].push(waiting) {
            self.begin_sync(index);
        }
    }

    fn begin_sync(&mut self, index: usize) {
        self.sync_queues[index].begin();
        let job = self.worlds[index].store.sync_job();
        if job.is_empty() {
            let done = job.run();
            self.end_sync(index, done);
        } else {
            self.syncer.begin(index, job);
        }
    }

    fn end_sync(&mut self, index: usize, result: Result<Synced, StoreError>) {
        let result = result.and_then(|synced| self.worlds[index].store.note_synced(synced));
        let (waiting, again) = self.sync_queues[index].end();
        for Waiting { ended, ticket } in waiting {
            if let Some(client) = client_of(&mut self.clients, ticket.client) {
                match &result {
                    Ok(()) => client.connection.reply_done(&ticket.request),
                    Err(error) => {
                        client.connection.reply_error(&ticket.request, ErrorCode::InputOutput, error)
                    }
                }
            }
            let world = &mut self.worlds[index];
            world.count(&ticket.request, &ended, result.is_err());
            // How long the host's disks take is no lateness of the world's.
            world.answered(&ended, 0);
            self.touch(ticket.client);
        }
        if again {
            self.begin_sync(index);
        }
    }

    /// The client has something to send, or may take more.
    fn touch(&mut self, id: ClientId) {
        if let Some(client) = client_of(&mut self.clients, id)
            && !client.unsent
        {
            client.unsent = true;
            self.touched.push(id.place);
        }
    }

    /// Sends all answers, and notes how late they were.
    fn send(&mut self) {
        self.reading = self.payload_bytes < PAYLOAD_BYTES_MAX;
        while let Some(place) = self.touched.pop() {
            self.send_to(place);
        }
        let now = self.clock.now();
        for (index, ended) in self.answered.drain(..) {
            let late_ns = match self.pace {
                Pace::Times(_) => {
                    self.clock.outside_ns(now.since(ended.finished.completion.finished.min(now)))
                }
                Pace::Immediate => 0,
            };
            self.worlds[index].answered(&ended, late_ns);
        }
    }

    fn send_to(&mut self, place: u32) {
        // Answers, and room in the socket, may let it take what it had received.
        self.begin_all(place);
        let Some(client) = &mut self.clients[place as usize] else { return };
        let sent = client.send();
        self.begin_all(place);
        let reads = self.reading && self.stopping.is_none();
        let Some(client) = &mut self.clients[place as usize] else { return };
        if self.stopping.is_some() {
            client.end_input();
        }
        let settled = sent.and_then(|()| client.settle(&self.poll, reads));
        if settled.is_err() || client.fate() == Fate::Ends {
            self.close(place);
        }
    }

    fn react(&mut self, event: Ready) {
        match event.key {
            SIGNALS => self.stop(),
            INBOX => self.read_letters(),
            DURABLE => {
                self.syncer.bell.silence();
                while let Some((index, result)) = self.syncer.finished() {
                    self.end_sync(index, result);
                }
            }
            key if key & CLIENT != 0 => self.hear(event),
            key => self.accept((key - FIRST_LISTENER) as usize),
        }
    }

    fn read_letters(&mut self) {
        self.inbox.bell.silence();
        while let Some((question, reply)) = self.inbox.take() {
            let answer = self.ask(question);
            // Whoever asked may have lost patience.
            let _ = reply.send(answer);
        }
    }

    fn accept(&mut self, index: usize) {
        loop {
            let Some(listener) = self.listeners.get(index) else { return };
            match listener.accept() {
                Ok(stream) if self.clients_now < CLIENTS_MAX as u64 => {
                    let place = self.free.pop().unwrap_or_else(|| {
                        self.clients.push(None);
                        self.generations.push(0);
                        self.clients.len() as u32 - 1
                    });
                    self.clients_so_far = self.clients_so_far.wrapping_add(1).max(1);
                    let generation = self.generations[place as usize];
                    let id = ClientId { place, generation, number: self.clients_so_far };
                    let connection = Connection::new(Arc::clone(&self.exports));
                    match Client::new(id, client_key(id), stream, connection, &self.poll) {
                        Ok(client) => {
                            self.clients[place as usize] = Some(client);
                            self.clients_now += 1;
                            // It begins with a greeting.
                            self.touched.push(place);
                        }
                        Err(_) => self.free.push(place),
                    }
                }
                Ok(_refused) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => return self.rest(),
            }
        }
    }

    /// No descriptor is free: nobody is accepted until a client leaves.
    fn rest(&mut self) {
        self.accepting = false;
        for (key, listener) in (FIRST_LISTENER..).zip(&self.listeners) {
            let _ = self.poll.modify(listener, key, Interest { readable: false, writable: false });
        }
    }

    /// A client's socket is ready.
    fn hear(&mut self, event: Ready) {
        let place = event.key as u32;
        // It may have been told before the client left, and another came.
        let Some(client) = self.clients.get(place as usize).and_then(Option::as_ref) else { return };
        if client_key(client.id) != event.key {
            return;
        }
        if event.broken {
            return self.close(place);
        }
        if event.readable {
            self.take_in(place);
        }
        if let Some(client) = &self.clients[place as usize] {
            self.touch(client.id);
        }
    }

    /// Reads what a client has sent, and begins what it asks for.
    fn take_in(&mut self, place: u32) {
        for _ in 0..TURNS {
            let Some(client) = &mut self.clients[place as usize] else { return };
            let Ok(count) = client.receive() else { return self.close(place) };
            self.begin_all(place);
            if count == 0 {
                break;
            }
        }
        if let Some(client) = &self.clients[place as usize] {
            self.touch(client.id);
        }
    }

    /// Begins all that the client's input asks for. If it broke the protocol,
    /// what was answered before is sent, and then it is closed.
    fn begin_all(&mut self, place: u32) {
        while self.stopping.is_none()
            && let Some(client) = &mut self.clients[place as usize]
            && let Ok(Some(event)) = client.next_event()
        {
            self.begin(place, event);
        }
    }

    fn begin(&mut self, place: u32, event: Event) {
        let Some(client) = &mut self.clients[place as usize] else { return };
        match event {
            Event::Opened { export } => client.export = Some(export),
            Event::Disconnect => {}
            Event::Request { request, payload } => {
                let Some(world) = client.export else { return };
                if let Some(code) = self.worlds[world].refuses(&request) {
                    return client.connection.reply_error(
                        &request,
                        code,
                        "zeroing is no faster than writing",
                    );
                }
                if request.command == Command::BlockStatus {
                    let extents = self.worlds[world].allocation(&request);
                    return client.connection.reply_status(&request, extents);
                }
                self.payload_bytes += payload.len() as u64;
                let ticket = Ticket { client: client.id, request, payload };
                let now = self.now(world);
                self.worlds[world].submit(now, ticket);
            }
        }
    }

    fn close(&mut self, place: u32) {
        let Some(client) = self.clients[place as usize].take() else { return };
        client.leave(&self.poll);
        self.generations[place as usize] = self.generations[place as usize].wrapping_add(1);
        self.free.push(place);
        self.clients_now -= 1;
        if !self.accepting {
            self.accepting = true;
            for (key, listener) in (FIRST_LISTENER..).zip(&self.listeners) {
                let _ = self.poll.modify(listener, key, Interest::READ);
            }
        }
    }

    /// Nothing more is begun; what was begun is finished.
    fn stop(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        self.stopping = Some(Instant::now());
        for listener in self.listeners.drain(..) {
            let _ = self.poll.remove(&listener);
        }
        for client in self.clients.iter().flatten() {
            if !client.unsent {
                self.touched.push(client.id.place);
            }
        }
    }
}

/// The key by which a client's socket is polled; no two clients share one.
fn client_key(id: ClientId) -> u64 {
    CLIENT | u64::from(id.generation & 0x7FFF_FFFF) << 32 | u64::from(id.place)
}

/// The client of that id, unless it has gone.
fn client_of(clients: &mut [Option<Client>], id: ClientId) -> Option<&mut Client> {
    clients.get_mut(id.place as usize)?.as_mut().filter(|client| client.id == id)
}
