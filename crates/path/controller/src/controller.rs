//! The layer.

use crate::command::ControllerCommand;
use crate::config::{Constants, ControllerConfig};
use crate::counts::ControllerCounts;
use crate::discipline::ControllerDiscipline;
use crate::io::{ControllerIo, IoPurpose};
use crate::memory::ControllerMemory;
use crate::resource::Resource;
use crate::streams::Streams;
use fullstroke_contract::{
    Completion, ConfigError, Counters, Effects, Gauge, LayersBelow, Node, NodeContext, Operation,
    Port, Request, RequestId, Slots, Wake,
};
use fullstroke_units::{Duration, Lbn, SECTOR_BYTES, Sectors, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A RAID controller above an array. The array is the only member.
///
/// - **Events in**: `submit`, `completed`, `wake`.
/// - **Effects out**: `issue` to the array, `complete`.
///
/// Internal steps have their own due times. Each event first carries out all steps due before.
pub struct Controller {
    pub(crate) config: ControllerConfig,
    pub(crate) capacity: Sectors,
    pub(crate) constants: Constants,
    pub(crate) memory: ControllerMemory,
    pub(crate) streams: Streams,
    processor: Resource,
    link: Resource,
    pub(crate) commands: Slots<ControllerCommand>,
    /// Commands beyond the queue depth, in order of arrival.
    outside: VecDeque<u32>,
    held: u32,
    /// Due internal steps. The second element is a running number, and keeps steps at the same
    /// instant in order.
    due: BinaryHeap<Reverse<(Time, u64, u32, CommandStep)>>,
    steps: u64,
    /// Writes whose data wait for room in memory, in order.
    pub(crate) writers: VecDeque<u32>,
    /// Flushes, each with the last epoch to wait for.
    pub(crate) drains: VecDeque<(u32, u64)>,
    ios: Slots<ControllerIo>,
    waiting: Box<dyn ControllerDiscipline>,
    issued: u32,
    position: Lbn,
    pub(crate) destaging: u32,
    /// True if destaging continues to the low watermark.
    pub(crate) pressed: bool,
    /// Start of the host's idle time. `None` while a command is inside.
    pub(crate) host_idle_since: Option<Time>,
    idle_since: Option<Time>,
    pub(crate) counts: ControllerCounts,
    now: Time,
    below: Gauge,
}

/// An internal step of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CommandStep {
    /// The processor has decoded the command.
    Understood,
    /// The data of a write have arrived over the link.
    Arrived,
    /// The data of a read have gone over the link.
    Delivered,
}

impl Controller {
    /// Creates a controller with empty memory, above an array of `capacity`. `stripe` is the full
    /// stripe of the array, if the array has stripes.
    ///
    /// # Errors
    /// Names the invalid key.
    pub fn new(
        config: &ControllerConfig,
        capacity: Sectors,
        stripe: Option<Sectors>,
    ) -> Result<Controller, ConfigError> {
        let resolved = config.resolve(stripe)?;
        Ok(Controller {
            config: config.clone(),
            capacity,
            constants: resolved.constants,
            memory: ControllerMemory::new(
                resolved.block_sectors,
                resolved.read_blocks,
                resolved.write_blocks,
            ),
            streams: Streams::new(
                config.streams,
                config.sequential_after,
                resolved.read_ahead,
                capacity,
            ),
            processor: Resource::FREE,
            link: Resource::FREE,
            commands: Slots::default(),
            outside: VecDeque::new(),
            held: 0,
            due: BinaryHeap::new(),
            steps: 0,
            writers: VecDeque::new(),
            drains: VecDeque::new(),
            ios: Slots::default(),
            waiting: resolved.discipline,
            issued: 0,
            position: Lbn(0),
            destaging: 0,
            pressed: false,
            host_idle_since: Some(Time::ZERO),
            idle_since: Some(Time::ZERO),
            counts: ControllerCounts::default(),
            now: Time::ZERO,
            below: Gauge::default(),
        })
    }

    /// Accepts a command into the queue, and occupies the processor.
    fn accept(&mut self, slot: u32, now: Time) {
        self.held += 1;
        assert!(
            self.held <= self.config.queue_depth,
            "{} commands have a place, of {}",
            self.held,
            self.config.queue_depth
        );
        self.host_idle_since = None;
        let used = self.processor.take(now, self.config.command_overhead);
        let command = &mut self.commands[slot];
        command.waited(used.begins);
        command.worked(self.config.command_overhead);
        self.at(used.ends, slot, CommandStep::Understood);
    }

    fn at(&mut self, time: Time, slot: u32, step: CommandStep) {
        debug_assert!(
            time >= self.now,
            "{step:?} of slot {slot} is due at {time:?}, before {:?}",
            self.now
        );
        self.steps += 1;
        // The running number makes the order of steps at one instant that of their entry. Slots are
        // reused, so the slot number would be no order.
        self.due.push(Reverse((time, self.steps, slot, step)));
    }

    /// Sends the data of a read from memory to the host.
    pub(crate) fn deliver(&mut self, slot: u32, now: Time) {
        self.carry(slot, now, CommandStep::Delivered);
    }

    fn carry(&mut self, slot: u32, now: Time, step: CommandStep) {
        let span = self.span_on_link(self.commands[slot].request.extent.sectors);
        let used = self.link.take(now, span);
        let command = &mut self.commands[slot];
        command.waited(used.begins);
        command.worked(span);
        self.at(used.ends, slot, step);
    }

    fn span_on_link(&self, sectors: Sectors) -> Duration {
        let seconds = |rate: f64| {
            Duration::from_secs_f64(sectors.0 as f64 * SECTOR_BYTES as f64 / (rate * 1e6))
        };
        self.config.link_mb_per_s.map_or(Duration::ZERO, seconds)
    }

    fn step(&mut self, slot: u32, step: CommandStep, now: Time, out: &mut Effects) {
        let request = self.commands[slot].request;
        let addressed =
            request.extent.sectors > Sectors::ZERO && request.extent.within(self.capacity);
        match (step, request.operation) {
            (CommandStep::Delivered, _) => self.finish(slot, now, out),
            (CommandStep::Arrived, _) => self.write(slot),
            (CommandStep::Understood, Operation::Flush) => self.flush(slot, now, out),
            (CommandStep::Understood, Operation::Standby) => self.drain(slot),
            (CommandStep::Understood, Operation::Start) => self.pass(slot),
            (CommandStep::Understood, Operation::Answer) => self.through(slot),
            // The array decides about empty and invalid extents, so the status is the same with and
            // without a controller.
            (CommandStep::Understood, _) if !addressed => self.through(slot),
            (CommandStep::Understood, Operation::Read) => self.read(slot, now),
            (CommandStep::Understood, Operation::Write) => {
                self.carry(slot, now, CommandStep::Arrived)
            }
            (CommandStep::Understood, Operation::Discard) => self.discard(slot),
        }
    }

    /// Completes a command at `now`, and accepts the next waiting command.
    pub(crate) fn finish(&mut self, slot: u32, now: Time, out: &mut Effects) {
        let mut command = self.commands.take(slot);
        // The rest of the time up to `now` counts as a wait. After a write into memory no other
        // step has counted this time.
        command.waited(now);
        out.complete(command.completion());
        assert!(
            self.held > 0,
            "the command of slot {slot} ends at {now:?}, and no place is taken"
        );
        self.held -= 1;
        match self.outside.pop_front() {
            Some(next) => self.accept(next, now),
            None if self.held == 0 => self.host_idle_since = Some(now),
            None => {}
        }
    }

    /// Passes a command to the array unchanged.
    pub(crate) fn through(&mut self, slot: u32) {
        let request = self.commands[slot].request;
        self.ask(ControllerIo::of_command(
            IoPurpose::Through { command: slot },
            request,
            request.extent,
        ));
    }

    /// Queues an I/O for the array, and returns the slot of the I/O.
    pub(crate) fn ask(&mut self, io: ControllerIo) -> u32 {
        let slot = self.ios.keep(io);
        // `wait_for` and `begin_fetch` need the slot, so the I/O gets its slot before the
        // discipline has chosen.
        self.waiting.insert(slot, io.request.extent.start);
        slot
    }

    /// Lets `command` wait for the fetch of `io`.
    pub(crate) fn wait_for(&mut self, io: u32, command: u32) {
        self.commands[command].next_waiter = self.ios[io].waiters;
        self.ios[io].waiters = command;
    }

    /// Returns the extent of the I/O in `slot`.
    pub(crate) fn extent_of(&self, slot: u32) -> fullstroke_contract::Extent {
        self.ios[slot].request.extent
    }

    /// Issues waiting I/Os up to the depth of the array.
    fn dispatch(&mut self, out: &mut Effects) {
        while self.issued < self.constants.array_depth
            && let Some(slot) = self.waiting.take(self.position)
        {
            self.issued += 1;
            let request = self.ios[slot].request;
            self.position = request.extent.end();
            out.issue(
                0,
                Request {
                    id: RequestId(u64::from(slot)),
                    ..request
                },
            );
        }
    }

    /// Carries out the consequences of an event: data find room, flushes end, destaging begins,
    /// I/Os are issued.
    fn carry_out_consequences(&mut self, now: Time, out: &mut Effects) {
        // Absorbed writes may add drains and dirty blocks. Drains and destaging queue I/Os, and
        // `dispatch` issues these I/Os at the same instant.
        self.absorb(now, out);
        self.end_drains();
        self.destage(now);
        self.dispatch(out);
        let busy = self.commands.len() + self.ios.len() > 0;
        self.idle_since = if busy {
            None
        } else {
            self.idle_since.or(Some(now))
        };
    }

    /// Carries out all steps due until `now`, each at the right instant.
    fn catch_up(&mut self, now: Time, below: LayersBelow<'_>, out: &mut Effects) {
        self.below = below.gauge(0);
        loop {
            let due = self.next_wake().at();
            if due > now {
                break;
            }
            debug_assert!(
                due >= self.now,
                "something was due at {due:?}, before {:?}",
                self.now
            );
            self.now = due;
            if let Some(&Reverse((time, _, slot, step))) = self.due.peek()
                && time <= due
            {
                self.due.pop();
                self.step(slot, step, time, out);
            }
            self.carry_out_consequences(due, out);
        }
        self.now = self.now.max(now);
    }

    fn array_answered(&mut self, slot: u32, completion: &Completion, out: &mut Effects) {
        let io = self.ios.take(slot);
        assert!(
            self.issued > 0,
            "the array answers slot {slot}, and was asked for nothing"
        );
        self.issued -= 1;
        match io.purpose {
            IoPurpose::Fetch { command } => self.fetched(slot, &io, Some(command), completion, out),
            IoPurpose::Ahead => self.fetched(slot, &io, None, completion, out),
            IoPurpose::Through { command } => self.went_through(command, &io, completion, out),
            IoPurpose::Destage => self.destaged(&io, completion),
        }
    }
}

impl Node for Controller {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        self.catch_up(now, below, out);
        let slot = self.commands.keep(ControllerCommand::new(now, request));
        if self.held < self.config.queue_depth {
            self.accept(slot, now);
        } else {
            self.outside.push_back(slot);
        }
        self.carry_out_consequences(now, out);
        // A step without duration, for example without a limit of the link, is due at this instant.
        // The event carries the step out, and saves a wake-up.
        self.catch_up(now, below, out);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        self.catch_up(now, below, out);
        self.array_answered(completion.id.0 as u32, &completion, out);
        self.carry_out_consequences(now, out);
        self.catch_up(now, below, out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        self.catch_up(now, below, out);
    }

    fn next_wake(&self) -> Wake {
        let step = self
            .due
            .peek()
            .map_or(Time::NEVER, |&Reverse((time, ..))| time);
        // The clock of the last event, not the driver's, decides if the idle time is still to come.
        // An idle time that has begun needs no alarm: `carry_out_consequences` has destaged.
        step.min(self.idle_destage_due(self.now)).into()
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            queue_length: (self.commands.len() + self.ios.len()) as u32,
            head: self.below.head,
            idle_since: self.idle_since,
            alive: self.below.alive,
            phase: self.below.phase,
        }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        counters.layers.push(self.counts.readings());
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "properties.rs"]
mod properties;
