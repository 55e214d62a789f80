//! Choice of the copy to read, and creation of copies.

use crate::plan::{BufferPlace, Content, PlanWriter};
use crate::states::MemberStates;
use fullstroke_contract::{Extent, LayersBelow, Operation, RequestStatus};
use fullstroke_units::Lbn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Policy of a mirrored layout for the choice of the copy to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadPolicy {
    /// The copies in turn.
    #[default]
    RoundRobin,
    /// The member with the fewest requests in its queue; among equals, the first.
    ShortestQueue,
    /// The member with its arm nearest to the cylinder of the data. The gauges and the track tables
    /// of the members give the distance. Among equals, the member with the shortest queue wins,
    /// then the first. A member without a track table counts as farthest.
    NearestHead,
    /// The choice of Linux's md for members with arms (kernel 6.12, `read_balance`). RAID 1: the
    /// member whose last read ended where the request begins; else an idle member; else the member
    /// whose last read ended nearest. RAID 10: an idle member, or the copy nearest to the end of
    /// the member's last read; with the arrangement `far` the copy at the lowest address.
    Md,
    /// The choice of Linux's md for members without arms: as `md`, but the member with the fewest
    /// requests instead of the nearest.
    MdNonrotational,
}

/// The rule of md for one kind of array with copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balance {
    /// `raid1.c`: all members have the same addresses.
    Mirror,
    /// `raid10.c` with near copies.
    Near,
    /// `raid10.c` with copies at a distance.
    Far,
}

/// End of the last read of member 0 when an array has just started, in sectors. The kernel looks
/// for partition tables in pages 0, 1 and 3 (`check_partition`; the last is `ultrix_partition`),
/// and the first member answers. Measured with `tools/kernel-lab.py`, Linux 6.12.
const PARTITIONS_READ: u64 = 32;

/// md's knowledge of the last I/O of a member.
#[derive(Clone, Copy, Debug, Default)]
struct LastRead {
    /// End of the last I/O that has ended: `head_position`.
    ended: u64,
    /// End of the last read that was begun: `next_seq_sect`.
    begun: u64,
}

/// A readable copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadableCopy {
    pub(crate) member: usize,
    pub(crate) lbn: Lbn,
    /// Number of planned requests for the member beyond those in its gauge.
    pub(crate) planned: u32,
}

/// Chooses among copies, and remembers the next copy in turn.
#[derive(Clone, Debug)]
pub(crate) struct CopyChooser {
    policy: ReadPolicy,
    /// For each member, the next turn for data with its first copy on the member.
    turns: Vec<u32>,
    balance: Balance,
    last_reads: Vec<LastRead>,
}

impl CopyChooser {
    pub(crate) fn new(policy: ReadPolicy, members: usize, balance: Balance) -> CopyChooser {
        let mut last_reads = vec![LastRead::default(); members];
        last_reads[0] = LastRead {
            ended: PARTITIONS_READ,
            begun: PARTITIONS_READ,
        };
        CopyChooser {
            policy,
            turns: vec![0; members],
            balance,
            last_reads,
        }
    }

    /// Takes note of a read that was planned.
    pub(crate) fn read_begins(&mut self, member: usize, end: Lbn) {
        self.last_reads[member].begun = end.0;
    }

    /// Takes note of an I/O that has ended (`update_head_pos`).
    pub(crate) fn io_ends(&mut self, member: usize, end: Lbn) {
        self.last_reads[member].ended = end.0;
    }

    /// Returns the copy in `alive` to read, or `None` if `alive` is empty. `group` is the member of
    /// the first copy, alive or not: each group has its own turns.
    pub(crate) fn choose(
        &mut self,
        group: usize,
        alive: impl Iterator<Item = ReadableCopy> + Clone,
        below: LayersBelow<'_>,
    ) -> Option<ReadableCopy> {
        match self.policy {
            ReadPolicy::RoundRobin => self.next_in_turn(group, alive),
            ReadPolicy::ShortestQueue => {
                alive.min_by_key(|copy| (queue_length(copy, below), copy.member))
            }
            ReadPolicy::NearestHead => alive.min_by_key(|copy| {
                (
                    seek_distance(copy, below),
                    queue_length(copy, below),
                    copy.member,
                )
            }),
            ReadPolicy::Md | ReadPolicy::MdNonrotational => self.as_md(alive, below),
        }
    }

    /// Returns the copy that md reads (`choose_best_rdev` of `raid1.c`, `read_balance` of
    /// `raid10.c`, Linux 6.12). Among equals, the first copy wins.
    fn as_md(
        &self,
        mut alive: impl Iterator<Item = ReadableCopy> + Clone,
        below: LayersBelow<'_>,
    ) -> Option<ReadableCopy> {
        let pending = |copy: &ReadableCopy| queue_length(copy, below);
        let last = |copy: &ReadableCopy| self.last_reads[copy.member];
        let distance = |copy: &ReadableCopy| last(copy).ended.abs_diff(copy.lbn.0);
        let moves = self.policy == ReadPolicy::Md;
        if self.balance == Balance::Mirror {
            let continues = |copy: &ReadableCopy| {
                last(copy).begun == copy.lbn.0 || last(copy).ended == copy.lbn.0
            };
            // A sequential read stays with its member even if another member is idle, because the
            // arm is there already.
            if let Some(copy) = alive.clone().find(continues) {
                return Some(copy);
            }
            let idlest = alive.clone().min_by_key(pending)?;
            // An idle member, or one without an arm (`nonrot_disks`), makes the distance
            // unimportant.
            return match !moves || pending(&idlest) == 0 {
                true => Some(idlest),
                false => alive.min_by_key(distance),
            };
        }
        if !moves {
            return alive.min_by_key(pending);
        }
        alive.by_ref().min_by_key(|copy| match self.balance {
            // An idle member first: md does this for near copies only, because long reads of far
            // copies would be slow (`read_balance`, `raid10.c`).
            Balance::Near if pending(copy) == 0 => 0,
            // A copy at the lowest address keeps long reads striped over all members.
            Balance::Far => copy.lbn.0,
            _ => distance(copy),
        })
    }

    fn next_in_turn(
        &mut self,
        group: usize,
        mut alive: impl Iterator<Item = ReadableCopy> + Clone,
    ) -> Option<ReadableCopy> {
        let count = alive.clone().count() as u32;
        // Without a copy left, `count` is 0 and the remainder is `None`.
        let turn = self.turns[group].checked_rem(count)?;
        self.turns[group] = (turn + 1) % count;
        debug_assert!(turn < count, "turn {turn} of {count} copies");
        alive.nth(turn as usize)
    }
}

fn queue_length(copy: &ReadableCopy, below: LayersBelow<'_>) -> u32 {
    below
        .gauge(copy.member)
        .queue_length
        .saturating_add(copy.planned)
}

fn seek_distance(copy: &ReadableCopy, below: LayersBelow<'_>) -> u32 {
    let head = below.gauge(copy.member).head;
    below.tracks(copy.member).map_or(u32::MAX, |tracks| {
        tracks.cylinder_of(copy.lbn).distance(head)
    })
}

/// Writes or discards a run of the volume's sectors in all of its copies. Each copy is a member and
/// an extent there. If no copy is left, no copy can be kept up to date, and the run is lost.
///
/// If a copy is still to be filled, the strand reserves the sectors. Otherwise the rebuild could
/// overwrite the new data with older data.
pub(crate) fn write_copies(
    writer: &mut PlanWriter<'_>,
    states: &MemberStates,
    operation: Operation,
    run: Extent,
    place: BufferPlace,
    copies: impl Iterator<Item = (usize, Extent)> + Clone,
) -> RequestStatus {
    if copies
        .clone()
        .all(|(member, copy)| copy.end().0 > states.writable(member))
    {
        return RequestStatus::Lost;
    }
    let awaits = |(member, copy): (usize, Extent)| states.is_being_filled(member, copy.end().0);
    if !states.impaired().is_empty() && copies.clone().any(awaits) {
        hold(writer, run);
    }
    for (member, copy) in copies.filter(|copy| !states.has_failed(copy.0)) {
        writer.io(member, operation, copy, place, Content::Data);
    }
    RequestStatus::Done
}

fn hold(writer: &mut PlanWriter<'_>, extent: Extent) {
    debug_assert!(
        extent.sectors.0 > 0,
        "an empty run has no row to hold: {extent:?}"
    );
    writer.hold_row(extent.start.0);
    writer.hold_row(extent.end().0 - 1);
}

/// Copies a run of the volume's sectors from one member to several members. The run lies at the
/// same addresses of all members. The run is read once and then written.
pub(crate) fn copy_to_all(
    writer: &mut PlanWriter<'_>,
    run: Extent,
    source: usize,
    members: &[usize],
) {
    let scratch = writer.scratch(run.sectors.0);
    writer.begin_strand();
    debug_assert!(
        !members.contains(&source),
        "member {source} is filled from itself"
    );
    hold(writer, run);
    writer.io(source, Operation::Read, run, scratch, Content::Peer);
    writer.begin_second_phase();
    for &member in members {
        writer.io(member, Operation::Write, run, scratch, Content::Peer);
    }
}

/// Copies runs of the volume's sectors, ascending, from one place to another. All runs are read
/// first, then all are written.
pub(crate) fn copy_runs(
    writer: &mut PlanWriter<'_>,
    runs: impl Iterator<Item = (Extent, (usize, Extent), (usize, Extent))> + Clone,
) {
    let sectors = runs.clone().map(|(run, ..)| run.sectors.0).sum();
    let scratch = writer.scratch(sectors);
    writer.begin_strand();
    let mut at = scratch;
    for (run, (member, extent), _) in runs.clone() {
        hold(writer, run);
        writer.io(member, Operation::Read, extent, at, Content::Peer);
        at = at.behind(run.sectors);
    }
    writer.begin_second_phase();
    let mut at = scratch;
    for (run, _, (member, extent)) in runs {
        writer.io(member, Operation::Write, extent, at, Content::Peer);
        at = at.behind(run.sectors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Gauge, TrackExtent, TrackTable};
    use fullstroke_units::{Cylinder, Sectors};
    use std::sync::Arc;

    /// A track table with one hundred sectors per cylinder.
    struct Hundreds;

    impl TrackTable for Hundreds {
        fn capacity(&self) -> Sectors {
            Sectors(1_000_000)
        }
        fn track_at(&self, lbn: Lbn) -> TrackExtent {
            let cylinder = self.cylinder_of(lbn);
            let first = Lbn(u64::from(cylinder.0) * 100);
            TrackExtent {
                first,
                sectors: Sectors(100),
                cylinder,
                surface: 0,
            }
        }
        fn cylinder_of(&self, lbn: Lbn) -> Cylinder {
            Cylinder((lbn.0 / 100) as u32)
        }
    }

    fn gauge(queue_length: u32, head: u32) -> Gauge {
        Gauge {
            queue_length,
            head: Cylinder(head),
            ..Gauge::default()
        }
    }

    fn copies(lbn: u64) -> impl Iterator<Item = ReadableCopy> + Clone {
        (0..3).map(move |member| ReadableCopy {
            member,
            lbn: Lbn(lbn),
            planned: 0,
        })
    }

    fn chosen(policy: ReadPolicy, lbn: u64, gauges: &[Gauge], tables: bool) -> usize {
        let table = || tables.then(|| Arc::new(Hundreds) as Arc<dyn TrackTable>);
        let tables: Vec<_> = gauges.iter().map(|_| table()).collect();
        let below = LayersBelow::new(gauges, &tables);
        CopyChooser::new(policy, 3, Balance::Near)
            .choose(0, copies(lbn), below)
            .unwrap()
            .member
    }

    #[test]
    fn round_robin_takes_the_copies_in_turn() {
        let mut chooser = CopyChooser::new(ReadPolicy::RoundRobin, 3, Balance::Near);
        let mut next = |group| {
            chooser
                .choose(group, copies(0), LayersBelow::NOTHING)
                .unwrap()
                .member
        };
        assert_eq!(
            [next(0), next(0), next(1), next(0), next(0)],
            [0, 1, 0, 2, 0]
        );
    }

    #[test]
    fn the_shortest_queue_is_chosen_and_of_equals_the_first() {
        let policy = ReadPolicy::ShortestQueue;
        assert_eq!(
            chosen(policy, 0, &[gauge(3, 0), gauge(1, 0), gauge(2, 0)], false),
            1
        );
        assert_eq!(
            chosen(policy, 0, &[gauge(3, 0), gauge(2, 0), gauge(2, 0)], false),
            1
        );
    }

    #[test]
    fn the_nearest_head_is_chosen_then_the_shorter_queue_then_the_first() {
        let policy = ReadPolicy::NearestHead;
        assert_eq!(
            chosen(
                policy,
                5_000,
                &[gauge(0, 10), gauge(0, 90), gauge(9, 55)],
                true
            ),
            2
        );
        assert_eq!(
            chosen(
                policy,
                5_000,
                &[gauge(2, 40), gauge(1, 60), gauge(0, 90)],
                true
            ),
            1
        );
        assert_eq!(
            chosen(
                policy,
                5_000,
                &[gauge(1, 40), gauge(1, 60), gauge(1, 40)],
                true
            ),
            0
        );
        assert_eq!(
            chosen(
                policy,
                5_000,
                &[gauge(1, 50), gauge(0, 0), gauge(0, 0)],
                false
            ),
            1
        );
    }

    #[test]
    fn without_a_copy_nothing_is_chosen() {
        let none = || std::iter::empty::<ReadableCopy>();
        for policy in [
            ReadPolicy::RoundRobin,
            ReadPolicy::ShortestQueue,
            ReadPolicy::NearestHead,
        ] {
            assert!(
                CopyChooser::new(policy, 3, Balance::Near)
                    .choose(0, none(), LayersBelow::NOTHING)
                    .is_none()
            );
        }
    }
}
