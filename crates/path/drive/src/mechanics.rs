//! Arm and platters: the cost of an access.
//!
//! Formulas (checked against a reference to the microsecond, see the tests of
//! the engine):
//!
//! - seek = max(curve(distance), head switch if the head changes), and write
//!   settling in addition if a write has moved at all;
//! - then rotation until the first sector begins;
//! - then the sectors pass; at a track's end the same again.

use crate::config::{DriveConfig, ZeroLatency, milliseconds};
use crate::geometry::{Geometry, Position};
use crate::seek::SeekTable;
use fullstroke_contract::{ConfigError, Extent, Gauge, TrackExtent, TrackTable, ZoneRate};
use fullstroke_units::{Angle, Cylinder, Duration, Lbn, Sectors, Spindle, Time};
use std::sync::Arc;

/// Position of the heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HeadPosition {
    /// The cylinder under the arm.
    pub cylinder: Cylinder,
    /// Surface of the active head.
    pub surface: u32,
    /// True if the last transfer was a write.
    pub wrote: bool,
    /// Lead of the medium over a medium that has turned evenly since time 0. The phase changes when
    /// the platters stop and start.
    pub phase: Angle,
}

impl HeadPosition {
    /// Returns the heads on the track of `position` after a read.
    #[inline]
    #[must_use]
    pub fn reading(self, position: &Position) -> HeadPosition {
        HeadPosition {
            cylinder: position.cylinder,
            surface: position.surface,
            wrote: false,
            ..self
        }
    }

    /// True if the heads stand on the track of `position`.
    #[inline]
    pub fn is_on(self, position: &Position) -> bool {
        (self.cylinder, self.surface) == (position.cylinder, position.surface)
    }
}

/// Arrival of a write's sectors over the bus. Sector `i` of the request is in the buffer at `first
/// + (i + 1) * each`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusArrival {
    /// Time when the bus transfer begins.
    pub first: Time,
    /// Bus time of a sector.
    pub each: Duration,
    /// Number of sectors required in the buffer before the first sector is written.
    pub marked: u64,
}

/// Passing times of neighbouring sectors of a request, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorPassage {
    /// Number of the first sector within the request.
    pub index: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// Time when the first sector has passed.
    pub first_end: Time,
    /// Time when the last sector has passed.
    pub last_end: Time,
}

/// Cost of one access. The parts seek, rotation and transfer add up to the duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AccessTimes {
    /// Time of arm movement, head switches and settling, on the way to the first track and between
    /// tracks.
    pub seek: Duration,
    /// Rotational latency.
    pub rotation: Duration,
    /// Time in which sectors pass under the heads.
    pub transfer: Duration,
    /// Cylinders crossed to the first track.
    pub seek_cylinders: u32,
    /// Time when the heads landed on the first track.
    pub landing: Time,
}

impl AccessTimes {
    /// Returns the sum of seek, rotation and transfer.
    pub fn duration(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}

/// The moving parts of a drive. The value is immutable: functions take a head position and an
/// instant, and return times.
#[derive(Clone, Debug)]
pub struct Mechanics {
    geometry: Arc<Geometry>,
    spindle: Spindle,
    seek: SeekTable,
    head_switch: Duration,
    write_settle: Duration,
    /// Time by which a write's movement is shorter than the curve.
    write_lead: Duration,
    turn_round: Duration,
    zero_latency: ZeroLatency,
    /// Lower bound of the passing time of one sector.
    least_sector: Duration,
}

impl Mechanics {
    /// Builds the mechanics of a drive.
    ///
    /// # Errors
    /// Names the invalid key.
    pub fn new(config: &DriveConfig) -> Result<Mechanics, ConfigError> {
        let geometry = Arc::new(Geometry::new(config)?);
        let seek = SeekTable::new(&config.seek, geometry.cylinders())
            .map_err(|error| error.below("seek"))?;
        let least_sector = geometry.spindle().time_to_turn(geometry.least_sector());
        Ok(Mechanics {
            // `time_to_turn` rounds up. One nanosecond less makes the value a lower bound.
            least_sector: least_sector.saturating_sub(Duration::from_nanos(1)),
            spindle: geometry.spindle(),
            geometry,
            seek,
            head_switch: milliseconds("head_switch_ms", config.head_switch_ms)?,
            write_settle: milliseconds("write_settle_ms", config.write_settle_ms.max(0.0))?,
            write_lead: milliseconds("write_settle_ms", (-config.write_settle_ms).max(0.0))?,
            turn_round: milliseconds("turn_round_ms", config.turn_round_ms)?,
            zero_latency: config.zero_latency,
        })
    }

    /// Returns the map from addresses to places.
    pub fn geometry(&self) -> &Arc<Geometry> {
        &self.geometry
    }

    /// The seek curve.
    pub fn seek_table(&self) -> &SeekTable {
        &self.seek
    }

    /// Returns the spindle motor.
    pub fn spindle(&self) -> Spindle {
        self.spindle
    }

    /// Returns a lower bound of the passing time of `sectors`, anywhere on the drive.
    #[inline]
    pub fn passes_at_least(&self, sectors: Sectors) -> Duration {
        self.least_sector * sectors.0
    }

    /// Returns the time until the heads stand on the target track.
    #[inline]
    pub fn seek(
        &self,
        head: HeadPosition,
        cylinder: Cylinder,
        surface: u32,
        write: bool,
    ) -> Duration {
        let arm = self.seek.time(head.cylinder.distance(cylinder));
        self.seek_of(arm, head, surface, write)
    }

    /// Does the same as [`seek`](Mechanics::seek) for a movement of the arm of known time.
    #[inline]
    pub(crate) fn seek_of(
        &self,
        arm: Duration,
        head: HeadPosition,
        surface: u32,
        write: bool,
    ) -> Duration {
        let mut time = arm;
        if head.surface != surface {
            // Arm and head electronics work at the same time, so the longer time decides.
            time = time.max(self.head_switch);
        }
        // A write must settle closer to the middle of the track than a read. Without a movement
        // nothing settles.
        match (write, time > Duration::ZERO) {
            (true, true) => (time + self.write_settle).saturating_sub(self.write_lead),
            (false, false) if head.wrote => self.turn_round,
            _ => time,
        }
    }

    /// Returns the time from `landing`, when `head` stands on the right track, until a transfer
    /// over `span` from `start` can proceed without a pause. In other words: the duration of the
    /// whole less the time of the sectors.
    ///
    /// With zero latency, a head that lands inside the span reads on to the end of the span, waits,
    /// and completes the missed part. Everything takes one revolution. The model takes the rest of
    /// the sector under the landing head as usable. Thus a whole track costs exactly one
    /// revolution. A drive that must see the start of a sector needs up to one sector more.
    #[inline]
    pub fn rotation(
        &self,
        head: HeadPosition,
        landing: Time,
        start: Angle,
        span: Angle,
        write: bool,
    ) -> Duration {
        self.latency(landing, start - head.phase, span, write)
    }

    /// Does the same as [`rotation`](Mechanics::rotation) for a medium that has turned evenly.
    #[inline]
    fn latency(&self, landing: Time, start: Angle, span: Angle, write: bool) -> Duration {
        if self.lands_inside(landing, start, span, write) {
            return self
                .spindle
                .revolution()
                .saturating_sub(self.spindle.time_to_turn(span));
        }
        self.spindle.wait_for(start, landing)
    }

    /// Returns when the first sector of such a transfer is under the head. `None` if the transfer
    /// begins in the middle.
    #[inline]
    pub fn due(
        &self,
        head: HeadPosition,
        landing: Time,
        start: Angle,
        span: Angle,
        write: bool,
    ) -> Option<Time> {
        let start = start - head.phase;
        let inside = self.lands_inside(landing, start, span, write);
        (!inside).then(|| landing + self.spindle.wait_for(start, landing))
    }

    /// True if a transfer can begin in the middle of the span.
    #[inline]
    fn lands_inside(&self, landing: Time, start: Angle, span: Angle, write: bool) -> bool {
        let zero_latency = if write {
            self.zero_latency.writes()
        } else {
            self.zero_latency.reads()
        };
        let inside = self.spindle.angle_at(landing) - start;
        // Zero latency: the transfer begins with the sector under the head, and ends with the
        // sector before it.
        zero_latency && inside < span && !self.spindle.counts_as_met(inside)
    }

    /// Returns rotational latency and transfer time of `span` from `start` for heads that land at
    /// `landing`. The transfer ends when the end of the span is under the head. Rounding to
    /// nanoseconds therefore never adds up.
    #[inline]
    fn pass(&self, landing: Time, start: Angle, span: Angle, write: bool) -> (Duration, Duration) {
        let rotation = self.latency(landing, start, span, write);
        let left = if self.lands_inside(landing, start, span, write) {
            span
        } else {
            start + span - self.spindle.angle_at(landing + rotation)
        };
        (rotation, self.spindle.time_to_turn(left))
    }

    /// Carries out an access of `sectors` from `lbn` at `position`, beginning at `now`. Leaves the
    /// heads at the end of the access.
    ///
    /// The extent must lie on the drive and not be empty.
    #[inline]
    pub fn access(
        &self,
        head: &mut HeadPosition,
        now: Time,
        lbn: Lbn,
        sectors: Sectors,
        position: &Position,
        write: bool,
    ) -> AccessTimes {
        self.access_fed(
            head,
            now,
            Extent {
                start: lbn,
                sectors,
            },
            position,
            write,
            None,
            |_| {},
        )
    }

    /// Does the same as [`access`](Mechanics::access) for a write whose sectors arrive over the bus
    /// meanwhile. The heads begin a track only when all sectors of the track will arrive in time.
    /// Calls `passed` with the passing times of the sectors of each track.
    #[inline]
    #[expect(
        clippy::too_many_arguments,
        reason = "one access, in the order of its parts"
    )]
    pub fn access_fed(
        &self,
        head: &mut HeadPosition,
        now: Time,
        extent: Extent,
        position: &Position,
        write: bool,
        feed: Option<BusArrival>,
        mut passed: impl FnMut(SectorPassage),
    ) -> AccessTimes {
        assert!(
            extent.sectors > Sectors::ZERO && extent.within(self.geometry.capacity()),
            "{extent:?} is empty, or lies behind the {} of the drive",
            self.geometry.capacity()
        );
        let mut access = AccessTimes {
            seek_cylinders: head.cylinder.distance(position.cylinder),
            ..AccessTimes::default()
        };
        let mut clock = now;
        let (mut lbn, mut left, mut position) = (extent.start, extent.sectors, *position);
        loop {
            let here = left.min(position.sectors_left);
            debug_assert!(
                here > Sectors::ZERO,
                "no sector of {lbn:?} lies on its track: {position:?}"
            );
            let index = (extent.sectors - left).0;
            let span = self.span(&position, here);
            let seek = self.seek(*head, position.cylinder, position.surface, write);
            let landing = clock + seek;
            let ready = feed.map_or(landing, |feed| {
                self.earliest_write(landing, feed, index, here, &position)
            });
            let start = position.angle - head.phase;
            let (rotation, transfer) = self.pass(ready, start, span, write);
            if index == 0 {
                access.landing = landing;
            }
            access.seek += seek;
            access.rotation += ready.since(landing) + rotation;
            access.transfer += transfer;
            clock = ready + rotation + transfer;
            passed(self.piece(ready, clock, index, here, &position, start, span, write));
            *head = HeadPosition {
                wrote: write,
                ..head.reading(&position)
            };
            left -= here;
            if left == Sectors::ZERO {
                return access;
            }
            let Some(next) = self.geometry.next_track(lbn, &position) else {
                return access;
            };
            (lbn, position) = next;
        }
    }

    /// Returns the earliest instant at which the heads may begin to write `sectors` of a track. The
    /// first of these sectors has number `index` in the request. From that instant on, each sector
    /// is in the buffer in time.
    fn earliest_write(
        &self,
        landing: Time,
        feed: BusArrival,
        index: u64,
        sectors: Sectors,
        position: &Position,
    ) -> Time {
        let sector = self.spindle.time_to_turn(position.sector_angle);
        let first = feed.first + feed.each * (index + 1).max(feed.marked);
        // The last sector must have come when the heads reach it, also on a bus slower than the
        // platters.
        let last = feed.first + feed.each * (index + sectors.0);
        let passes = sector * (sectors.0 - 1);
        landing.max(first).max(Time::from_nanos(
            last.as_nanos().saturating_sub(passes.as_nanos()),
        ))
    }

    /// Returns when the sectors of a track have passed. If the heads landed in the middle, the
    /// result covers the sectors that pass last.
    #[expect(clippy::too_many_arguments, reason = "what a pass is made of")]
    #[inline]
    fn piece(
        &self,
        landing: Time,
        end: Time,
        index: u64,
        sectors: Sectors,
        position: &Position,
        start: Angle,
        span: Angle,
        write: bool,
    ) -> SectorPassage {
        debug_assert!(
            landing <= end && sectors > Sectors::ZERO,
            "{sectors} pass from {landing:?} to {end:?}"
        );
        let mut late = sectors.0;
        if self.lands_inside(landing, start, span, write) {
            let inside = self.spindle.angle_at(landing) - start;
            late = (inside.0 / position.sector_angle.0 + 1).min(sectors.0);
        }
        let before_last = self.spindle.time_to_turn(position.sector_angle) * (late - 1);
        let first_end = Time::from_nanos(end.as_nanos().saturating_sub(before_last.as_nanos()));
        SectorPassage {
            index,
            sectors: late,
            first_end,
            last_end: end,
        }
    }

    /// Returns the angle of `sectors` sectors from `position` on. A whole track would wrap to 0 and
    /// is therefore the largest angle.
    #[inline]
    pub fn span(&self, position: &Position, sectors: Sectors) -> Angle {
        let passed = self.geometry.passed(position, sectors);
        debug_assert!(
            passed >= sectors.0,
            "{passed} sectors pass while {sectors} are transferred"
        );
        let exact = u128::from(position.sector_angle.0) * u128::from(passed);
        Angle(u64::try_from(exact).unwrap_or(u64::MAX))
    }
}

/// Combines the track table of the geometry with the positioning times of the mechanics.
impl TrackTable for Mechanics {
    fn capacity(&self) -> Sectors {
        self.geometry.capacity()
    }

    fn track_at(&self, lbn: Lbn) -> TrackExtent {
        self.geometry.track_at(lbn)
    }

    fn cylinder_of(&self, lbn: Lbn) -> Cylinder {
        self.geometry.cylinder_of(lbn)
    }

    /// The arm is assumed to stand on the surface of the target, because a gauge does not name the
    /// surface.
    fn positioning(&self, now: Time, arm: &Gauge, lbn: Lbn, write: bool) -> Duration {
        let position = self
            .geometry
            .locate(Lbn(lbn.0.min(self.geometry.capacity().0 - 1)));
        let head = HeadPosition {
            cylinder: arm.head,
            surface: position.surface,
            wrote: false,
            phase: arm.phase,
        };
        let seek = self.seek(head, position.cylinder, position.surface, write);
        seek + self.rotation(
            head,
            now + seek,
            position.angle,
            self.span(&position, Sectors(1)),
            write,
        )
    }

    fn seek_at_least(&self, cylinders: u32) -> Duration {
        self.seek.at_least(cylinders)
    }

    fn zone_rates(&self) -> Vec<ZoneRate> {
        self.geometry.zone_rates()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::small_drive;
    use proptest::prelude::*;

    fn mechanics(zero_latency: bool) -> Mechanics {
        Mechanics::new(&DriveConfig {
            zero_latency: ZeroLatency::All(zero_latency),
            ..small_drive()
        })
        .unwrap()
    }

    fn access(mechanics: &Mechanics, now: u64, lbn: u64, sectors: u64) -> AccessTimes {
        let position = mechanics.geometry.locate(Lbn(lbn));
        mechanics.access(
            &mut HeadPosition::default(),
            Time::from_nanos(now),
            Lbn(lbn),
            Sectors(sectors),
            &position,
            false,
        )
    }

    #[test]
    fn a_read_of_the_sector_under_the_head_costs_its_own_passing() {
        let access = access(&mechanics(false), 0, 0, 10);
        assert_eq!(
            (access.seek, access.rotation),
            (Duration::ZERO, Duration::ZERO)
        );
        // 10 of 40 sectors of a 6 ms revolution.
        assert!((access.transfer.as_millis_f64() - 1.5).abs() < 1e-5);
    }

    #[test]
    fn a_sector_just_missed_costs_a_revolution_unless_latency_is_zero() {
        let passed = 200_000; // the second sector has begun
        assert!(
            access(&mechanics(false), passed, 0, 40)
                .duration()
                .as_millis_f64()
                > 11.7
        );
        let zero = access(&mechanics(true), passed, 0, 40);
        assert_eq!(zero.duration(), mechanics(true).spindle.revolution());
    }

    #[test]
    fn a_transfer_that_goes_on_where_the_last_one_ended_costs_no_revolution() {
        for zero_latency in [false, true] {
            let mechanics = mechanics(zero_latency);
            let mut head = HeadPosition::default();
            let mut now = Time::from_nanos(123);
            let revolution = mechanics.spindle.revolution();
            for lbn in 0..39 {
                let position = mechanics.geometry.locate(Lbn(lbn));
                let access =
                    mechanics.access(&mut head, now, Lbn(lbn), Sectors(1), &position, false);
                assert!(
                    lbn == 0 || access.duration() < revolution / 20,
                    "LBN {lbn}: {access:?}"
                );
                now += access.duration();
            }
        }
    }

    #[test]
    fn a_write_settles_after_a_movement_only() {
        let mechanics = mechanics(false);
        let at = HeadPosition::default();
        let seek = |cylinder, surface, write| {
            mechanics
                .seek(at, Cylinder(cylinder), surface, write)
                .as_millis_f64()
        };
        assert_eq!(seek(0, 0, true), 0.0);
        assert_eq!(seek(0, 1, false), 0.5);
        assert_eq!(seek(0, 1, true), 0.6);
        assert_eq!(seek(1, 1, false), 0.8);
        assert_eq!(seek(1, 0, true), 0.9);
    }

    #[test]
    fn a_request_over_a_track_boundary_pays_the_switch_and_the_skew() {
        let mechanics = mechanics(false);
        let one = access(&mechanics, 0, 0, 40);
        let two = access(&mechanics, 0, 0, 41);
        // Skew of 3 sectors = 0.45 ms, less than the switch of 0.5 ms: the
        // first sector of the second track is missed by 0.05 ms.
        let more = (two.duration() - one.duration()).as_millis_f64();
        assert!((more - (6.0 + 0.45 + 0.15)).abs() < 1e-5, "{more}");
    }

    proptest! {
        #[test]
        fn zero_latency_never_takes_longer_and_at_most_a_revolution_a_track(
            now in 0u64..100_000_000, lbn in 0u64..1400, sectors in 1u64..200,
        ) {
            let sectors = sectors.min(1400 - lbn);
            let (plain, zero) = (mechanics(false), mechanics(true));
            let slow = access(&plain, now, lbn, sectors);
            let fast = access(&zero, now, lbn, sectors);
            let position = plain.geometry.locate(Lbn(lbn));
            if sectors <= position.sectors_left.0 {
                prop_assert!(fast.duration() <= slow.duration());
                let whole = position.sectors_left.0 == sectors && (sectors == 40 || sectors == 30);
                if whole {
                    prop_assert!(fast.rotation + fast.transfer <= zero.spindle.revolution());
                }
            }
        }
    }
}
