//! `dm_layout_g4`: a tree of track patterns.
//!
//! `TP` lists patterns `low, high, sectors per track`: addresses lie on the sectors from `low` to
//! `high` of a track. `IDX` lists nodes, each a list of entries; the last node is the root. An
//! entry describes instances of a child. `lbn`, `cyl` and `off` (in revolutions) are the start of
//! the first instance, relative to the parent. `len` and `cyllen` are the size of one instance.
//! `alen` is the angle from one instance to the next. `runlen` and `cylrunlen` are the size of all
//! instances; `cylrunlen` is negative if the instances proceed outward. The child is a pattern with
//! a head, or another node.
//!
//! | file | contents |
//! |---|---|
//! | `tree.rs` | the tree of the file, checked |
//! | `pieces.rs` | a node as runs of tracks in address order |
//! | `zones.rs` | the tree as zones that do not overlap |

mod pieces;
mod tree;
mod zones;

use crate::error::{ImportError, ImportLoss};
use crate::fields::BlockFields;
use crate::layout::{ImportedLayout, LayoutDisk};

/// Reads a `dm_layout_g4` block.
pub(crate) fn read(
    fields: &BlockFields<'_>,
    disk: LayoutDisk,
    strict: bool,
    losses: &mut Vec<ImportLoss>,
) -> Result<ImportedLayout, ImportError> {
    fields.only(&["TP", "IDX", "Slips", "Remaps"], strict, losses)?;
    let tree = tree::LayoutTree::read(fields, disk)?;
    zones::layout(fields, &tree, disk, losses)
}
