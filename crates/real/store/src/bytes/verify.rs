//! Compares parity and copies with their data, in volumes over volumes.
//!
//! The walk goes over the tree of volumes; `comparison.rs` compares each part.

use crate::buffers::{Buffers, RequestBytes};
use crate::bytes::StoreError;
use crate::bytes::array::read_pieces;
use crate::bytes::media::Media;
use crate::bytes::member::Member as _;
use crate::bytes::node::{Array, StoreNode};
use crate::comparison::{
    BATCH_SECTORS, ComparedMembers, Comparison, Decision, MemberName, RedundancyCheck, cut,
};
use crate::judge::Repair;
use crate::member_layout::MemberLayout;
use fullstroke_contract::{Extent, MemberState, Operation};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};

/// Size of a step of the search for holes: 16 MiB.
const STRIDE_SECTORS: u64 = (16 << 20) / SECTOR_BYTES;

/// The members of a volume, for a comparison.
struct VolumeMembers<'a> {
    layout: &'a MemberLayout,
    members: &'a mut [StoreNode],
    media: &'a mut Media,
    /// Path of the volume.
    path: &'a str,
    present: &'a mut Vec<u8>,
}

impl ComparedMembers for VolumeMembers<'_> {
    type Error = StoreError;

    fn name(&self, member: usize) -> MemberName {
        MemberName::Path(below(self.path, member))
    }

    fn present(
        &mut self,
        member: usize,
        lbn: Lbn,
        sectors: Sectors,
    ) -> Result<Option<&[u8]>, StoreError> {
        let sectors = filled(self.layout.state(member), lbn, sectors);
        self.present.resize(sectors.bytes().0 as usize, 0);
        if !self.present.is_empty() {
            self.members[member].read(lbn, self.present, self.media)?;
        }
        Ok(Some(self.present))
    }

    fn write(&mut self, member: usize, lbn: Lbn, from: &[u8]) -> Result<(), StoreError> {
        self.members[member].write(lbn, from, self.media)
    }
}

/// Compares redundancy with data, and writes wrong sectors again as far as allowed.
pub(crate) struct Verifier<'a> {
    pub(crate) media: &'a mut Media,
    repair: Repair,
    /// True if the verifier determines the wrong sectors. Otherwise redundancy always follows from
    /// the data.
    judges: bool,
    pub(crate) found: RedundancyCheck,
    data: Vec<u8>,
    present: Vec<u8>,
}

impl<'a> Verifier<'a> {
    /// Returns a verifier to make all redundancy follow from the data. This is right after a kill
    /// in the middle of a write, because old and new data are both valid then.
    pub(crate) fn mending(media: &'a mut Media) -> Verifier<'a> {
        Verifier {
            judges: false,
            ..Verifier::scrubbing(media, Repair::Data)
        }
    }

    /// Returns a verifier to determine the wrong sectors, and to repair as far as `repair` allows.
    pub(crate) fn scrubbing(media: &'a mut Media, repair: Repair) -> Verifier<'a> {
        Verifier {
            media,
            repair,
            judges: true,
            found: RedundancyCheck::default(),
            data: Vec::new(),
            present: Vec::new(),
        }
    }

    /// Compares all redundancy of `extent` of the node at `path`. The redundancy of the members
    /// comes first, because unsound data must not be read.
    pub(crate) fn check(
        &mut self,
        node: &mut StoreNode,
        path: &str,
        extent: Extent,
    ) -> Result<(), StoreError> {
        let StoreNode::Volume(array) = node else {
            return Ok(());
        };
        let extent = array
            .layout
            .rows()
            .map_or(extent, |rows| rows.around(extent));
        let capacity = array.layout.capacity();
        for part in cut(extent, array.layout.rows(), capacity, STRIDE_SECTORS) {
            if !array.layout.answers() || array.is_hole(part, self.media)? {
                continue;
            }
            self.check_members(array, path, part)?;
            // Without all members, parity cannot be told from the data that follows from it. Only
            // the journal keeps such an array sound.
            if array.layout.is_redundant()
                && !(self.repair.changes() && array.has_degraded_parity())
            {
                for batch in cut(part, array.layout.rows(), capacity, BATCH_SECTORS) {
                    self.check_batch(array, path, batch)?;
                }
            }
        }
        Ok(())
    }

    fn check_members(
        &mut self,
        array: &mut Array,
        path: &str,
        extent: Extent,
    ) -> Result<(), StoreError> {
        if array
            .members
            .iter()
            .all(|member| matches!(member, StoreNode::Drive { .. }))
        {
            return Ok(());
        }
        array.prepare(Operation::Write, extent)?;
        let Array { plan, members, .. } = array;
        for io in plan
            .ios()
            .iter()
            .filter(|io| io.operation == Operation::Write)
        {
            let member = io.member as usize;
            self.check(&mut members[member], &below(path, member), io.extent)?;
        }
        Ok(())
    }

    fn check_batch(
        &mut self,
        array: &mut Array,
        path: &str,
        extent: Extent,
    ) -> Result<(), StoreError> {
        if array.is_hole(extent, self.media)? {
            return Ok(());
        }
        self.found.compared_sectors += extent.sectors.0;
        let mut data = std::mem::take(&mut self.data);
        data.resize(extent.sectors.bytes().0 as usize, 0);
        let result = self.compare(array, path, extent, &mut data);
        self.data = data;
        result
    }

    fn compare(
        &mut self,
        array: &mut Array,
        path: &str,
        extent: Extent,
        data: &mut [u8],
    ) -> Result<(), StoreError> {
        array.read(extent, data, self.media)?;
        array.prepare(Operation::Write, extent)?;
        array.make_room();
        let with_parity = array.layout.rows().is_some();
        let is_whole = !array.layout.is_impaired();
        let has_gears = array.layout.gear().is_some();
        let Array {
            layout,
            plan,
            members,
            scratch,
            ..
        } = array;
        let mut buffers = Buffers {
            request: RequestBytes::From(data),
            scratch,
        };
        read_pieces(plan, plan.pieces(), members, &mut buffers, self.media)?;
        buffers.run_steps(plan);
        let decision = match (self.judges, has_gears) {
            (false, _) => Decision::Data,
            // A volume with gears may hold the same data in two places, which follow from each
            // other. Equal copies prove nothing then.
            (true, true) => Decision::Nothing(self.repair),
            (true, false) => Decision::Members {
                repair: self.repair,
                start: extent.start,
                is_whole,
            },
        };
        let mut members = VolumeMembers {
            layout,
            members,
            media: self.media,
            path,
            present: &mut self.present,
        };
        Comparison::new(plan, &buffers, with_parity).carry_out(
            decision,
            &mut members,
            &mut self.found,
        )
    }
}

/// Returns the path of a member.
pub(crate) fn below(path: &str, member: usize) -> String {
    if path.is_empty() {
        member.to_string()
    } else {
        format!("{path}.{member}")
    }
}

/// Returns the number of filled sectors among a member's `sectors` from `lbn` on.
fn filled(state: MemberState, lbn: Lbn, sectors: Sectors) -> Sectors {
    match state {
        MemberState::Alive => sectors,
        MemberState::Failed => Sectors::ZERO,
        MemberState::Rebuilding { done } => sectors.min(Sectors(done.0.saturating_sub(lbn.0))),
    }
}
