//! File systems: where files lie on a device, and what their metadata cost.
//!
//! A file system is asked where a file's pages lie and answers with extents. It does
//! no I/O, knows no cache, no clock but the time it is told, and no randomness but a
//! seed it was given. Its metadata are pages of the device like others; each
//! operation reports which of them it read and changed ([`Touches`]), so that a page
//! cache can have them, write them back and drop them.
//!
//! A file system is one file: a type, its keys, its tests, and one line in
//! [`REGISTRY`]. One with names implements `Format` (`format.rs`): where inodes and
//! data go. Names, lengths and delays are the same for all (`tree.rs`).
//!
//! | file | what |
//! |---|---|
//! | `system.rs` | what every file system does: [`FileSystem`] |
//! | `raw.rs` | the device as the only file |
//! | `ext2.rs` | Linux 2.6's ext2, by pre-allocation, by reservation, or today's |
//! | `ext4.rs` | today's ext4 |
//! | `xfs.rs` | XFS of Linux 2.6.24, and today's |
//! | `tree.rs`, `format.rs` | names and lengths; what a format adds |
//! | `directory.rs` | directories' pages: linear, htree, XFS's |
//! | `groups.rs`, `mballoc.rs` | block groups, multi-block allocation |
//! | `extent_tree.rs` | the blocks that name a file's extents |
//! | `journal.rs` | transactions, and what is written to a log |
//! | `map.rs`, `runs.rs` | a file's pieces; sets of runs |
//! | `path.rs` | what a path leads to |
//! | `script.rs` | lists of operations, and what a file system makes of them |
//! | `age.rs` | a file system that has been in use for long |
//! | `fragmentation.rs` | how fragmented files are |
//! | `aligner.rs` | moves that bring files onto tracks |
//! | `conformance.rs` | what every file system is held to |

pub mod age;
pub mod aligner;
mod directory;
mod error;
mod ext2;
mod ext4;
mod extent_tree;
mod format;
pub mod fragmentation;
mod groups;
mod journal;
mod map;
mod mballoc;
pub mod path;
mod raw;
mod runs;
pub mod script;
mod site;
mod system;
mod touches;
mod tree;
mod xfs;

#[cfg(test)]
mod conformance;

pub use error::FileError;
pub use site::{Site, Stripe};
pub use system::{
    Attributes, Caller, FileSystem, Kind, LogWrite, Mapped, PAGE_BYTES, PAGE_SECTORS, Place,
    Regions, SyncPlan, Usage,
};
pub use touches::{Touch, Touches};

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Entry, Keys, find, schema_of};

/// Makes a file system from its keys.
pub type BuildFileSystem = fn(&Keys, &Site) -> Result<Box<dyn FileSystem>, ConfigError>;

/// Every file system.
pub const REGISTRY: &[Entry<BuildFileSystem>] = &[
    Entry {
        name: "raw",
        summary: raw::SUMMARY,
        schema: schema_of::<raw::Config>,
        build: raw::build,
    },
    Entry {
        name: "ext2",
        summary: ext2::SUMMARY,
        schema: schema_of::<ext2::Config>,
        build: ext2::build,
    },
    Entry {
        name: "ext4",
        summary: ext4::SUMMARY,
        schema: schema_of::<ext4::Config>,
        build: ext4::build,
    },
    Entry {
        name: "xfs",
        summary: xfs::SUMMARY,
        schema: schema_of::<xfs::Config>,
        build: xfs::build,
    },
];

/// The file system called `name`, new, on `site`. Errors at `kind` where there is
/// none of that name, else at one of `keys`.
pub fn make(name: &str, keys: &Keys, site: &Site) -> Result<Box<dyn FileSystem>, ConfigError> {
    (find("file system", REGISTRY, "kind", name)?.build)(keys, site)
}
