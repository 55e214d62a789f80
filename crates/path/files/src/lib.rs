//! File systems: the places of files on a device, and the cost of their metadata.
//!
//! A file system answers with extents when it is asked for the places of a file's pages. It does no
//! I/O and has no cache. Its only clock is the time that the caller passes, and its only randomness
//! comes from the given seed. Metadata are pages of the device like other pages. Each operation
//! reports the metadata pages that it read and changed ([`MetaAccesses`]). So a page cache can hold
//! them, write them back and drop them.
//!
//! A file system is one source file: a type, its keys, its tests, and one line in [`REGISTRY`]. A
//! file system with names implements `DiskFormat` (`format.rs`), the placement of inodes and data.
//! Names, lengths and delayed allocation are the same for all (`tree.rs`).
//!
//! | file | content |
//! |---|---|
//! | `system.rs` | the interface of every file system: [`FileSystem`] |
//! | `raw.rs` | the device as the only file |
//! | `ext2.rs` | Linux 2.6's ext2 by pre-allocation or by reservation, or today's ext2 |
//! | `ext4.rs` | today's ext4 |
//! | `xfs.rs` | XFS of Linux 2.6.24, and today's |
//! | `zfs.rs` | ZFS above a pool |
//! | `tree.rs`, `format.rs` | names and lengths; the interface of a format |
//! | `directory.rs` | pages of directories: linear, htree, XFS |
//! | `groups.rs`, `mballoc.rs` | block groups, multi-block allocation |
//! | `extent_tree.rs` | the blocks that hold a file's extents |
//! | `journal.rs` | transactions, and their writes to a log |
//! | `map.rs`, `runs.rs` | a file's pieces; sets of runs |
//! | `path.rs` | look-up of paths |
//! | `script.rs` | lists of operations, and their execution on a file system |
//! | `age.rs` | ageing of a file system, as by long use |
//! | `fragmentation.rs` | fragmentation of files |
//! | `aligner.rs` | moves that bring files onto tracks |
//! | `conformance.rs` | tests for every file system |

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
mod metadata_accesses;
pub mod path;
mod raw;
mod runs;
pub mod script;
mod site;
mod system;
mod tree;
mod xfs;
mod zfs;

#[cfg(test)]
mod conformance;

pub use error::FileError;
pub use metadata_accesses::{MetaAccess, MetaAccesses};
pub use site::{FileSystemSite, Stripe};
pub use system::{
    AllocatorRegions, Attributes, Caller, FileSystem, InodeChange, LogWrite, ObjectKind,
    PAGE_BYTES, PAGE_SECTORS, PageMapping, PagePlace, SyncPlan, Usage,
};

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, find, schema_of};

/// Constructor of a file system from its keys.
pub type BuildFileSystem = fn(&Keys, &FileSystemSite) -> Result<Box<dyn FileSystem>, ConfigError>;

/// All file systems.
pub const REGISTRY: &[PolicyEntry<BuildFileSystem>] = &[
    PolicyEntry {
        name: "raw",
        summary: raw::SUMMARY,
        schema: schema_of::<raw::Config>,
        build: raw::build,
    },
    PolicyEntry {
        name: "ext2",
        summary: ext2::SUMMARY,
        schema: schema_of::<ext2::Config>,
        build: ext2::build,
    },
    PolicyEntry {
        name: "ext4",
        summary: ext4::SUMMARY,
        schema: schema_of::<ext4::Config>,
        build: ext4::build,
    },
    PolicyEntry {
        name: "xfs",
        summary: xfs::SUMMARY,
        schema: schema_of::<xfs::Config>,
        build: xfs::build,
    },
    PolicyEntry {
        name: "zfs",
        summary: zfs::SUMMARY,
        schema: schema_of::<zfs::Config>,
        build: zfs::build,
    },
];

/// Makes a new file system of kind `name` on `site`. Returns an error at `kind` if the name is
/// unknown, else at one of `keys`.
pub fn make(
    name: &str,
    keys: &Keys,
    site: &FileSystemSite,
) -> Result<Box<dyn FileSystem>, ConfigError> {
    (find("file system", REGISTRY, "kind", name)?.build)(keys, site)
}
