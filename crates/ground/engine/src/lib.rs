//! What drives a graph of nodes: as fast as it goes, under a virtual clock.
//!
//! [`Graph`] is who stands above whom. [`Machine`] tells each node the time with
//! every event, carries effects from one to the next, and wakes whoever asked
//! first. [`Engine`] lets virtual time jump from event to event. Events at one
//! instant are served in the order of the graph, from the workload down, so that
//! a run repeats to the bit.

mod flight;
mod graph;
mod machine;
mod rebuilds;

pub use graph::{Graph, MemberName};
pub use machine::Machine;
pub use rebuilds::{Mark, Rebuild, Rebuilds};

pub use fullstroke_contract::Branch;
use fullstroke_contract::{
    Completion, Counters, Extent, Node, Notice, Operation, Request, Source, SourceError,
};
use fullstroke_units::Time;

/// A request of the workload that has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its number in order of arrival, from 0.
    pub origin: u64,
    /// What it did.
    pub operation: Operation,
    /// Where.
    pub extent: Extent,
    /// The process it came from; 0 = unknown.
    pub process: u32,
    /// Which of the stack's workloads it came from, by index.
    pub workload: u16,
    /// When it arrived.
    pub arrived: Time,
    /// How and when it ended, and where the time went.
    pub completion: Completion,
}

/// Sees what crosses the edges of a graph: those below workloads, those above
/// drives, and notice wherever it is first given. Every method has an empty
/// default.
pub trait Observer {
    /// A request of a workload, or one from outside, has finished.
    fn finished(&mut self, _finished: &Finished) {}
    /// The drive number `drive` (in the order of the graph) was given
    /// `request`, on behalf of the workload's request `request.origin` or, if
    /// that is [`Request::BACKGROUND`], of a layer's own work.
    fn drive_io(&mut self, _now: Time, _drive: usize, _request: &Request) {}
    /// The same, with how many requests were in the drive then.
    fn drive_ahead(&mut self, _now: Time, _drive: usize, _request: &Request, _ahead: u32) {}
    /// The drive has answered. The id is that of the request that it was
    /// [given](Observer::drive_io), unique among those in the drive.
    fn drive_done(&mut self, _drive: usize, _completion: &Completion) {}
    /// Of a drive with several arms: arm number `arm` was given its part of a
    /// request, in its own addresses.
    fn arm_io(&mut self, _now: Time, _drive: usize, _arm: usize, _request: &Request) {}
    /// That arm has answered; ids are unique among those in the arm.
    fn arm_done(&mut self, _drive: usize, _arm: usize, _completion: &Completion) {}
    /// The layer at `path` (the indices of the members on the way to it) has
    /// given notice of something itself.
    fn noticed(&mut self, _path: &[usize], _notice: &Notice) {}
    /// When it wants to be told next what has been counted; never, unless it says so.
    fn next_sample(&self) -> Time {
        Time::NEVER
    }
    /// What had been counted at the instant `at`, for which it asked.
    fn sampled(&mut self, _at: Time, _counters: &Counters) {}
    /// Whether the run is to end where it is.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// An observer that looks away.
impl Observer for () {}

/// What a run amounted to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Requests that arrived.
    pub requests: u64,
    /// Requests that finished as [`Status::Done`](fullstroke_contract::Status::Done).
    pub completed: u64,
    /// Requests that touched data lost with failed members.
    pub lost: u64,
    /// Requests outside of the volume.
    pub out_of_range: u64,
    /// The instant of the last completion.
    pub end: Time,
    /// What was counted until then. What layers do later on their own account,
    /// such as writing back what they hold, is carried out but not counted.
    pub counters: Counters,
}

/// Runs workloads on a graph of nodes.
pub struct Engine {
    machine: Machine,
}

/// The next event lies so far ahead that times behind the event might not fit.
#[cold]
fn past_the_horizon(machine: &Machine) -> SourceError {
    SourceError(format!(
        "the next event of the run lies more than 292 years after its beginning (after {} requests, \
         the last event at {:?}); simulated time ends there. Choose a higher rate, shorter pauses or fewer requests",
        machine.submitted(),
        machine.now(),
    ))
}

impl Engine {
    /// An engine at time 0: `source` above `top`.
    pub fn new(top: Branch, source: Box<dyn Source>) -> Engine {
        Engine::of(Graph::below(source, top))
    }

    /// An engine at time 0 for the workloads of `graph`.
    pub fn of(graph: Graph) -> Engine {
        Engine {
            machine: Machine::new(graph),
        }
    }

    /// The nodes.
    pub fn graph(&self) -> &Graph {
        self.machine.graph()
    }

    /// The workload, if it is of this type: for results of its own.
    pub fn workload<W: Node>(&self) -> Option<&W> {
        self.graph().workload()
    }

    /// Runs until all workloads have ended, nothing is in flight and only chores
    /// are left. A rebuild that is not done by then stays so.
    ///
    /// # Errors
    /// The source's, as soon as it has one; the observer has stopped the run; or
    /// something is left to do behind [`Time::HORIZON`].
    ///
    /// # Panics
    /// If a node loses a request: nobody has anything to do but chores, and yet
    /// not every request has finished.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<Outcome, SourceError> {
        let mut counted = None;
        let machine = &mut self.machine;
        loop {
            if counted.is_none() && !machine.has_arrivals() && machine.in_flight() == 0 {
                counted = Some(machine.counters());
                machine.rest(observer);
            }
            if !machine.has_work() {
                break;
            }
            if machine.next_wake() > Time::HORIZON {
                return Err(past_the_horizon(machine));
            }
            while counted.is_none() && observer.next_sample() <= machine.next_wake() {
                let at = observer.next_sample();
                observer.sampled(at, &machine.counters_at(at));
            }
            machine.wake(observer);
            if observer.is_stopped() {
                return Err(SourceError("the run was stopped".to_owned()));
            }
            if let Some(error) = machine.take_stop() {
                return Err(error);
            }
        }
        let lost = machine.in_flight();
        assert_eq!(lost, 0, "a node has lost {lost} requests");
        let ended = machine.ended();
        Ok(Outcome {
            requests: machine.submitted(),
            completed: ended.completed,
            lost: ended.lost,
            out_of_range: ended.out_of_range,
            end: ended.last,
            counters: counted.unwrap_or_default(),
        })
    }
}
