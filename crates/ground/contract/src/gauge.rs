//! What may be read from the layers below.

use fullstroke_units::{Angle, Cylinder, Duration, Lbn, Sectors, Time};
use std::sync::Arc;

/// The readings of one layer, published by the driver after each call to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Requests in the layer: waiting and in service.
    pub queue_length: u32,
    /// Where the arm is, or will be when the request in service ends. For a
    /// layer of several drives: that of its first.
    pub head: Cylinder,
    /// How far the medium under that arm is ahead of one that has turned evenly
    /// since time 0: it is not, unless it once stood, or was set off late.
    pub phase: Angle,
    /// Since when the layer has had nothing to do; `None` while it is busy.
    pub idle_since: Option<Time>,
    /// Whether the layer answers at all.
    pub alive: bool,
}

impl Gauge {
    /// These readings with the arm of `other`.
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

/// One track, as a layer above may align to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Its first LBN.
    pub first: Lbn,
    /// LBNs on it.
    pub sectors: Sectors,
    /// Where it lies.
    pub cylinder: Cylinder,
    /// Its surface.
    pub surface: u32,
}

/// A zone: consecutive addresses that are transferred at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneRate {
    /// Its first LBN.
    pub first: Lbn,
    /// Its LBNs.
    pub sectors: Sectors,
    /// Bytes a second of a sequential transfer, skews included.
    pub bytes_per_s: u64,
}

/// The gauge that never changes: how addresses lie on the medium. For a layer
/// of several drives it describes the first, in that drive's addresses.
pub trait TrackTable: Send + Sync {
    /// Addresses `0..capacity`.
    fn capacity(&self) -> Sectors;
    /// The track that holds `lbn`.
    ///
    /// # Panics
    /// If `lbn` is not below the capacity.
    fn track_at(&self, lbn: Lbn) -> Track;
    /// The cylinder of `lbn`; beyond the end, that of the last address.
    fn cylinder_of(&self, lbn: Lbn) -> Cylinder;
    /// Seek and rotation before a transfer could begin at `lbn`, for `arm` if it
    /// leaves its cylinder at `now`; beyond the end, at the last address. A table
    /// that knows of no times says zero.
    fn positioning(&self, _now: Time, _arm: &Gauge, _lbn: Lbn, _write: bool) -> Duration {
        Duration::ZERO
    }
    /// The zones, in the order of their addresses, which they cover. A table that
    /// knows of none has none.
    fn zone_rates(&self) -> Vec<ZoneRate> {
        Vec::new()
    }
    /// What no seek over so many cylinders or more falls short of.
    fn seek_at_least(&self, _cylinders: u32) -> Duration {
        Duration::ZERO
    }
}

/// The other gauge that never changes: how the addresses of a striped volume lie
/// on its members.
pub trait Stripes: Send {
    /// Addresses that lie together on one member: runs of so many, from address
    /// 0 on.
    fn unit(&self) -> Sectors;
    /// The member that holds (the first copy of) `lbn`; beyond the end, that of
    /// the last address.
    fn member_of(&self, lbn: Lbn) -> u32;
}

/// The window of a layer on the layers directly below it, by member index.
#[derive(Clone, Copy)]
pub struct Below<'a> {
    gauges: &'a [Gauge],
    tables: &'a [Option<Arc<dyn TrackTable>>],
}

impl<'a> Below<'a> {
    /// A window on members with these gauges and track tables, in order.
    ///
    /// # Panics
    /// If the two differ in length.
    pub fn new(gauges: &'a [Gauge], tables: &'a [Option<Arc<dyn TrackTable>>]) -> Below<'a> {
        assert_eq!(
            gauges.len(),
            tables.len(),
            "every member has a gauge and a table"
        );
        Below { gauges, tables }
    }

    /// The window of a layer that has nothing below it.
    pub const NOTHING: Below<'static> = Below {
        gauges: &[],
        tables: &[],
    };

    /// The readings of `member`; of a member that is not there, the default.
    pub fn gauge(&self, member: usize) -> Gauge {
        self.gauges.get(member).copied().unwrap_or_default()
    }

    /// How addresses lie on `member`, if it knows.
    pub fn tracks(&self, member: usize) -> Option<&'a dyn TrackTable> {
        self.tables.get(member)?.as_deref()
    }
}
