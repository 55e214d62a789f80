//! Accesses of the drives for the requests of a load, from the layouts' own plans.

use super::load::Load;
use super::moments::Moments;
use crate::fingerprint::PredictArrival;
use fullstroke_contract::{Extent, LayersBelow, Operation, Request, RequestStatus};
use fullstroke_units::Lbn;
use fullstroke_volume::{Detail, MemberIo, Plan, Shape};

/// Accesses for the sample of requests of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannedAccesses {
    /// Number of drives.
    pub drives: usize,
    /// Planned requests.
    pub requests: Vec<Shapes>,
    /// Number of requests refused, because they are beyond the end of the volume.
    pub refused: usize,
    /// Mean number of accesses of a request, by kind, with the lengths in sectors.
    pub kinds: [(f64, Moments); 3],
    /// Number of members with the same data. Reads go to these members in turn.
    pub copies: usize,
    /// True if all platters are at the same angle. The parts of a request lie at the same place of
    /// their members, so they then end whole revolutions apart.
    pub in_step: bool,
    /// For two members reached by one request: share of cases with both arms at the same place,
    /// because the last request of either member went to both.
    pub arms_together: f64,
    /// For two members reached by one request: share of one member's requests to both.
    pub arrivals_shared: f64,
    /// Number of accesses of the busiest drive, relative to the mean.
    pub uneven: f64,
}

/// Accesses of a request, in consecutive phases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shapes {
    /// True for a write.
    pub write: bool,
    /// Number of accesses by phase and kind. The accesses of a phase begin when the phase before
    /// has ended.
    pub phases: Vec<[u32; 3]>,
}

/// Kinds of accesses: a read, a write, and a write to the place just read.
pub(crate) const READ: usize = 0;
pub(crate) const WRITE: usize = 1;
pub(crate) const BACK: usize = 2;

/// One access of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leaf {
    phase: usize,
    drive: usize,
    write: bool,
    extent: Extent,
}

/// Plans the sampled requests of a load on a volume of this shape.
pub fn plans(load: &Load, shape: &mut Shape, in_step: bool) -> PlannedAccesses {
    let copies = copies(shape);
    let mut planned = PlannedAccesses {
        drives: drives(shape),
        in_step,
        copies,
        ..PlannedAccesses::default()
    };
    let mut touched = ReachedDrives::new(planned.drives);
    let mut lengths = [AccessLengths::default(); 3];
    let (mut leaves, mut spare) = (Vec::new(), Vec::new());
    for arrival in &load.kept {
        leaves.clear();
        if flatten(shape, &request(arrival), 0, 0, &mut leaves, &mut spare).is_none() {
            planned.refused += 1;
            continue;
        }
        let mut shapes = Shapes {
            write: arrival.write,
            phases: Vec::new(),
        };
        for leaf in &leaves {
            let kind = kind(leaf, &leaves);
            if shapes.phases.len() <= leaf.phase {
                shapes.phases.resize(leaf.phase + 1, [0; 3]);
            }
            shapes.phases[leaf.phase][kind] += 1;
            lengths[kind].add(leaf.extent.sectors.0 as f64);
        }
        planned.requests.push(shapes);
        touched.add(&leaves);
    }
    (planned.arms_together, planned.arrivals_shared) = touched.pairs();
    planned.uneven = touched.uneven();
    let requests = planned.requests.len().max(1) as f64;
    planned.kinds = lengths.map(|lengths| (lengths.count / requests, lengths.moments()));
    planned
}

/// Sums of the lengths of accesses.
#[derive(Clone, Copy, Default)]
struct AccessLengths {
    count: f64,
    sum: Moments,
}

impl AccessLengths {
    fn add(&mut self, sectors: f64) {
        self.count += 1.0;
        self.sum.mean += sectors;
        self.sum.square += sectors * sectors;
    }

    fn moments(&self) -> Moments {
        let count = self.count.max(1.0);
        Moments {
            mean: self.sum.mean / count,
            square: self.sum.square / count,
        }
    }
}

fn request(arrival: &PredictArrival) -> Request {
    Request {
        operation: if arrival.write {
            Operation::Write
        } else {
            Operation::Read
        },
        extent: Extent::new(arrival.start, arrival.sectors),
        ..Request::default()
    }
}

/// Returns the kind of an access. A write counts as `BACK` if its drive has read the same place in
/// the phase before.
fn kind(leaf: &Leaf, leaves: &[Leaf]) -> usize {
    let read_before = |other: &Leaf| {
        !other.write
            && other.phase + 1 == leaf.phase
            && (other.drive, other.extent.start) == (leaf.drive, leaf.extent.start)
    };
    match (leaf.write, leaf.write && leaves.iter().any(read_before)) {
        (false, _) => READ,
        (true, false) => WRITE,
        (true, true) => BACK,
    }
}

/// Returns the number of members to which a write of one sector goes; 1 if the write reads before.
fn copies(shape: &mut Shape) -> usize {
    let write = Request {
        operation: Operation::Write,
        extent: Extent::new(0, 1),
        ..Request::default()
    };
    let mut leaves = Vec::new();
    let planned = flatten(shape, &write, 0, 0, &mut leaves, &mut Vec::new());
    if planned.is_some() && leaves.iter().all(|leaf| leaf.write) {
        leaves.len()
    } else {
        1
    }
}

/// Drives reached by requests, alone and together.
struct ReachedDrives {
    drives: usize,
    /// Matrix, row by row: number of requests to both drives.
    both: Vec<u32>,
    /// Drives of the current request.
    of: Vec<usize>,
    /// Number of accesses by drive.
    accesses: Vec<u32>,
}

impl ReachedDrives {
    fn new(drives: usize) -> ReachedDrives {
        ReachedDrives {
            drives,
            both: vec![0; drives * drives],
            of: Vec::with_capacity(drives),
            accesses: vec![0; drives],
        }
    }

    fn add(&mut self, leaves: &[Leaf]) {
        self.of.clear();
        for leaf in leaves {
            self.accesses[leaf.drive] += 1;
            if !self.of.contains(&leaf.drive) {
                self.of.push(leaf.drive);
            }
        }
        for &one in &self.of {
            for &other in &self.of {
                self.both[one * self.drives + other] += 1;
            }
        }
    }

    /// Returns two means over the pairs of drives reached: requests to both over requests to
    /// either, and requests to both over requests to one.
    fn pairs(&self) -> (f64, f64) {
        let (mut either, mut one, mut pairs) = (0.0, 0.0, 0.0);
        for first in 0..self.drives {
            for second in 0..first {
                let both = f64::from(self.both[first * self.drives + second]);
                let [of_first, of_second] =
                    [first, second].map(|drive| f64::from(self.both[drive * (self.drives + 1)]));
                if both > 0.0 {
                    // Each pair counts as often as a request reaches both, so that a pair that is
                    // rarely used does not move the mean.
                    pairs += both;
                    either += both * both / (of_first + of_second - both);
                    one += both * both / (of_first * of_second).sqrt();
                }
            }
        }
        if pairs > 0.0 {
            (either / pairs, one / pairs)
        } else {
            (0.0, 0.0)
        }
    }

    fn uneven(&self) -> f64 {
        let all: u32 = self.accesses.iter().sum();
        let most = self.accesses.iter().max().copied().unwrap_or(0);
        if all > 0 {
            f64::from(most) * self.drives as f64 / f64::from(all)
        } else {
            1.0
        }
    }
}

/// Returns the number of drives of a shape.
fn drives(shape: &Shape) -> usize {
    match shape {
        Shape::Drive(_) => 1,
        Shape::Volume { members, .. } => members.iter().map(drives).sum(),
    }
}

/// Appends the accesses of a request from `phase` on, with drives numbered from `first`. Returns
/// the phase behind them, or `None` if the request cannot be served. `spare` holds plans for reuse.
fn flatten(
    shape: &mut Shape,
    request: &Request,
    phase: usize,
    first: usize,
    leaves: &mut Vec<Leaf>,
    spare: &mut Vec<Plan>,
) -> Option<usize> {
    let (layout, members) = match shape {
        Shape::Drive(capacity) => {
            let write = request.operation == Operation::Write;
            leaves.push(Leaf {
                phase,
                drive: first,
                write,
                extent: request.extent,
            });
            return request.extent.within(*capacity).then_some(phase + 1);
        }
        Shape::Volume { layout, members } => (layout, members),
    };
    let mut plan = spare.pop().unwrap_or_else(|| Plan::new(Detail::Timing));
    if layout.plan(request, LayersBelow::NOTHING, &mut plan) != RequestStatus::Done {
        return None;
    }
    let mut begin = phase;
    for second in [false, true] {
        let mut end = begin;
        for io in plan.ios().iter().filter(|io| io.second_phase == second) {
            let before: usize = members[..io.member as usize].iter().map(drives).sum();
            let member = members.get_mut(io.member as usize)?;
            end = end.max(flatten(
                member,
                &member_request(io),
                begin,
                first + before,
                leaves,
                spare,
            )?);
        }
        begin = end;
    }
    spare.push(plan);
    Some(begin)
}

fn member_request(io: &MemberIo) -> Request {
    let extent = Extent {
        start: Lbn(io.extent.start.0),
        sectors: io.extent.sectors,
    };
    Request {
        operation: io.operation,
        extent,
        ..Request::default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fullstroke_contract::registry::Keys;
    use fullstroke_units::Sectors;
    use fullstroke_volume::REGISTRY;
    use serde_json::json;

    /// Makes a layout over `drives` drives of 2^30 sectors.
    pub(crate) fn shape(layout: &str, drives: usize) -> Shape {
        let entry = REGISTRY.iter().find(|entry| entry.name == layout).unwrap();
        let mut keys = Keys::new();
        if layout != "raid1" {
            keys.insert("chunk".into(), json!("64KiB"));
        }
        let capacity = Sectors(1 << 30);
        let layout = (entry.build)(&keys, &vec![capacity; drives]).unwrap();
        Shape::Volume {
            layout,
            members: (0..drives).map(|_| Shape::Drive(capacity)).collect(),
        }
    }

    fn load(start: u64, sectors: u64, write: bool) -> Load {
        let kept = vec![PredictArrival {
            at_s: 0.0,
            start,
            sectors,
            write,
        }];
        Load {
            requests: 1,
            duration_s: 1.0,
            places: Vec::new(),
            dispersion: 1.0,
            sequential: 0.0,
            locality: 1.0,
            sectors: sectors as f64,
            kept,
        }
    }

    fn phases(mut shape: Shape, start: u64, sectors: u64, write: bool) -> Vec<[u32; 3]> {
        plans(&load(start, sectors, write), &mut shape, true)
            .requests
            .remove(0)
            .phases
    }

    #[test]
    fn a_small_write_of_raid_five_reads_two_members_and_writes_back_to_both() {
        assert_eq!(
            phases(shape("raid5", 5), 8, 8, true),
            [[2, 0, 0], [0, 0, 2]]
        );
        assert_eq!(phases(shape("raid5", 5), 8, 8, false), [[1, 0, 0]]);
        // A whole row is written without reads.
        assert_eq!(phases(shape("raid5", 5), 0, 512, true), [[0, 5, 0]]);
    }

    #[test]
    fn pieces_of_a_stripe_are_read_at_once_and_copies_written_at_once() {
        assert_eq!(phases(shape("raid0", 4), 64, 256, false), [[3, 0, 0]]);
        assert_eq!(phases(shape("raid1", 2), 64, 8, true), [[0, 2, 0]]);
    }

    #[test]
    fn a_small_write_of_a_stripe_over_raid_five_arrays_keeps_its_phases() {
        let Shape::Volume { layout, .. } = shape("raid0", 2) else {
            unreachable!("it is a volume")
        };
        let nested = Shape::Volume {
            layout,
            members: vec![shape("raid5", 5), shape("raid5", 5)],
        };
        assert_eq!(phases(nested, 8, 8, true), [[2, 0, 0], [0, 0, 2]]);
    }

    #[test]
    fn mirrored_writes_move_both_arms_and_others_some() {
        let of = |layout, write| plans(&load(8, 8, write), &mut shape(layout, 4), true);
        let mirrored = of("raid1", true);
        assert_eq!(
            (
                mirrored.copies,
                mirrored.arms_together,
                mirrored.arrivals_shared
            ),
            (4, 1.0, 1.0)
        );
        let read = of("raid1", false);
        assert_eq!(
            (read.copies, read.arms_together, read.uneven),
            (4, 0.0, 4.0)
        );
        assert_eq!(of("raid5", true).copies, 1);
    }

    #[test]
    fn what_lies_beyond_the_volume_is_refused() {
        let planned = plans(&load(1 << 40, 8, false), &mut shape("raid0", 2), true);
        assert_eq!(
            (planned.refused, planned.requests.len(), planned.drives),
            (1, 0, 2)
        );
    }
}
