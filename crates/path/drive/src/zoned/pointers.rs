//! Write pointers, open zones, and the rules of the commands.

use super::config::{AtOpenLimit, Zones};
use fullstroke_contract::Extent;
use std::collections::VecDeque;

/// Reason for which a drive refuses a request: the additional sense of ZBC and ZAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneRefusal {
    /// UNALIGNED WRITE COMMAND: the write does not begin at the write pointer, or is no multiple of
    /// the physical sector.
    Unaligned,
    /// WRITE BOUNDARY VIOLATION or READ BOUNDARY VIOLATION: the request crosses the border of a
    /// zone.
    Boundary,
    /// INSUFFICIENT ZONE RESOURCES: too many zones are open.
    NoResources,
    /// ATTEMPT TO READ INVALID DATA: the read goes past the write pointer.
    InvalidRead,
}

/// Numbers of events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ZoneCounts {
    pub(super) unaligned: u64,
    pub(super) boundary: u64,
    pub(super) no_resources: u64,
    pub(super) invalid_reads: u64,
    pub(super) random_writes: u64,
    pub(super) closed: u64,
    pub(super) resets: u64,
}

/// The zones of a drive with their write pointers.
///
/// Invariants: a zone is open only if its write pointer lies inside the zone. At most the
/// configured number of zones is open.
#[derive(Debug)]
pub(super) struct ZonePointers {
    zones: Zones,
    /// Sectors from the start of each zone to its write pointer, from the first zone with a write
    /// pointer on.
    written: Vec<u64>,
    /// Open zones, the one with the oldest write first.
    open: VecDeque<u32>,
    pub(super) counts: ZoneCounts,
}

impl ZonePointers {
    pub(super) fn new(zones: &Zones) -> ZonePointers {
        let mut written = vec![0; (zones.count - zones.conventional) as usize];
        written[..zones.full as usize].fill(zones.zone);
        ZonePointers {
            zones: zones.clone(),
            written,
            open: VecDeque::with_capacity(zones.open),
            counts: ZoneCounts::default(),
        }
    }

    pub(super) fn zones(&self) -> &Zones {
        &self.zones
    }

    /// Number of open zones.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// Number of sectors before the write pointer of a zone.
    #[cfg(test)]
    pub(super) fn written(&self, zone: u64) -> u64 {
        self.written[zone as usize - self.zones.conventional as usize]
    }

    /// Returns the index of the zone with the sector `lbn` among the zones with a write pointer.
    /// `None` for a conventional zone.
    fn sequential(&self, lbn: u64) -> Option<usize> {
        let first = u64::from(self.zones.conventional);
        (lbn / self.zones.zone)
            .checked_sub(first)
            .map(|zone| zone as usize)
    }

    /// Returns the zone of a write, if the zone has a write pointer.
    pub(super) fn zone_of(&self, extent: Extent) -> Option<u64> {
        let zone = extent.start.0 / self.zones.zone;
        self.sequential(extent.start.0).map(|_| zone)
    }

    /// Returns the place at which an append to the zone `zone` is written.
    pub(super) fn append_at(&mut self, zone: u64, extent: Extent) -> Result<Extent, ZoneRefusal> {
        let start = zone * self.zones.zone;
        let written = self.sequential(start).map_or(0, |zone| self.written[zone]);
        let fits = written + extent.sectors.0 <= self.zones.zone;
        // A write at the border would begin in the next zone.
        let checked = match fits {
            true => Ok(Extent::new(start + written, extent.sectors.0)),
            false => Err(ZoneRefusal::Boundary),
        };
        self.counted(checked)
    }

    /// Checks a read.
    pub(super) fn read(&mut self, extent: Extent) -> Result<(), ZoneRefusal> {
        if self.zones.unrestricted_reads || !self.zones.host_managed {
            return Ok(());
        }
        let (first, last) = (extent.start.0, extent.end().0 - 1);
        let checked = match (self.sequential(first), self.sequential(last)) {
            (None, None) => Ok(()),
            (Some(zone), Some(other)) if zone == other => {
                match last % self.zones.zone < self.written[zone] {
                    true => Ok(()),
                    false => Err(ZoneRefusal::InvalidRead),
                }
            }
            _ => Err(ZoneRefusal::Boundary),
        };
        self.counted(checked)
    }

    /// Takes a write, and moves the write pointers. Returns true if each part of the write begins at
    /// the write pointer of its zone.
    pub(super) fn write(&mut self, extent: Extent) -> Result<bool, ZoneRefusal> {
        if !self.zones.host_managed {
            return Ok(self.write_anywhere(extent));
        }
        let checked = self.write_in_order(extent);
        self.counted(checked)
    }

    /// Takes a write of a host-managed drive.
    fn write_in_order(&mut self, extent: Extent) -> Result<bool, ZoneRefusal> {
        let (first, last) = (extent.start.0, extent.end().0 - 1);
        let zone = match (self.sequential(first), self.sequential(last)) {
            (None, None) => return Ok(false),
            (Some(zone), Some(other)) if zone == other => zone,
            _ => return Err(ZoneRefusal::Boundary),
        };
        let whole = extent.sectors.0.is_multiple_of(self.zones.unit);
        if !whole || first % self.zones.zone != self.written[zone] {
            return Err(ZoneRefusal::Unaligned);
        }
        self.make_open(zone as u32)?;
        self.written[zone] += extent.sectors.0;
        self.close_if_full(zone);
        Ok(true)
    }

    /// Takes a write of a host-aware drive: the write pointer moves behind the last written sector
    /// (ZBC, sequential write preferred zones). Returns true if the whole write is in order.
    fn write_anywhere(&mut self, extent: Extent) -> bool {
        let (mut at, end) = (extent.start.0, extent.end().0);
        let mut in_order = true;
        while at < end {
            let offset = at % self.zones.zone;
            let next = end.min(at - offset + self.zones.zone);
            let zone = self.sequential(at);
            in_order &= zone.is_some_and(|zone| offset == self.written[zone]);
            if let Some(zone) = zone {
                self.counts.random_writes += u64::from(offset != self.written[zone]);
                let written = self.written[zone].max(offset + next - at);
                if written != self.written[zone] {
                    // A host-aware drive always closes a zone for another one: its number of open
                    // zones is the best number, not a limit.
                    _ = self.make_open(zone as u32);
                }
                self.written[zone] = written;
                self.close_if_full(zone);
            }
            at = next;
        }
        in_order
    }

    /// Opens a zone for a write, or notes that an open zone gets a write.
    fn make_open(&mut self, zone: u32) -> Result<(), ZoneRefusal> {
        if self.open.back() == Some(&zone) {
            return Ok(());
        }
        if let Some(at) = self.open.iter().position(|&open| open == zone) {
            self.open.remove(at);
        } else if self.open.len() >= self.zones.open {
            if self.zones.host_managed && self.zones.at_limit == AtOpenLimit::Refuse {
                return Err(ZoneRefusal::NoResources);
            }
            self.open.pop_front();
            self.counts.closed += 1;
        }
        self.open.push_back(zone);
        Ok(())
    }

    fn close_if_full(&mut self, zone: usize) {
        if self.written[zone] == self.zones.zone {
            self.open.retain(|&open| open as usize != zone);
        }
    }

    /// Resets the zones that lie completely in the extent. Returns true if there is such a zone.
    pub(super) fn reset(&mut self, extent: Extent) -> bool {
        let size = self.zones.zone;
        let first = extent.start.0.div_ceil(size);
        let last = (extent.end().0 / size).min(u64::from(self.zones.count));
        let conventional = u64::from(self.zones.conventional);
        let zones = first.max(conventional)..last.max(conventional);
        for zone in zones.clone().map(|zone| (zone - conventional) as usize) {
            if self.written[zone] > 0 {
                self.written[zone] = 0;
                self.counts.resets += 1;
                self.open.retain(|&open| open as usize != zone);
            }
        }
        !zones.is_empty()
    }

    fn counted<T>(&mut self, checked: Result<T, ZoneRefusal>) -> Result<T, ZoneRefusal> {
        if let Err(refusal) = &checked {
            *match refusal {
                ZoneRefusal::Unaligned => &mut self.counts.unaligned,
                ZoneRefusal::Boundary => &mut self.counts.boundary,
                ZoneRefusal::NoResources => &mut self.counts.no_resources,
                ZoneRefusal::InvalidRead => &mut self.counts.invalid_reads,
            } += 1;
        }
        checked
    }
}
