//! Something that answers timed reads.

use crate::lzvs::LzvsError;
use fullstroke_contract::{Extent, Operation, Request, Status};
use fullstroke_engine::{Finished, Graph, Machine, Observer};
use fullstroke_units::{Duration, Random, Sectors, Seed, Time};

/// A disk or a volume that can be read at an address, and how long that takes.
/// What is measured here is measured by such reads alone, one at a time, so
/// that it does not matter whether a simulated or a real target answers.
pub trait TimedReads {
    /// Addresses `0..capacity`.
    fn capacity(&self) -> Sectors;

    /// Reads `extent` and answers how long it took.
    ///
    /// # Errors
    /// The read has failed.
    fn read(&mut self, extent: Extent) -> Result<Duration, LzvsError>;
}

/// The layers of a stack under virtual time. Between two reads passes a random
/// pause; the same seed gives the same times.
pub struct SimulatedReads {
    machine: Machine,
    capacity: Sectors,
    pauses: Random,
    pause_max: Duration,
    seen: Seen,
}

/// Longer than a revolution of any disk.
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// What a host needs between two system calls, if little.
const PAUSE_OF_HOST: Duration = Duration::from_micros(100);

/// The read that is under way, and where the arms went for it.
#[derive(Default)]
struct Seen {
    took: Option<(Status, Duration)>,
    /// For each drive, where its latest transfer ended.
    ends: Vec<Option<u64>>,
    moves: Vec<Move>,
}

/// One request to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The drive's number in the order of the graph.
    pub drive: usize,
    /// Where the drive's transfer before this one ended; `None` for its first.
    pub from: Option<u64>,
    /// Where it begins.
    pub to: u64,
}

impl Observer for Seen {
    fn finished(&mut self, finished: &Finished) {
        let took = finished.completion.finished.since(finished.arrived);
        self.took = Some((finished.completion.status, took));
    }

    fn drive_io(&mut self, _now: Time, drive: usize, request: &Request) {
        let end = request.extent.end().0;
        let from = self.ends[drive].replace(end);
        self.moves.push(Move {
            drive,
            from,
            to: request.extent.start.0,
        });
    }
}

impl SimulatedReads {
    /// The layers at time 0, of a volume of `capacity`. Pauses are of up to 20 ms,
    /// so that reads begin at any angle of the platters.
    pub fn new(graph: Graph, capacity: Sectors, seed: Seed) -> SimulatedReads {
        let drives = graph.drive_names().count();
        SimulatedReads {
            machine: Machine::new(graph),
            capacity,
            pauses: seed.stream("pauses between reads"),
            pause_max: PAUSE_MAX,
            seen: Seen {
                ends: vec![None; drives],
                ..Seen::default()
            },
        }
    }

    /// The same with pauses of up to 0.1 ms: a read goes on where the one before has
    /// ended, as on a real device.
    #[must_use]
    pub fn back_to_back(self) -> SimulatedReads {
        SimulatedReads {
            pause_max: PAUSE_OF_HOST,
            ..self
        }
    }

    /// The layers.
    pub fn graph(&self) -> &Graph {
        self.machine.graph()
    }

    /// What the drives were asked since the last call, in order.
    pub fn take_moves(&mut self) -> Vec<Move> {
        std::mem::take(&mut self.seen.moves)
    }
}

impl TimedReads for SimulatedReads {
    fn capacity(&self) -> Sectors {
        self.capacity
    }

    fn read(&mut self, extent: Extent) -> Result<Duration, LzvsError> {
        let pause = Duration::from_nanos(self.pauses.below(self.pause_max.as_nanos()));
        let now = self.machine.now() + pause;
        self.machine.advance(now, &mut self.seen);
        self.seen.took = None;
        let request = Request {
            operation: Operation::Read,
            extent,
            ..Request::default()
        };
        self.machine.submit(now, request, &mut self.seen);
        while self.seen.took.is_none() && self.machine.next_wake() != Time::NEVER {
            self.machine.wake(&mut self.seen);
        }
        match self.seen.took {
            Some((Status::Done, took)) => Ok(took),
            Some((status, _)) => Err(LzvsError::Read {
                extent,
                reason: format!("{status:?}"),
            }),
            None => Err(LzvsError::Read {
                extent,
                reason: "it was never answered".to_owned(),
            }),
        }
    }
}
