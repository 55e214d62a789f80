//! The loop that serves: clients above, worlds below, one thread.

use crate::client::Client;
use crate::clock::{Clock, Pace};
use crate::durability::{SyncQueue, Syncer, Waiting};
use crate::inbox::Inbox;
use crate::poll::{Interest, Poll, Ready};
use crate::socket::Listener;
use crate::watch::Ended;
use crate::world::{Carried, ClientId, World};
use fullstroke_bytes::{StoreError, Synced, Tidy};
use fullstroke_nbd::{Command, ErrorCode, Exports};
use fullstroke_units::Time;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keys of what is polled; those of clients have the highest bit.
const SIGNALS: u64 = 0;
const INBOX: u64 = 1;
const DURABLE: u64 = 2;
pub(crate) const FIRST_LISTENER: u64 = 16;
const CLIENT: u64 = 1 << 63;

/// Payloads on their way, over all clients, beyond which nobody is read from.
const PAYLOAD_BYTES_MAX: u64 = 1 << 30;
/// The niceness of a thread that keeps the model's time: before all others.
const NICENESS: i32 = -20;
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
    pub(crate) exports: Arc<Exports>,
    pub(crate) poll: Poll,
    pub(crate) listeners: Vec<Listener>,
    /// Listeners rest while no descriptor is free.
    pub(crate) accepting: bool,
    pub(crate) clients: Vec<Option<Client>>,
    pub(crate) generations: Vec<u32>,
    pub(crate) free: Vec<u32>,
    pub(crate) clients_so_far: u32,
    /// Clients with something to send, or that have just changed.
    pub(crate) touched: Vec<u32>,
    pub(crate) payload_bytes: u64,
    pub(crate) reading: bool,
    syncer: Syncer,
    sync_queues: Vec<SyncQueue>,
    answered: Vec<(usize, Ended)>,
    tidy_at: Duration,
    pub(crate) stopping: Option<Instant>,
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
            tidy_at: NAP,
            stopping: None,
        })
    }

    /// Serves until a signal says stop, and everything that was begun is done.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        self.ask_for_punctuality();
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

    /// Sleeps are to end when they should, and to be followed by a turn at once:
    /// whoever waits for the model's time should not wait for the host's other
    /// work. What the host does not allow, it does not allow.
    fn ask_for_punctuality(&self) {
        if let Pace::Times(_) = self.pace {
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            // On Linux, the process of nobody is this thread.
            let _ = rustix::process::setpriority_process(None, NICENESS);
        }
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
            // Answering ends no request: the room goes back as it was.
            let mut ended = std::mem::take(&mut world.watch.ended);
            for one in ended.drain(..) {
                self.answer(index, one);
            }
            self.worlds[index].watch.ended = ended;
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
    pub(crate) fn touch(&mut self, id: ClientId) {
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
pub(crate) fn client_key(id: ClientId) -> u64 {
    CLIENT | u64::from(id.generation & 0x7FFF_FFFF) << 32 | u64::from(id.place)
}

/// The client of that id, unless it has gone.
fn client_of(clients: &mut [Option<Client>], id: ClientId) -> Option<&mut Client> {
    clients.get_mut(id.place as usize)?.as_mut().filter(|client| client.id == id)
}
