//! Translates a volume's trace to its members (Lloyd, section 3.3).
//!
//! Every request becomes the member I/Os that the layout plans, all at the request's arrival,
//! because a trace does not wait. If a plan reads before it writes, the reads and the writes have
//! the same time, in this order.

use crate::lzvs::LzvsError;
use fullstroke_contract::{Extent, LayersBelow, Operation, Request, RequestStatus};
use fullstroke_trace::TraceRecord;
use fullstroke_units::{Lbn, Sectors};
use fullstroke_volume::{BufferPlace, Content, Detail, Layout, Location, Plan, Role, Shape};

/// Maps requests of a volume onto its drives.
pub struct Remapper {
    root: RemapNode,
    verify: bool,
    sectors_verified: u64,
}

enum RemapNode {
    Drive(usize),
    Volume {
        layout: Box<dyn Layout>,
        plan: Plan,
        members: Vec<RemapNode>,
    },
}

impl Remapper {
    /// Creates a mapper for a volume of this shape. Drives are numbered in the order of the shape.
    /// If `verify` is true, each sector of each request is followed to its member and back.
    pub fn new(shape: Shape, verify: bool) -> Remapper {
        let mut drives = 0;
        Remapper {
            root: RemapNode::new(shape, &mut drives),
            verify,
            sectors_verified: 0,
        }
    }

    /// Returns the number of verified sectors.
    pub fn sectors_verified(&self) -> u64 {
        self.sectors_verified
    }

    /// Calls `each` with the drive and the member request for every member I/O of `record`.
    ///
    /// # Errors
    /// The request does not lie within the volume, or a sector does not map back to its address.
    pub fn remap(
        &mut self,
        record: &TraceRecord,
        each: &mut dyn FnMut(usize, TraceRecord) -> Result<(), LzvsError>,
    ) -> Result<(), LzvsError> {
        let verified = self.verify.then_some(&mut self.sectors_verified);
        self.root.remap(record, verified, each)
    }
}

impl RemapNode {
    fn new(shape: Shape, drives: &mut usize) -> RemapNode {
        match shape {
            Shape::Drive(_) => {
                *drives += 1;
                RemapNode::Drive(*drives - 1)
            }
            Shape::Volume { layout, members } => {
                let members = members
                    .into_iter()
                    .map(|member| RemapNode::new(member, drives))
                    .collect();
                RemapNode::Volume {
                    layout,
                    plan: Plan::new(Detail::Bytes),
                    members,
                }
            }
        }
    }

    fn remap(
        &mut self,
        record: &TraceRecord,
        mut verified: Option<&mut u64>,
        each: &mut dyn FnMut(usize, TraceRecord) -> Result<(), LzvsError>,
    ) -> Result<(), LzvsError> {
        let (layout, plan, members) = match self {
            RemapNode::Drive(drive) => {
                return each(
                    *drive,
                    TraceRecord {
                        device: 0,
                        ..*record
                    },
                );
            }
            RemapNode::Volume {
                layout,
                plan,
                members,
            } => (layout, plan, members),
        };
        let request = Request {
            operation: record.operation,
            extent: record.extent,
            ..Request::default()
        };
        match layout.plan(&request, LayersBelow::NOTHING, plan) {
            RequestStatus::Done => {}
            status => {
                let (extent, capacity) = (record.extent, layout.capacity());
                return Err(LzvsError::Remap {
                    extent,
                    capacity,
                    status,
                });
            }
        }
        if let Some(verified) = verified.as_deref_mut() {
            verify(&**layout, plan, record)?;
            *verified += record.extent.sectors.0;
        }
        for io in plan.ios() {
            let below = TraceRecord {
                operation: io.operation,
                extent: io.extent,
                ..*record
            };
            members[io.member as usize].remap(&below, verified.as_deref_mut(), each)?;
        }
        Ok(())
    }
}

/// Follows each sector of a request to its member and back. Also checks that the pieces of the plan
/// lie where the layout locates their sectors.
fn verify(layout: &dyn Layout, plan: &Plan, record: &TraceRecord) -> Result<(), LzvsError> {
    let Extent { start, sectors } = record.extent;
    let wrong = |lbn: Lbn, Location { member, lbn: there }: Location| LzvsError::NotOneToOne {
        lbn,
        member,
        there,
        role: layout.role_of(member, there),
    };
    for lbn in (start.0..start.0 + sectors.0).map(Lbn) {
        let place = layout.locate(lbn);
        if layout.role_of(place.member, place.lbn) != Role::Data(lbn) {
            return Err(wrong(lbn, place));
        }
    }
    let transferred = matches!(record.operation, Operation::Read | Operation::Write);
    let mut covered = Sectors::ZERO;
    for piece in plan.pieces() {
        let (BufferPlace::Request(offset), Content::Data) = (piece.place, piece.content) else {
            continue;
        };
        let member = plan.ios()[piece.io as usize].member as usize;
        for at in 0..piece.sectors.0 {
            let (lbn, there) = (Lbn(start.0 + offset.0 + at), Lbn(piece.lbn.0 + at));
            let role = layout.role_of(member, there);
            if role != Role::Data(lbn) && !matches!(role, Role::Copy { of, .. } if of == lbn) {
                return Err(wrong(lbn, Location { member, lbn: there }));
            }
        }
        covered += piece.sectors;
    }
    if transferred && covered < sectors {
        return Err(wrong(start, layout.locate(start)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::registry::{Keys, find};
    use fullstroke_units::Time;
    use fullstroke_volume::{Geometry, MemberStates, REGISTRY};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn shape(layout: &str, members: usize) -> Shape {
        let built = (find("layout", REGISTRY, "", layout).unwrap().build)(
            &Keys::new(),
            &vec![Sectors(9000); members],
        );
        Shape::Volume {
            layout: built.unwrap(),
            members: (0..members).map(|_| Shape::Drive(Sectors(9000))).collect(),
        }
    }

    fn read(start: u64, sectors: u64) -> TraceRecord {
        TraceRecord {
            arrival: Time::ZERO,
            operation: Operation::Read,
            extent: Extent::new(start, sectors),
            device: 0,
            process: 0,
            issued: None,
            completed: None,
        }
    }

    proptest! {
        #[test]
        fn reads_that_share_no_sector_share_none_on_the_drives(
            layout in prop::sample::select(vec!["lzvs", "lzvs-naive", "raid0", "raid5"]),
            lengths in prop::collection::vec(1u64..600, 1..20),
        ) {
            let mut remapper = Remapper::new(shape(layout, 4), true);
            let (mut at, mut seen) = (0, BTreeSet::new());
            for length in lengths {
                let record = read(at, length);
                at += length;
                let mut each = |drive: usize, below: TraceRecord| {
                    for lbn in below.extent.start.0..below.extent.end().0 {
                        assert!(seen.insert((drive, lbn)), "{lbn} of drive {drive} twice");
                    }
                    Ok(())
                };
                remapper.remap(&record, &mut each).unwrap();
            }
            prop_assert_eq!(seen.len() as u64, at);
            prop_assert_eq!(remapper.sectors_verified(), at);
        }
    }

    /// A layout in which two sectors of a member are exchanged in the map from member to volume
    /// only.
    struct Wrong(Box<dyn Layout>);

    impl Layout for Wrong {
        fn name(&self) -> &'static str {
            self.0.name()
        }
        fn capacity(&self) -> Sectors {
            self.0.capacity()
        }
        fn member_capacity(&self, member: usize) -> Sectors {
            self.0.member_capacity(member)
        }
        fn member_used(&self, member: usize) -> Sectors {
            self.0.member_used(member)
        }
        fn geometry(&self) -> Geometry {
            self.0.geometry()
        }
        fn failures_survived(&self) -> u32 {
            0
        }
        fn member_states(&self) -> &MemberStates {
            self.0.member_states()
        }
        fn member_states_mut(&mut self) -> &mut MemberStates {
            self.0.member_states_mut()
        }
        fn locate(&self, lbn: Lbn) -> Location {
            self.0.locate(lbn)
        }
        fn role_of(&self, member: usize, lbn: Lbn) -> Role {
            self.0
                .role_of(member, if lbn.0 < 2 { Lbn(1 - lbn.0) } else { lbn })
        }
        fn plan_transfer(
            &mut self,
            request: &Request,
            below: LayersBelow<'_>,
            plan: &mut Plan,
        ) -> RequestStatus {
            self.0.plan_transfer(request, below, plan)
        }
    }

    #[test]
    fn a_map_that_is_not_one_to_one_is_found_where_it_is_used() {
        let Shape::Volume { layout, members } = shape("lzvs", 2) else {
            unreachable!("a volume")
        };
        let mut remapper = Remapper::new(
            Shape::Volume {
                layout: Box::new(Wrong(layout)),
                members,
            },
            true,
        );
        let mut each = |_: usize, _: TraceRecord| Ok(());
        assert!(remapper.remap(&read(2, 50), &mut each).is_ok());
        let error = remapper.remap(&read(0, 4), &mut each).unwrap_err();
        assert!(matches!(error, LzvsError::NotOneToOne { .. }), "{error}");
        let error = remapper.remap(&read(1 << 40, 4), &mut each).unwrap_err();
        assert!(matches!(error, LzvsError::Remap { .. }), "{error}");
    }
}
