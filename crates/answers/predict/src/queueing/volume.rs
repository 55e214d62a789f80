//! A volume under a load: response times, utilisation, watts.

use super::access::{ArmModel, PhasedAccess};
use super::gain::QueueGain;
use super::join::PartMoments;
use super::load::Load;
use super::moments::Moments;
use super::plans::{BACK, PlannedAccesses, READ, Shapes, WRITE};
use super::station::{StationResult, waiting};
use fullstroke_contract::ConfigError;
use fullstroke_drive::{BufferConfig, DriveConfig, DriveModel, PowerConfig, ReadAhead};

/// Smallest number of write segments that the model covers. A smaller buffer is full as soon as a
/// few writes come together.
const WRITE_SEGMENTS: u32 = 16;

/// Number of rounds after which a share that depends on itself has converged.
const ROUNDS: usize = 8;

/// Tables of a drive, computed once.
#[derive(Clone, Debug)]
pub struct DriveTables {
    arm: ArmModel,
    gain: QueueGain,
    config: DriveConfig,
}

/// Result for a volume under a load within its capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VolumeResult {
    /// Mean response of all requests, in seconds.
    pub response_s: f64,
    /// Mean utilisation: busy share of an arm's time.
    pub utilisation: f64,
    /// Mean number of outstanding requests in the volume.
    pub outstanding: f64,
    /// Mean number of outstanding requests for each drive.
    pub outstanding_each: f64,
    /// Number of accesses of the busiest drive, relative to the mean.
    pub uneven: f64,
    /// Mean power of all drives. `None` if a drive file has no power figures, or if drives spin
    /// down by themselves.
    pub mean_w: Option<f64>,
}

impl DriveTables {
    /// Computes the tables of a drive whose first `used` sectors are used.
    ///
    /// # Errors
    /// As [`DriveModel::new`].
    pub fn new(model: &DriveModel, used: u64) -> Result<DriveTables, ConfigError> {
        Ok(DriveTables {
            arm: ArmModel::new(model, used),
            gain: QueueGain::new(model)?,
            config: model.config().clone(),
        })
    }

    /// Returns the properties of the drive outside the model.
    pub fn unlike(&self) -> Vec<&'static str> {
        let buffer = self.config.buffer.as_ref();
        let few = buffer
            .is_some_and(|buffer| buffer.write_back && buffer.write_segments < WRITE_SEGMENTS);
        let whole = buffer.is_some_and(|buffer| buffer.read_ahead == ReadAhead::WholeTrack);
        let reasons = [
            (self.config.actuators > 1, "the drives have several arms"),
            (self.config.flash.is_some(), "the drives are flash devices"),
            (
                self.config.shingled.is_some(),
                "the drives have shingled tracks",
            ),
            (self.config.zoned.is_some(), "the drives have zones"),
            (
                self.config.spin_down.is_some(),
                "the drives stop by themselves",
            ),
            (few, "the drives' buffers hold few writes"),
            (whole, "the drives read whole tracks"),
        ];
        reasons
            .into_iter()
            .filter_map(|(is, reason)| is.then_some(reason))
            .collect()
    }

    /// Returns the gain of the drive's queue.
    pub fn gain(&self) -> &QueueGain {
        &self.gain
    }

    /// Returns the buffer, if it acknowledges writes.
    fn write_back(&self) -> Option<&BufferConfig> {
        self.config
            .buffer
            .as_ref()
            .filter(|buffer| buffer.write_back)
    }

    /// Returns the overhead before the arm moves: for a request at an idle arm, and for a request
    /// after a wait.
    fn overheads_s(&self, write: bool) -> [f64; 2] {
        let electronics = &self.config.electronics;
        let more = if write {
            electronics.write_miss
        } else {
            electronics.read_miss
        };
        let overhead =
            self.config.command_overhead_ms + (more.after_read_ms + more.after_write_ms) / 2.0;
        [overhead, overhead.min(self.config.queued_overhead_ms)].map(|ms| ms / 1000.0)
    }

    /// Returns the mean overhead before the arm moves, if the arm is busy for the share `busy` of
    /// the time.
    fn overhead_s(&self, write: bool, busy: f64) -> f64 {
        let [idle, waited] = self.overheads_s(write);
        idle * (1.0 - busy) + waited * busy
    }

    /// Returns the time behind the last sector of a read or write on the medium.
    fn completion_s(&self, write: bool) -> f64 {
        let electronics = &self.config.electronics;
        let ms = match write {
            false => electronics.read_completion_ms + electronics.bus_read_ms_per_sector,
            true => electronics.write_completion_ms + electronics.write_reselect_ms,
        };
        ms / 1000.0
    }

    /// Returns the time of a write into the buffer.
    fn taken_s(&self, sectors: f64) -> f64 {
        let electronics = &self.config.electronics;
        let overhead = electronics
            .hit_overhead_ms
            .unwrap_or(self.config.command_overhead_ms);
        let more =
            (electronics.write_hit.after_read_ms + electronics.write_hit.after_write_ms) / 2.0;
        let bus = electronics.data_preparation_ms + sectors * electronics.bus_write_ms_per_sector;
        (overhead + more + bus + electronics.write_completion_ms) / 1000.0
    }
}

/// Computes the queues of `planned` under its load on drives of this kind. Returns `None` if the
/// load exceeds their capacity.
pub fn queues(load: &Load, planned: &PlannedAccesses, drive: &DriveTables) -> Option<VolumeResult> {
    let members = Members::new(load, planned, drive);
    let answered = match drive.write_back() {
        Some(buffer) if members.rates[WRITE] + members.rates[BACK] > 0.0 => {
            members.buffered(buffer)?
        }
        _ => members.through()?,
    };
    let sum: f64 = planned
        .requests
        .iter()
        .map(|shapes| members.response_s(shapes, &answered))
        .sum();
    let response_s = sum / planned.requests.len().max(1) as f64;
    Some(VolumeResult {
        response_s,
        utilisation: answered.busy,
        outstanding: response_s * load.rate_per_s(),
        outstanding_each: response_s * load.rate_per_s() / planned.drives.max(1) as f64,
        uneven: planned.uneven,
        mean_w: members.watts(&answered),
    })
}

/// Equal drives, each with its part of the accesses.
struct Members<'a> {
    drive: &'a DriveTables,
    planned: &'a PlannedAccesses,
    /// Accesses of one drive per second, by kind.
    rates: [f64; 3],
    /// Time of a single access, by kind.
    accesses: [PhasedAccess; 3],
    /// Mean length in sectors, by kind.
    sectors: [f64; 3],
}

/// Result for the drives.
struct DriveResult {
    /// Response times, by kind.
    responses: [PartMoments; 3],
    /// For a write back to the place just read: its time if the arm is still there, and the
    /// probability that the arm is there.
    undisturbed: (f64, f64),
    busy: f64,
    /// Positioning time with the choice in the queue, relative to a single request.
    shortened: f64,
    /// Rate of arrivals at an idle arm.
    rests: f64,
}

impl<'a> Members<'a> {
    fn new(load: &Load, planned: &'a PlannedAccesses, drive: &'a DriveTables) -> Members<'a> {
        let each = load.rate_per_s() / planned.drives.max(1) as f64;
        let placed = drive.arm.placed(&load.places);
        let access = |kind: usize| placed.access(planned.kinds[kind].1, kind != READ);
        Members {
            drive,
            planned,
            rates: planned.kinds.map(|(count, _)| count * each),
            accesses: [access(READ), access(WRITE), access(BACK)],
            sectors: planned.kinds.map(|(_, sectors)| sectors.mean),
        }
    }

    fn rate(&self) -> f64 {
        self.rates.iter().sum()
    }

    /// Returns the mixture over all kinds, weighted by their rates.
    fn mixed(&self, of: impl Fn(usize) -> Moments) -> Moments {
        Moments::mixed((0..3).map(|kind| (self.rates[kind], of(kind))))
    }

    /// Returns the time of an access chosen from `count`.
    fn chosen(&self, kind: usize, count: usize, overhead_s: f64) -> Moments {
        let access = &self.accesses[kind];
        let positioning = self.drive.gain.positioning(access.positioning(), count);
        positioning
            .plus(access.transfer)
            .plus(Moments::of(overhead_s))
    }

    /// Returns the time of an access at an idle arm. A write back waits for its sector to come
    /// around. The writes of a request begin together after its last read, so the write behind the
    /// last read waits for a whole revolution.
    fn first(&self, kind: usize) -> Moments {
        let overhead = self.drive.overheads_s(kind != READ)[0];
        if kind != BACK {
            return self.chosen(kind, 1, overhead);
        }
        Moments::varied(
            self.drive.arm.revolution_s() - self.lag_s() / 2.0,
            (self.lag_s() / 2.0).powi(2),
        )
    }

    /// Returns the time that the first of two reads waits for the other, modulo a revolution.
    fn lag_s(&self) -> f64 {
        if self.planned.in_step {
            return 0.0;
        }
        let read = self.chosen(READ, 1, 0.0);
        let apart = 2.0
            * (PartMoments {
                mean: read.mean,
                variance: read.variance(),
            }
            .last_s(2)
                - read.mean);
        let half = self.drive.arm.revolution_s() / 2.0;
        // Only the place within the revolution matters. Half a revolution is its mean if the reads
        // are far apart.
        half * (1.0 - (-apart / half).exp())
    }

    /// Computes the result if all accesses are answered from the medium.
    fn through(&self) -> Option<DriveResult> {
        let rate = self.rate();
        let first = self.mixed(|kind| self.first(kind));
        let chosen = |count| {
            self.mixed(|kind| self.chosen(kind, count, self.drive.overheads_s(kind != READ)[1]))
        };
        let queue = waiting(rate, first, chosen)?;
        let shortened = self.shortened(&queue);
        let alone = (1.0 - queue.busy) * (-rate * self.lag_s()).exp();
        Some(DriveResult {
            responses: [READ, WRITE, BACK]
                .map(|kind| self.response(kind, &queue, rate, shortened, 0.0)),
            undisturbed: (
                self.drive.arm.revolution_s() + self.drive.completion_s(true),
                alone,
            ),
            busy: queue.busy,
            shortened,
            rests: rate * (1.0 - queue.busy),
        })
    }

    /// Returns the mean positioning time with the choice in the queue, relative to a single
    /// request.
    fn shortened(&self, queue: &StationResult) -> f64 {
        let fresh = |kind: usize| {
            if kind == BACK {
                Moments::default()
            } else {
                self.accesses[kind].positioning()
            }
        };
        let positioning = self.mixed(fresh).mean;
        let rest = self.mixed(|kind| self.chosen(kind, 1, 0.0)).mean
            - self.mixed(|kind| self.accesses[kind].positioning()).mean;
        let overhead =
            self.mixed(|kind| Moments::of(self.drive.overhead_s(kind != READ, queue.busy)));
        // Writes back have no positioning of their own here, so their wait for the sector cannot be
        // taken out of the mean service. The curve's value at the mean queue stands in.
        if positioning > 0.0 && self.rates[BACK] == 0.0 {
            ((queue.service.mean - rest - overhead.mean) / positioning).clamp(0.0, 1.0)
        } else {
            self.drive
                .gain
                .factor((queue.number - queue.busy).round().max(1.0) as usize)
        }
    }

    /// Returns the response of an access that waits in `queue`, and then for `behind`. The wait of
    /// an access that waits is modelled as exponential. A write back that finds the arm elsewhere
    /// always waits.
    fn response(
        &self,
        kind: usize,
        queue: &StationResult,
        rate: f64,
        shortened: f64,
        behind: f64,
    ) -> PartMoments {
        let busy = queue.busy.max(f64::MIN_POSITIVE);
        let waits = if kind == BACK { 1.0 } else { busy };
        let waited_s = self.in_turn(queue) * queue.wait_s(rate) / busy;
        let (wait, variance) = (
            waits * waited_s,
            waits * (2.0 - waits) * waited_s * waited_s,
        );
        let access = &self.accesses[kind];
        let positioning = access.positioning();
        let overhead =
            self.drive.overhead_s(kind != READ, queue.busy) + self.drive.completion_s(kind != READ);
        let service = Moments::varied(
            positioning.mean * shortened,
            positioning.variance() * shortened,
        )
        .plus(access.transfer)
        .plus(Moments::of(overhead));
        let wait = Moments::varied(wait, variance).plus(Moments::varied(behind, behind * behind));
        PartMoments::new(
            service,
            self.alike(kind, service),
            wait,
            self.planned.arrivals_shared,
        )
    }

    /// Returns the share of a service's variance common to the parts of a request. Their arms may
    /// have been at one place. Platters in step make the parts end at the same angle.
    fn alike(&self, kind: usize, service: Moments) -> f64 {
        let PhasedAccess { seek, rotation, .. } = self.accesses[kind];
        let all = seek.variance() + rotation.variance();
        if all <= 0.0 || service.variance() <= 0.0 {
            return 1.0;
        }
        let together = self.planned.arms_together;
        // With platters in step, parts end whole revolutions apart. These revolutions come from the
        // seeks, so all of the rotation's variance counts as common.
        let turning = if self.planned.in_step { 1.0 } else { together };
        (together * seek.variance() + turning * rotation.variance()) / all
    }

    /// Returns the factor of the wait for reads that go to copies in turn. Such reads arrive more
    /// regularly than a Poisson process, so they wait less (Kraemer and Langenbach-Belz 1976).
    fn in_turn(&self, queue: &StationResult) -> f64 {
        let rate = self.rate();
        if self.planned.copies < 2 || rate <= 0.0 || queue.busy <= 0.0 {
            return 1.0;
        }
        let turns = self.rates[READ] / rate;
        let varied = 1.0 - turns * (1.0 - 1.0 / self.planned.copies as f64);
        let scv = queue.service.scv();
        let light =
            2.0 * (1.0 - queue.busy) * (1.0 - varied).powi(2) / (3.0 * queue.busy * (varied + scv));
        (varied + scv) / (1.0 + scv) * (-light).exp()
    }

    /// Computes the result if the buffer answers writes. The buffered writes go to the medium when
    /// no read waits: a class behind the reads without preemption (Cobham 1954).
    fn buffered(&self, buffer: &BufferConfig) -> Option<DriveResult> {
        let [reads, fresh, back] = self.rates;
        let writes = fresh + back;
        let delay_s = buffer.destage_delay.as_secs_f64();
        // Without a discipline the drive destages in the order of arrival and gains nothing from
        // the writes it holds.
        let kept = if buffer.destage_discipline.is_some() {
            (1.0 + writes * delay_s) as usize
        } else {
            1
        };
        let chosen = |count| self.chosen(READ, count, self.drive.overheads_s(false)[1]);
        let queue = waiting(reads, self.first(READ), chosen)?;
        // A place just read is written back from the current arm position, unless another access
        // comes between. The probability depends on the utilisation of the arm, which in turn
        // depends on this probability.
        let destage = |alone: f64| {
            let back_s = self.first(BACK).or(alone, self.chosen(BACK, kept, 0.0));
            Moments::mixed([(fresh, self.chosen(WRITE, kept, 0.0)), (back, back_s)].into_iter())
        };
        let still = (-self.rate() * (self.lag_s() + delay_s)).exp();
        let mut alone = 0.0;
        for _ in 0..ROUNDS {
            alone = still * (1.0 - queue.busy - writes * destage(alone).mean).clamp(0.0, 1.0);
        }
        let destage = destage(alone);
        let busy = queue.busy + writes * destage.mean;
        if busy >= 1.0 {
            return None;
        }
        let of_reads = if reads > 0.0 {
            self.alone_shortened(&queue)
        } else {
            1.0
        };
        // Cobham's wait for the rest of a destage, over the time that other reads leave free.
        let behind = writes * destage.square / 2.0 / (1.0 - queue.busy);
        let read = self.response(READ, &queue, reads, of_reads, behind);
        let taken = |kind: usize| PartMoments {
            mean: self.drive.taken_s(self.sectors[kind]),
            variance: 0.0,
        };
        Some(DriveResult {
            responses: [read, taken(WRITE), taken(BACK)],
            undisturbed: (self.drive.taken_s(self.sectors[BACK]), alone),
            busy,
            shortened: of_reads,
            rests: self.rate() * (1.0 - busy),
        })
    }

    fn alone_shortened(&self, queue: &StationResult) -> f64 {
        let access = &self.accesses[READ];
        let overhead = self.drive.overhead_s(false, queue.busy);
        ((queue.service.mean - access.transfer.mean - overhead) / access.positioning().mean)
            .clamp(0.0, 1.0)
    }

    /// Returns the response of a request: the sum over its phases of the last access.
    fn response_s(&self, shapes: &Shapes, answered: &DriveResult) -> f64 {
        shapes
            .phases
            .iter()
            .map(|phase| self.phase_s(phase, answered))
            .sum()
    }

    fn phase_s(&self, phase: &[u32; 3], answered: &DriveResult) -> f64 {
        let [reads, writes, back] = phase.map(|count| count as usize);
        let largest = |kind: usize, of: usize| answered.responses[kind].last_s(of);
        let mut last: f64 = 0.0;
        if reads > 0 {
            last = last.max(largest(READ, reads));
        }
        if writes > 0 {
            last = last.max(largest(WRITE, writes));
        }
        if back > 0 {
            let (alone_s, alone) = answered.undisturbed;
            let all_alone = alone.powi(back as i32);
            let disturbed = if all_alone < 1.0 {
                // The mean number of disturbed writes, given that there is one.
                back as f64 * (1.0 - alone) / (1.0 - all_alone)
            } else {
                1.0
            };
            let of = disturbed.floor().max(1.0) as usize;
            let part = disturbed - of as f64;
            let other = (1.0 - part) * largest(BACK, of) + part * largest(BACK, of + 1);
            last = last.max(all_alone * alone_s + (1.0 - all_alone) * other.max(alone_s));
        }
        last
    }

    /// Returns the mean power of all drives: the work by its phases, and the idle states. Arrivals
    /// are memoryless, which gives the probability that an idle state is reached.
    fn watts(&self, answered: &DriveResult) -> Option<f64> {
        let config = &self.drive.config;
        let power = config.power.filter(PowerConfig::counts_energy)?;
        if config.spin_down.is_some() {
            return None;
        }
        let (seek_w, rotate_w) = (power.seek_w?, power.rotate_w?);
        let (read_w, write_w, idle_w) = (power.read_w?, power.write_w?, power.idle_a_w?);
        let mut each = 0.0;
        let mut working = 0.0;
        for kind in [READ, WRITE, BACK] {
            let access = &self.accesses[kind];
            let shortened = answered.shortened;
            let alone = if kind == BACK {
                answered.undisturbed.1
            } else {
                0.0
            };
            let seek = (1.0 - alone) * access.seek.mean * shortened;
            let turn = self.drive.arm.revolution_s() - access.transfer.mean;
            let rotation = (1.0 - alone) * access.rotation.mean * shortened + alone * turn;
            let (seek_w, passing) = match kind {
                READ => (seek_w, read_w),
                _ => (power.write_seek_w.unwrap_or(seek_w), write_w),
            };
            let rate = self.rates[kind];
            each += rate * (seek * seek_w + rotation * rotate_w + access.transfer.mean * passing);
            working += rate * (seek + rotation + access.transfer.mean);
        }
        let idle = (1.0 - working).max(0.0);
        let rate = self.rate();
        let reads = answered.rests * self.rates[READ] / rate.max(f64::MIN_POSITIVE);
        each += reads * self.ahead_s(rate, answered.responses[READ]) * (read_w - idle_w);
        // Share of the idle time behind `after`, which is also the probability that this state is
        // reached.
        let behind = |after_ms: f64| (-rate * after_ms / 1000.0).exp();
        each += idle * idle_w;
        let mut above = idle_w;
        for state in [power.idle_b, power.idle_c].into_iter().flatten() {
            each += idle * behind(state.after_ms) * (state.w - above);
            each += answered.rests * behind(state.after_ms) * state.wake_ms / 1000.0
                * (seek_w - idle_w);
            above = state.w;
        }
        Some(self.planned.drives as f64 * each)
    }

    /// Returns the mean time for which an idle drive continues with read-ahead behind a read: until
    /// the next access. If the data are to be written back, the next access comes as soon as the
    /// last read of the request has ended.
    fn ahead_s(&self, rate: f64, read: PartMoments) -> f64 {
        let Some(buffer) = &self.drive.config.buffer else {
            return 0.0;
        };
        let whole = match buffer.read_ahead {
            ReadAhead::None => return 0.0,
            ReadAhead::Segment => {
                let sectors = buffer.read_ahead_sectors.unwrap_or(buffer.segment_sectors);
                f64::from(sectors) * self.accesses[READ].transfer.mean / self.sectors[READ].max(1.0)
            }
            _ => self.drive.arm.revolution_s() / 2.0,
        };
        let until_next = |most: f64| {
            if rate > 0.0 {
                (1.0 - (-rate * most).exp()) / rate
            } else {
                most
            }
        };
        let (mut reads, mut sum) = (0.0, 0.0);
        for shapes in &self.planned.requests {
            for (index, phase) in shapes.phases.iter().enumerate() {
                let back = shapes
                    .phases
                    .get(index + 1)
                    .map_or(0, |next| next[BACK])
                    .min(phase[READ]);
                let waits = read.last_s(phase[READ] as usize) - read.mean;
                reads += f64::from(phase[READ]);
                sum += f64::from(back) * until_next(whole.min(waits));
                sum += f64::from(phase[READ] - back) * until_next(whole);
            }
        }
        if reads > 0.0 { sum / reads } else { 0.0 }
    }
}
