//! The choice between the methods for a row's new parity.

use super::bands::{BandCut, BandCuts};
use super::row::ParityRow;
use crate::plan::Method;

/// Methods for the cuts of a row's written part, in order.
pub(crate) type Methods = [Method; BandCuts::MOST];

/// Cost of a choice: member I/Os first, then sectors. The writes do not count, because all methods
/// write the same.
type Cost = (u64, u64);

/// Candidates; among candidates of equal cost, the first is preferred.
const CANDIDATES: [Method; 3] = [
    Method::ReadModifyWrite,
    Method::ReconstructWrite,
    Method::Recover,
];

/// Data chunks of a row that are all read or all not read.
#[derive(Clone, Copy, Debug)]
struct ChunkClass {
    /// Index of one chunk of the class.
    index: u64,
    /// Number of remaining chunks of the class.
    alive: u64,
}

/// Returns the cheapest methods for all cuts together, by member I/Os. Among equals, the fewest
/// sectors read decide; then read-modify-write is preferred.
pub(crate) fn choose(row: &ParityRow, cuts: &[BandCut]) -> Methods {
    let mut best = ([Method::Unprotected; BandCuts::MOST], None);
    if row.parities().next().is_none() {
        return best.0;
    }
    // The common case of one cut without losses needs no search.
    if let [cut] = cuts
        && row.lost().is_empty()
    {
        return [simple_choice(row, cut); BandCuts::MOST];
    }
    let classes = classes(row, cuts);
    for number in 0..CANDIDATES.len().pow(cuts.len() as u32) {
        let Some(methods) = combination(row, cuts, number) else {
            continue;
        };
        let cost = cost(row, cuts, &methods, &classes);
        if best.1.is_none_or(|least| cost < least) {
            best = (methods, Some(cost));
        }
    }
    name_full_stripes(row, cuts, &mut best.0);
    best.0
}

/// Same as [`choose`], but some sectors need not be read. `missing` returns the number of sectors
/// of a member's cut to read.
pub(crate) fn choose_beside(
    row: &ParityRow,
    cuts: &[BandCut],
    missing: impl Fn(u64, &BandCut) -> u64,
) -> Methods {
    let mut best = ([Method::Unprotected; BandCuts::MOST], None);
    if row.parities().next().is_none() {
        return best.0;
    }
    for number in 0..CANDIDATES.len().pow(cuts.len() as u32) {
        let Some(methods) = combination(row, cuts, number) else {
            continue;
        };
        let mut cost: Cost = (0, 0);
        for (cut, method) in cuts.iter().zip(methods) {
            let data = (0..row.data)
                .filter(|&index| !row.has_lost(index) && reads_data(method, cut, index));
            let parities = row
                .parities()
                .enumerate()
                .filter(|&(rank, _)| reads_parity(method, row, rank));
            let members = data.map(|index| row.shape.data_member(index));
            for member in members.chain(parities.map(|(_, (_, member))| member)) {
                let sectors = missing(member, cut);
                cost = (cost.0 + u64::from(sectors > 0), cost.1 + sectors);
            }
        }
        if best.1.is_none_or(|least| cost < least) {
            best = (methods, Some(cost));
        }
    }
    name_full_stripes(row, cuts, &mut best.0);
    best.0
}

/// Returns the method for a single cut of a row without losses. Counting the reads is enough here.
fn simple_choice(row: &ParityRow, cut: &BandCut) -> Method {
    let rest = row.data - cut.covered();
    let modified = cut.covered() + row.parities().count() as u64;
    match rest {
        0 => Method::FullStripe,
        _ if modified <= rest => Method::ReadModifyWrite,
        _ => Method::ReconstructWrite,
    }
}

/// Returns the combination of methods with this number, if each method is possible. The method of
/// the first cut is the most significant digit.
fn combination(row: &ParityRow, cuts: &[BandCut], mut number: usize) -> Option<Methods> {
    let mut methods = [Method::ReadModifyWrite; BandCuts::MOST];
    for (method, cut) in methods.iter_mut().zip(cuts).rev() {
        *method = CANDIDATES[number % CANDIDATES.len()];
        number /= CANDIDATES.len();
        if !is_feasible(row, cut, *method) {
            return None;
        }
    }
    Some(methods)
}

fn is_feasible(row: &ParityRow, cut: &BandCut, method: Method) -> bool {
    let mut lost = row.lost().iter();
    match method {
        // Read-modify-write needs the old data of every covered chunk.
        Method::ReadModifyWrite => !lost.any(|&index| cut.covers(index)),
        // Reconstruct-write needs all data outside the cut.
        Method::ReconstructWrite => lost.all(|&index| cut.covers(index)),
        // Otherwise the lost data outside the cut is computed first.
        _ => lost.any(|&index| !cut.covers(index)),
    }
}

/// Returns the classes of data chunks: the first chunk of the span, the last, the chunks between,
/// and the chunks outside. With four classes, the cost of a choice takes the same time for any
/// number of members.
fn classes(row: &ParityRow, cuts: &[BandCut]) -> [ChunkClass; 4] {
    let first = cuts.iter().map(|cut| cut.first).min().unwrap_or(0);
    let last = cuts.iter().map(|cut| cut.end - 1).max().unwrap_or(0);
    let alive = |from: u64, end: u64| {
        let lost = row
            .lost()
            .iter()
            .filter(|&&index| (from..end).contains(&index))
            .count();
        end.saturating_sub(from) - lost as u64
    };
    let alone = if last > first {
        alive(last, last + 1)
    } else {
        0
    };
    [
        ChunkClass {
            index: first,
            alive: alive(first, first + 1),
        },
        ChunkClass {
            index: last,
            alive: alone,
        },
        ChunkClass {
            index: first + 1,
            alive: alive(first + 1, last),
        },
        ChunkClass {
            index: row.data,
            alive: alive(0, first) + alive(last + 1, row.data),
        },
    ]
}

fn cost(row: &ParityRow, cuts: &[BandCut], methods: &Methods, classes: &[ChunkClass]) -> Cost {
    let mut total = (0, 0);
    for class in classes {
        add(&mut total, class.alive, cuts, |at| {
            reads_data(methods[at], &cuts[at], class.index)
        });
    }
    for (rank, _) in row.parities().enumerate() {
        add(&mut total, 1, cuts, |at| {
            reads_parity(methods[at], row, rank)
        });
    }
    total
}

/// True if a method reads the data chunk `index`. The callers leave out lost chunks.
fn reads_data(method: Method, cut: &BandCut, index: u64) -> bool {
    match method {
        Method::ReadModifyWrite => cut.covers(index),
        Method::ReconstructWrite => !cut.covers(index),
        _ => true,
    }
}

/// True if a method reads the parity of this rank among the remaining parities.
fn reads_parity(method: Method, row: &ParityRow, rank: usize) -> bool {
    match method {
        Method::ReadModifyWrite => true,
        Method::ReconstructWrite => false,
        _ => rank < row.lost().len(),
    }
}

/// Adds the cost of `count` members. Each of the members reads the cuts for which `reads` is true;
/// adjacent cuts are one I/O.
fn add(total: &mut Cost, count: u64, cuts: &[BandCut], reads: impl Fn(usize) -> bool) {
    let mut read_up_to = None;
    for (_, cut) in cuts.iter().enumerate().filter(|(at, _)| reads(*at)) {
        total.0 += if read_up_to == Some(cut.from) {
            0
        } else {
            count
        };
        total.1 += count * cut.sectors();
        read_up_to = Some(cut.to);
    }
}

fn name_full_stripes(row: &ParityRow, cuts: &[BandCut], methods: &mut Methods) {
    for (method, cut) in methods.iter_mut().zip(cuts) {
        // A reconstruct-write of all data chunks reads nothing: a full-stripe write.
        if cut.covered() == row.data {
            *method = Method::FullStripe;
        }
    }
}
