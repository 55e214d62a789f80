//! The plan by which a measurement follows a rebuild.

use fullstroke_measure::RebuildPlan;
use fullstroke_stack::RebuiltMember;

/// Returns the plan by which a measurement follows the rebuild of a member.
pub(crate) fn plan(member: RebuiltMember) -> RebuildPlan {
    let RebuiltMember {
        path,
        table: _,
        from,
        used,
        zones,
        most,
        scattered: _,
    } = member;
    RebuildPlan {
        path,
        from,
        used,
        zones,
        most,
    }
}
