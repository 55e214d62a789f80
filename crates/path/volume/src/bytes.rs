//! Carries out plans on bytes, to let tests prove the plans. A sector has two bytes here, enough to
//! tell sectors and bytes apart.

use crate::gf256::multiply;
use crate::plan::{Band, BufferPlace, Detail, MemberIo, ParityStep, Plan};
use crate::{Layout, REGISTRY};
use fullstroke_contract::registry::{Keys, find};
use fullstroke_contract::{
    ConfigError, Extent, LayersBelow, MemberState, Operation, Request, RequestStatus,
};
use fullstroke_units::{Lbn, Sectors};
use std::ops::Range;

pub(crate) const SECTOR: usize = 2;

/// A device that stores bytes.
pub(crate) trait ByteDevice {
    fn perform(&mut self, operation: Operation, extent: Extent, bytes: &mut [u8]);

    /// Returns the array, if the device is an array.
    fn as_array(&mut self) -> Option<&mut ByteArray> {
        None
    }
}

/// A member without members of its own.
pub(crate) struct PlainMember(pub(crate) Vec<u8>);

/// A layout and its members.
pub(crate) struct ByteArray {
    pub(crate) layout: Box<dyn Layout>,
    pub(crate) members: Vec<Box<dyn ByteDevice>>,
    /// True to carry out the strands from the last to the first.
    pub(crate) reversed: bool,
    plan: Plan,
}

/// The memory of one plan.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) request: Vec<u8>,
    pub(crate) scratch: Vec<u8>,
}

pub(crate) fn range(start: u64, sectors: u64) -> Range<usize> {
    start as usize * SECTOR..(start + sectors) as usize * SECTOR
}

/// Builds the layout `name` from JSON keys.
pub(crate) fn build(
    name: &str,
    keys: &serde_json::Value,
    members: &[u64],
) -> Result<Box<dyn Layout>, ConfigError> {
    let capacities: Vec<Sectors> = members.iter().copied().map(Sectors).collect();
    let keys: &Keys = keys.as_object().unwrap();
    (find("layout", REGISTRY, "layout", name)?.build)(keys, &capacities)
}

impl ByteDevice for PlainMember {
    fn perform(&mut self, operation: Operation, extent: Extent, bytes: &mut [u8]) {
        let own = &mut self.0[range(extent.start.0, extent.sectors.0)];
        match operation {
            Operation::Read => bytes.copy_from_slice(own),
            Operation::Write => own.copy_from_slice(bytes),
            Operation::Discard => own.fill(0),
            Operation::Flush | Operation::Standby | Operation::Start | Operation::Answer => {}
        }
    }
}

impl ByteDevice for ByteArray {
    fn perform(&mut self, operation: Operation, extent: Extent, bytes: &mut [u8]) {
        assert_eq!(self.attempt(operation, extent, bytes), RequestStatus::Done);
    }

    fn as_array(&mut self) -> Option<&mut ByteArray> {
        Some(self)
    }
}

impl ByteArray {
    pub(crate) fn new(layout: Box<dyn Layout>, members: Vec<Box<dyn ByteDevice>>) -> ByteArray {
        ByteArray {
            layout,
            members,
            reversed: false,
            plan: Plan::new(Detail::Bytes),
        }
    }

    /// Zeroed memory under `layout`.
    pub(crate) fn of_memory(layout: Box<dyn Layout>) -> ByteArray {
        let members = (0..layout.members())
            .map(|member| vec![0; layout.member_capacity(member).0 as usize * SECTOR])
            .map(|bytes| Box::new(PlainMember(bytes)) as Box<dyn ByteDevice>)
            .collect();
        ByteArray::new(layout, members)
    }

    /// Carries out a request, if possible.
    pub(crate) fn attempt(
        &mut self,
        operation: Operation,
        extent: Extent,
        bytes: &mut [u8],
    ) -> RequestStatus {
        let request = Request {
            operation,
            extent,
            ..Request::default()
        };
        let status = self
            .layout
            .plan(&request, LayersBelow::NOTHING, &mut self.plan);
        if status == RequestStatus::Done {
            let request = self.run_plan(bytes.to_vec());
            bytes.copy_from_slice(&request);
        }
        status
    }

    /// Continues the rebuild of `member` by about `most` sectors.
    pub(crate) fn fill(&mut self, member: usize, most: u64) {
        let MemberState::Rebuilding { done } = self.layout.member_state(member) else {
            return;
        };
        let reached = self
            .layout
            .plan_rebuild(&[member], done, Sectors(most), &mut self.plan);
        let written = self
            .plan
            .ios()
            .iter()
            .filter(|io| io.operation != Operation::Read);
        for io in written {
            assert_eq!(
                (io.member as usize, io.operation),
                (member, Operation::Write)
            );
            assert!(
                io.extent.start.0 >= done.0 && io.extent.end().0 <= reached.0,
                "only what it says"
            );
        }
        self.run_plan(Vec::new());
        let used = self.layout.member_used(member);
        assert!(reached > done || done == used, "each step leads on");
        assert!(reached <= used);
        let whole = reached == used;
        let state = if whole {
            MemberState::Alive
        } else {
            MemberState::Rebuilding { done: reached }
        };
        self.layout.set_member_state(member, state);
    }

    /// Carries out the next copy of a shift. At the end of the shift, settles the gear. Returns
    /// true if there was a copy.
    pub(crate) fn copy(&mut self, most: u64) -> bool {
        let Some(gears) = self.layout.gears() else {
            return false;
        };
        if gears.plan_copy(Sectors(most), &mut self.plan).is_none() {
            gears.settle();
            return false;
        }
        self.run_plan(Vec::new());
        true
    }

    /// Restores the redundancy everywhere. Returns the number of changed member sectors.
    pub(crate) fn make_redundant(&mut self, most: u64) -> usize {
        let before = self.all_members();
        let mut next = Some(0);
        while let Some(from) = next {
            let Some(gears) = self.layout.gears() else {
                return 0;
            };
            next = gears.plan_check(from, Sectors(most), &mut self.plan);
            if next.is_some() {
                assert!(next > Some(from), "each step leads on");
                self.run_plan(Vec::new());
            }
        }
        let after = self.all_members();
        let pairs = before.iter().flatten().zip(after.iter().flatten());
        pairs.filter(|(before, after)| before != after).count()
    }

    /// Computes a run of a member from the other members and writes the run there. Returns false if
    /// a source is missing.
    pub(crate) fn mend(&mut self, member: usize, extent: Extent) -> bool {
        let Some(gears) = self.layout.gears() else {
            return false;
        };
        let can = gears.plan_mend(member, extent, &mut self.plan);
        if can {
            // Another part of the extent may hold the soft state of another member.
            let own = self
                .plan
                .ios()
                .iter()
                .filter(|io| io.member as usize == member);
            let mut reads = own.filter(|io| io.operation == Operation::Read);
            let meets =
                |io: &MemberIo| io.extent.start < extent.end() && extent.start < io.extent.end();
            assert!(!reads.any(meets), "it cannot be read");
            self.run_plan(Vec::new());
        }
        can
    }

    /// Returns the sectors of all members.
    pub(crate) fn all_members(&mut self) -> Vec<Vec<Vec<u8>>> {
        let members = 0..self.layout.members();
        let all = |member| {
            (0..self.layout.member_capacity(member).0)
                .map(move |lbn| (member, lbn))
                .collect()
        };
        let all: Vec<Vec<(usize, u64)>> = members.map(all).collect();
        let read = |sectors: Vec<(usize, u64)>| {
            sectors
                .into_iter()
                .map(|(member, lbn)| self.member_sector(member, lbn))
                .collect()
        };
        all.into_iter().map(read).collect()
    }

    fn run_plan(&mut self, request: Vec<u8>) -> Vec<u8> {
        check_form(&*self.layout, &self.plan);
        let mut buffers = Buffers::new(request, &self.plan);
        let count = self.plan.strands().len();
        for order in 0..count {
            self.run_strand(
                if self.reversed {
                    count - 1 - order
                } else {
                    order
                },
                &mut buffers,
            );
        }
        buffers.request
    }

    pub(crate) fn read(&mut self, start: u64, sectors: u64) -> Vec<u8> {
        // No member holds this byte at first, so that a sector which no piece fills shows.
        let mut bytes = vec![0xEE; sectors as usize * SECTOR];
        self.perform(Operation::Read, Extent::new(start, sectors), &mut bytes);
        bytes
    }

    /// Returns the bytes of one sector of a member.
    pub(crate) fn member_sector(&mut self, member: usize, lbn: u64) -> Vec<u8> {
        let mut bytes = vec![0; SECTOR];
        self.members[member].perform(Operation::Read, Extent::new(lbn, 1), &mut bytes);
        bytes
    }

    /// Changes one sector of a member.
    pub(crate) fn corrupt_sector(&mut self, member: usize, lbn: u64) {
        let mut bytes = self.member_sector(member, lbn);
        bytes[0] ^= 0x5A;
        self.members[member].perform(Operation::Write, Extent::new(lbn, 1), &mut bytes);
    }

    /// Overwrites a whole member with noise.
    pub(crate) fn scramble(&mut self, member: usize) {
        let sectors = self.layout.member_capacity(member).0;
        let mut noise: Vec<u8> = (0..sectors as usize * SECTOR)
            .map(|at| (at * 89 + 7) as u8)
            .collect();
        self.members[member].perform(Operation::Write, Extent::new(0, sectors), &mut noise);
    }

    fn run_strand(&mut self, strand: usize, buffers: &mut Buffers) {
        let ios = self.plan.strands()[strand];
        let all = ios.first_phase().chain(ios.second_phase());
        let is_read = |io: &usize| self.plan.ios()[*io].operation == Operation::Read;
        // Reads before steps before writes, as a strand promises; the order among the reads is
        // free.
        let (reads, rest): (Vec<usize>, Vec<usize>) = all.partition(is_read);
        for io in reads {
            run_io(&mut self.members, &self.plan, io, buffers);
        }
        buffers.run_steps(&self.plan, strand);
        for io in rest {
            run_io(&mut self.members, &self.plan, io, buffers);
        }
    }
}

/// Carries out one I/O of `plan`.
pub(crate) fn run_io(
    members: &mut [Box<dyn ByteDevice>],
    plan: &Plan,
    io: usize,
    buffers: &mut Buffers,
) {
    let MemberIo {
        member,
        operation,
        extent,
        ..
    } = plan.ios()[io];
    let device = &mut members[member as usize];
    if !operation.transfers() {
        return device.perform(operation, extent, &mut []);
    }
    for piece in plan.pieces().iter().filter(|piece| piece.io as usize == io) {
        let extent = Extent {
            start: piece.lbn,
            sectors: piece.sectors,
        };
        device.perform(operation, extent, buffers.at(piece.place, piece.sectors));
    }
}

impl Buffers {
    pub(crate) fn new(request: Vec<u8>, plan: &Plan) -> Buffers {
        Buffers {
            request,
            // Another value than in fresh request memory: a step that reads scratch memory before a
            // piece fills it gives wrong parity.
            scratch: vec![0xDD; plan.scratch().0 as usize * SECTOR],
        }
    }

    fn at(&mut self, place: BufferPlace, sectors: Sectors) -> &mut [u8] {
        match place {
            BufferPlace::Request(start) => &mut self.request[range(start.0, sectors.0)],
            BufferPlace::Scratch(start) => &mut self.scratch[range(start.0, sectors.0)],
        }
    }

    /// Carries out the arithmetic of one strand.
    pub(crate) fn run_steps(&mut self, plan: &Plan, strand: usize) {
        for band in plan
            .bands()
            .iter()
            .filter(|band| band.strand as usize == strand)
        {
            for step in plan.steps(band) {
                check_step(band, step);
                self.run_step(step);
            }
        }
    }

    fn run_step(&mut self, step: &ParityStep) {
        // Copied, because source and target may lie in the same buffer.
        let from = self.at(step.from, step.sectors).to_vec();
        for (into, from) in self.at(step.into, step.sectors).iter_mut().zip(from) {
            let product = multiply(step.coefficient, from);
            *into = if step.accumulate {
                *into ^ product
            } else {
                product
            };
        }
    }
}

fn check_step(band: &Band, step: &ParityStep) {
    assert_eq!(step.sectors, band.sectors);
    assert_ne!(step.from, step.into);
}

/// Checks the properties common to all plans.
fn check_form(layout: &dyn Layout, plan: &Plan) {
    let mut next = 0;
    for (index, strand) in plan.strands().iter().enumerate() {
        assert_eq!(
            strand.first_phase().start,
            next,
            "strands lie one behind the other"
        );
        assert_eq!(strand.first_phase().end, strand.second_phase().start);
        assert!(
            !strand.first_phase().is_empty(),
            "a strand has a first phase"
        );
        for io in strand.first_phase().chain(strand.second_phase()) {
            assert_eq!(plan.ios()[io].strand as usize, index);
        }
        check_phase(layout, &plan.ios()[strand.first_phase()], false);
        check_phase(layout, &plan.ios()[strand.second_phase()], true);
        if !strand.second_phase().is_empty() {
            let reads = &plan.ios()[strand.first_phase()];
            assert!(reads.iter().all(|io| io.operation == Operation::Read));
        }
        next = strand.second_phase().end;
    }
    assert_eq!(next, plan.ios().len());
    for (index, io) in plan.ios().iter().enumerate() {
        assert!(
            !layout.failed().contains(&io.member),
            "member {} has failed",
            io.member
        );
        assert!(
            io.extent.within(layout.member_used(io.member as usize)),
            "{io:?}"
        );
        check_pieces(plan, index, io);
    }
}

/// Checks that no sector appears twice. Also checks that adjacent I/O was joined, except in layouts
/// that do not pass members in the order of their addresses.
fn check_phase(layout: &dyn Layout, ios: &[MemberIo], second: bool) {
    let apart = u64::from(!layout.name().starts_with("lzvs") && !layout.name().ends_with("paraid"));
    for (at, io) in ios.iter().enumerate() {
        assert_eq!(io.second_phase, second);
        assert_eq!(io.operation, ios[0].operation);
        // Lost soft state is read separately for each of several units of one row.
        if layout.name().ends_with("paraid") && io.operation == Operation::Read {
            continue;
        }
        for other in ios[at + 1..]
            .iter()
            .filter(|other| other.member == io.member)
        {
            let behind = |a: &MemberIo, b: &MemberIo| a.extent.end().0 + apart <= b.extent.start.0;
            assert!(behind(io, other) || behind(other, io));
        }
    }
}

fn check_pieces(plan: &Plan, index: usize, io: &MemberIo) {
    if !io.operation.transfers() {
        return;
    }
    let mut at = io.extent.start;
    for piece in plan
        .pieces()
        .iter()
        .filter(|piece| piece.io as usize == index)
    {
        assert_eq!(piece.lbn, at, "pieces tile their I/O");
        at = Lbn(at.0 + piece.sectors.0);
    }
    assert_eq!(at, io.extent.end());
}
