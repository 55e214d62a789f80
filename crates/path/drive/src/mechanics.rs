//! Arm and platter: what an access costs.
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
use fullstroke_contract::{ConfigError, Extent, Gauge, Track, TrackTable, ZoneRate};
use fullstroke_units::{Angle, Cylinder, Duration, Lbn, Sectors, Spindle, Time};
use std::sync::Arc;

/// Where the heads stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Head {
    /// The cylinder under the arm.
    pub cylinder: Cylinder,
    /// The head that is switched on.
    pub surface: u32,
    /// Whether the last transfer wrote.
    pub wrote: bool,
    /// By how much the medium is ahead of one that has turned evenly since time
    /// 0. It changes when the medium does not turn evenly.
    pub phase: Angle,
}

impl Head {
    /// On the track of `position`, to read it.
    #[inline]
    #[must_use]
    pub fn reading(self, position: &Position) -> Head {
        Head {
            cylinder: position.cylinder,
            surface: position.surface,
            wrote: false,
            ..self
        }
    }

    /// Whether the heads stand on the track of `position`.
    #[inline]
    pub fn is_on(self, position: &Position) -> bool {
        (self.cylinder, self.surface) == (position.cylinder, position.surface)
    }
}

/// Sectors of a write that come over the bus: number `i` of the request is in
/// the buffer at `first + (i + 1) * each`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feed {
    /// When the bus begins.
    pub first: Time,
    /// Bus time of a sector.
    pub each: Duration,
    /// Sectors that must be there before the first is written.
    pub marked: u64,
}

/// When sectors of a request have passed under the head: neighbours, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of the first within the request.
    pub index: u64,
    /// How many.
    pub sectors: u64,
    /// When the first has passed.
    pub first_end: Time,
    /// When the last has passed.
    pub last_end: Time,
}

/// What one access cost, in parts that add up to its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Access {
    /// Arm, head switches, settling; on the way to the first track and between
    /// tracks.
    pub seek: Duration,
    /// Rotational latency.
    pub rotation: Duration,
    /// Sectors passing.
    pub transfer: Duration,
    /// Cylinders crossed to the first track.
    pub seek_cylinders: u32,
    /// When the heads landed on the first track.
    pub landing: Time,
}

impl Access {
    /// The whole.
    pub fn duration(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}

/// The moving parts of a drive. Immutable: a head position and an instant go
/// in, times come out.
#[derive(Clone, Debug)]
pub struct Mechanics {
    geometry: Arc<Geometry>,
    spindle: Spindle,
    seek: SeekTable,
    head_switch: Duration,
    write_settle: Duration,
    /// By how much a write's movement is shorter than the curve.
    write_lead: Duration,
    turn_round: Duration,
    zero_latency: ZeroLatency,
    /// In less time no sector passes.
    least_sector: Duration,
}

impl Mechanics {
    /// The mechanics of a drive.
    ///
    /// # Errors
    /// Names the key whose value cannot be.
    pub fn new(config: &DriveConfig) -> Result<Mechanics, ConfigError> {
        let geometry = Arc::new(Geometry::new(config)?);
        let seek = SeekTable::new(&config.seek, geometry.cylinders())
            .map_err(|error| error.below("seek"))?;
        let least_sector = geometry.spindle().time_to_turn(geometry.least_sector());
        Ok(Mechanics {
            // What it takes is rounded up.
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

    /// How addresses lie.
    pub fn geometry(&self) -> &Arc<Geometry> {
        &self.geometry
    }

    /// The seek curve.
    pub fn seek_table(&self) -> &SeekTable {
        &self.seek
    }

    /// The motor.
    pub fn spindle(&self) -> Spindle {
        self.spindle
    }

    /// The least time in which `sectors` can pass, wherever they lie.
    #[inline]
    pub fn passes_at_least(&self, sectors: Sectors) -> Duration {
        self.least_sector * sectors.0
    }

    /// Time until the heads stand on the track of `target`.
    #[inline]
    pub fn seek(&self, head: Head, cylinder: Cylinder, surface: u32, write: bool) -> Duration {
        let mut time = self.seek.time(head.cylinder.distance(cylinder));
        if head.surface != surface {
            time = time.max(self.head_switch);
        }
        match (write, time > Duration::ZERO) {
            (true, true) => (time + self.write_settle).saturating_sub(self.write_lead),
            (false, false) if head.wrote => self.turn_round,
            _ => time,
        }
    }

    /// Time from `landing`, when `head` stands on the right track, until a
    /// transfer over `span` from `start` can proceed without pause: the time of
    /// the whole less that of the sectors.
    ///
    /// With zero latency a head that lands inside the span reads on to its end,
    /// waits, and completes what it had missed: one revolution for everything.
    /// The remainder of the sector on which it lands is taken as usable, so
    /// that a whole track costs one revolution exactly; a drive that must see a
    /// sector's start needs up to one sector more.
    #[inline]
    pub fn rotation(
        &self,
        head: Head,
        landing: Time,
        start: Angle,
        span: Angle,
        write: bool,
    ) -> Duration {
        self.latency(landing, start - head.phase, span, write)
    }

    /// The same for a medium that has turned evenly.
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

    /// When the first sector of such a transfer is under the head; `None` if the transfer
    /// begins in its middle.
    #[inline]
    pub fn due(
        &self,
        head: Head,
        landing: Time,
        start: Angle,
        span: Angle,
        write: bool,
    ) -> Option<Time> {
        let start = start - head.phase;
        let inside = self.lands_inside(landing, start, span, write);
        (!inside).then(|| landing + self.spindle.wait_for(start, landing))
    }

    /// Whether a transfer can begin in the middle of its span.
    #[inline]
    fn lands_inside(&self, landing: Time, start: Angle, span: Angle, write: bool) -> bool {
        let zero_latency = if write {
            self.zero_latency.writes()
        } else {
            self.zero_latency.reads()
        };
        let inside = self.spindle.angle_at(landing) - start;
        zero_latency && inside < span && !self.spindle.counts_as_met(inside)
    }

    /// Rotational latency and transfer time of `span` from `start` for heads
    /// that land at `landing`. The transfer ends when the end of the span is
    /// under the head, so that rounding to nanoseconds never adds up.
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

    /// Carries out an access of `sectors` from `lbn` at `position`, beginning
    /// at `now`, and leaves the heads where it ends.
    ///
    /// The extent must lie on the drive and not be empty.
    #[inline]
    pub fn access(
        &self,
        head: &mut Head,
        now: Time,
        lbn: Lbn,
        sectors: Sectors,
        position: &Position,
        write: bool,
    ) -> Access {
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

    /// The same for a write whose sectors come over the bus meanwhile: the
    /// heads do not begin a track before all of it will be there in time. Tells
    /// `passed` when the sectors of each track have passed.
    #[inline]
    #[expect(
        clippy::too_many_arguments,
        reason = "one access, in the order of its parts"
    )]
    pub fn access_fed(
        &self,
        head: &mut Head,
        now: Time,
        extent: Extent,
        position: &Position,
        write: bool,
        feed: Option<Feed>,
        mut passed: impl FnMut(Piece),
    ) -> Access {
        assert!(
            extent.sectors > Sectors::ZERO && extent.within(self.geometry.capacity()),
            "{extent:?} is empty, or lies behind the {} of the drive",
            self.geometry.capacity()
        );
        let mut access = Access {
            seek_cylinders: head.cylinder.distance(position.cylinder),
            ..Access::default()
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
                self.fed(landing, feed, index, here, &position)
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
            *head = Head {
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

    /// The earliest instant at which the heads may begin with `sectors` of a
    /// track, number `index` on of a write, so that each is there in time.
    fn fed(
        &self,
        landing: Time,
        feed: Feed,
        index: u64,
        sectors: Sectors,
        position: &Position,
    ) -> Time {
        let sector = self.spindle.time_to_turn(position.sector_angle);
        let first = feed.first + feed.each * (index + 1).max(feed.marked);
        let last = feed.first + feed.each * (index + sectors.0);
        let passes = sector * (sectors.0 - 1);
        landing.max(first).max(Time::from_nanos(
            last.as_nanos().saturating_sub(passes.as_nanos()),
        ))
    }

    /// When the sectors of a track have passed: those that come last, where
    /// heads landed in their middle.
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
    ) -> Piece {
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
        Piece {
            index,
            sectors: late,
            first_end,
            last_end: end,
        }
    }

    /// The angle that `sectors` from `position` on cover; a whole track, which
    /// would wrap to 0, is the largest angle.
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

/// The table of the geometry, and the times that only the mechanics know.
impl TrackTable for Mechanics {
    fn capacity(&self) -> Sectors {
        self.geometry.capacity()
    }

    fn track_at(&self, lbn: Lbn) -> Track {
        self.geometry.track_at(lbn)
    }

    fn cylinder_of(&self, lbn: Lbn) -> Cylinder {
        self.geometry.cylinder_of(lbn)
    }

    /// The arm is taken to stand on the surface of its target: a gauge does not
    /// tell which one it is on.
    fn positioning(&self, now: Time, arm: &Gauge, lbn: Lbn, write: bool) -> Duration {
        let position = self
            .geometry
            .locate(Lbn(lbn.0.min(self.geometry.capacity().0 - 1)));
        let head = Head {
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

    fn access(mechanics: &Mechanics, now: u64, lbn: u64, sectors: u64) -> Access {
        let position = mechanics.geometry.locate(Lbn(lbn));
        mechanics.access(
            &mut Head::default(),
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
            let mut head = Head::default();
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
        let at = Head::default();
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
