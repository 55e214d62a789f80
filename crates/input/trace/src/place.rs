//! Places of a trace's addresses in a volume.
//!
//! Several devices of a trace lie side by side: the first device of the trace at sector 0, the others
//! behind it by their numbers, each from a multiple of 1 MiB on. Then the addresses keep their places,
//! or they are scaled to a share of the volume, or their extents lie at random places
//! ([`FootprintPolicy`]). The last step treats addresses beyond the volume ([`BeyondPolicy`]).
//!
//! The ends of all devices are known only after one reading of the whole trace. A trace of one device
//! that keeps its addresses needs no such reading, so the trace is read for it when the second device
//! appears.

mod shuffle;
mod spans;

use crate::TraceError;
use crate::options::{BeyondPolicy, EXTENT_SECTORS, FootprintPolicy, TraceOptions};
use fullstroke_contract::Extent;
use fullstroke_units::{SECTOR_BYTES, Sectors, three_digits};
use shuffle::Shuffle;
pub(crate) use spans::DeviceSpans;
use std::sync::Arc;

/// Unit in which [`BeyondPolicy::Scale`] moves addresses: 1 MiB.
const REGION_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;
/// Share of the volume below which a note says that the arm hardly moves.
const SMALL_SHARE: f64 = 0.05;
/// Number of devices that a note or an error lists.
const DEVICES_NAMED: usize = 8;

/// Reason why an address has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceFault {
    /// The ends of the devices are needed.
    NeedsSpans,
    /// The devices do not fit side by side.
    DevicesTooLarge,
    /// The request ends beyond the volume.
    Beyond,
}

/// Mapping of addresses to a volume of a known capacity.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    capacity: u64,
    beyond: BeyondPolicy,
    footprint: FootprintPolicy,
    /// End of the address space as the caller gives it.
    given_span: Option<u64>,
    seed: u64,
    /// First device of the trace.
    first: Option<u32>,
    /// Ends of the devices, once the trace was read for them.
    layout: Option<Layout>,
    /// Lowest and highest address so far, before they are scaled or moved apart.
    used: Option<(u64, u64)>,
}

/// Bases of the devices.
#[derive(Clone, Debug)]
struct Layout {
    spans: Arc<DeviceSpans>,
    /// Device, base, and end of its own addresses, in order of the bases.
    devices: Vec<(u32, u64, u64)>,
    total: u64,
    shuffle: Option<Shuffle>,
}

impl Placement {
    /// Returns the placement of the options; `None` without a capacity.
    pub(crate) fn of(options: &TraceOptions) -> Option<Placement> {
        let capacity = options.capacity?.0;
        Some(Placement {
            capacity,
            beyond: options.beyond,
            footprint: options.footprint,
            given_span: options.span.map(|span| span.0),
            seed: options.seed,
            first: None,
            layout: None,
            used: None,
        })
    }

    /// Returns true if the ends of the devices are needed for every address.
    fn moves_all(&self) -> bool {
        self.footprint != FootprintPolicy::Captured
            || (self.beyond == BeyondPolicy::Scale && self.given_span.is_none())
    }

    /// Sets the ends of the devices.
    pub(crate) fn set_spans(&mut self, spans: Arc<DeviceSpans>) {
        let first = self.first.unwrap_or(0);
        let mut devices: Vec<(u32, u64, u64)> = Vec::with_capacity(spans.ends().len());
        // The first device stays at sector 0, where its requests so far were placed.
        let own = spans.ends().get(&first).map(|&end| (first, end));
        let others = spans
            .ends()
            .iter()
            .map(|(&device, &end)| (device, end))
            .filter(|&(device, _)| device != first);
        let mut base = 0u64;
        let mut total = 0;
        for (device, end) in own.into_iter().chain(others) {
            devices.push((device, base, end));
            // Bases beyond 2^64 stay at the top; such devices fit into no volume.
            total = base.saturating_add(end);
            base = total
                .div_ceil(REGION_SECTORS)
                .saturating_mul(REGION_SECTORS);
        }
        let shuffle = match self.footprint {
            FootprintPolicy::Spread { extent } => {
                let slots = self.capacity / extent.0.max(1);
                Some(Shuffle::new(slots, self.seed))
            }
            _ => None,
        };
        self.layout = Some(Layout {
            spans,
            devices,
            total,
            shuffle,
        });
    }

    /// Returns the place of `extent` of `device`.
    #[inline]
    pub(crate) fn place(&mut self, device: u32, extent: Extent) -> Result<Extent, PlaceFault> {
        let first = *self.first.get_or_insert(device);
        let (mut start, sectors) = (extent.start.0, extent.sectors.0);
        if self.layout.is_none() && (device != first || self.moves_all()) {
            return Err(PlaceFault::NeedsSpans);
        }
        let mut span = self.given_span;
        if let Some(layout) = &self.layout {
            let several = layout.devices.len() > 1;
            let strict =
                self.beyond == BeyondPolicy::Reject && self.footprint == FootprintPolicy::Captured;
            // All other policies make the devices fit.
            if several && strict && layout.total > self.capacity {
                return Err(PlaceFault::DevicesTooLarge);
            }
            let base = layout.base(device).ok_or(PlaceFault::Beyond)?;
            start = start.checked_add(base).ok_or(PlaceFault::Beyond)?;
            span = Some(layout.total);
        }
        let end = start.checked_add(sectors).ok_or(PlaceFault::Beyond)?;
        self.used = Some(match self.used {
            Some((low, high)) => (low.min(start), high.max(end)),
            None => (start, end),
        });
        self.fit(start, sectors, span).ok_or(PlaceFault::Beyond)
    }

    /// Returns the extent in the volume; `None` if it does not fit.
    fn fit(&self, start: u64, sectors: u64, span: Option<u64>) -> Option<Extent> {
        let capacity = self.capacity;
        let moved = match (self.footprint, span) {
            (FootprintPolicy::Captured, _) => match self.beyond {
                BeyondPolicy::Reject => start,
                BeyondPolicy::Wrap => moved_back(start % capacity, sectors, capacity),
                BeyondPolicy::Scale => match span {
                    Some(span) if span > capacity && start + sectors <= span => {
                        let scaled = scaled_start(start, span, capacity, REGION_SECTORS);
                        moved_back(scaled % capacity, sectors, capacity)
                    }
                    _ => start,
                },
            },
            (FootprintPolicy::Share(share), Some(span)) => {
                let target = ((capacity as f64 * share) as u64)
                    .clamp(REGION_SECTORS.min(capacity), capacity);
                let region = region_for(span, target);
                moved_back(
                    scaled_start(start, span.max(1), target, region) % capacity,
                    sectors,
                    capacity,
                )
            }
            (FootprintPolicy::Spread { extent }, Some(_)) => {
                let shuffle = self.layout.as_ref()?.shuffle.as_ref()?;
                let slot = shuffle.slot(start / extent.0)?;
                moved_back(slot * extent.0 + start % extent.0, sectors, capacity)
            }
            (_, None) => return None,
        };
        let extent = Extent::new(moved, sectors);
        extent.within(Sectors(capacity)).then_some(extent)
    }

    /// Returns the error about devices that do not fit side by side.
    pub(crate) fn devices_error(&self, file: &str) -> TraceError {
        let (devices, total) = match &self.layout {
            Some(layout) => (layout.named(), layout.total),
            None => (String::new(), 0),
        };
        TraceError::DevicesBeyond {
            file: file.to_owned(),
            devices,
            total,
            capacity: self.capacity,
        }
    }

    /// Returns the error about extents that have no free place; `None` if extents are not moved to random
    /// places.
    pub(crate) fn spread_error(&self, file: &str) -> Option<TraceError> {
        let FootprintPolicy::Spread { extent } = self.footprint else {
            return None;
        };
        let total = self.layout.as_ref().map_or(0, |layout| layout.total);
        Some(TraceError::Option(format!(
            "trace `{file}` needs {} extents of {} for `spread`, but the volume of {} sectors has {}; scale the addresses with \
             a footprint such as 90%, or choose a larger volume",
            total.div_ceil(extent.0.max(1)),
            extent.bytes(),
            self.capacity,
            self.capacity / extent.0.max(1)
        )))
    }

    /// Returns notes about several devices and about a small footprint.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(layout) = &self.layout
            && layout.devices.len() > 1
        {
            notes.push(format!(
                "{} devices of the trace lie side by side: {}; --device (devices in a stack file) chooses one",
                layout.devices.len(),
                layout.named()
            ));
        }
        notes.extend(self.small());
        notes
    }

    fn small(&self) -> Option<String> {
        let (low, high) = self.used?;
        let share = (high - low) as f64 / self.capacity as f64;
        // A volume of a few extents is a test, and no address moves apart there.
        let large = self.capacity > 64 * EXTENT_SECTORS;
        if self.footprint != FootprintPolicy::Captured || share >= SMALL_SHARE || !large {
            return None;
        }
        Some(format!(
            "addresses span {}, {} of the volume of {}. The arms hardly move, so seeks are shorter than on \
             a filled volume. --footprint 60% (footprint = \"60%\" in a stack file) scales the addresses to that share of the \
             volume; --footprint spread lays their extents at random places.",
            binary_size(high - low),
            percent(share),
            binary_size(self.capacity)
        ))
    }
}

/// Returns a size with three significant digits and a unit of 1024.
fn binary_size(sectors: u64) -> String {
    let gib = (sectors * SECTOR_BYTES) as f64 / (1u64 << 30) as f64;
    match gib {
        ..1024.0 => format!("{} GiB", three_digits(gib)),
        _ => format!("{} TiB", three_digits(gib / 1024.0)),
    }
}

/// Returns a share below 5 % with two digits.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.1.. => format!("{percent:.1} %"),
        0.01..0.1 => format!("{percent:.2} %"),
        _ => "less than 0.01 %".to_owned(),
    }
}

impl Layout {
    #[inline]
    fn base(&self, device: u32) -> Option<u64> {
        match self.devices.as_slice() {
            [(only, base, _)] => (*only == device).then_some(*base),
            // The first device stands in front; the others are in order of their numbers.
            [(first, base, _), _] if *first == device => Some(*base),
            [first, rest @ ..] => {
                if first.0 == device {
                    return Some(first.1);
                }
                let at = rest
                    .binary_search_by_key(&device, |&(device, ..)| device)
                    .ok()?;
                Some(rest[at].1)
            }
            [] => None,
        }
    }

    fn named(&self) -> String {
        let gib = |sectors: u64| (sectors as f64 * SECTOR_BYTES as f64) / (1u64 << 30) as f64;
        let named: Vec<String> = self
            .devices
            .iter()
            .take(DEVICES_NAMED)
            .map(|&(device, base, end)| {
                format!(
                    "device {device} from sector {base} on ({:.3} GiB)",
                    gib(end)
                )
            })
            .collect();
        let more = match self.devices.len().saturating_sub(DEVICES_NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let cut = if self.spans.is_cut() {
            ", and devices beyond the first 65536"
        } else {
            ""
        };
        format!("{}{more}{cut}", named.join(", "))
    }
}

/// Returns `start`, or the last address below `capacity` where `sectors` fit. A request larger than
/// the volume keeps its start.
fn moved_back(start: u64, sectors: u64, capacity: u64) -> u64 {
    // A request larger than the volume fits nowhere.
    start.min(capacity.checked_sub(sectors).unwrap_or(start))
}

/// Returns the unit in which addresses of `span` sectors are moved to `target` sectors: as large as
/// possible, so that sequential runs stay together.
fn region_for(span: u64, target: u64) -> u64 {
    let mut region = EXTENT_SECTORS;
    while region > REGION_SECTORS && target / region < span.div_ceil(region) {
        region /= 2;
    }
    region
}

/// Returns the address to which `start` moves, in a trace that spans `span` sectors.
fn scaled_start(start: u64, span: u64, target: u64, region_sectors: u64) -> u64 {
    // The product of two numbers of regions may pass 64 bits.
    let regions = u128::from(span.div_ceil(region_sectors)).max(1);
    let room = u128::from(target / region_sectors);
    let region = u128::from(start / region_sectors) * room / regions;
    // The product is smaller than the number of regions of the volume, so it fits.
    let region = u64::try_from(region).unwrap_or(u64::MAX / region_sectors);
    region
        .saturating_mul(region_sectors)
        .saturating_add(start % region_sectors)
}

#[cfg(test)]
mod tests;
