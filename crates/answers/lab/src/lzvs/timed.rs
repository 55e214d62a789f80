//! Targets with timed reads.

use crate::lzvs::LzvsError;
use fullstroke_contract::{Extent, Operation, Request, RequestStatus};
use fullstroke_engine::{Finished, Graph, Machine, Observer};
use fullstroke_units::{Duration, Random, Sectors, Seed, Time};

/// A disk or a volume that reports the duration of each read. All measurements of this module use
/// such reads alone, one at a time, so a simulated target and a real target are interchangeable.
pub trait TimedReads {
    /// Returns the number of sectors; addresses are `0..capacity`.
    fn capacity(&self) -> Sectors;

    /// Reads `extent` and returns the duration.
    ///
    /// # Errors
    /// The read has failed.
    fn read(&mut self, extent: Extent) -> Result<Duration, LzvsError>;
}

/// The layers of a stack in virtual time. A random pause passes between two reads. The same seed
/// gives the same times.
pub struct SimulatedReads {
    machine: Machine,
    capacity: Sectors,
    pauses: Random,
    pause_max: Duration,
    seen: ReadState,
}

/// Longest pause. Longer than a revolution of any disk.
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// Longest pause of a fast host between two system calls.
const PAUSE_OF_HOST: Duration = Duration::from_micros(100);

/// State of the current read, and the arm movements so far.
#[derive(Default)]
struct ReadState {
    took: Option<(RequestStatus, Duration)>,
    /// End of the latest transfer of each drive.
    ends: Vec<Option<u64>>,
    moves: Vec<DriveRequest>,
}

/// One request to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveRequest {
    /// Index of the drive in the order of the graph.
    pub drive: usize,
    /// End of the drive's previous transfer; `None` for the first transfer.
    pub from: Option<u64>,
    /// Begin of this transfer.
    pub to: u64,
}

impl Observer for ReadState {
    fn finished(&mut self, finished: &Finished) {
        let took = finished.completion.finished.since(finished.arrived);
        self.took = Some((finished.completion.status, took));
    }

    fn drive_io(&mut self, _now: Time, drive: usize, request: &Request) {
        let end = request.extent.end().0;
        let from = self.ends[drive].replace(end);
        self.moves.push(DriveRequest {
            drive,
            from,
            to: request.extent.start.0,
        });
    }
}

impl SimulatedReads {
    /// Starts the layers of a volume of `capacity` at time 0. Pauses are up to 20 ms long, so that
    /// reads begin at any angle of the platters.
    pub fn new(graph: Graph, capacity: Sectors, seed: Seed) -> SimulatedReads {
        let drives = graph.drive_names().count();
        SimulatedReads {
            machine: Machine::new(graph),
            capacity,
            pauses: seed.stream("pauses between reads"),
            pause_max: PAUSE_MAX,
            seen: ReadState {
                ends: vec![None; drives],
                ..ReadState::default()
            },
        }
    }

    /// Limits pauses to 0.1 ms. A read then continues where the read before has ended, as on a real
    /// device.
    #[must_use]
    pub fn back_to_back(self) -> SimulatedReads {
        SimulatedReads {
            pause_max: PAUSE_OF_HOST,
            ..self
        }
    }

    /// Returns the graph of the layers.
    pub fn graph(&self) -> &Graph {
        self.machine.graph()
    }

    /// Returns the requests to the drives since the last call, in order.
    pub fn take_moves(&mut self) -> Vec<DriveRequest> {
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
            Some((RequestStatus::Done, took)) => Ok(took),
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
