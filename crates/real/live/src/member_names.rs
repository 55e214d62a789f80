//! Names of members: their indices from the top.

use fullstroke_store::bytes::MemberStatus;

/// Returns the name of a member: its indices from the top.
pub(crate) fn dotted(path: &[usize]) -> String {
    path.iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(".")
}

/// Returns the indices in the name of a member.
pub(crate) fn path_of(member: &MemberStatus) -> Vec<usize> {
    member
        .member
        .split('.')
        .filter_map(|index| index.parse().ok())
        .collect()
}
