//! The drive as a layer: requests wait in the command queue, and the arm serves one request at a
//! time.

mod background;
mod commands;
mod managed;
mod rest;
mod side_queue;
mod together;

use self::background::{Background, is_background};
use self::side_queue::SideQueue;
use self::together::UnansweredCommands;
use crate::actuators::{ArmTracks, MultiActuator};
use crate::arm::{ArmTotals, DriveArm};
use crate::buffer::{DriveBuffer, Lookup, add};
use crate::config::{DriveConfig, FlushCommand, milliseconds};
use crate::electronics::{Electronics, PreviousKind};
use crate::faults::Faults;
use crate::flash::{Flash, FlashDrive};
use crate::freeblock::Freeblock;
use crate::geometry::Position;
use crate::limits::{LimitedDrive, Limits};
use crate::mechanics::{AccessTimes, BusArrival, Mechanics, SectorPassage};
use crate::physical::SectorSizes;
use crate::power::{ArmPower, Meter};
use crate::queue::{ArmView, CommandQueue, NextRequest, WaitingRequest};
use crate::shingled::{ShingledDrive, Shingles};
use crate::slow::{SlowConfig, SlowDrive, Slowness};
use crate::spin_down::{self, SpinDown};
use crate::statistics::DriveCounters;
use crate::zoned::{DriveInside, ZonedDrive, Zones};
use fullstroke_contract::{
    Branch, Breakdown, Completion, ConfigError, Counters, Effects, Extent, Gauge, MemberStatistics,
    Node, NodeContext, Operation, Port, PowerStatistics, QueueOrder, Request, RequestId,
    RequestStatus, Slots, TrackTable, Wake,
};
use fullstroke_units::{Angle, Cylinder, Duration, Lbn, Sectors, Time};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The shared part of all drives of one model. Build the model once, then build each drive of an
/// array from the model.
#[derive(Clone, Debug)]
pub struct DriveModel {
    mechanics: Arc<Mechanics>,
    config: Arc<DriveConfig>,
    command_overhead: Duration,
    queued_overhead: Duration,
    electronics: Electronics,
    sizes: SectorSizes,
    /// Spin-up and spin-down times and the watts of each power state. `None` if the drive file has
    /// no `[power]`.
    power: Option<Arc<ArmPower>>,
    /// Angle by which the platters lead at time 0.
    phase: Angle,
    /// How the drive answers late. `None` for a drive that is not slow.
    slow: Option<Arc<Slowness>>,
    /// Shingled tracks. `None` for a conventional drive.
    shingles: Option<Arc<Shingles>>,
    /// Zones that the host knows of. `None` for a drive without such zones.
    zones: Option<Arc<Zones>>,
    /// Flash in place of arm and platters. `None` for a disk.
    flash: Option<Arc<Flash>>,
    /// Duration limits of commands. `None` for a drive without them.
    limits: Option<Arc<Limits>>,
    /// True if the drive has neither buffer nor bus times. A request then costs the overhead and
    /// the access alone.
    plain: bool,
}

/// One disk drive.
///
/// - **Events in**: `submit`, `wake`.
/// - **Effects out**: `complete`.
/// - **Getters**: `next_wake`, `gauge`, `count`, [`statistics`](Drive::statistics).
///
/// The queue holds at most `depth` requests. Further requests wait outside the queue in order of
/// arrival. The drive cannot choose a request outside the queue.
pub struct Drive {
    arm: DriveArm,
    command_overhead: Duration,
    /// Remaining command overhead when the drive prepared the command early.
    queued_overhead: Duration,
    /// Time when the drive finished preparing the arm's last command.
    prepared: Time,
    depth: u32,
    queue: CommandQueue,
    /// Background requests, waiting for free rotational latency. `None` unless configured.
    background: Option<Background>,
    outside: VecDeque<u32>,
    flush_command: FlushCommand,
    /// Time after the end of a command before the drive chooses the next one.
    decide: Duration,
    /// The drive chooses no command before this time.
    decides: Time,
    /// Commands that wait for the end of their batch. `None` if each command is answered alone.
    together: Option<UnansweredCommands>,
    /// True if the drive may have something to do at instants without the end of a request, but for
    /// those of `beside`: `background`, `decide` or `together` is set.
    has_own_times: bool,
    /// Time from full speed to standing platters. `None` if the platters never stop.
    spin_down: Option<Duration>,
    /// Time when the platters stop, until a notice of the stop goes out.
    stopped: Option<Time>,
    /// Time of an earlier stop whose notice has not gone out either. The platters started again in
    /// between.
    stopped_before: Option<Time>,
    /// Spin-down policy of an idle drive.
    timer: Option<Box<dyn SpinDown>>,
    /// Time when the policy last began to stop the platters.
    stopping: Option<Time>,
    /// Commands for the whole drive, such as a flush, each with the time when the command came in.
    /// The arm serves these commands before the queue.
    of_all: VecDeque<(u32, Time)>,
    slots: Slots<RequestSlot>,
    next_lbn: Lbn,
    electronics: Electronics,
    plain: bool,
    buffer: Option<DriveBuffer>,
    last: LastRequest,
    /// State for answers beside the arm (`buffered_first`).
    beside: Option<SideQueue>,
    service: Option<RequestInService>,
    /// Buffer hits, answered while the arm serves another request, in order of completion.
    passing: VecDeque<RequestInService>,
    /// Time when the bus is free of the requests in `passing`.
    bus_free: Time,
    idle_since: Time,
    own: BufferAlarm,
    /// Faulty writes of the medium. `None` unless configured.
    faults: Option<Faults>,
    /// Background scan in the rotational latency of requests. `None` unless configured.
    freeblock: Option<Freeblock>,
    statistics: DriveCounters,
    /// The slot of each request; `None` if no command has a limit.
    slot_of: Option<HashMap<u64, u32>>,
}

#[derive(Clone, Copy, Debug)]
struct RequestSlot {
    request: Request,
    submitted: Time,
}

/// Time of the buffer's next event of its own, without a request.
#[derive(Clone, Copy, Debug)]
enum BufferAlarm {
    /// The drive has requests, and the requests determine the next event.
    Nothing,
    /// The next event is not computed yet. The drive computes the event at `look`.
    Unknown { look: Time },
    /// Time of the next event; [`Time::NEVER`] if the buffer has nothing left to do.
    At(Time),
}

impl BufferAlarm {
    fn at(self) -> Time {
        match self {
            BufferAlarm::Nothing => Time::NEVER,
            BufferAlarm::Unknown { look } => look,
            BufferAlarm::At(at) => at,
        }
    }
}

/// Kind and extent of the last request.
#[derive(Clone, Copy, Debug, Default)]
struct LastRequest {
    kind: PreviousKind,
    extent: Extent,
}

/// A request in service.
#[derive(Clone, Copy, Debug)]
struct RequestInService {
    slot: u32,
    finish: Time,
    breakdown: Breakdown,
}

impl DriveModel {
    /// Checks a description and builds the tables.
    ///
    /// # Errors
    /// Names the invalid key.
    pub fn new(config: DriveConfig) -> Result<DriveModel, ConfigError> {
        let mechanics = Mechanics::new(&config)?;
        let sizes = SectorSizes::new(&config)?;
        config.queue.build().map_err(|error| error.below("queue"))?;
        let command_overhead = milliseconds("command_overhead_ms", config.command_overhead_ms)?;
        let queued_overhead = milliseconds("queued_overhead_ms", config.queued_overhead_ms)?;
        let electronics = Electronics::new(&config.electronics, command_overhead)
            .map_err(|error| error.below("electronics"))?;
        config
            .buffer
            .as_ref()
            .map(DriveBuffer::new)
            .transpose()
            .map_err(|error| error.below("buffer"))?;
        spin_down::build(&config).map_err(|error| error.below("spin_down"))?;
        let power = config
            .power
            .as_ref()
            .map(|power| ArmPower::new(power, config.actuators))
            .transpose();
        let model = DriveModel {
            power: power.map_err(|error| error.below("power"))?.map(Arc::new),
            phase: Angle::ZERO,
            slow: None,
            shingles: None,
            zones: None,
            flash: None,
            limits: None,
            plain: config.buffer.is_none() && config.electronics == Default::default(),
            command_overhead,
            queued_overhead,
            electronics,
            sizes,
            mechanics: Arc::new(mechanics),
            config: Arc::new(config),
        };
        milliseconds("queue.decide_ms", model.config.queue.decide_ms)?;
        if let Some(validated) = &model.config.validated {
            validated
                .check()
                .map_err(|error| error.below("validated"))?;
        }
        model.faults()?;
        model.freeblock()?;
        model.background()?;
        let shingles = model.shingles()?.map(Arc::new);
        let zones = model.checked_zones()?.map(Arc::new);
        let flash = model.flash()?.map(Arc::new);
        let limits = model.limits()?.map(Arc::new);
        Ok(DriveModel {
            shingles,
            zones,
            flash,
            limits,
            ..model
        })
    }

    /// Returns the same model, with platters that lead by `phase` at time 0.
    #[must_use]
    pub fn turned(self, phase: Angle) -> DriveModel {
        DriveModel { phase, ..self }
    }

    /// Returns the same model as a drive that answers late.
    ///
    /// # Errors
    /// Names the invalid key. A drive with several arms cannot be slow.
    pub fn slow(self, config: &SlowConfig) -> Result<DriveModel, ConfigError> {
        if self.config.actuators != 1 {
            let message = "a slow drive has one arm; this drive has several";
            return Err(ConfigError::new("", message));
        }
        let erc = self.config.limits.as_ref().and_then(|limits| limits.erc);
        let slowness = config.check(self.mechanics.geometry())?.giving_up(erc);
        Ok(DriveModel {
            slow: Some(Arc::new(slowness)),
            ..self
        })
    }

    /// Returns the same model as a drive that an order can make slow while the drive runs
    /// ([`LayerOrder::Slow`](fullstroke_contract::LayerOrder::Slow)). A drive with several arms
    /// stays as it is, and refuses the order.
    #[must_use]
    pub fn slowable(self) -> DriveModel {
        if self.slow.is_some() || self.config.actuators != 1 {
            return self;
        }
        DriveModel {
            slow: Some(Arc::new(Slowness::none())),
            ..self
        }
    }

    /// True if the drive may answer a read as lost.
    pub fn loses_reads(&self) -> bool {
        self.slow.as_ref().is_some_and(|slow| slow.loses_reads())
            || self
                .limits
                .as_ref()
                .is_some_and(|limits| limits.loses_reads())
    }

    /// True if the description has keys of a slow drive.
    pub fn is_slow(&self) -> bool {
        self.slow.as_ref().is_some_and(|slow| !slow.is_none())
    }

    /// Angle by which the platters lead at time 0.
    pub fn phase(&self) -> Angle {
        self.phase
    }

    /// The description.
    pub fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// Arm and platters.
    pub fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    /// Returns the energy meter of one arm. `None` if the description has no watts.
    pub fn meter(&self) -> Option<Meter> {
        self.power.as_deref().and_then(Meter::new)
    }

    /// Returns the map from addresses to tracks.
    pub fn tracks(&self) -> Arc<dyn TrackTable> {
        match self.config.actuators {
            1 => Arc::clone(&self.mechanics) as Arc<dyn TrackTable>,
            actuators => Arc::new(ArmTracks {
                geometry: Arc::clone(self.mechanics.geometry()),
                actuators,
            }),
        }
    }

    /// Returns one drive of this model, at rest at time 0. A drive with several arms has the arms
    /// as lower layers.
    ///
    /// # Errors
    /// Names the invalid key of the queue or the buffer.
    pub fn branch(&self) -> Result<Branch, ConfigError> {
        let tracks = || Arc::clone(&self.mechanics) as Arc<dyn TrackTable>;
        if self.config.actuators == 1 {
            let draw = self.power.as_ref().and_then(|power| power.draw);
            let drive = match (&self.flash, &self.shingles) {
                (Some(flash), _) => DriveInside::Plain(Box::new(FlashDrive::new(flash, draw))),
                (None, Some(shingles)) => {
                    let drive = ShingledDrive::new(self.drive()?, shingles);
                    DriveInside::Shingled(Box::new(drive))
                }
                (None, None) => DriveInside::Plain(Box::new(self.drive()?)),
            };
            let drive: Box<dyn Node> = match &self.zones {
                Some(zones) => Box::new(ZonedDrive::new(drive, zones)),
                None => drive.into_node(),
            };
            let drive: Box<dyn Node> = match &self.slow {
                Some(slowness) => {
                    let drive = SlowDrive::new(drive, slowness, draw);
                    Box::new(drive.managed(self.limits.is_some()))
                }
                None => drive,
            };
            let drive = match &self.limits {
                Some(limits) => Box::new(LimitedDrive::new(drive, limits)),
                None => drive,
            };
            return Ok(Branch::drive(drive, tracks()));
        }
        let arm = |_| Ok(Branch::arm(Box::new(self.drive()?), tracks()));
        let arms = (0..self.config.actuators)
            .map(arm)
            .collect::<Result<Vec<_>, ConfigError>>()?;
        let share = self.mechanics.geometry().capacity();
        Ok(Branch::drive_of_arms(
            Box::new(MultiActuator::new(arms.len(), share)),
            self.tracks(),
            arms,
        ))
    }

    /// Returns the faults of the medium, if the description has any.
    ///
    /// # Errors
    /// Names the invalid key. A drive with several arms cannot have faults.
    fn faults(&self) -> Result<Option<Faults>, ConfigError> {
        let Some(faults) = &self.config.faults else {
            return Ok(None);
        };
        if self.config.actuators != 1 {
            let message = "faults need a drive with one arm; this drive has several";
            return Err(ConfigError::new("faults", message));
        }
        let faults = Faults::new(faults, self.config.capacity_sectors);
        faults.map(Some).map_err(|error| error.below("faults"))
    }

    /// Refuses the keys that a drive with the table `table` does not have.
    ///
    /// # Errors
    /// Names the excluded key.
    fn check_is_plain(&self, table: &str) -> Result<(), ConfigError> {
        let config = &*self.config;
        let excluded = [
            ("actuators", config.actuators != 1),
            ("faults", config.faults.is_some()),
            ("freeblock", config.freeblock.is_some()),
            ("queue.background", config.queue.background.is_some()),
        ];
        refuse_given(table, &excluded)
    }

    /// Returns the shingled tracks, if the description has them.
    ///
    /// # Errors
    /// Names the invalid key, or the key that shingled tracks exclude.
    fn shingles(&self) -> Result<Option<Shingles>, ConfigError> {
        let config = &*self.config;
        let Some(shingled) = &config.shingled else {
            return Ok(None);
        };
        self.check_is_plain("shingled")?;
        shingled
            .check(
                config.capacity_sectors,
                config.buffer.as_ref(),
                &config.electronics,
            )
            .map(Some)
            .map_err(|error| error.below("shingled"))
    }

    /// Returns the zones that the host knows of, if the description has them.
    ///
    /// # Errors
    /// Names the invalid key, or the key that zones exclude.
    fn checked_zones(&self) -> Result<Option<Zones>, ConfigError> {
        let config = &*self.config;
        let Some(zoned) = &config.zoned else {
            return Ok(None);
        };
        self.check_is_plain("zoned")?;
        zoned
            .check(config)
            .map(Some)
            .map_err(|error| error.below("zoned"))
    }

    /// Returns the flash, if the description has it.
    ///
    /// # Errors
    /// Names the invalid key, or the key of a disk that a flash device excludes.
    fn flash(&self) -> Result<Option<Flash>, ConfigError> {
        let config = &*self.config;
        let Some(flash) = &config.flash else {
            return Ok(None);
        };
        let excluded = [
            ("actuators", config.actuators != 1),
            ("buffer", config.buffer.is_some()),
            ("faults", config.faults.is_some()),
            ("freeblock", config.freeblock.is_some()),
            ("shingled", config.shingled.is_some()),
            ("zoned", config.zoned.is_some()),
            ("spin_down", config.spin_down.is_some()),
        ];
        refuse_given("flash", &excluded)?;
        let checked = flash.check(config.capacity_sectors);
        checked.map(Some).map_err(|error| error.below("flash"))
    }

    /// Returns the duration limits of commands, if the description has any.
    ///
    /// # Errors
    /// Names the invalid key, or the key that limits exclude.
    fn limits(&self) -> Result<Option<Limits>, ConfigError> {
        let config = &*self.config;
        let Some(limits) = &config.limits else {
            return Ok(None);
        };
        let checked = limits.check().map_err(|error| error.below("limits"))?;
        let excluded = [
            ("flash", config.flash.is_some()),
            ("shingled", config.shingled.is_some()),
            ("zoned", config.zoned.is_some()),
            ("actuators", config.actuators > 1),
            ("queue.background", config.queue.background.is_some()),
            ("queue.answer_together", config.queue.answer_together > 1),
        ];
        if checked.is_some() {
            refuse_given("limits", &excluded)?;
        }
        Ok(checked)
    }

    /// True if the drive is a flash device.
    pub fn is_flash(&self) -> bool {
        self.flash.is_some()
    }

    /// True if the drive answers writes before they are durable, so that only a flush makes them so.
    pub fn has_volatile_cache(&self) -> bool {
        let config = self.config();
        let of_disk = || {
            config
                .buffer
                .as_ref()
                .is_some_and(|buffer| buffer.write_back)
        };
        let flash = config.flash.as_ref();
        flash.map_or_else(of_disk, |flash| flash.flush_latency > Duration::ZERO)
    }

    /// True if the drive has shingled tracks.
    pub fn is_shingled(&self) -> bool {
        self.shingles.is_some()
    }

    /// Returns the idle time after which the drive cleans shingled bands. `None` if idle time is
    /// not used so.
    pub fn cleans_after(&self) -> Option<Duration> {
        self.shingles.as_ref()?.cleans_after()
    }

    /// True if the drive takes TRIM.
    pub fn takes_trim(&self) -> bool {
        let shingled = self.config().shingled.as_ref();
        self.is_flash() || shingled.is_some_and(|shingled| shingled.trim)
    }

    /// Returns the zones that the host knows of. `None` for a drive without such zones.
    pub fn zones(&self) -> Option<&Zones> {
        self.zones.as_deref()
    }

    /// True if the drive refuses writes that are not at the write pointer of their zone.
    pub fn is_host_managed(&self) -> bool {
        self.zones().is_some_and(|zones| zones.host_managed)
    }

    /// Returns the scan in the rotational latency of requests, if the description has one.
    ///
    /// # Errors
    /// Names the invalid key.
    fn freeblock(&self) -> Result<Option<Freeblock>, ConfigError> {
        let build = |config| Freeblock::new(config, &self.mechanics);
        self.config
            .freeblock
            .as_ref()
            .map(build)
            .transpose()
            .map_err(|error| error.below("freeblock"))
    }

    /// Returns the buffer, if the description has one.
    ///
    /// # Errors
    /// Names the invalid key.
    fn buffer(&self) -> Result<Option<DriveBuffer>, ConfigError> {
        let measured = self.config.electronics.bus_measured_sectors;
        let mut config = self.config.buffer.clone();
        if let Some(buffer) = config.as_mut().filter(|_| self.is_shingled()) {
            // The node around the drive buffers writes.
            buffer.write_back = false;
        }
        let buffer = config.as_ref().map(DriveBuffer::new).transpose()?;
        Ok(buffer.map(|buffer| buffer.measured_up_to(measured)))
    }

    /// Returns the store of background requests, if the description has one.
    ///
    /// # Errors
    /// Names the invalid key.
    fn background(&self) -> Result<Option<Background>, ConfigError> {
        let Some(config) = &self.config.queue.background else {
            return Ok(None);
        };
        if self
            .config
            .buffer
            .as_ref()
            .is_some_and(|buffer| buffer.write_back)
        {
            let message = "background requests need buffer.write_back = false, because a write-back buffer leaves no writes to wait for latency";
            return Err(ConfigError::new("queue.background", message));
        }
        let background =
            Background::new(config).map_err(|error| error.below("queue.background"))?;
        Ok(Some(background))
    }

    /// Returns one arm of this model with an own queue and buffer. The heads are at cylinder 0,
    /// surface 0, and the queue is empty.
    ///
    /// # Errors
    /// Names the invalid key of the queue.
    pub fn drive(&self) -> Result<Drive, ConfigError> {
        let background = self.background()?;
        let decide = milliseconds("queue.decide_ms", self.config.queue.decide_ms)?;
        let together = UnansweredCommands::new(self.config.queue.answer_together);
        let beside = self
            .config
            .buffer
            .as_ref()
            .filter(|buffer| buffer.buffered_first)
            .map(|_| SideQueue::new());
        let has_own_times = background.is_some() || decide > Duration::ZERO || together.is_some();
        Ok(Drive {
            has_own_times,
            arm: DriveArm::new(
                &self.mechanics,
                self.sizes,
                self.phase,
                &self.power.as_deref().copied().unwrap_or_default(),
            ),
            command_overhead: self.command_overhead,
            queued_overhead: self.queued_overhead,
            prepared: Time::ZERO,
            depth: self.config.queue.depth,
            queue: self
                .config
                .queue
                .build()
                .map_err(|error| error.below("queue"))?,
            background,
            outside: VecDeque::new(),
            flush_command: self.config.queue.flush,
            decide,
            decides: Time::ZERO,
            together,
            spin_down: self.power.as_ref().map(|power| power.spin_down),
            stopped: None,
            stopped_before: None,
            timer: spin_down::build(&self.config).map_err(|error| error.below("spin_down"))?,
            stopping: None,
            of_all: VecDeque::new(),
            slots: Slots::default(),
            next_lbn: Lbn(0),
            electronics: self.electronics,
            plain: self.plain,
            buffer: self.buffer()?,
            last: LastRequest::default(),
            beside,
            service: None,
            passing: VecDeque::new(),
            bus_free: Time::ZERO,
            idle_since: Time::ZERO,
            own: BufferAlarm::Nothing,
            faults: self.faults()?,
            freeblock: self.freeblock()?,
            statistics: DriveCounters::default(),
            slot_of: self.limits.is_some().then(HashMap::new),
        })
    }
}

impl Drive {
    /// Lets the buffer work while the drive has no request. The time of the next buffer event is
    /// computed only when the buffer may begin, because the next request often comes earlier.
    fn work_alone(&mut self, now: Time) {
        let idle = self.slots.is_empty();
        let Some(buffer) = self.buffer.as_mut().filter(|_| idle) else {
            return self.own = BufferAlarm::Nothing;
        };
        match self.own {
            BufferAlarm::Nothing => {
                let look = buffer
                    .rests_until(&self.arm)
                    .max(now + Duration::from_nanos(1));
                self.own = if look == Time::NEVER {
                    BufferAlarm::At(look)
                } else {
                    BufferAlarm::Unknown { look }
                };
            }
            BufferAlarm::At(at) if at <= now => {
                buffer.catch_up(now, false, &mut self.arm);
                self.own = BufferAlarm::At(buffer.next_event(&self.arm));
            }
            BufferAlarm::Unknown { look } if look <= now => {
                self.own = BufferAlarm::At(buffer.next_event(&self.arm))
            }
            BufferAlarm::At(_) | BufferAlarm::Unknown { .. } => {}
        }
    }

    /// Finishes and begins everything due up to `now`, each at the right instant.
    fn catch_up(&mut self, now: Time, out: &mut Effects) {
        loop {
            let served = self.service.map_or(Time::NEVER, |service| service.finish);
            let passed = self
                .passing
                .front()
                .map_or(Time::NEVER, |service| service.finish);
            let (again, answers) = self.own_times();
            if served.min(passed).min(again).min(answers) > now {
                return;
            }
            // Held answers go first at an instant, because their commands ended earlier.
            if answers < Time::NEVER && answers <= served.min(passed).min(again) {
                if let Some(service) = self.take_answer() {
                    self.finish(service, out);
                    self.admit(service.finish);
                }
                continue;
            }
            if again < served.min(passed) {
                self.admit(again);
                continue;
            }
            let passes = passed < served;
            let service = if passes {
                self.passing.pop_front()
            } else {
                self.service.take()
            };
            let Some(service) = service else { return };
            let ended = service.finish;
            if passes {
                self.finish(service, out);
            } else {
                self.pause(ended);
                self.charge_link(&service);
                if let Some(service) = self.keep_answer(service) {
                    self.finish(service, out);
                }
            }
            self.admit(ended);
        }
    }

    fn finish(&mut self, service: RequestInService, out: &mut Effects) {
        let request = self.slots[service.slot].request;
        let status = self.outcome(&request);
        self.finish_as(service, status, out);
    }

    /// Ends a request with a status.
    fn finish_as(&mut self, service: RequestInService, status: RequestStatus, out: &mut Effects) {
        // Notices of earlier instants leave before the completion, so that effects keep the order
        // of time.
        self.send_notices(service.finish, out);
        let RequestSlot { request, submitted } = self.slots.take(service.slot);
        if let Some(slots) = &mut self.slot_of {
            slots.remove(&request.id.0);
        }
        assert!(
            service.finish >= submitted && service.finish >= self.idle_since,
            "request {} came at {submitted:?} and ended at {:?}, after one that ended at {:?}",
            request.id.0,
            service.finish,
            self.idle_since
        );
        debug_assert_eq!(
            service.breakdown.response(),
            service.finish.since(submitted),
            "the parts of a response time add up: {:?}",
            service.breakdown
        );
        self.idle_since = service.finish;
        let Request {
            operation, extent, ..
        } = request;
        if let Some(background) = self
            .background
            .as_mut()
            .filter(|_| !is_background(&request))
        {
            background.ended(service.finish);
        }
        self.statistics.finished(
            service.finish,
            operation,
            extent.sectors,
            &service.breakdown,
        );
        let RequestInService {
            finish: finished,
            breakdown,
            ..
        } = service;
        out.complete(Completion {
            id: request.id,
            submitted,
            finished,
            status,
            breakdown,
        });
    }

    /// Returns the status of a finished request. On a medium with faults, a write may go wrong
    /// here.
    fn outcome(&mut self, request: &Request) -> RequestStatus {
        let Some(faults) = &mut self.faults else {
            return RequestStatus::Done;
        };
        match request.operation {
            Operation::Write => faults.write(request.extent),
            Operation::Read if request.hints.verify && faults.differs(request.extent) => {
                return RequestStatus::Differs;
            }
            _ => {}
        }
        RequestStatus::Done
    }

    /// Number of accepted commands, including commands in service.
    fn inside(&self) -> usize {
        let served = usize::from(self.service.is_some()) + self.passing.len();
        let writers = self.beside.as_ref().map_or(0, SideQueue::writers);
        let background = self.background.as_ref().map_or(0, Background::len);
        let answers = self.together.as_ref().map_or(0, UnansweredCommands::len);
        let inside = self.queue.len() + background + self.of_all.len() + writers + served + answers;
        debug_assert!(
            inside + self.outside.len() <= self.slots.len(),
            "{inside} requests inside and {} outside, but {} were accepted",
            self.outside.len(),
            self.slots.len()
        );
        inside
    }

    /// True if the drive accepts one more command.
    fn has_room(&self) -> bool {
        // No more commands are inside than have come and are not outside, which is quick to tell.
        let depth = self.depth as usize;
        self.slots.len() - self.outside.len() < depth || self.inside() < depth
    }

    /// Lets requests into the queue while there is room, and begins one request if the arm is free.
    /// No request overtakes a waiting request outside.
    fn admit(&mut self, now: Time) {
        while let Some(&slot) = self.outside.front() {
            // A command that must be alone waits outside until the drive is empty, and nothing
            // overtakes the command.
            if !self.has_room() || self.waits_alone(slot) || self.serves_alone() {
                break;
            }
            self.outside.pop_front();
            if !self.slots[slot].request.operation.is_of_all() {
                self.enqueue(slot, now);
            } else if self.take_in(slot, now) {
                break;
            }
        }
        self.let_background_in(now);
        if self.beside.is_some() {
            self.advance_queue(now);
        } else if self.service.is_none() && !self.begin_of_all(now) {
            self.begin_next(now);
        }
        self.end_batch(now);
    }

    /// Returns the earliest time for waiting work to go on although no request ends then, and
    /// [`answers_due`](Drive::answers_due).
    #[inline]
    fn own_times(&self) -> (Time, Time) {
        let again = match &self.beside {
            Some(beside) => beside.look_again,
            None => Time::NEVER,
        };
        if !self.has_own_times {
            return (again, Time::NEVER);
        }
        let again = again.min(self.background_due()).min(self.choice_due());
        (again, self.answers_due())
    }

    /// Takes the link time of a transfer from or to the medium. The link carries the data while the
    /// medium moves, beside buffer hits; later hits wait for the time that the link was shared.
    fn charge_link(&mut self, service: &RequestInService) {
        if !self.electronics.shared_link || self.beside.is_none() {
            return;
        }
        let Request {
            operation, extent, ..
        } = self.slots[service.slot].request;
        let each = match operation {
            Operation::Read => self.electronics.read_each(extent.sectors),
            Operation::Write => self.electronics.write_each(extent.sectors),
            _ => return,
        };
        // Data of a read from the medium cross the same link as hits, so later hits wait for them.
        self.bus_free = (self.bus_free + each * extent.sectors.0).max(service.finish);
    }

    /// Begins the pause before the next choice, if the drive pauses.
    fn pause(&mut self, ended: Time) {
        if self.decide > Duration::ZERO {
            self.decides = ended + self.decide;
        }
    }

    /// Time when the drive chooses a command after a pause; [`Time::NEVER`] if the drive does not
    /// pause.
    fn choice_due(&self) -> Time {
        let pauses = self.decides > Time::ZERO && self.service.is_none() && !self.queue.is_empty();
        if pauses { self.decides } else { Time::NEVER }
    }

    fn enqueue(&mut self, slot: u32, now: Time) {
        if self.beside.is_some() {
            return self.enter(slot, now);
        }
        if self.queue.is_empty()
            && let Some(buffer) = &mut self.buffer
        {
            // No request has waited for the arm until now.
            buffer.catch_up(now, false, &mut self.arm);
        }
        self.insert(slot, now);
    }

    /// Describes a request that entered the queue at `now` to the discipline.
    fn waiting(&self, slot: u32, now: Time) -> WaitingRequest {
        let request = &self.slots[slot].request;
        let position = self.arm.mechanics().geometry().locate(request.extent.start);
        let first_track = request.extent.sectors.min(position.sectors_left);
        WaitingRequest {
            slot,
            lbn: request.extent.start,
            position,
            span: self.arm.mechanics().span(&position, first_track),
            write: request.operation == Operation::Write,
            arrived: now,
        }
    }

    /// Takes the next request into service at `now`, if a request waits.
    fn begin_next(&mut self, now: Time) {
        if self.queue.is_empty() || now < self.decides {
            return;
        }
        self.decides = Time::ZERO;
        if let Some(buffer) = &mut self.buffer {
            buffer.catch_up(now, true, &mut self.arm);
            if buffer.above_watermark() {
                buffer.destage_one(now, &mut self.arm);
            }
        }
        let moves = self.next_moves(now);
        let Some(NextRequest { waiting, via }) = self.choose(now, moves) else {
            return;
        };
        let service = if self.plain {
            self.serve_plainly(&waiting, via, now)
        } else {
            self.serve(&waiting, via, now)
        };
        assert!(
            service.finish >= now && self.service.is_none(),
            "a request is taken into service at {now:?} beside another, or ends before: {:?}",
            service.finish
        );
        debug_assert_eq!(
            waiting.lbn, self.slots[waiting.slot].request.extent.start,
            "the queue returns the request of slot {} at another address",
            waiting.slot
        );
        let extent = self.slots[waiting.slot].request.extent;
        let kind = if waiting.write {
            PreviousKind::Write
        } else {
            PreviousKind::Read
        };
        self.next_lbn = extent.end();
        self.last = LastRequest { kind, extent };
        self.service = Some(service);
    }

    /// Serves a request on a drive without buffer and bus: overhead and access only.
    fn serve_plainly(
        &mut self,
        waiting: &WaitingRequest,
        via: Option<Cylinder>,
        now: Time,
    ) -> RequestInService {
        let RequestSlot { request, submitted } = self.slots[waiting.slot];
        let extent = request.extent;
        let free = self.arm.needed(now);
        let moves = self.prepare(waiting, free, self.command_overhead);
        assert!(
            moves >= free && free >= now,
            "the arm moves at {moves:?}, but is free at {free:?} for a request of {now:?}"
        );
        let detour = self.detour(via);
        self.arm.take(free, moves + detour);
        // The scan reads before the access, because the access moves the heads away from the
        // position that the scan starts from.
        self.read_free_blocks(moves + detour, extent, &waiting.position, waiting.write);
        let mut edges = AccessTimes::default();
        let begins = if waiting.write {
            self.arm.read_edges(moves + detour, extent, &mut edges)
        } else {
            moves + detour
        };
        let mut access = self
            .arm
            .access(begins, extent, &waiting.position, waiting.write);
        let finish = begins + access.duration();
        access.seek += detour;
        add(&mut access, &edges);
        RequestInService {
            slot: waiting.slot,
            finish,
            breakdown: parts(submitted, free, finish, &access),
        }
    }

    /// Serves a request on a drive with buffer and bus.
    fn serve(
        &mut self,
        waiting: &WaitingRequest,
        via: Option<Cylinder>,
        now: Time,
    ) -> RequestInService {
        if waiting.write {
            return self
                .take_write(waiting.slot, now)
                .unwrap_or_else(|| self.write_through(waiting, via, now));
        }
        match self.look_up(self.slots[waiting.slot].request.extent, now) {
            Lookup::Hit(segment) => self.read_hit(waiting.slot, segment, now),
            Lookup::Filling { there, next, since } => {
                self.read_on(waiting.slot, now, there, next, since)
            }
            Lookup::Beginning {
                segment,
                there,
                next,
            } => self.read_rest(waiting, now, segment, there, next),
            Lookup::Miss => self.read_medium(waiting, via, now),
        }
    }

    fn look_up(&self, extent: Extent, now: Time) -> Lookup {
        self.buffer.as_ref().map_or(Lookup::Miss, |buffer| {
            buffer.look_up(now, extent, &self.arm)
        })
    }

    /// Serves a read from a segment of the buffer.
    fn read_hit(&mut self, slot: u32, segment: usize, now: Time) -> RequestInService {
        let RequestSlot { request, submitted } = self.slots[slot];
        let electronics = &self.electronics;
        let answered = now + electronics.read_hit(self.last.kind);
        if let Some(buffer) = &mut self.buffer {
            assert!(
                buffer.holds(segment, request.extent),
                "a hit in segment {segment}, which does not hold {:?}",
                request.extent
            );
            // With `buffered_first`, a hit resumes read-ahead only if no request needs the arm.
            let idle = self.beside.is_none() || self.service.is_none() && self.queue.is_empty();
            buffer.hit(segment, answered, request.extent, &self.arm, idle);
        }
        let data = electronics.data_preparation
            + electronics.read_each(request.extent.sectors) * request.extent.sectors.0;
        let finish = answered + data + electronics.read_completion;
        RequestInService {
            slot,
            finish,
            breakdown: parts(submitted, now, finish, &AccessTimes::default()),
        }
    }

    /// Takes a write into the buffer. `None` if the buffer cannot take the write.
    fn take_write(&mut self, slot: u32, now: Time) -> Option<RequestInService> {
        let RequestSlot { request, submitted } = self.slots[slot];
        let near = self.near(request.extent);
        let electronics = &self.electronics;
        let buffer = self.buffer.as_mut()?;
        // FUA: the write is complete when the data are on the medium, so the buffer does not
        // answer.
        if !buffer.takes_writes() || request.hints.force_unit_access {
            return None;
        }
        let ready = now + electronics.write_hit(self.last.kind, near);
        let room = buffer.make_room(ready, request.extent, &mut self.arm)?;
        let data = electronics.data_preparation
            + electronics.write_each(request.extent.sectors) * request.extent.sectors.0;
        assert!(
            room >= ready,
            "a write is taken at {room:?}, before the electronics are ready at {ready:?}"
        );
        buffer.take_write(room, room + data, request.extent, self.arm.mechanics());
        let begun = now + room.since(ready);
        let finish = room + data + electronics.write_completion;
        Some(RequestInService {
            slot,
            finish,
            breakdown: parts(submitted, begun, finish, &AccessTimes::default()),
        })
    }

    /// True if `extent` lies within one segment size of the last request.
    fn near(&self, extent: Extent) -> bool {
        let size = Sectors(self.buffer.as_ref().map_or(0, DriveBuffer::segment_sectors));
        let last = self.last.extent;
        extent.start < last.end() + size && last.start < extent.end() + size
    }

    /// Serves a read from the medium.
    fn read_medium(
        &mut self,
        waiting: &WaitingRequest,
        via: Option<Cylinder>,
        now: Time,
    ) -> RequestInService {
        let RequestSlot {
            ref request,
            submitted,
        } = self.slots[waiting.slot];
        let extent = request.extent;
        let free = self.arm.needed(now);
        let on_track = self.arm.head().is_on(&waiting.position);
        let overhead = self.electronics.read_miss(self.last.kind, on_track);
        let moves = self.prepare(waiting, free, overhead);
        let detour = self.detour(via);
        let mut bus = self.bus(extent.sectors);
        self.arm.take(free, moves + detour);
        self.read_free_blocks(moves + detour, extent, &waiting.position, false);
        let mut access = self.arm.access_fed(
            moves + detour,
            extent,
            &waiting.position,
            false,
            None,
            |piece| bus.passed(piece),
        );
        let medium_end = moves + detour + access.duration();
        access.seek += detour;
        if let Some(buffer) = &mut self.buffer {
            let (landing, position) = (access.landing, &waiting.position);
            buffer.missed(moves, landing, medium_end, extent, position, &mut self.arm);
        }
        let finish = bus.end.max(medium_end) + self.electronics.read_completion;
        RequestInService {
            slot: waiting.slot,
            finish,
            breakdown: parts(submitted, free, finish, &access),
        }
    }

    /// Lets the background scan read during the rotational latency of a request for which the arm
    /// leaves at `moves`.
    fn read_free_blocks(&mut self, moves: Time, extent: Extent, position: &Position, write: bool) {
        // The latency of standing platters is not known before the platters turn.
        let Some(freeblock) = self.freeblock.as_mut().filter(|_| !self.arm.is_stopped()) else {
            return;
        };
        let mechanics = self.arm.mechanics();
        let span = mechanics.span(position, extent.sectors.min(position.sectors_left));
        freeblock.serve(mechanics, self.arm.head(), moves, position, span, write);
    }

    /// Returns the bus for a read of `sectors` from the medium.
    fn bus(&self, sectors: Sectors) -> ReadBus {
        let electronics = &self.electronics;
        let preparation = electronics.read_reselect + electronics.data_preparation;
        ReadBus::new(
            sectors.0,
            electronics.read_each(sectors),
            self.watermark(sectors),
            preparation,
        )
    }

    /// Returns when the sectors of a write arrive over the bus. The arm may move at `ready`. `seek`
    /// is the overhead until the arm moves, and `data` is the overhead until the data are sent.
    fn bus_arrivals(
        &self,
        ready: Time,
        seek: Duration,
        data: Duration,
        extent: Extent,
    ) -> BusArrival {
        let electronics = &self.electronics;
        let each = if electronics.write_underruns {
            Duration::ZERO
        } else {
            electronics.write_each(extent.sectors)
        };
        // `ready` contains the overhead before the seek, and both overheads count from one instant.
        let first = Time::from_nanos((ready + data).as_nanos() - seek.as_nanos());
        BusArrival {
            first,
            each,
            marked: self.marked(electronics.write_watermark, extent.sectors),
        }
    }

    /// Number of sectors required from the medium before the bus transfer begins.
    fn watermark(&self, sectors: Sectors) -> u64 {
        self.marked(self.electronics.read_watermark, sectors)
    }

    /// Number of sectors up to a watermark, at most `sectors`.
    fn marked(&self, mark: f64, sectors: Sectors) -> u64 {
        let of = match &self.buffer {
            Some(buffer) if self.electronics.watermark_of_segment => buffer.segment_sectors(),
            _ => sectors.0,
        };
        ((mark * of as f64) as u64).min(sectors.0)
    }

    /// Serves a read whose beginning is in the buffer while the heads are reading towards the rest.
    /// The medium goes on without a pause.
    fn read_on(
        &mut self,
        slot: u32,
        now: Time,
        there: Sectors,
        next: Lbn,
        since: Time,
    ) -> RequestInService {
        let RequestSlot { request, submitted } = self.slots[slot];
        let extent = request.extent;
        let electronics = self.electronics;
        let rest = Extent {
            start: next,
            sectors: extent.end().since(next),
        };
        let answered = now + electronics.read_hit(self.last.kind);
        let mut bus = self.partial(extent.sectors, there, now);
        let position = self.arm.mechanics().geometry().locate(rest.start);
        assert_eq!(
            there + rest.sectors,
            extent.sectors,
            "what the buffer has and what is left make the request"
        );
        let access = self
            .arm
            .access_fed(since, rest, &position, false, None, |piece| {
                bus.passed(SectorPassage {
                    index: piece.index + there.0,
                    ..piece
                })
            });
        let medium_end = since + access.duration();
        if let Some(buffer) = &mut self.buffer {
            buffer.filled(medium_end, extent, &mut self.arm);
        }
        let finish = bus.end.max(medium_end) + electronics.read_completion;
        // The access began before the request came. The remaining time of the access counts as
        // transfer.
        let left = AccessTimes {
            transfer: medium_end.saturating_since(answered),
            ..AccessTimes::default()
        };
        RequestInService {
            slot,
            finish,
            breakdown: parts(submitted, now, finish, &left),
        }
    }

    /// Serves a read whose beginning is in a segment. The beginning goes over the bus at once, and
    /// the rest comes from the medium.
    fn read_rest(
        &mut self,
        waiting: &WaitingRequest,
        now: Time,
        segment: usize,
        there: Sectors,
        next: Lbn,
    ) -> RequestInService {
        let RequestSlot { request, submitted } = self.slots[waiting.slot];
        let extent = request.extent;
        let electronics = self.electronics;
        let rest = Extent {
            start: next,
            sectors: extent.end().since(next),
        };
        let free = self.arm.needed(now);
        let position = self.arm.mechanics().geometry().locate(rest.start);
        let overhead = electronics.read_miss(self.last.kind, self.arm.head().is_on(&position));
        let moves = self.prepare(waiting, free, overhead);
        let mut bus = self.partial(extent.sectors, there, now);
        assert_eq!(
            there + rest.sectors,
            extent.sectors,
            "what the buffer has and what is left make the request"
        );
        self.arm.take(free, moves);
        self.read_free_blocks(moves, rest, &position, false);
        let access = self
            .arm
            .access_fed(moves, rest, &position, false, None, |piece| {
                bus.passed(SectorPassage {
                    index: piece.index + there.0,
                    ..piece
                });
            });
        let medium_end = moves + access.duration();
        if let Some(buffer) = &mut self.buffer {
            buffer.resumed(segment, moves, medium_end, extent, &mut self.arm);
        }
        let finish = bus.end.max(medium_end) + electronics.read_completion;
        RequestInService {
            slot: waiting.slot,
            finish,
            breakdown: parts(submitted, free, finish, &access),
        }
    }

    /// Returns the bus for a read of which the buffer has `there` sectors at `now`. The sectors go
    /// over the bus at once. With `partial_hits_wait` the sectors wait for the watermark.
    fn partial(&self, sectors: Sectors, there: Sectors, now: Time) -> ReadBus {
        let electronics = &self.electronics;
        let marked = self.watermark(sectors);
        let waits = electronics.partial_hits_wait && there.0 < marked;
        let (marked, preparation) = if waits {
            (marked, electronics.data_preparation)
        } else {
            (0, Duration::ZERO)
        };
        let each = electronics.read_each(sectors);
        let mut bus = ReadBus::new(sectors.0, each, marked, preparation);
        let answered = now + electronics.read_hit(self.last.kind);
        bus.end = answered + electronics.data_preparation + each * sectors.0;
        bus
    }

    /// Serves a write to the medium.
    fn write_through(
        &mut self,
        waiting: &WaitingRequest,
        via: Option<Cylinder>,
        now: Time,
    ) -> RequestInService {
        let RequestSlot { request, submitted } = self.slots[waiting.slot];
        let extent = request.extent;
        let electronics = self.electronics;
        let free = self.arm.needed(now);
        let (seek_after, data_after) = electronics.write_miss(self.last.kind);
        let detour = self.detour(via);
        let ready = self.prepare(waiting, free, seek_after);
        let moves = ready + detour;
        let mut feed = self.bus_arrivals(ready, seek_after, data_after, extent);
        // The host may send the data while the command waits in the queue.
        if electronics.write_data_early {
            feed.first = feed.first.min(waiting.arrived + data_after);
        }
        self.arm.take(free, moves);
        self.read_free_blocks(moves, extent, &waiting.position, true);
        let mut edges = AccessTimes::default();
        let begins = self.arm.read_edges(moves, extent, &mut edges);
        let mut access =
            self.arm
                .access_fed(begins, extent, &waiting.position, true, Some(feed), |_| {});
        let medium_end = begins + access.duration();
        access.seek += detour;
        add(&mut access, &edges);
        if let Some(buffer) = &mut self.buffer {
            buffer.wrote_through(moves, medium_end, extent, &mut self.arm);
        }
        let finish = medium_end + electronics.write_reselect + electronics.write_completion;
        RequestInService {
            slot: waiting.slot,
            finish,
            breakdown: parts(submitted, free, finish, &access),
        }
    }

    /// Answers a request from the buffer while the arm serves another request. Returns false if the
    /// drive or the buffer cannot do so. No request overtakes a flush.
    fn pass_queue(&mut self, slot: u32, now: Time) -> bool {
        let (Some(buffer), Some(service)) = (&self.buffer, self.service) else {
            return false;
        };
        let flushing = self.slots[service.slot].request.operation.is_of_all();
        if !buffer.hits_pass() || self.beside.is_some() || flushing || !self.outside.is_empty() {
            return false;
        }
        // Passing requests share the bus, so each waits for the one before.
        let begin = self.bus_free.max(now);
        let request = self.slots[slot].request;
        let service = match request.operation {
            Operation::Write if buffer.has_room(begin, request.extent) => {
                // The write may stop read-ahead. The arm was busy with the sectors until now.
                let waiting = !self.queue.is_empty();
                if let Some((since, end)) = buffer.has_read_ahead(now, waiting, &self.arm) {
                    self.arm.counts_read_ahead(since, end);
                }
                self.take_write(slot, begin)
            }
            Operation::Read => match self.look_up(request.extent, begin) {
                Lookup::Hit(segment) => Some(self.read_hit(slot, segment, begin)),
                _ => None,
            },
            _ => None,
        };
        let Some(service) = service else { return false };
        assert!(
            self.passing
                .back()
                .is_none_or(|last| last.finish <= service.finish),
            "requests that pass the queue end in their order"
        );
        self.bus_free = service.finish;
        self.passing.push_back(service);
        true
    }

    /// Returns the discipline's choice at `now`, for an arm that can move at `moves`. A background
    /// request that does not delay the choice is returned first.
    fn choose(&mut self, now: Time, moves: Time) -> Option<NextRequest> {
        let (head, mechanics) = (self.arm.head(), self.arm.mechanics());
        let choice = self.queue.take(ArmView {
            now: moves,
            head,
            next_lbn: self.next_lbn,
            mechanics,
        })?;
        let Some(ride) = self.request_on_the_way(now, &choice) else {
            return Some(choice);
        };
        // The choice comes next, or a stream of background requests could delay it for ever.
        self.queue.put_first(choice);
        Some(NextRequest::direct(ride))
    }

    /// Returns the earliest time of a movement for the next request, as far as known before the
    /// choice.
    fn next_moves(&self, now: Time) -> Time {
        let left = self.command_overhead.min(self.queued_overhead);
        (self.prepared + self.command_overhead).max(self.arm.free_from(now) + left)
    }

    /// Prepares the command of `waiting`, which costs `overhead`, and returns when the arm can
    /// move. The arm is free at `free`. The drive prepares one command at a time while the previous
    /// command is on the medium. The arm waits for the rest of the preparation, as in DiskSim 4.0
    /// (`overhead_done` of the disk controller).
    fn prepare(&mut self, waiting: &WaitingRequest, free: Time, overhead: Duration) -> Time {
        let (prepared, moves) = self.prepared(self.prepared, waiting.arrived, free, overhead);
        self.prepared = prepared;
        moves
    }

    /// Returns when a command is prepared and when the arm can move for the command. The command
    /// came at `arrived`, the previous command was prepared at `before`, and the arm is free at
    /// `free`.
    fn prepared(
        &self,
        before: Time,
        arrived: Time,
        free: Time,
        overhead: Duration,
    ) -> (Time, Time) {
        let prepared = arrived.max(before) + overhead;
        (
            prepared,
            prepared.max(free + overhead.min(self.queued_overhead)),
        )
    }

    /// Moves the arm over the cylinder `via`, if there is one, and returns the time for the
    /// movement.
    fn detour(&mut self, via: Option<Cylinder>) -> Duration {
        via.map_or(Duration::ZERO, |cylinder| self.arm.visit(cylinder))
    }

    #[cfg(test)]
    pub(crate) fn arm(&self) -> &DriveArm {
        &self.arm
    }

    #[cfg(test)]
    pub(crate) fn free_segments(&self) -> u32 {
        self.buffer.as_ref().map_or(0, DriveBuffer::free_segments)
    }

    fn in_flight(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the energy of the arm until `now`. `now` must not lie before the last event. `None`
    /// if the description has no watts.
    pub fn power(&self, now: Time) -> Option<PowerStatistics> {
        self.arm.power(now, |meter| {
            if let Some(buffer) = &self.buffer {
                buffer.reads_ahead(now, &self.arm, |state, begin, end| {
                    meter.state(state, begin, end)
                });
            }
        })
    }

    /// Busy time of the arm until `now`. `now` must not lie before the last event.
    fn busy(&self, now: Time) -> Duration {
        self.arm.busy(
            now,
            self.buffer
                .as_ref()
                .and_then(|buffer| buffer.has_read_ahead(now, !self.queue.is_empty(), &self.arm)),
        )
    }

    /// Returns the counters so far. The work of the arm includes planned work, but excludes energy.
    pub fn statistics(&self) -> MemberStatistics {
        let ArmTotals {
            busy,
            seek,
            rotation,
            transfer,
        } = self.arm.work();
        let buffer_hits = self.buffer.as_ref().map_or(0, DriveBuffer::hits);
        MemberStatistics {
            busy,
            seek,
            rotation,
            transfer,
            buffer_hits,
            ..self.statistics.so_far()
        }
    }
}

/// Refuses the first of these keys that is given beside the table `table`.
///
/// # Errors
/// Names the given key.
fn refuse_given(table: &str, excluded: &[(&str, bool)]) -> Result<(), ConfigError> {
    let Some((key, _)) = excluded.iter().find(|(_, given)| *given) else {
        return Ok(());
    };
    let message = format!("a drive with [{table}] does not have this key; expected one of the two");
    Err(ConfigError::new(*key, message))
}

/// Splits the response time of a request into parts. The request came at `submitted`, was taken up
/// at `begun` and finished at `finish`. Time outside the access counts as overhead.
fn parts(submitted: Time, begun: Time, finish: Time, access: &AccessTimes) -> Breakdown {
    let service = finish.since(begun);
    // With zero-latency access parts of the transfer lie within the rotation, and the parts must
    // not exceed the service.
    let transfer = access
        .transfer
        .min(service.saturating_sub(access.seek + access.rotation));
    Breakdown {
        queue: begun.since(submitted),
        parity: Duration::ZERO,
        overhead: service.saturating_sub(access.seek + access.rotation + transfer),
        seek: access.seek,
        rotation: access.rotation,
        transfer,
        seek_cylinders: access.seek_cylinders,
    }
}

/// The bus during a read. Sectors go over the bus in the order of their LBNs, each after the sector
/// has passed under the head.
struct ReadBus {
    sectors: u64,
    each: Duration,
    marked: u64,
    preparation: Duration,
    end: Time,
}

impl ReadBus {
    fn new(sectors: u64, each: Duration, marked: u64, preparation: Duration) -> ReadBus {
        ReadBus {
            sectors,
            each,
            marked,
            preparation,
            end: Time::ZERO,
        }
    }

    /// Records that sectors have passed under the head. The bus cannot end before the first and the
    /// last of these sectors and all later sectors are sent. From the watermark on, the bus cannot
    /// end before the whole request is sent.
    fn passed(&mut self, piece: SectorPassage) {
        let SectorPassage {
            index,
            sectors,
            first_end,
            last_end,
        } = piece;
        debug_assert!(
            index + sectors <= self.sectors && first_end <= last_end,
            "sectors {index} to {} of {} pass from {first_end:?} to {last_end:?}",
            index + sectors,
            self.sectors
        );
        // Within a piece the sectors pass at equal distances, so the first or the last sector
        // decides.
        let from_first = first_end + self.each * (self.sectors - index);
        let from_last = last_end + self.each * (self.sectors - index - sectors + 1);
        self.end = self.end.max(from_first).max(from_last);
        let last = index + sectors;
        if self.marked > 0 && (index + 1..=last).contains(&self.marked) {
            // Sectors of a piece pass at equal distances, so the marked one is interpolated.
            let each_passes = last_end.since(first_end) / (sectors - 1).max(1);
            let marked = first_end + each_passes * (self.marked - 1 - index);
            self.end = self
                .end
                .max(marked + self.preparation + self.each * self.sectors);
        }
    }
}

impl Node for Drive {
    /// A request that costs the drive nothing completes at once.
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let out = &mut *cx.out;
        // Requests that are due end first. Only an empty drive can stop the platters, so the stop
        // comes second.
        self.catch_up(now, out);
        self.rest_when_due(now);
        self.arm.passed(now);
        if !self.is_command(&request) {
            return out.complete(Completion::at_once(request.id, now, RequestStatus::Done));
        }
        let capacity = self.arm.mechanics().geometry().capacity();
        let empty = request.extent.sectors.0 == 0 && request.operation.transfers();
        let refused = request.operation.transfers() && !self.arm.sizes().addresses(request.extent);
        if !request.extent.within(capacity) || empty || refused {
            return out.complete(Completion::at_once(
                request.id,
                now,
                RequestStatus::OutOfRange,
            ));
        }
        self.own = BufferAlarm::Nothing;
        self.send_notices(now, out);
        self.statistics.arrived(now);
        let slot = self.slots.keep(RequestSlot {
            request,
            submitted: now,
        });
        if let Some(slots) = &mut self.slot_of {
            slots.insert(request.id.0, slot);
        }
        assert!(
            self.service.is_none_or(|service| service.finish > now),
            "a request in service ended before {now:?} and was not finished"
        );
        // A verifying read must reach the medium, so the buffer writes dirty sectors of the extent
        // and drops the rest.
        if let Some(buffer) = self.buffer.as_mut().filter(|_| request.hints.verify) {
            let waiting = self.service.is_some() || !self.queue.is_empty();
            buffer.leave_to_medium(now, request.extent, waiting, &mut self.arm);
        }
        match request.operation {
            Operation::Discard => return self.discard(slot, now),
            Operation::Read | Operation::Write if self.pass_queue(slot, now) => return,
            _ => {}
        }
        self.outside.push_back(slot);
        // If older requests wait outside, the drive had no room for them, and nothing has changed
        // since.
        if self.outside.len() == 1 {
            self.admit(now);
        }
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.catch_up(now, cx.out);
        self.rest_when_due(now);
        self.work_alone(now);
        self.arm.passed(now);
        self.send_notices(now, cx.out);
    }

    fn manage(
        &mut self,
        now: Time,
        id: RequestId,
        order: QueueOrder,
        cx: &mut NodeContext<'_>,
    ) -> bool {
        self.manage_waiting(now, id, order, cx.out)
    }

    fn next_wake(&self) -> Wake {
        let served = self.service.map_or(Time::NEVER, |service| service.finish);
        let passing = self
            .passing
            .front()
            .map_or(served, |passing| passing.finish.min(served));
        let (again, answers) = self.own_times();
        let work = passing.min(again).min(answers);
        if work == Time::NEVER {
            // Work of the buffer and stops of the platters do not keep a run from ending.
            Wake::Chore(self.own.at().min(self.rests_at()))
        } else {
            Wake::Work(work)
        }
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            queue_length: self.in_flight(),
            head: self.arm.head().cylinder,
            phase: self.arm.head().phase,
            idle_since: (self.in_flight() == 0).then_some(self.idle_since),
            ..Gauge::default()
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        counters.drives.push(MemberStatistics {
            busy: self.busy(now),
            power: self.power(now),
            ..self.statistics()
        });
        counters
            .layers
            .extend(self.faults.as_ref().map(Faults::readings));
        let capacity = self.arm.mechanics().geometry().capacity();
        counters
            .layers
            .extend(self.background.as_ref().map(Background::readings));
        counters.layers.extend(
            self.freeblock
                .as_ref()
                .map(|scan| scan.readings(now, capacity)),
        );
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::QueueConfig;
    use crate::config::tests::small_drive;
    use fullstroke_contract::{Effect, Extent, RequestId};
    use proptest::prelude::*;

    pub(crate) fn request(id: u64, lbn: u64, sectors: u64, operation: Operation) -> Request {
        Request {
            id: RequestId(id),
            extent: Extent::new(lbn, sectors),
            operation,
            ..Request::default()
        }
    }

    /// Returns the completions of requests at the given instants. Each wake-up comes `late` ns
    /// after the due time.
    pub(crate) fn serve(
        drive: &mut Drive,
        requests: impl IntoIterator<Item = (Time, Request)>,
        late: u64,
    ) -> Vec<Completion> {
        let (mut out, mut done, mut came) = (Effects::new(), Vec::new(), 0);
        let late = Duration::from_nanos(late);
        let mut collect = |out: &mut Effects| {
            done.extend(out.drain().map(|effect| match effect {
                Effect::Complete { completion, .. } => completion,
                other => panic!("a drive only completes: {other:?}"),
            }));
        };
        let mut wake = |drive: &mut Drive, out: &mut Effects| {
            drive.wake(
                drive.next_wake().at().saturating_add(late),
                &mut NodeContext::alone(out),
            );
            collect(out);
        };
        for (at, request) in requests {
            while drive.next_wake().at().saturating_add(late) < at {
                wake(drive, &mut out);
            }
            drive.submit(at, Port::FIRST, request, &mut NodeContext::alone(&mut out));
            came += 1;
        }
        while drive.next_wake().at() != Time::NEVER {
            wake(drive, &mut out);
        }
        collect(&mut out);
        assert_eq!(done.len(), came, "each is answered once");
        done
    }

    /// Returns the completions of requests to the node of a drive, at the given instants, until no
    /// work is left. Each wake-up comes `late` ns after the due time.
    pub(crate) fn serve_work(
        node: &mut dyn Node,
        requests: impl IntoIterator<Item = (Time, Request)>,
        late: u64,
    ) -> Vec<Completion> {
        let (mut out, mut came) = (Effects::new(), 0);
        let late = Duration::from_nanos(late);
        for (at, request) in requests {
            while node.next_wake().at().saturating_add(late) < at {
                let now = node.next_wake().at().saturating_add(late);
                node.wake(now, &mut NodeContext::alone(&mut out));
            }
            node.submit(at, Port::FIRST, request, &mut NodeContext::alone(&mut out));
            came += 1;
        }
        while node.next_wake().is_work() {
            let now = node.next_wake().at().saturating_add(late);
            node.wake(now, &mut NodeContext::alone(&mut out));
        }
        let completion = |effect| match effect {
            Effect::Complete { completion, .. } => Some(completion),
            _ => None,
        };
        let done: Vec<Completion> = out.drain().filter_map(completion).collect();
        assert_eq!(done.len(), came, "each is answered once");
        done
    }

    type Arrival = (u64, u64, u64, bool);

    /// Runs arrivals through a drive. Each wake-up comes `late` ns after the due time.
    fn run(config: DriveConfig, arrivals: &[Arrival], late: u64) -> Vec<Completion> {
        let mut drive = DriveModel::new(config).unwrap().drive().unwrap();
        let requests = (0..).zip(arrivals).map(|(id, &(at, lbn, sectors, write))| {
            let operation = if write {
                Operation::Write
            } else {
                Operation::Read
            };
            (Time::from_nanos(at), request(id, lbn, sectors, operation))
        });
        serve(&mut drive, requests, late)
    }

    fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
        prop::collection::vec(
            (0u64..5_000_000, 0u64..1360, 1u64..40, any::<bool>()),
            1..80,
        )
        .prop_map(|gaps| {
            let mut now = 0;
            let at = |(gap, lbn, sectors, write)| {
                now += gap;
                (now, lbn, sectors, write)
            };
            gaps.into_iter().map(at).collect()
        })
    }

    proptest! {
        #[test]
        fn every_request_completes_once_and_its_parts_add_up(arrivals in arrivals(), depth in 1u32..9) {
            let queue = QueueConfig { depth, ..QueueConfig::default() };
            let done = run(DriveConfig { queue, ..small_drive() }, &arrivals, 0);
            let mut ids: Vec<u64> = done.iter().map(|completion| completion.id.0).collect();
            ids.sort_unstable();
            prop_assert_eq!(ids, (0..arrivals.len() as u64).collect::<Vec<_>>());
            for completion in done {
                prop_assert_eq!(completion.finished.since(completion.submitted), completion.breakdown.response());
            }
        }

        #[test]
        fn late_wake_ups_do_not_move_the_timeline(arrivals in arrivals(), late in 0u64..30_000_000) {
            prop_assert_eq!(run(small_drive(), &arrivals, 0), run(small_drive(), &arrivals, late));
        }
    }

    #[test]
    fn a_request_beyond_the_drive_is_refused() {
        let done = run(
            small_drive(),
            &[(0, 1399, 2, false), (0, u64::MAX, 1, false)],
            0,
        );
        assert!(
            done.iter()
                .all(|completion| completion.status == RequestStatus::OutOfRange)
        );
    }
    /// Returns the end of each read in ms. Each read has four sectors, and neighbouring reads are
    /// eight sectors apart on one track. The drive turns in 6 ms (0.15 ms a sector) and needs 0.3
    /// ms a command.
    fn ends_ms(arrivals: &[(f64, u64)], queued_overhead_ms: f64) -> Vec<f64> {
        let queue = QueueConfig {
            discipline: "fcfs".into(),
            ..QueueConfig::default()
        };
        let config = DriveConfig {
            command_overhead_ms: 0.3,
            queued_overhead_ms,
            queue,
            ..small_drive()
        };
        let arrivals: Vec<Arrival> = arrivals
            .iter()
            .map(|&(at_ms, lbn)| ((at_ms * 1e6) as u64, lbn, 4, false))
            .collect();
        run(config, &arrivals, 0)
            .iter()
            .map(|completion| completion.finished.since(Time::ZERO).as_millis_f64())
            .collect()
    }

    #[test]
    fn a_command_that_waits_is_prepared_while_the_one_before_is_on_the_medium() {
        let both = [(0.0, 8), (0.0, 13)];
        assert_eq!(
            ends_ms(&both, 0.0),
            [1.8, 2.55],
            "the second begins where the head is by then"
        );
        assert_eq!(
            ends_ms(&both, 0.1),
            [1.8, 2.55],
            "0.1 ms is left, and 0.15 the way"
        );
        assert_eq!(
            ends_ms(&both, 0.3),
            [1.8, 8.55],
            "the sector has passed before it is prepared"
        );
        assert_eq!(
            ends_ms(&both, 1e3),
            ends_ms(&both, 0.3),
            "no more than all of it is left"
        );
    }

    #[test]
    fn a_command_that_comes_late_is_prepared_as_far_as_time_allows() {
        assert_eq!(
            ends_ms(&[(0.0, 8), (1.6, 13)], 0.0),
            [1.8, 2.55],
            "prepared at 1.9 ms, passing at 1.95"
        );
        assert_eq!(
            ends_ms(&[(0.0, 8), (1.7, 13)], 0.0),
            [1.8, 8.55],
            "prepared at 2.0 ms"
        );
    }

    #[test]
    fn one_command_is_prepared_at_a_time() {
        // One sector takes half as long as one command. All three sectors are on one track, and the
        // last command is prepared at 0.9 ms.
        assert_eq!(
            ends_ms(&[(0.0, 2), (0.0, 6), (0.0, 7)], 0.0)[..2],
            [0.9, 1.5]
        );
        let config = DriveConfig {
            command_overhead_ms: 3.0,
            ..small_drive()
        };
        let done = run(
            config,
            &[(0, 8, 1, false), (0, 9, 1, false), (0, 10, 1, false)],
            0,
        );
        let ends: Vec<f64> = done
            .iter()
            .map(|end| end.finished.since(Time::ZERO).as_millis_f64())
            .collect();
        assert!(
            ends.iter()
                .zip([3.0, 6.0, 9.0])
                .all(|(&end, prepared)| end > prepared),
            "{ends:?}"
        );
    }
}
