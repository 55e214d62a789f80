//! The state that a layer may read from the layers below.

use fullstroke_units::{Angle, Cylinder, Duration, Lbn, Sectors, Time};
use std::sync::Arc;

/// The readings of one layer. The driver publishes them after each call to the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Number of requests in the layer: waiting and in service.
    pub queue_length: u32,
    /// Position of the arm now or, while a request is in service, at the end of this request. For a
    /// layer of several drives: position of the first drive's arm.
    pub head: Cylinder,
    /// Angle by which the medium under that arm leads a medium that has turned evenly since time 0.
    /// Zero, unless the platters once stopped or started late.
    pub phase: Angle,
    /// Time since when the layer has been idle; `None` while it is busy.
    pub idle_since: Option<Time>,
    /// False if the layer has failed and answers no requests.
    pub alive: bool,
}

impl Gauge {
    /// Returns these readings with the arm position and phase of `other`.
    #[inline]
    #[must_use]
    pub fn with_arm_of(self, other: &Gauge) -> Gauge {
        Gauge {
            head: other.head,
            phase: other.phase,
            ..self
        }
    }
}

impl Default for Gauge {
    fn default() -> Gauge {
        Gauge {
            queue_length: 0,
            head: Cylinder(0),
            phase: Angle::ZERO,
            idle_since: Some(Time::ZERO),
            alive: true,
        }
    }
}

/// One track, for a layer above that aligns requests to tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackExtent {
    /// First LBN of the track.
    pub first: Lbn,
    /// Number of LBNs on the track.
    pub sectors: Sectors,
    /// Cylinder of the track.
    pub cylinder: Cylinder,
    /// Surface of the track.
    pub surface: u32,
}

/// A zone: consecutive addresses with one transfer rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneRate {
    /// First LBN of the zone.
    pub first: Lbn,
    /// Number of LBNs in the zone.
    pub sectors: Sectors,
    /// Bytes per second of a sequential transfer, skews included.
    pub bytes_per_s: u64,
}

/// The address map of the medium, a gauge that never changes. For a layer of several drives the map
/// describes the first drive, in the addresses of this drive.
pub trait TrackTable: Send + Sync {
    /// Returns the number of addresses; valid addresses are `0..capacity`.
    fn capacity(&self) -> Sectors;
    /// Returns the track of `lbn`.
    ///
    /// # Panics
    /// If `lbn` is not below the capacity.
    fn track_at(&self, lbn: Lbn) -> TrackExtent;
    /// Returns the cylinder of `lbn`. For an address beyond the end, returns the cylinder of the
    /// last address.
    fn cylinder_of(&self, lbn: Lbn) -> Cylinder;
    /// Returns the time for seek and rotation before a transfer can begin at `lbn`, if `arm` leaves
    /// its cylinder at `now`. An address beyond the end counts as the last address. A table without
    /// times returns zero (default).
    fn positioning(&self, _now: Time, _arm: &Gauge, _lbn: Lbn, _write: bool) -> Duration {
        Duration::ZERO
    }
    /// Returns the zones in the order of their addresses. Together the zones cover all addresses. A
    /// table without zones returns an empty list (default).
    fn zone_rates(&self) -> Vec<ZoneRate> {
        Vec::new()
    }
    /// Returns a lower bound of the time of a seek over at least `cylinders` cylinders. The default
    /// is zero.
    fn seek_at_least(&self, _cylinders: u32) -> Duration {
        Duration::ZERO
    }
}

/// The address map of a striped volume: from addresses to members. Like [`TrackTable`], the map
/// never changes.
pub trait Stripes: Send {
    /// Returns the length of a run of addresses on one member. The first run starts at address 0.
    fn unit(&self) -> Sectors;
    /// Returns the member with (the first copy of) `lbn`. For an address beyond the end, returns
    /// the member of the last address.
    fn member_of(&self, lbn: Lbn) -> u32;
}

/// The view of a layer on the layers directly below, by member index.
#[derive(Clone, Copy)]
pub struct LayersBelow<'a> {
    gauges: &'a [Gauge],
    tables: &'a [Option<Arc<dyn TrackTable>>],
}

impl<'a> LayersBelow<'a> {
    /// Creates a view on members with these gauges and track tables, in order.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn new(gauges: &'a [Gauge], tables: &'a [Option<Arc<dyn TrackTable>>]) -> LayersBelow<'a> {
        assert_eq!(
            gauges.len(),
            tables.len(),
            "every member has a gauge and a table"
        );
        LayersBelow { gauges, tables }
    }

    /// The view of a layer without layers below.
    pub const NOTHING: LayersBelow<'static> = LayersBelow {
        gauges: &[],
        tables: &[],
    };

    /// Returns the readings of `member`, or the default if there is no such member.
    pub fn gauge(&self, member: usize) -> Gauge {
        // A layer tested without layers below sees an idle member at cylinder 0.
        self.gauges.get(member).copied().unwrap_or_default()
    }

    /// Returns the address map of `member`; `None` if the member has no map.
    pub fn tracks(&self, member: usize) -> Option<&'a dyn TrackTable> {
        self.tables.get(member)?.as_deref()
    }
}
