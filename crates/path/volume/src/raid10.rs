//! `raid10`: mirrored chunks dealt to the members in turn.
//!
//! The "near" arrangement of the Linux md driver: with n copies, copy c of chunk k takes place k·n
//! + c, and place p lies on member p mod m, in row p div m. The number of members m need not be a
//! multiple of n. A write goes to all copies. A read of a chunk goes to one copy. If a copy
//! continues an I/O of the same request, the read uses the copy; otherwise the read policy chooses.
//!
//! A member under rebuild gets all writes. Reads use only its filled part.

use crate::geometry::{Geometry, Stripe};
use crate::layout::{Layout, Location, Role, longest};
use crate::members::{DEFAULT_CHUNK, at_least, capacity_of, chunk_sectors, common_rows};
use crate::mirror::{Candidate, CopyChooser, ReadPolicy, copy_runs, write_copies};
use crate::plan::{Content, OpenIos, Place, Plan, PlanWriter};
use crate::states::MemberStates;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_contract::{Below, ConfigError, Extent, Operation, Request, Status};
use fullstroke_units::{Bytes, Lbn, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `raid10`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Raid10Config {
    /// Bytes on one member before the next member has its turn: a positive multiple of 512. Default
    /// 64KiB.
    pub chunk: Bytes,
    /// Number of copies of each chunk: at least 2, at most the number of members. Default 2.
    pub copies: u32,
    /// Policy for the choice of the copy to read. Default `round-robin`.
    pub read_policy: ReadPolicy,
    /// Failed members, counted from 0; a copy of every chunk must be left. Default none.
    pub failed: Vec<u32>,
}

impl Default for Raid10Config {
    fn default() -> Raid10Config {
        Raid10Config {
            chunk: DEFAULT_CHUNK,
            copies: 2,
            read_policy: ReadPolicy::RoundRobin,
            failed: Vec::new(),
        }
    }
}

/// Mirrored chunks dealt to the members in turn.
#[derive(Debug)]
pub struct Raid10 {
    capacities: Vec<Sectors>,
    map: NearMap,
    states: MemberStates,
    chooser: CopyChooser,
    open: OpenIos,
}

/// The arithmetic of the near arrangement, in chunks.
#[derive(Clone, Copy, Debug)]
struct NearMap {
    members: u64,
    copies: u64,
    /// Chunk size in sectors.
    chunk: u64,
    /// Number of chunks of the volume.
    chunks: u64,
}

impl NearMap {
    /// Returns the member and the row of a copy.
    fn place(&self, chunk: u64, copy: u64) -> (usize, u64) {
        debug_assert!(
            chunk < self.chunks && copy < self.copies,
            "copy {copy} of chunk {chunk}; there are {} of {}",
            self.copies,
            self.chunks
        );
        let place = chunk * self.copies + copy;
        ((place % self.members) as usize, place / self.members)
    }

    /// Returns the chunk and the copy in `row` of `member`, if the volume uses the row.
    fn held(&self, member: usize, row: u64) -> Option<(u64, u64)> {
        let place = row * self.members + member as u64;
        let (chunk, copy) = (place / self.copies, place % self.copies);
        (chunk < self.chunks).then_some((chunk, copy))
    }

    /// Returns the members with `chunk`, each with the extent of the chunk there.
    fn copies(&self, chunk: u64) -> impl Iterator<Item = (usize, Extent)> + Clone + use<> {
        let map = *self;
        (0..map.copies).map(move |copy| {
            let (member, row) = map.place(chunk, copy);
            (member, map.extent(row))
        })
    }

    /// Returns the sectors of the chunk number `index`, of the volume or of a member.
    fn extent(&self, index: u64) -> Extent {
        Extent::new(index * self.chunk, self.chunk)
    }

    /// See [`Layout::geometry`].
    fn geometry(&self) -> Geometry {
        if self.members == self.copies {
            return Geometry::Contiguous;
        }
        let even = self.members.is_multiple_of(self.copies);
        let row = even.then(|| Sectors(self.members / self.copies * self.chunk));
        Geometry::Striped(Stripe {
            unit: Sectors(self.chunk),
            row,
            parities: 0,
        })
    }

    /// Returns the number of used chunks of `member`.
    fn used_rows(&self, member: usize) -> u64 {
        (self.chunks * self.copies)
            .saturating_sub(member as u64)
            .div_ceil(self.members)
    }
}

impl Raid10 {
    /// See [`BuildLayout`](crate::BuildLayout).
    pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
        let config: Raid10Config = registry::read(keys)?;
        at_least("raid10", members, 2)?;
        check_copies(config.copies, members.len())?;
        let chunk = chunk_sectors(config.chunk)?;
        let rows = common_rows(members, chunk)?;
        let count = members.len() as u64;
        let copies = u64::from(config.copies);
        capacity_of([rows, count, chunk])?;
        let map = NearMap {
            members: count,
            copies,
            chunk,
            chunks: rows * count / copies,
        };
        let states = MemberStates::with_failed(&config.failed, members.len())?;
        check_copy_left(&map, &states)?;
        Ok(Box::new(Raid10 {
            capacities: members.to_vec(),
            map,
            states,
            chooser: CopyChooser::new(config.read_policy, members.len()),
            open: OpenIos::new(members.len()),
        }))
    }
}

fn check_copies(copies: u32, members: usize) -> Result<(), ConfigError> {
    if (2..=members).contains(&(copies as usize)) {
        return Ok(());
    }
    let mend = if copies < 2 {
        "use raid0 for a single copy"
    } else {
        "add members or keep fewer copies"
    };
    let message = format!(
        "{copies} copies do not fit: expected 2 to {members}, the number of members; {mend}"
    );
    Err(ConfigError::new("copies", message))
}

/// Returns a chunk without any copy left, if there is one. The copies of a chunk lie on consecutive
/// members. The arrangement repeats after at most `members` chunks, and members are filled from
/// front to back. A look at the last cycle is therefore enough.
fn lost_chunk(map: &NearMap, states: &MemberStates) -> Option<u64> {
    let is_lost = |(member, extent): (usize, Extent)| extent.end().0 > states.readable(member);
    (map.chunks.saturating_sub(map.members)..map.chunks)
        .find(|&chunk| map.copies(chunk).all(is_lost))
}

fn check_copy_left(map: &NearMap, states: &MemberStates) -> Result<(), ConfigError> {
    let Some(chunk) = lost_chunk(map, states) else {
        return Ok(());
    };
    let holders: Vec<String> = map
        .copies(chunk)
        .map(|(member, _)| member.to_string())
        .collect();
    let message = format!(
        "every copy of some chunks is lost, since members {} have failed; leave one of them alive",
        holders.join(", ")
    );
    Err(ConfigError::new("failed", message))
}

/// Returns the source for `row` of `member`: the chunk, and the place of another readable copy.
fn source(
    map: &NearMap,
    states: &MemberStates,
    member: usize,
    row: u64,
) -> Option<(u64, (usize, Extent))> {
    let (chunk, _) = map.held(member, row)?;
    let is_there = |&(other, extent): &(usize, Extent)| {
        other != member && extent.end().0 <= states.readable(other)
    };
    Some((chunk, map.copies(chunk).find(is_there)?))
}

impl Layout for Raid10 {
    fn name(&self) -> &'static str {
        "raid10"
    }
    fn capacity(&self) -> Sectors {
        Sectors(self.map.chunks * self.map.chunk)
    }
    fn member_capacity(&self, member: usize) -> Sectors {
        self.capacities[member]
    }
    fn member_used(&self, member: usize) -> Sectors {
        Sectors(self.map.used_rows(member) * self.map.chunk)
    }
    fn geometry(&self) -> Geometry {
        self.map.geometry()
    }
    fn failures_survived(&self) -> u32 {
        self.map.copies as u32 - 1
    }
    fn member_states(&self) -> &MemberStates {
        &self.states
    }
    fn member_states_mut(&mut self) -> &mut MemberStates {
        &mut self.states
    }
    fn answers(&self) -> bool {
        lost_chunk(&self.map, &self.states).is_none()
    }

    fn locate(&self, lbn: Lbn) -> Location {
        assert!(lbn.0 < self.capacity().0, "{lbn} is not below the capacity");
        let (member, row) = self.map.place(lbn.0 / self.map.chunk, 0);
        Location {
            member,
            lbn: Lbn(row * self.map.chunk + lbn.0 % self.map.chunk),
        }
    }

    fn role_of(&self, member: usize, lbn: Lbn) -> Role {
        assert!(
            lbn.0 < self.capacities[member].0,
            "{lbn} is not below the member's capacity"
        );
        let (row, offset) = (lbn.0 / self.map.chunk, lbn.0 % self.map.chunk);
        // Beyond the used rows, the product of row and members may overflow.
        if row >= self.map.used_rows(member) {
            return Role::Unused;
        }
        match self.map.held(member, row) {
            None => Role::Unused,
            Some((chunk, 0)) => Role::Data(Lbn(chunk * self.map.chunk + offset)),
            Some((chunk, copy)) => Role::Copy {
                of: Lbn(chunk * self.map.chunk + offset),
                copy: copy as u32,
            },
        }
    }

    fn plan_transfer(&mut self, request: &Request, below: Below<'_>, plan: &mut Plan) -> Status {
        let (map, states) = (self.map, &self.states);
        let mut writer = PlanWriter::new(plan, &mut self.open);
        writer.begin_strand();
        let (begin, end) = (request.extent.start.0, request.extent.end().0);
        let mut at = begin;
        while at < end {
            let (chunk, offset) = (at / map.chunk, at % map.chunk);
            let sectors = (map.chunk - offset).min(end - at);
            let place = Place::Request(Sectors(at - begin));
            let copies = map.copies(chunk);
            let copies =
                copies.map(|(member, all)| (member, Extent::new(all.start.0 + offset, sectors)));
            if request.operation == Operation::Read {
                let group = map.place(chunk, 0).0;
                let there = copies.filter(|copy| copy.1.end().0 <= states.readable(copy.0));
                let Some((member, extent)) =
                    read_copy(&mut self.chooser, &writer, group, there, below)
                else {
                    return Status::Lost;
                };
                writer.io(member, Operation::Read, extent, place, Content::Data);
            } else {
                let run = Extent::new(at, sectors);
                match write_copies(&mut writer, states, request.operation, run, place, copies) {
                    Status::Done => {}
                    status => return status,
                }
            }
            at += sectors;
        }
        Status::Done
    }

    fn plan_rebuild(
        &mut self,
        members: &[usize],
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        plan.clear();
        let (map, states) = (self.map, &self.states);
        let used = longest(self, members).0 / map.chunk;
        let first = from.0 / map.chunk;
        let source = |member, row| {
            let (chunk, from) = source(&map, states, member, row)?;
            Some((map.extent(chunk), from, (member, map.extent(row))))
        };
        // The members of a row repeat every `copies` rows. If no row of one cycle has a source, no
        // later row has one.
        let mut turn = first..used.min(first.saturating_add(map.copies));
        if !turn.any(|row| members.iter().any(|&member| source(member, row).is_some())) {
            return Sectors(used * map.chunk);
        }
        let end = used.min(first.saturating_add((most.0 / map.chunk).max(1)));
        // Row by row, because the sources of one row lie next to each other.
        let runs = (first..end).flat_map(|row| {
            members
                .iter()
                .filter_map(move |&member| source(member, row))
        });
        if runs.clone().next().is_some() {
            copy_runs(&mut PlanWriter::new(plan, &mut self.open), runs);
        }
        members
            .iter()
            .for_each(|&member| self.states.fill(member, end * map.chunk));
        Sectors(end * map.chunk)
    }
}

/// Returns the copy to read. A continuation of an I/O of the same request comes first, because a
/// second arm would gain nothing there. Otherwise the policy chooses.
fn read_copy(
    chooser: &mut CopyChooser,
    writer: &PlanWriter<'_>,
    group: usize,
    there: impl Iterator<Item = (usize, Extent)> + Clone,
    below: Below<'_>,
) -> Option<(usize, Extent)> {
    let mut continuing = there.clone();
    let continued =
        continuing.find(|(member, extent)| writer.continued_by(*member, extent.start).is_some());
    continued.or_else(|| {
        let candidates = there.clone().map(|(member, extent)| Candidate {
            member,
            lbn: extent.start,
            planned: writer.ios_of(member),
        });
        let chosen = chooser.choose(group, candidates, below)?.member;
        let mut there = there;
        there.find(|copy| copy.0 == chosen)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Detail;
    use serde_json::json;

    fn raid10(keys: serde_json::Value, members: usize) -> Result<Box<dyn Layout>, ConfigError> {
        Raid10::build(keys.as_object().unwrap(), &vec![Sectors(1280); members])
    }

    #[test]
    fn five_members_hold_two_near_copies_as_md_places_them() {
        let layout = raid10(json!({}), 5).unwrap();
        let chunk_on = |member, row: u64| match layout.role_of(member, Lbn(row * 128)) {
            Role::Data(lbn) => Some((lbn.0 / 128, 0)),
            Role::Copy { of, copy } => Some((of.0 / 128, copy)),
            _ => None,
        };
        let row = |row| {
            (0..5)
                .map(|member| chunk_on(member, row).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(row(0), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]);
        assert_eq!(row(1), [(2, 1), (3, 0), (3, 1), (4, 0), (4, 1)]);
    }

    #[test]
    fn a_long_read_is_one_io_on_one_member_of_each_pair() {
        let mut layout = raid10(json!({}), 4).unwrap();
        let mut plan = Plan::new(Detail::Timing);
        let request = Request {
            extent: Extent::new(0, 1024),
            ..Request::default()
        };
        assert_eq!(
            layout.plan(&request, Below::NOTHING, &mut plan),
            Status::Done
        );
        let ios: Vec<_> = plan.ios().iter().map(|io| (io.member, io.extent)).collect();
        assert_eq!(ios, [(0, Extent::new(0, 512)), (2, Extent::new(0, 512))]);
    }

    #[test]
    fn copies_that_do_not_fit_are_refused() {
        for copies in [0, 1, 5] {
            assert_eq!(
                raid10(json!({ "copies": copies }), 4).err().unwrap().key,
                "copies"
            );
        }
        assert!(raid10(json!({ "copies": 4 }), 4).is_ok());
    }

    #[test]
    fn failed_members_may_not_hold_all_copies_of_a_chunk() {
        assert!(raid10(json!({ "failed": [0, 2] }), 4).is_ok());
        let error = raid10(json!({ "failed": [2, 3] }), 4).err().unwrap();
        assert!(error.message.contains("members 2, 3"), "{error}");
        let error = raid10(json!({ "failed": [0, 4] }), 5).err().unwrap();
        assert!(error.message.contains("members 4, 0"), "{error}");
    }
}
