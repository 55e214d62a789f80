//! Readers for the parameter files of DiskSim 4.0. They convert the described disks into drive
//! files of this project, and list the properties that could not be converted.
//!
//! ```no_run
//! use fullstroke_disksim::{ImportOptions, import};
//! for disk in import("cheetah9LP.diskspecs".as_ref(), &ImportOptions::default())? {
//!     println!("{}: {} sectors", disk.name, disk.config.capacity_sectors.0);
//!     for loss in &disk.losses {
//!         println!("  {}: {}", loss.key, loss.what);
//!     }
//! }
//! # Ok::<(), fullstroke_disksim::ImportError>(())
//! ```
//!
//! In the order of processing:
//!
//! | file | contents |
//! |---|---|
//! | `files.rs` | the sources of the text |
//! | `grammar/` | blocks, lists, ranges, inheritance, `source`, as a tree with places |
//! | `fields.rs` | the keys of a block, with checked types |
//! | `import.rs` | `.parv`, `.diskspecs` and `.model`: the disks, and their parts |
//! | `electronics.rs` | buffer, overheads, scheduler, bus |
//! | `seek.rs` | seek files and formulas |
//! | `g1.rs` | layouts by zones and sparing schemes |
//! | `g4/` | layouts as a tree of track patterns |
//! | `layout.rs` | the common parts of layouts |
//! | `reading.rs` | the rules and constants that are in no file |
//! | `rules.rs` | the interpretation of the numbers by these rules |

mod electronics;
mod error;
mod fields;
mod files;
mod g1;
mod g4;
mod grammar;
mod import;
mod layout;
mod reading;
mod rules;
mod seek;

pub use electronics::{BUS_USES, BusTimes, DiskKeys, Electronics, KeyTreatment, KeyUse, Scheduler};
pub use error::{ErrorKind, ImportError, ImportLoss};
pub use files::{FileSystem, ReadFiles};
pub use grammar::{
    Content, Document, FilePlace, Item, Parameter, PlacedValue, Topology, TypeBlock,
};
pub use import::{ImportOptions, Imported, document, import, import_from};
pub use reading::{Reading, ReadingError, Rule};
pub use seek::seek_file;
