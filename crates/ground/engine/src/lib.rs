//! Runs a graph of nodes under a virtual clock, as fast as possible.
//!
//! [`Graph`] has the nodes and edges. [`Machine`] gives each node the time with every event,
//! carries effects from node to node, and wakes the node with the earliest alarm. [`Engine`] lets
//! virtual time jump from event to event. Events at one instant are served in the order of the
//! graph, from the workload down. Therefore a run is repeatable to the bit.

mod flight;
mod graph;
mod machine;
mod rebuilds;

pub use graph::{Graph, MemberName};
pub use machine::Machine;
pub use rebuilds::{Rebuild, RebuildMark, Rebuilds};

pub use fullstroke_contract::Branch;
use fullstroke_contract::{
    Completion, Counters, Extent, Node, Notice, Operation, Request, Source, SourceError,
};
use fullstroke_units::Time;

/// A completed request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Number in order of arrival, from 0.
    pub origin: u64,
    /// Operation of the request.
    pub operation: Operation,
    /// Addresses of the request.
    pub extent: Extent,
    /// Process of the request; 0 = unknown.
    pub process: u32,
    /// Index of the workload in the stack.
    pub workload: u16,
    /// Time of arrival.
    pub arrived: Time,
    /// Result, time and breakdown.
    pub completion: Completion,
}

/// An observer of the graph: edges below workloads, edges above drives, and every notice at the
/// first sender. The default of every method does nothing.
pub trait Observer {
    /// A request of a workload, or a request from outside, has completed.
    fn finished(&mut self, _finished: &Finished) {}
    /// Drive number `drive` (in the order of the graph) got `request`. The cause is the workload's
    /// request `request.origin`, or a layer's own work if the origin is [`Request::BACKGROUND`].
    fn drive_io(&mut self, _now: Time, _drive: usize, _request: &Request) {}
    /// Like [`drive_io`](Observer::drive_io), with the number of requests that were already in the
    /// drive.
    fn drive_ahead(&mut self, _now: Time, _drive: usize, _request: &Request, _ahead: u32) {}
    /// The drive has completed a request. The id is that of the [`drive_io`](Observer::drive_io)
    /// call, unique among the requests in the drive.
    fn drive_done(&mut self, _drive: usize, _completion: &Completion) {}
    /// Arm number `arm` of a drive with several arms got a part of a request, in addresses of the
    /// arm.
    fn arm_io(&mut self, _now: Time, _drive: usize, _arm: usize, _request: &Request) {}
    /// The arm has completed this part. Ids are unique among the requests in the arm.
    fn arm_done(&mut self, _drive: usize, _arm: usize, _completion: &Completion) {}
    /// The layer at `path` (the member indices on the way to the layer) has sent a notice of its
    /// own.
    fn noticed(&mut self, _path: &[usize], _notice: &Notice) {}
    /// Returns when the observer wants the counters next. Never by default.
    fn next_sample(&self) -> Time {
        Time::NEVER
    }
    /// The counters at the instant `at`, from [`next_sample`](Observer::next_sample).
    fn sampled(&mut self, _at: Time, _counters: &Counters) {}
    /// Returns true to end the run now.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// The observer without effects.
impl Observer for () {}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOutcome {
    /// Number of requests that arrived.
    pub requests: u64,
    /// Number of requests that ended as [`Status::Done`](fullstroke_contract::RequestStatus::Done)
    /// or [`Status::Differs`](fullstroke_contract::RequestStatus::Differs).
    pub completed: u64,
    /// Number of requests to data that were lost with failed members.
    pub lost: u64,
    /// Number of requests that a drive with zones refused.
    pub refused: u64,
    /// Number of requests outside the volume.
    pub out_of_range: u64,
    /// Time of the last completion.
    pub end: Time,
    /// Counters up to the end of the last request. Later work of layers on their own account, such
    /// as write-back, is carried out but not counted.
    pub counters: Counters,
}

/// Runs workloads on a graph of nodes.
pub struct Engine {
    machine: Machine,
}

/// Returns the error for an event so far ahead that later times might overflow.
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
    /// Creates an engine at time 0 with `source` above `top`.
    pub fn new(top: Branch, source: Box<dyn Source>) -> Engine {
        Engine::of(Graph::below(source, top))
    }

    /// Creates an engine at time 0 for the workloads of `graph`.
    pub fn of(graph: Graph) -> Engine {
        Engine {
            machine: Machine::new(graph),
        }
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        self.machine.graph()
    }

    /// Returns the first workload of type `W`, for access to results beyond the counters.
    pub fn workload<W: Node>(&self) -> Option<&W> {
        self.graph().workload()
    }

    /// Runs until all workloads have ended, nothing is in flight and only chores are left. A
    /// rebuild that is not done by then stays unfinished.
    ///
    /// # Errors
    /// The first error of the source. Or the observer has stopped the run, or work is left behind
    /// [`Time::HORIZON`].
    ///
    /// # Panics
    /// If a node loses a request: only chores are left, and yet a request has not completed.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<RunOutcome, SourceError> {
        let mut counted = None;
        let machine = &mut self.machine;
        loop {
            if counted.is_none() && !machine.has_arrivals() && machine.in_flight() == 0 {
                // The counters are read before layers rest: later write-back has no request that
                // waits for it.
                counted = Some(machine.counters());
                machine.rest(observer);
            }
            if !machine.has_work() {
                break;
            }
            if machine.next_wake() > Time::HORIZON {
                return Err(past_the_horizon(machine));
            }
            // Samples come before an event at the same instant, so a sample never contains a later
            // event.
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
        Ok(RunOutcome {
            requests: machine.submitted(),
            completed: ended.completed,
            lost: ended.lost,
            refused: ended.refused,
            out_of_range: ended.out_of_range,
            end: ended.last,
            counters: counted.unwrap_or_default(),
        })
    }
}
