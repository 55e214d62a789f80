//! The plan that computes unreadable sectors of a member from the other members.

use fullstroke_contract::{Extent, Gear, MemberState, Operation};
use fullstroke_units::{Lbn, Sectors};
use fullstroke_volume::{Layout, Plan};

/// Plans the computation of a piece of a member from the others, and its write. In an array with
/// gears the plan reads the data of the present gear. Returns the sector behind the written piece;
/// `None` if the piece cannot be computed.
pub(crate) fn plan_repair(
    layout: &mut dyn Layout,
    member: usize,
    piece: Extent,
    plan: &mut Plan,
) -> Option<Lbn> {
    if let Some(gears) = layout.gears()
        && gears.plan_mend(member, piece, plan)
    {
        return Some(piece.end());
    }
    // Rebuild plans read the data of the high gear, which are out of date in the others.
    if layout.present_gear().is_some_and(|gear| gear != Gear::High) {
        return None;
    }
    // A rebuild from the piece on reads everything that the piece needs, and nothing from the
    // member itself. The layout plans from the state, which is changed for that time.
    plan.clear();
    let start = Sectors(piece.start.0);
    let before = layout.member_state(member);
    layout.set_member_state(member, MemberState::Rebuilding { done: start });
    let next = layout.plan_rebuild(&[member], start, piece.sectors, plan);
    layout.set_member_state(member, before);
    let fills = plan.ios().iter().any(|io| {
        let own = io.member as usize == member && io.operation == Operation::Write;
        own && io.extent.start <= piece.start && piece.start < io.extent.end()
    });
    fills.then_some(Lbn(next.0))
}
