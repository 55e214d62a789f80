//! `dm_layout_g4`: a tree of track patterns.
//!
//! `TP` lists patterns `low, high, sectors per track`: addresses lie on the
//! sectors from `low` to `high` of a track. `IDX` lists nodes, each a list of
//! entries, the last node the root. An entry says where its child begins,
//! relative to its parent (`lbn`, `cyl`, `off` in revolutions), the size of one
//! instance of the child (`len`, `cyllen`), the angle from one instance to the
//! next (`alen`), and what all instances cover (`runlen`, `cylrunlen`, negative
//! where they proceed outward). The child is a pattern, then with a head, or
//! another node.
//!
//! | file | what |
//! |---|---|
//! | `tree.rs` | the tree as the file has it, checked |
//! | `pieces.rs` | a node as runs of tracks in address order |
//! | `zones.rs` | the tree as zones that do not overlap |

mod pieces;
mod tree;
mod zones;

use crate::error::{ImportError, Loss};
use crate::fields::Fields;
use crate::layout::{Disk, Layout};

/// Reads a `dm_layout_g4` block.
pub(crate) fn read(
    fields: &Fields<'_>,
    disk: Disk,
    strict: bool,
    losses: &mut Vec<Loss>,
) -> Result<Layout, ImportError> {
    fields.only(&["TP", "IDX", "Slips", "Remaps"], strict, losses)?;
    let tree = tree::Tree::read(fields, disk)?;
    zones::layout(fields, &tree, disk, losses)
}
