//! The layer.

use crate::admission::Admission;
use crate::array_queue::ArrayQueue;
use crate::command::ControllerCommand;
use crate::config::{Constants, ControllerConfig};
use crate::counts::ControllerCounts;
use crate::destaging::Destaging;
use crate::io::{ControllerIo, IoPurpose};
use crate::memory::ControllerMemory;
use crate::resource::Resources;
use crate::steps::{CommandStep, DueSteps};
use crate::streams::Streams;
use crate::waits::Waits;
use fullstroke_contract::{
    Completion, ConfigError, Counters, Effects, Gauge, LayersBelow, Node, NodeContext, Operation,
    Port, Request, Slots, Wake,
};
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};

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
    resources: Resources,
    pub(crate) commands: Slots<ControllerCommand>,
    pub(crate) admission: Admission,
    due: DueSteps,
    pub(crate) waits: Waits,
    pub(crate) array: ArrayQueue,
    pub(crate) destaging: Destaging,
    idle_since: Option<Time>,
    pub(crate) counts: ControllerCounts,
    below: Gauge,
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
        let array = ArrayQueue::new(resolved.constants.array_depth, resolved.discipline);
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
            resources: Resources::default(),
            commands: Slots::default(),
            admission: Admission::new(config.queue_depth),
            due: DueSteps::default(),
            waits: Waits::default(),
            array,
            destaging: Destaging::default(),
            idle_since: Some(Time::ZERO),
            counts: ControllerCounts::default(),
            below: Gauge::default(),
        })
    }

    /// Occupies the processor with a command that has a place.
    fn accept(&mut self, slot: u32, now: Time) {
        let used = self.resources.process(now, self.config.command_overhead);
        let command = &mut self.commands[slot];
        command.waited(used.begins);
        command.worked(self.config.command_overhead);
        self.due.add(used.ends, slot, CommandStep::Understood);
    }

    /// Sends the data of a read from memory to the host.
    pub(crate) fn deliver(&mut self, slot: u32, now: Time) {
        self.carry(slot, now, CommandStep::Delivered);
    }

    fn carry(&mut self, slot: u32, now: Time, step: CommandStep) {
        let span = self.span_on_link(self.commands[slot].request.extent.sectors);
        let used = self.resources.carry(now, span);
        let command = &mut self.commands[slot];
        command.waited(used.begins);
        command.worked(span);
        self.due.add(used.ends, slot, step);
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
        if let Some(next) = self.admission.leave(now) {
            self.accept(next, now);
        }
    }

    /// Passes a command to the array unchanged.
    pub(crate) fn through(&mut self, slot: u32) {
        let request = self.commands[slot].request;
        self.array.ask(ControllerIo::of_command(
            IoPurpose::Through { command: slot },
            request,
            request.extent,
        ));
    }

    /// Lets `command` wait for the fetch of `io`.
    pub(crate) fn wait_for(&mut self, io: u32, command: u32) {
        self.commands[command].next_waiter = self.array.add_waiter(io, command);
    }

    /// Carries out the consequences of an event: data find room, flushes end, destaging begins,
    /// I/Os are issued.
    fn carry_out_consequences(&mut self, now: Time, out: &mut Effects) {
        // Absorbed writes may add drains and dirty blocks. Drains and destaging queue I/Os, and
        // `dispatch` issues these I/Os at the same instant.
        self.absorb(now, out);
        self.end_drains();
        self.destage(now);
        self.array.dispatch(out);
        let busy = self.commands.len() + self.array.len() > 0;
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
            if let Some((time, slot, step)) = self.due.advance(due) {
                self.step(slot, step, time, out);
            }
            self.carry_out_consequences(due, out);
        }
        self.due.catch_up(now);
    }

    fn array_answered(&mut self, slot: u32, completion: &Completion, out: &mut Effects) {
        let io = self.array.end(slot);
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
        if self.admission.enter(slot) {
            self.accept(slot, now);
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
        // The clock of the last event, not the driver's, decides if the idle time is still to come.
        // An idle time that has begun needs no alarm: `carry_out_consequences` has destaged.
        let idle = self.idle_destage_due(self.due.now());
        self.due.next().min(idle).into()
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            queue_length: (self.commands.len() + self.array.len()) as u32,
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
