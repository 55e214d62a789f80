//! `raid10`: mirrored chunks on the members in turn.
//!
//! The arrangements are those of the Linux md driver (`__raid10_find_phys`, `drivers/md/raid10.c`).
//! With n copies on m members, m need not be a multiple of n:
//!
//! | arrangement | place of copy c of chunk k |
//! |---|---|
//! | `near` | place p = k·n + c, on member p mod m, in row p div m |
//! | `far` | member (k + c) mod m, in row k div m of the c-th of n sections of each member |
//! | `offset` | member (k + c) mod m, in row (k div m)·n + c |
//!
//! A write goes to all copies. A read of a chunk goes to one copy. Like md, each chunk is an I/O of
//! its own, and md's rule chooses the copy. Like `ideal`, adjacent chunks of a member are one I/O,
//! a copy that continues an I/O of the same request comes first, and the read policy chooses
//! otherwise.
//!
//! A member under rebuild gets all writes. Reads use only its filled part.

use crate::geometry::{Geometry, Stripe};
use crate::layout::{Layout, Location, Role, longest, part_of_chunk};
use crate::like::Like;
use crate::md::check_chunk;
use crate::members::{DEFAULT_CHUNK, at_least, capacity_of, chunk_sectors, common_rows};
use crate::mirror::{Balance, CopyChooser, ReadPolicy, ReadableCopy, copy_runs, write_copies};
use crate::plan::{BufferPlace, Content, OpenIos, Plan, PlanWriter};
use crate::states::MemberStates;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_contract::{ConfigError, Extent, LayersBelow, Operation, Request, RequestStatus};
use fullstroke_units::{Bytes, Lbn, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Keys of `raid10`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Raid10Config {
    /// Behaviour of the array: `md` as Linux's md, or `ideal`. Simulations (`run`, `compare`,
    /// `advise`) have the default `md`, but `ideal` with `[controller]` and with `coordinate`. Live
    /// serving, arrays on devices and studies have the default `ideal`.
    #[schemars(extend("x-default" = "`md` in `run`, `compare` and other simulations, else `ideal`"))]
    pub like: Like,
    /// Bytes on one member before the next member has its turn: a positive multiple of 512. Default
    /// 64KiB; in a stack file with `like = "md"` 512KiB, as `mdadm --create` makes it.
    #[schemars(extend("x-default" = "`512KiB` if `like = \"md\"`, else `64KiB`"))]
    pub chunk: Bytes,
    /// Number of copies of each chunk: at least 2, at most the number of members. Default 2.
    pub copies: u32,
    /// Arrangement of the copies: on the next members at about the same address (`near`, md's n2),
    /// in another section of the next member (`far`, f2), or in the next row on the next member
    /// (`offset`, o2). Default `near`.
    pub arrangement: Arrangement,
    /// Policy for the choice of the copy to read: the copies in turn (`round-robin`), the member
    /// with the fewest requests (`shortest-queue`), the member with its arm nearest to the data
    /// (`nearest-head`), or the rule of Linux's md for members with arms (`md`) or without arms
    /// (`md-nonrotational`). Default `round-robin`; in a stack file with `like = "md"` `md`.
    #[schemars(extend("x-default" = "`md` if `like = \"md\"`, else `round-robin`"))]
    pub read_policy: ReadPolicy,
    /// Failed members, counted from 0; a copy of every chunk must be left. Default none.
    pub failed: Vec<u32>,
}

/// Arrangement of the copies of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// Copies at about the same address of neighbouring members: md's `n2`.
    #[default]
    Near,
    /// Copies in different sections of the members: md's `f2`. A long read runs over all members as
    /// in RAID 0.
    Far,
    /// Copies in the next row, on the next member: md's `o2`.
    Offset,
}

impl Default for Raid10Config {
    fn default() -> Raid10Config {
        Raid10Config {
            like: Like::Ideal,
            chunk: DEFAULT_CHUNK,
            copies: 2,
            arrangement: Arrangement::Near,
            read_policy: ReadPolicy::RoundRobin,
            failed: Vec::new(),
        }
    }
}

/// Mirrored chunks dealt to the members in turn.
#[derive(Debug)]
pub struct Raid10 {
    capacities: Vec<Sectors>,
    map: CopyMap,
    like: Like,
    states: MemberStates,
    chooser: CopyChooser,
    open: OpenIos,
}

/// The arithmetic of the arrangements, in chunks.
#[derive(Clone, Copy, Debug)]
struct CopyMap {
    arrangement: Arrangement,
    members: u64,
    copies: u64,
    /// Chunk size in sectors.
    chunk: u64,
    /// Number of chunks of the volume.
    chunks: u64,
    /// Number of rows of a section of the arrangement `far`.
    section: u64,
}

impl CopyMap {
    /// Returns the member and the row of a copy.
    fn place(&self, chunk: u64, copy: u64) -> (usize, u64) {
        debug_assert!(
            chunk < self.chunks && copy < self.copies,
            "copy {copy} of chunk {chunk}; there are {} of {}",
            self.copies,
            self.chunks
        );
        let row = chunk / self.members;
        let member = ((chunk + copy) % self.members) as usize;
        match self.arrangement {
            Arrangement::Near => {
                let place = chunk * self.copies + copy;
                ((place % self.members) as usize, place / self.members)
            }
            Arrangement::Far => (member, copy * self.section + row),
            Arrangement::Offset => (member, row * self.copies + copy),
        }
    }

    /// Returns the chunk and the copy in `row` of `member`, if the volume uses the row.
    fn held(&self, member: usize, row: u64) -> Option<(u64, u64)> {
        let member = member as u64;
        let (copy, first) = match self.arrangement {
            Arrangement::Near => {
                let place = row * self.members + member;
                let (chunk, copy) = (place / self.copies, place % self.copies);
                return (chunk < self.chunks).then_some((chunk, copy));
            }
            Arrangement::Far => (row / self.section, row % self.section),
            Arrangement::Offset => (row % self.copies, row / self.copies),
        };
        let chunk = first * self.members + (member + self.members - copy) % self.members;
        (copy < self.copies && chunk < self.chunks).then_some((chunk, copy))
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
        let near = self.arrangement == Arrangement::Near;
        if near && self.members == self.copies {
            return Geometry::Contiguous;
        }
        let each = if near { self.copies } else { 1 };
        let even = self.members.is_multiple_of(each);
        let row = even.then(|| Sectors(self.members / each * self.chunk));
        Geometry::Striped(Stripe {
            unit: Sectors(self.chunk),
            row,
            parities: 0,
        })
    }

    /// Returns the number of used chunks of `member`.
    fn used_rows(&self, member: usize) -> u64 {
        match self.arrangement {
            Arrangement::Near => (self.chunks * self.copies)
                .saturating_sub(member as u64)
                .div_ceil(self.members),
            Arrangement::Far | Arrangement::Offset => self.section * self.copies,
        }
    }

    /// Returns rows of a member from `first` on, below `used`, such that one of the rows has a
    /// source if any later row has one.
    fn typical_rows(&self, first: u64, used: u64) -> impl Iterator<Item = u64> + use<> {
        let map = *self;
        // Near and offset: the members of a row repeat every `copies` rows. Far: all rows of a
        // section are alike.
        let next = (0..map.copies).map(move |turn| match map.arrangement {
            Arrangement::Far if turn > 0 => first.max(turn * map.section),
            Arrangement::Far => first,
            _ => first.saturating_add(turn),
        });
        next.filter(move |&row| row < used)
    }
}

impl Raid10 {
    /// See [`BuildLayout`](crate::BuildLayout).
    pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
        let config: Raid10Config = registry::read(keys)?;
        at_least("raid10", members, 2)?;
        check_copies(&config, members.len())?;
        let chunk = chunk_sectors(config.chunk)?;
        if config.like == Like::Md {
            check_chunk(chunk)?;
        }
        let rows = common_rows(members, chunk)?;
        let count = members.len() as u64;
        let copies = u64::from(config.copies);
        // `CopyMap` computes with the number of all places, so that the product must not overflow.
        capacity_of([rows, count, chunk])?;
        let section = rows / copies;
        let near = config.arrangement == Arrangement::Near;
        if section == 0 && !near {
            let message = format!(
                "members hold {rows} chunks; {} needs one for each of the {copies} copies",
                config.arrangement.name()
            );
            return Err(ConfigError::new("chunk", message));
        }
        let map = CopyMap {
            arrangement: config.arrangement,
            members: count,
            copies,
            chunk,
            chunks: match near {
                true => rows * count / copies,
                false => section * count,
            },
            section,
        };
        let states = MemberStates::with_failed(&config.failed, members.len())?;
        check_copy_left(&map, &states)?;
        Ok(Box::new(Raid10 {
            capacities: members.to_vec(),
            map,
            like: config.like,
            states,
            chooser: CopyChooser::new(
                config.read_policy,
                members.len(),
                match config.arrangement {
                    Arrangement::Near => Balance::Near,
                    Arrangement::Far | Arrangement::Offset => Balance::Far,
                },
            ),
            open: OpenIos::new(members.len()),
        }))
    }
}

impl Arrangement {
    fn name(self) -> &'static str {
        match self {
            Arrangement::Near => "near",
            Arrangement::Far => "far",
            Arrangement::Offset => "offset",
        }
    }
}

/// Checks the number of copies. md refuses more copies than members for every arrangement
/// (`setup_conf`, `drivers/md/raid10.c`).
fn check_copies(config: &Raid10Config, members: usize) -> Result<(), ConfigError> {
    let copies = config.copies;
    if (2..=members).contains(&(copies as usize)) {
        return Ok(());
    }
    let mend = if copies < 2 {
        "use raid0 for a single copy"
    } else {
        "add members or keep fewer copies"
    };
    let name = config.arrangement.name();
    let message = format!(
        "{copies} {name} copies do not fit: expected 2 to {members}, the number of members; {mend}"
    );
    Err(ConfigError::new("copies", message))
}

/// Returns a chunk without any copy left, if there is one. The copies of a chunk lie on consecutive
/// members. The arrangement repeats after at most `members` chunks, and members are filled from
/// front to back. A look at the last cycle is therefore enough.
fn lost_chunk(map: &CopyMap, states: &MemberStates) -> Option<u64> {
    let is_lost = |(member, extent): (usize, Extent)| extent.end().0 > states.readable(member);
    (map.chunks.saturating_sub(map.members)..map.chunks)
        .find(|&chunk| map.copies(chunk).all(is_lost))
}

fn check_copy_left(map: &CopyMap, states: &MemberStates) -> Result<(), ConfigError> {
    let Some(chunk) = lost_chunk(map, states) else {
        return Ok(());
    };
    let holders: Vec<String> = map
        .copies(chunk)
        .map(|(member, _)| member.to_string())
        .collect();
    let message = format!(
        "every copy of some chunks is lost, because members {} have failed; one of these members must be alive",
        holders.join(", ")
    );
    Err(ConfigError::new("failed", message))
}

/// Returns the source for `row` of `member`: the chunk, and the place of another copy that can be
/// read up to `end` of the chunk.
fn source(
    map: &CopyMap,
    states: &MemberStates,
    member: usize,
    row: u64,
    end: u64,
) -> Option<(u64, (usize, Extent))> {
    let (chunk, _) = map.held(member, row)?;
    let is_there = |&(other, extent): &(usize, Extent)| {
        other != member && extent.start.0 + end <= states.readable(other)
    };
    Some((chunk, map.copies(chunk).find(is_there)?))
}

impl Layout for Raid10 {
    fn name(&self) -> &'static str {
        "raid10"
    }
    fn like(&self) -> Like {
        self.like
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

    fn io_ended(&mut self, member: usize, operation: Operation, end: Lbn) {
        // The head moves with writes, too: `find_bio_disk` calls `update_head_pos`.
        if operation.transfers() {
            self.chooser.io_ends(member, end);
        }
    }

    fn plan_transfer(
        &mut self,
        request: &Request,
        below: LayersBelow<'_>,
        plan: &mut Plan,
    ) -> RequestStatus {
        let (map, states) = (self.map, &self.states);
        let mut writer = PlanWriter::new(plan, &mut self.open);
        writer.begin_strand();
        let (begin, end) = (request.extent.start.0, request.extent.end().0);
        let mut at = begin;
        while at < end {
            let (chunk, offset) = (at / map.chunk, at % map.chunk);
            let sectors = (map.chunk - offset).min(end - at);
            if self.like == Like::Md {
                writer.part();
            }
            let place = BufferPlace::Request(Sectors(at - begin));
            let copies = map.copies(chunk);
            let copies =
                copies.map(|(member, all)| (member, Extent::new(all.start.0 + offset, sectors)));
            if request.operation == Operation::Read {
                // Reads of chunks with the same first member share one turn.
                let group = map.place(chunk, 0).0;
                let joins = self.like == Like::Ideal;
                let there = copies.filter(|copy| copy.1.end().0 <= states.readable(copy.0));
                let Some((member, extent)) =
                    read_copy(&mut self.chooser, &writer, joins, group, there, below)
                else {
                    return RequestStatus::Lost;
                };
                writer.io(member, Operation::Read, extent, place, Content::Data);
            } else {
                let run = Extent::new(at, sectors);
                match write_copies(&mut writer, states, request.operation, run, place, copies) {
                    RequestStatus::Done => {}
                    status => return status,
                }
            }
            at += sectors;
        }
        RequestStatus::Done
    }

    fn plan_rebuild(
        &mut self,
        members: &[usize],
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        let rows = (most.0 / self.map.chunk).max(1);
        self.plan_refill(members, from, rows, 0..self.map.chunk, plan)
    }

    fn takes_turns(&self) -> bool {
        self.like == Like::Md
    }

    fn plan_rebuild_of_pages(
        &mut self,
        members: &[usize],
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        match part_of_chunk(from, most, self.map.chunk) {
            None => self.plan_rebuild(members, from, most, plan),
            Some(part) => self.plan_refill(members, from, 1, part, plan),
        }
    }
}

impl Raid10 {
    /// Plans the rebuild of `part` of each chunk of `rows` rows from `from` on. Returns the end of the
    /// filled part.
    fn plan_refill(
        &mut self,
        members: &[usize],
        from: Sectors,
        rows: u64,
        part: Range<u64>,
        plan: &mut Plan,
    ) -> Sectors {
        plan.clear();
        let (map, states) = (self.map, &self.states);
        let used = longest(self, members).0 / map.chunk;
        let first = from.0 / map.chunk;
        let cut = |chunk: Extent| Extent::new(chunk.start.0 + part.start, part.end - part.start);
        let source = |member, row| {
            let (chunk, (other, extent)) = source(&map, states, member, row, part.end)?;
            let to = (member, cut(map.extent(row)));
            Some((cut(map.extent(chunk)), (other, cut(extent)), to))
        };
        let mut turn = map.typical_rows(first, used);
        if !turn.any(|row| members.iter().any(|&member| source(member, row).is_some())) {
            return Sectors(used * map.chunk);
        }
        let end = used.min(first.saturating_add(rows));
        // Row by row, because the sources of one row lie next to each other.
        let runs = (first..end).flat_map(|row| {
            members
                .iter()
                .filter_map(move |&member| source(member, row))
        });
        if runs.clone().next().is_some() {
            copy_runs(&mut PlanWriter::new(plan, &mut self.open), runs);
        }
        let filled = (end - 1) * map.chunk + part.end;
        members
            .iter()
            .for_each(|&member| self.states.fill(member, filled));
        Sectors(filled)
    }
}

/// Returns the copy to read. If `joins`, a continuation of an I/O of the same request comes first,
/// because a second arm would gain nothing there. Otherwise the policy chooses.
fn read_copy(
    chooser: &mut CopyChooser,
    writer: &PlanWriter<'_>,
    joins: bool,
    group: usize,
    there: impl Iterator<Item = (usize, Extent)> + Clone,
    below: LayersBelow<'_>,
) -> Option<(usize, Extent)> {
    let mut continuing = there.clone();
    let continued = continuing
        .find(|(member, extent)| joins && writer.continued_by(*member, extent.start).is_some());
    continued.or_else(|| {
        let candidates = there.clone().map(|(member, extent)| ReadableCopy {
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
            layout.plan(&request, LayersBelow::NOTHING, &mut plan),
            RequestStatus::Done
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
