//! A simulated drive under virtual time. The whole node answers, with buffer and electronics, one
//! request at a time.

use crate::extract::ExtractError;
use crate::extract::machine::{ExtractedDevice, PhysicalPlace, RequestAnswer};
use fullstroke_contract::{Completion, ConfigError, Extent, Operation, Request, RequestStatus};
use fullstroke_drive::{DriveModel, Geometry};
use fullstroke_engine::{Finished, Graph, Machine, Observer};
use fullstroke_units::{Duration, Lbn, Random, Sectors, Seed, Time};
use std::sync::Arc;

/// Time of one address translation. Qian and Wang (section 4.1) extracted a drive of 152,213 tracks
/// in 7 minutes. The extraction took two translations per track, and a few more for irregular
/// tracks. The same time is assumed for all drives.
const TRANSLATION: Duration = Duration::from_micros(1_300);

/// A simulated drive.
pub struct SimulatedDrive {
    machine: Machine,
    capacity: Sectors,
    geometry: Arc<Geometry>,
    now: Time,
    noise: Option<(Duration, Random)>,
    done: CompletionLog,
}

/// Completions, each with the number of its request in the order of arrival.
#[derive(Default)]
struct CompletionLog(Vec<(u64, Completion)>);

impl Observer for CompletionLog {
    fn finished(&mut self, finished: &Finished) {
        self.0.push((finished.origin, finished.completion));
    }
}

impl SimulatedDrive {
    /// Creates a drive of this model, at rest at time 0.
    ///
    /// # Errors
    /// Names the invalid key of the queue or the buffer.
    pub fn new(model: &DriveModel) -> Result<SimulatedDrive, ConfigError> {
        Ok(SimulatedDrive {
            machine: Machine::new(Graph::new(model.branch()?)),
            capacity: model.config().capacity_sectors,
            geometry: Arc::clone(model.mechanics().geometry()),
            now: Time::ZERO,
            noise: None,
            done: CompletionLog::default(),
        })
    }

    /// Returns the drive behind a host that notices completions late. The delay is exponential with
    /// this mean.
    #[must_use]
    pub fn noticed_late(self, mean: Duration, seed: Seed) -> SimulatedDrive {
        SimulatedDrive {
            noise: Some((mean, seed.stream("late notice"))),
            ..self
        }
    }
}

impl SimulatedDrive {
    /// Issues all of `extents` now, and waits until each has ended.
    fn carry_out(
        &mut self,
        operation: Operation,
        extents: &[Extent],
    ) -> Result<Vec<RequestAnswer>, ExtractError> {
        let issued = self.now;
        // First carries out the drive's own activity up to this time.
        self.machine.advance(issued, &mut self.done);
        self.done.0.clear();
        let first = self.machine.submitted();
        for &extent in extents {
            self.machine.submit(
                issued,
                Request {
                    operation,
                    extent,
                    ..Request::default()
                },
                &mut self.done,
            );
        }
        while self.done.0.len() < extents.len() && self.machine.next_wake() != Time::NEVER {
            self.machine.wake(&mut self.done);
        }
        // Commands of a queue complete in any order, and the answers stand in the order of issue.
        self.done.0.sort_unstable_by_key(|(origin, _)| *origin);
        let mut answers = Vec::with_capacity(extents.len());
        for (number, &extent) in extents.iter().enumerate() {
            let done = self
                .done
                .0
                .get(number)
                .filter(|(origin, _)| *origin == first + number as u64);
            let fail = |reason: String| Err(ExtractError::Device { extent, reason });
            let Some((_, done)) = done else {
                return fail("it never ended".into());
            };
            if done.status != RequestStatus::Done {
                return fail(format!("{:?}", done.status));
            }
            let late = self
                .noise
                .as_mut()
                .map_or(Duration::ZERO, |(mean, random)| random.exponential(*mean));
            answers.push(RequestAnswer {
                issued,
                completed: done.finished + late,
                place: PhysicalPlace::default(),
            });
        }
        self.now = answers
            .iter()
            .map(|answer| answer.completed)
            .fold(self.now, Time::max);
        Ok(answers)
    }

    fn one(&mut self, operation: Operation, extent: Extent) -> Result<RequestAnswer, ExtractError> {
        Ok(self
            .carry_out(operation, &[extent])?
            .pop()
            .unwrap_or_default())
    }
}

impl ExtractedDevice for SimulatedDrive {
    fn capacity(&self) -> Sectors {
        self.capacity
    }

    fn read(&mut self, extent: Extent) -> Result<RequestAnswer, ExtractError> {
        self.one(Operation::Read, extent)
    }

    fn burst(&mut self, extents: &[Extent]) -> Result<Vec<RequestAnswer>, ExtractError> {
        self.carry_out(Operation::Read, extents)
    }

    fn rewrite(&mut self, extent: Extent) -> Result<RequestAnswer, ExtractError> {
        self.one(Operation::Write, extent)
    }

    fn translate(&mut self, lbn: Lbn) -> Result<RequestAnswer, ExtractError> {
        // With several arms, each arm has an equal share of the addresses. The cylinders of a
        // further arm have higher numbers.
        let share = self.geometry.capacity().0;
        if lbn >= Lbn(self.capacity.0) {
            return Err(ExtractError::Translation {
                lbn,
                reason: "it lies beyond the end".into(),
            });
        }
        let (arm, within) = (lbn.0 / share, lbn.0 % share);
        let track = fullstroke_contract::TrackTable::track_at(&*self.geometry, Lbn(within));
        let place = PhysicalPlace {
            cylinder: fullstroke_units::Cylinder(
                track.cylinder.0 + arm as u32 * self.geometry.cylinders(),
            ),
            surface: track.surface,
            sector: (within - track.first.0) as u32,
        };
        let issued = self.now;
        self.now += TRANSLATION;
        Ok(RequestAnswer {
            issued,
            completed: self.now,
            place,
        })
    }

    fn idle(&mut self, span: Duration) -> RequestAnswer {
        let issued = self.now;
        self.now += span;
        RequestAnswer {
            issued,
            completed: self.now,
            place: PhysicalPlace::default(),
        }
    }
}

/// A host that splits reads into pieces and issues one piece at a time. Block layers and adapters
/// do so with reads above their largest transfer.
pub struct SplittingHost<D> {
    below: D,
    sectors_max: u64,
}

impl<D: ExtractedDevice> SplittingHost<D> {
    /// Splits at `sectors_max`.
    pub fn new(below: D, sectors_max: u64) -> SplittingHost<D> {
        SplittingHost {
            below,
            sectors_max: sectors_max.max(1),
        }
    }
}

impl<D: ExtractedDevice> ExtractedDevice for SplittingHost<D> {
    fn capacity(&self) -> Sectors {
        self.below.capacity()
    }

    fn read(&mut self, extent: Extent) -> Result<RequestAnswer, ExtractError> {
        let mut whole: Option<RequestAnswer> = None;
        let mut at = extent.start;
        while at < extent.end() {
            let sectors = self.sectors_max.min(extent.end().since(at).0);
            let piece = self.below.read(Extent::new(at.0, sectors))?;
            whole = Some(RequestAnswer {
                issued: whole.map_or(piece.issued, |whole| whole.issued),
                ..piece
            });
            at += Sectors(sectors);
        }
        whole.ok_or(ExtractError::Device {
            extent,
            reason: "it is empty".into(),
        })
    }

    fn burst(&mut self, extents: &[Extent]) -> Result<Vec<RequestAnswer>, ExtractError> {
        // Each read of a burst is one piece. Otherwise the host's order would hide the device's
        // order.
        self.below.burst(extents)
    }

    fn rewrite(&mut self, extent: Extent) -> Result<RequestAnswer, ExtractError> {
        self.below.rewrite(extent)
    }

    fn translate(&mut self, lbn: Lbn) -> Result<RequestAnswer, ExtractError> {
        self.below.translate(lbn)
    }

    fn idle(&mut self, span: Duration) -> RequestAnswer {
        self.below.idle(span)
    }
}
