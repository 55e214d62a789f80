//! The states of all members of the tree, and how the failure of one fails others.

use crate::bytes::StoreError;
use crate::bytes::description::{Description, JournalScope, MemberRecord, StateRecord};
use crate::bytes::media::Media;
use crate::bytes::node::{Array, StoreNode};
use crate::bytes::verify::below;
use fullstroke_contract::MemberState;
use fullstroke_units::Sectors;

/// Effect of a change of a member's state on its volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateEffect {
    /// The volume answers, or does not, as before.
    Same,
    /// The volume does not answer any more.
    Failed,
    /// The volume answers again; its data is lost.
    Replaced,
}

/// Returns records of all members, each volume before its members. A drive without a volume has one
/// record with an empty path.
pub(crate) fn records(root: &StoreNode) -> Vec<MemberRecord> {
    let mut all = Vec::new();
    match root {
        StoreNode::Drive { .. } => all.push(record("", root, MemberState::Alive)),
        StoreNode::Volume(array) => add_records(array, "", &mut all),
    }
    all
}

fn add_records(array: &Array, path: &str, all: &mut Vec<MemberRecord>) {
    for (index, member) in array.members.iter().enumerate() {
        let path = below(path, index);
        all.push(record(&path, member, array.layout.state(index)));
        if let StoreNode::Volume(inner) = member {
            add_records(inner, &path, all);
        }
    }
}

fn record(path: &str, node: &StoreNode, state: MemberState) -> MemberRecord {
    let file = match (node, path) {
        (StoreNode::Volume(_), _) => None,
        (StoreNode::Drive { .. }, "") => Some("member.img".to_owned()),
        (StoreNode::Drive { .. }, path) => Some(format!("member-{path}.img")),
    };
    MemberRecord {
        path: path.to_owned(),
        file,
        sectors: node.capacity().0,
        state: state.into(),
    }
}

/// Sets the states of all members, in the order of [`records`].
pub(crate) fn set_all(node: &mut StoreNode, states: &mut impl Iterator<Item = MemberState>) {
    let StoreNode::Volume(array) = node else {
        return;
    };
    for member in 0..array.members.len() {
        if let Some(state) = states.next() {
            array.layout.set_recorded_state(member, state);
        }
        set_all(&mut array.members[member], states);
    }
}

/// True if a parity volume lacks a member, now or according to the `records`. The records come in
/// the order of [`records`].
pub(crate) fn any_degraded_parity<'a>(
    node: &StoreNode,
    records: &mut impl Iterator<Item = &'a MemberRecord>,
) -> bool {
    let StoreNode::Volume(array) = node else {
        return false;
    };
    let mut recorded = false;
    let mut below = false;
    for member in &array.members {
        recorded |= records
            .next()
            .is_some_and(|record| record.state != StateRecord::Alive);
        // Called in any case, because it takes the records of the members below.
        below |= any_degraded_parity(member, records);
    }
    below || array.layout.rows().is_some() && (recorded || array.layout.is_impaired())
}

/// True if all changes go to the journal first: by the scope of the journal, or because a parity
/// volume lacks a member's data.
pub(crate) fn is_journalled(root: &StoreNode, description: &Description) -> bool {
    description.journal == JournalScope::All
        || !description.low_gear.is_empty()
        || any_degraded_parity(root, &mut description.members.iter())
}

/// True if some parity volume lacks a member.
pub(crate) fn any_impaired_parity(node: &StoreNode) -> bool {
    let StoreNode::Volume(array) = node else {
        return false;
    };
    array.has_degraded_parity() || array.members.iter().any(any_impaired_parity)
}

/// Returns the paths of the volumes with gears, from the top.
pub(crate) fn geared(root: &StoreNode) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    add_geared(root, &mut Vec::new(), &mut found);
    found
}

fn add_geared(node: &StoreNode, path: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    let StoreNode::Volume(array) = node else {
        return;
    };
    if array.layout.gear().is_some() {
        found.push(path.clone());
    }
    for (index, member) in array.members.iter().enumerate() {
        path.push(index);
        add_geared(member, path, found);
        path.pop();
    }
}

/// Returns the volume at `path`.
pub(crate) fn volume<'a>(root: &'a mut StoreNode, path: &[usize]) -> Option<&'a mut Array> {
    let mut node = root;
    for &index in path {
        let StoreNode::Volume(array) = node else {
            return None;
        };
        node = array.members.get_mut(index)?;
    }
    match node {
        StoreNode::Volume(array) => Some(array),
        StoreNode::Drive { .. } => None,
    }
}

/// True if some volume of the tree has parity.
pub(crate) fn any_parity(node: &StoreNode) -> bool {
    matches!(node, StoreNode::Volume(array) if array.layout.rows().is_some() || array.members.iter().any(any_parity))
}

/// True if some volume of the tree keeps copies.
pub(crate) fn any_copies(node: &StoreNode) -> bool {
    let StoreNode::Volume(array) = node else {
        return false;
    };
    array.layout.rows().is_none() && array.layout.is_redundant()
        || array.members.iter().any(any_copies)
}

/// True if some volume of the tree has redundancy.
pub(crate) fn any_redundancy(node: &StoreNode) -> bool {
    matches!(node, StoreNode::Volume(array) if array.layout.is_redundant() || array.members.iter().any(any_redundancy))
}

/// Describes the volume: `raid0 of 2 x raid5 of 4`.
pub(crate) fn describe(node: &StoreNode) -> String {
    let StoreNode::Volume(array) = node else {
        return "drive".to_owned();
    };
    let (name, count) = (array.layout.layout().name(), array.members.len());
    match array.members.first() {
        Some(inner @ StoreNode::Volume(_)) => format!("{name} of {count} x {}", describe(inner)),
        _ => format!("{name} of {count}"),
    }
}

/// Writes a path as in members' names; empty for the outermost volume.
pub(crate) fn dotted(path: &[usize]) -> String {
    path.iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(".")
}

/// Returns the volume and index of the member at `path`.
pub(crate) fn find<'a>(
    root: &'a mut StoreNode,
    path: &[usize],
) -> Result<(&'a mut Array, usize), StoreError> {
    let refuse = || {
        let path: Vec<String> = path.iter().map(usize::to_string).collect();
        let path = path.join(".");
        StoreError::Refused(format!(
            "there is no member `{path}`: members are named by their indices from the top, as in the status"
        ))
    };
    let (&member, above) = path.split_last().ok_or_else(refuse)?;
    let mut node = root;
    for &index in above {
        node = match node {
            StoreNode::Volume(array) => array.members.get_mut(index).ok_or_else(refuse)?,
            StoreNode::Drive { .. } => return Err(refuse()),
        };
    }
    match node {
        StoreNode::Volume(array) if member < array.members.len() => Ok((array, member)),
        _ => Err(refuse()),
    }
}

/// Returns the path of the drive with this medium; `None` for a drive without a volume.
pub(crate) fn path_of(node: &StoreNode, medium: usize) -> Option<Vec<usize>> {
    let StoreNode::Volume(array) = node else {
        return None;
    };
    let member = array
        .members
        .iter()
        .position(|member| member.media().contains(&medium))?;
    let mut path = vec![member];
    path.extend(path_of(&array.members[member], medium).unwrap_or_default());
    Some(path)
}

/// Sets the state of the existing member at `path`. Sets the states of the volumes above if they
/// fail or are replaced as a consequence. A replaced volume within another is emptied: the outer
/// volume fills it from the beginning, and its old data would only take room.
pub(crate) fn set(
    array: &mut Array,
    path: &[usize],
    state: MemberState,
    media: &mut Media,
) -> Result<StateEffect, StoreError> {
    assert!(!path.is_empty(), "the path of a member has an index");
    let answered = array.layout.answers();
    if let [member] = *path {
        array.layout.set_state(member, state);
    } else if let Some((&member, rest)) = path.split_first()
        && let StoreNode::Volume(inner) = &mut array.members[member]
    {
        match set(inner, rest, state, media)? {
            StateEffect::Same => {}
            StateEffect::Failed => array.layout.set_state(member, MemberState::Failed),
            StateEffect::Replaced => {
                clear(&array.members[member], media)?;
                let empty = MemberState::Rebuilding {
                    done: Sectors::ZERO,
                };
                array.layout.set_state(member, empty);
            }
        }
    }
    Ok(match (answered, array.layout.answers()) {
        (true, false) => StateEffect::Failed,
        (false, true) => StateEffect::Replaced,
        _ => StateEffect::Same,
    })
}

/// Empties all drives of `node`.
pub(crate) fn clear(node: &StoreNode, media: &mut Media) -> Result<(), StoreError> {
    node.media()
        .into_iter()
        .try_for_each(|medium| media.clear(medium))
}
