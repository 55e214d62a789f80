//! Whose the array's addresses are.

use fullstroke_contract::{ConfigError, Extent, Port};
use fullstroke_units::{Lbn, Sectors};

/// A run of the array's addresses: a host's are counted from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first.
    pub start: Lbn,
    /// How many.
    pub sectors: Sectors,
}

/// The regions of all hosts, by port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions(Vec<Region>);

impl Regions {
    /// All of `capacity` for each of `hosts`.
    pub fn whole(hosts: usize, capacity: Sectors) -> Regions {
        Regions(vec![Region { start: Lbn(0), sectors: capacity }; hosts])
    }

    /// Neighbouring regions of `capacity`, in the order of the hosts, each as
    /// large as it says, or an equal part of what the others leave, in whole
    /// units of 4 KiB.
    ///
    /// # Errors
    /// At the index of the host for which nothing is left.
    pub fn parts(sizes: &[Option<Sectors>], capacity: Sectors) -> Result<Regions, (usize, ConfigError)> {
        const UNIT: u64 = 8;
        let said: u64 = sizes.iter().flatten().map(|size| size.0).fold(0, u64::saturating_add);
        let silent = sizes.iter().filter(|size| size.is_none()).count() as u64;
        let equal = capacity.0.saturating_sub(said) / silent.max(1) / UNIT * UNIT;
        let mut next = 0u64;
        let mut region = |(host, size): (usize, &Option<Sectors>)| {
            let sectors = size.map_or(equal, |size| size.0);
            let end = next.checked_add(sectors).filter(|&end| sectors > 0 && end <= capacity.0);
            let Some(end) = end else {
                let left = Sectors(capacity.0.saturating_sub(next)).bytes().0;
                let message = match size {
                    Some(size) => format!("found {} bytes; the array has {left} left", size.bytes().0),
                    None => format!("nothing is left of the array for this host ({left} bytes)"),
                };
                return Err((host, ConfigError::new("size", message)));
            };
            let region = Region { start: Lbn(next), sectors: Sectors(sectors) };
            next = end;
            Ok(region)
        };
        sizes.iter().enumerate().map(&mut region).collect::<Result<_, _>>().map(Regions)
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.0.len()
    }

    /// The region of the host at `port`.
    pub fn of(&self, port: Port) -> Region {
        self.0[port.index()]
    }

    /// Where a host's extent lies on the array; `None` if it is not the host's.
    #[inline]
    pub fn below(&self, port: Port, extent: Extent) -> Option<Extent> {
        let region = self.of(port);
        extent
            .within(region.sectors)
            .then(|| Extent { start: region.start + Sectors(extent.start.0), ..extent })
    }

    /// Tells `owner` whose `extent` of the array is, and where it lies for them.
    pub fn owners(&self, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        for (host, region) in self.0.iter().enumerate() {
            let start = extent.start.max(region.start);
            let end = extent.end().min(region.start + region.sectors);
            if start < end {
                owner(Port::of(host), Extent::new(start.0 - region.start.0, end.0 - start.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_shared_equally() {
        let parts = Regions::parts(&[None, Some(Sectors(100)), None], Sectors(1000)).unwrap();
        let sizes: Vec<(u64, u64)> = (0..3)
            .map(|host| parts.of(Port(host)))
            .map(|region| (region.start.0, region.sectors.0))
            .collect();
        assert_eq!(sizes, [(0, 448), (448, 100), (548, 448)]);
    }

    #[test]
    fn too_much_is_refused_at_its_host() {
        let (host, error) =
            Regions::parts(&[Some(Sectors(900)), Some(Sectors(200))], Sectors(1000)).unwrap_err();
        assert_eq!((host, error.key.as_str()), (1, "size"));
        assert!(error.message.contains("102400") && error.message.contains("51200"), "{error}");
        let (host, error) = Regions::parts(&[Some(Sectors(1000)), None], Sectors(1000)).unwrap_err();
        assert_eq!((host, error.key.as_str()), (1, "size"));
        assert!(error.message.contains("nothing is left"), "{error}");
        assert!(Regions::parts(&[Some(Sectors(u64::MAX)), Some(Sectors(8))], Sectors(1000)).is_err());
    }

    #[test]
    fn an_extent_of_the_array_belongs_to_whoever_has_its_parts() {
        let parts = Regions::parts(&[Some(Sectors(100)), Some(Sectors(100))], Sectors(1000)).unwrap();
        let mut owners = Vec::new();
        parts.owners(Extent::new(90, 120), &mut |port, extent| owners.push((port.0, extent)));
        assert_eq!(owners, [(0, Extent::new(90, 10)), (1, Extent::new(0, 100))]);
        assert_eq!(parts.below(Port(1), Extent::new(95, 5)), Some(Extent::new(195, 5)));
        assert_eq!(parts.below(Port(1), Extent::new(96, 5)), None);
    }
}
