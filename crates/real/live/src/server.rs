//! The loop of the server: clients above, served stacks below, one thread.

use crate::budget::Budget;
use crate::clients::ClientTable;
use crate::clock::{WorldClock, WorldPace};
use crate::completed::CompletedRequest;
use crate::control_queue::ControlQueue;
use crate::durability::{Durability, UndurableRequest};
use crate::limits;
use crate::listening::Listening;
use crate::poll::{Interest, Poll, ReadyDescriptor};
use crate::served_stack::ServedStack;
use crate::ticket::{ClientId, RequestOutcome, Ticket};
use crate::upkeep::{Ending, IDLE_POLL, Upkeep};
use fullstroke_contract::RequestStatus;
use fullstroke_nbd::{ErrorCode, Exports, RequestCommand};
use fullstroke_store::bytes::{MarkResult, SyncResult, TidyWork};
use fullstroke_units::Time;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keys of the polled descriptors; keys of clients have the highest bit.
const SIGNALS: u64 = 0;
const CONTROL: u64 = 1;
const DURABLE: u64 = 2;
const MARKED: u64 = 3;
pub(crate) const FIRST_LISTENER: u64 = 16;
const CLIENT: u64 = 1 << 63;

/// Niceness of the thread of the model's time: before all others.
const NICENESS: i32 = -20;
/// Time for clients to read their last answers when the server ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of the checks for the end.
const SHUTDOWN_POLL: Duration = Duration::from_millis(1);
/// Longest time of the stacks without a check of the sockets, if nothing is waited for.
const TIME_SLICE: Duration = Duration::from_micros(500);
/// Number of events between two reads of the host's clock.
const EVENTS: usize = 16;

/// Makes sleeps of this thread end on time. If requested, also raises the thread's priority so that
/// the thread runs at once. The reason is that clients of the model's time should not wait for
/// other work of the host. Returns the new niceness, if permitted by the host.
pub(crate) fn ask_for_punctuality(pace: WorldPace, raises_priority: bool) -> Option<i32> {
    if pace == WorldPace::Immediate {
        return None;
    }
    // By default sleeps end up to 50 us late (timer_slack_ns in proc(5)).
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    // On Linux, process 0 (`None`) means this thread.
    let raised = || rustix::process::setpriority_process(None, NICENESS).is_ok();
    (raises_priority && raised()).then_some(NICENESS)
}

/// A configured server.
pub(crate) struct ConfiguredServer {
    pub(crate) worlds: Vec<ServedStack>,
    pub(crate) clock: WorldClock,
    pub(crate) pace: WorldPace,
    pub(crate) control: ControlQueue,
    pub(crate) upkeep: Upkeep,
    pub(crate) exports: Arc<Exports>,
    pub(crate) poll: Poll,
    pub(crate) listening: Listening,
    pub(crate) clients: ClientTable,
    pub(crate) budget: Budget,
    /// True if a request has ended or memory was freed, so that queued clients may be admitted.
    pub(crate) may_admit: bool,
    signals: UnixStream,
    durability: Durability,
    answered: Vec<(usize, CompletedRequest)>,
    pub(crate) ending: Ending,
}

impl ConfiguredServer {
    pub(crate) fn new(
        worlds: Vec<ServedStack>,
        exports: Arc<Exports>,
        listening: Listening,
        signals: UnixStream,
        pace: WorldPace,
    ) -> io::Result<ConfiguredServer> {
        let poll = Poll::new()?;
        let control = ControlQueue::new()?;
        let durability = Durability::start(worlds.len())?;
        let [synced, marked] = durability.wakers();
        signals.set_nonblocking(true)?;
        poll.add(&signals, SIGNALS, Interest::READ)?;
        poll.add(&*control.waker, CONTROL, Interest::READ)?;
        poll.add(synced, DURABLE, Interest::READ)?;
        poll.add(marked, MARKED, Interest::READ)?;
        for (key, listener) in (FIRST_LISTENER..).zip(listening.listeners()) {
            poll.add(listener, key, Interest::READ)?;
        }
        let speed = match pace {
            WorldPace::Times(speed) => speed,
            WorldPace::Immediate => 1.0,
        };
        Ok(ConfiguredServer {
            worlds,
            clock: WorldClock::start(speed),
            pace,
            control,
            upkeep: Upkeep::begin(),
            exports,
            poll,
            listening,
            clients: ClientTable::new(limits::clients_max()),
            budget: Budget::default(),
            may_admit: false,
            signals,
            durability,
            answered: Vec::new(),
            ending: Ending::default(),
        })
    }

    /// Serves until a signal, and until all begun work is done.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut ready = Vec::new();
        while !self.is_over() {
            self.go_on();
            self.admit_queued();
            self.take_unread();
            self.send();
            self.tidy();
            self.sweep();
            let limit = self.poll_timeout();
            ready.clear();
            self.poll.wait(limit, &mut ready)?;
            for event in &ready {
                self.react(*event);
            }
        }
        self.worlds.iter_mut().for_each(ServedStack::end_scrub);
        Ok(())
    }

    fn is_over(&self) -> bool {
        let Some(lasts) = self.ending.lasts() else {
            return false;
        };
        let idle = self
            .worlds
            .iter()
            .all(|world| world.machine.in_flight() == 0 && !world.has_unanswered())
            && self.durability.is_idle();
        idle && (self.clients.connected() == 0 || lasts >= SHUTDOWN_TIMEOUT)
    }

    /// Returns the time to wait for the next event.
    fn poll_timeout(&self) -> Duration {
        let due = self
            .worlds
            .iter()
            .map(|world| world.machine.next_wake())
            .min()
            .unwrap_or(Time::NEVER);
        let mut most = if self.ending.has_begun() {
            SHUTDOWN_POLL
        } else {
            IDLE_POLL
        };
        if !self.ending.has_begun() {
            most = most.min(self.upkeep.until_tidy());
        }
        if let Some(at) = self.listening.again_at() {
            most = most.min(at.saturating_duration_since(Instant::now()));
        }
        // Something can be done without waiting, so the poll only looks.
        if self.may_admit
            || self.clients.has_unread()
            || self.worlds.iter().any(ServedStack::has_news)
        {
            return Duration::ZERO;
        }
        if let Some(pause) = self
            .worlds
            .iter()
            .filter_map(ServedStack::scrub_pause)
            .min()
        {
            most = most.min(pause);
        }
        match self.waits() {
            _ if due == Time::NEVER => most,
            true => self.clock.wait(self.clock.now(), due).min(most),
            false if self.worlds.iter().any(ServedStack::has_to_hurry) => Duration::ZERO,
            false => most,
        }
    }

    /// Returns true if the loop waits for the world's time.
    fn waits(&self) -> bool {
        self.pace != WorldPace::Immediate && !self.ending.is_hurrying()
    }

    /// Returns the world's time for a request arriving now.
    pub(crate) fn now(&self, world: usize) -> Time {
        match self.pace {
            WorldPace::Times(_) => self.clock.now(),
            WorldPace::Immediate => self.worlds[world].machine.now(),
        }
    }

    /// Advances the stacks to the present, and answers finished requests.
    fn go_on(&mut self) {
        self.ending.hurry_if_late();
        let waits = self.waits();
        for index in 0..self.worlds.len() {
            let world = &mut self.worlds[index];
            let until = Instant::now() + TIME_SLICE;
            if waits {
                world.advance(self.clock.now());
                world.carry_signals(until);
            } else {
                run_without_waiting(world, until);
            }
            world.signals.notify_clients();
            world.tell_dropped();
            world.tell_slow();
            // Answering ends no request, so the vector can be put back.
            let mut ended = std::mem::take(&mut world.watch.ended);
            self.may_admit |= !ended.is_empty();
            for one in ended.drain(..) {
                self.answer(index, one);
            }
            // Unless parts of requests were followed by others, which have ended.
            let world = &mut self.worlds[index];
            if world.watch.ended.is_empty() {
                world.watch.ended = ended;
            }
            self.work_on(index, until);
            // The changes just announced need their marks.
            self.begin_marking(index);
        }
    }

    /// Continues slow work on the data.
    fn work_on(&mut self, index: usize, until: Instant) {
        while self.worlds[index].deferred.has_slow() {
            let (clients, hurrying) = (&self.clients, self.ending.is_hurrying());
            let wanted = |ticket: &Ticket| {
                // A trim may be skipped.
                let may_be_left = hurrying && ticket.request.command == RequestCommand::Trim;
                !may_be_left && clients.holds(ticket.client)
            };
            if let Some(slow) = self.worlds[index].go_on_slowly(until, wanted) {
                let (ended, ticket, carried) = slow.into_parts();
                self.reply(index, ended, ticket, carried);
            }
            if Instant::now() >= until {
                return;
            }
        }
        self.worlds[index].scrub_on(until);
    }

    /// From time to time, when the host's disks are idle: does repairs now, instead of at the next
    /// opening of the data.
    fn tidy(&mut self) {
        let Some(now) = self.upkeep.tidy_due() else {
            return;
        };
        for index in 0..self.worlds.len() {
            if self.durability.is_syncing(index) {
                continue;
            }
            match self.worlds[index].store.tidy(now) {
                Ok(TidyWork::Sync) => self.begin_sync(index),
                Ok(TidyWork::Again) => self.upkeep.tidy_again(now),
                // The host may permit later a step that it refuses now.
                Ok(TidyWork::Done | TidyWork::At(_)) | Err(_) => {}
            }
        }
    }

    /// Carries out a finished request on the data and answers it.
    fn answer(&mut self, index: usize, ended: CompletedRequest) {
        let world = &mut self.worlds[index];
        let wanted = world.asked(&ended).is_some_and(|id| self.clients.holds(id));
        let Some(ticket) = world.claim(&ended, wanted) else {
            return;
        };
        let status = ended.finished.completion.status;
        if ticket.request.command == RequestCommand::Read {
            return self.answer_read(index, ended, ticket);
        }
        if status == RequestStatus::Done && ticket.request.command.changes() {
            let changes_at_once = world.announce(&ticket.request);
            if !changes_at_once || self.durability.has_unmarked(index) {
                self.durability
                    .wait_for_marks(index, UndurableRequest { ended, ticket });
                return self.begin_marking(index);
            }
        }
        self.change(index, ended, ticket);
    }

    /// Carries out a request that may change data, and answers it.
    fn change(&mut self, index: usize, ended: CompletedRequest, mut ticket: Ticket) {
        let world = &mut self.worlds[index];
        let status = ended.finished.completion.status;
        if status == RequestStatus::Done && world.takes_long(&ticket) {
            return world.begin_slowly(ended, ticket);
        }
        let carried = world.carry(&mut ticket, status, &mut []);
        self.reply(index, ended, ticket, carried);
    }

    /// Makes announced marks durable in another thread, one job at a time.
    fn begin_marking(&mut self, index: usize) {
        if self.durability.is_marking(index) {
            return;
        }
        if let Some(job) = self.worlds[index].store.mark_job() {
            self.durability.run_marking(index, job);
        }
    }

    /// Handles durable marks. The waiting changes are carried out in order. The first change
    /// without a durable mark ends this.
    fn end_marking(&mut self, index: usize, marked: MarkResult) {
        self.durability.end_marking(index);
        // A stopped store reports this to every request.
        let _ = self.worlds[index].store.note_marked(marked);
        while let Some(UndurableRequest { ended, ticket }) = self.durability.next_unmarked(index) {
            if !self.worlds[index].announce(&ticket.request) {
                self.durability
                    .put_back(index, UndurableRequest { ended, ticket });
                break;
            }
            let answered = self.answered.len();
            self.change(index, ended, ticket);
            // The delay of the host's disks is no lateness of the world.
            for (index, ended) in self.answered.split_off(answered) {
                self.worlds[index].answered(&ended, 0);
            }
        }
        self.worlds[index].tell_dropped();
        self.begin_marking(index);
    }

    fn answer_read(&mut self, index: usize, ended: CompletedRequest, mut ticket: Ticket) {
        let world = &mut self.worlds[index];
        let mut failure = None;
        // The data of a read are of no use if its client has left.
        if let Some(client) = self.clients.get(ticket.client) {
            let request = ticket.request;
            client.connection.reply_read(&request, |into| {
                failure = world
                    .carry(&mut ticket, ended.finished.completion.status, into)
                    .failure();
                failure.as_ref().map_or(Ok(()), |(code, _)| Err(*code))
            });
        }
        world.count(&ticket, &ended, failure.is_some());
        self.answered.push((index, ended));
        self.clients.touch(ticket.client);
    }

    /// Answers a request without data.
    fn reply(
        &mut self,
        index: usize,
        ended: CompletedRequest,
        mut ticket: Ticket,
        carried: RequestOutcome,
    ) {
        if matches!(carried, RequestOutcome::DoneWhenDurable) {
            ticket.payload = Vec::new();
            return self.wait_until_durable(index, UndurableRequest { ended, ticket });
        }
        let failure = carried.failure();
        if let Some(client) = self.clients.get(ticket.client) {
            match &failure {
                None => client.connection.reply_done(&ticket.request),
                Some((code, message)) => {
                    client
                        .connection
                        .reply_error(&ticket.request, *code, message)
                }
            }
            if !self.budget.is_tight() {
                client
                    .connection
                    .recycle(std::mem::take(&mut ticket.payload));
            }
        }
        self.worlds[index].count(&ticket, &ended, failure.is_some());
        self.answered.push((index, ended));
        self.clients.touch(ticket.client);
    }

    /// Disconnects idle clients, and retries listeners after a refusal of the host.
    fn sweep(&mut self) {
        let again = self.listening.again_at();
        if again.is_some_and(|at| at <= Instant::now()) {
            self.listen(true);
        }
        if self.upkeep.sweep_due() {
            self.close_idle_clients();
        }
    }

    fn wait_until_durable(&mut self, index: usize, waiting: UndurableRequest) {
        if self.durability.wait_for_sync(index, waiting) {
            self.begin_sync(index);
        }
    }

    fn begin_sync(&mut self, index: usize) {
        self.durability.begin_sync(index);
        let job = self.worlds[index].store.sync_job();
        if job.is_empty() {
            let done = job.run();
            self.end_sync(index, done);
        } else {
            self.durability.run_sync(index, job);
        }
    }

    fn end_sync(&mut self, index: usize, synced: SyncResult) {
        let result = self.worlds[index].store.note_synced(synced);
        let (waiting, again) = self.durability.end_sync(index);
        for UndurableRequest { ended, ticket } in waiting {
            if let Some(client) = self.clients.get(ticket.client) {
                match &result {
                    Ok(()) => client.connection.reply_done(&ticket.request),
                    Err(error) => client.connection.reply_error(
                        &ticket.request,
                        ErrorCode::InputOutput,
                        error,
                    ),
                }
            }
            let world = &mut self.worlds[index];
            world.count(&ticket, &ended, result.is_err());
            // The delay of the host's disks is no lateness of the world.
            world.answered(&ended, 0);
            self.clients.touch(ticket.client);
        }
        if again {
            self.begin_sync(index);
        }
    }

    /// Sends all answers, and records their lateness.
    fn send(&mut self) {
        // The last touched client first: the order does not matter, because each gets all its
        // answers.
        while let Some(place) = self.clients.next_touched() {
            self.send_to(place);
        }
        let now = self.clock.now();
        for (index, ended) in self.answered.drain(..) {
            let late_ns = match self.pace {
                WorldPace::Times(_) => self
                    .clock
                    .outside_ns(now.saturating_since(ended.finished.completion.finished)),
                WorldPace::Immediate => 0,
            };
            self.worlds[index].answered(&ended, late_ns);
        }
    }

    fn react(&mut self, event: ReadyDescriptor) {
        match event.key {
            SIGNALS => self.read_signals(),
            CONTROL => self.take_control_requests(),
            DURABLE => {
                self.durability.wakers()[0].clear();
                while let Some((index, synced)) = self.durability.synced() {
                    self.end_sync(index, synced);
                }
            }
            MARKED => {
                self.durability.wakers()[1].clear();
                while let Some((index, marked)) = self.durability.marked() {
                    self.end_marking(index, marked);
                }
            }
            key if key & CLIENT != 0 => self.client_ready(event),
            key => self.accept((key - FIRST_LISTENER) as usize),
        }
    }

    fn take_control_requests(&mut self) {
        self.control.waker.clear();
        while let Some((question, reply)) = self.control.take() {
            self.ask(question, reply);
        }
    }

    /// The first signal ends the server; a second one skips the waiting.
    fn read_signals(&mut self) {
        let mut signals = [0; 16];
        let count = self.signals.read(&mut signals).unwrap_or(0);
        // A second signal may arrive before the first is read.
        if count > 1 || (count > 0 && self.ending.has_begun()) {
            self.ending.hurry();
        }
        self.stop();
    }

    /// Begins no more requests, and finishes those in flight.
    fn stop(&mut self) {
        if self.ending.has_begun() {
            return;
        }
        self.ending.begin();
        for listener in self.listening.close() {
            let _ = self.poll.remove(&listener);
        }
        self.clients.touch_all();
    }
}

/// Advances a stack without waiting, until nothing is left to do, or until the sockets must be
/// checked.
fn run_without_waiting(world: &mut ServedStack, until: Instant) {
    while world.has_to_hurry() || world.has_signals() {
        for _ in 0..EVENTS {
            if !world.has_to_hurry() {
                break;
            }
            world.run_next_event();
        }
        world.carry_signals(until);
        if Instant::now() >= until {
            return;
        }
    }
}

/// Returns the key of a client's socket; no two clients share one.
pub(crate) fn client_key(id: ClientId) -> u64 {
    CLIENT | u64::from(id.generation & 0x7FFF_FFFF) << 32 | u64::from(id.place)
}
