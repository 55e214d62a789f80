//! Readers for the parameter files of DiskSim 4.0: the disks that they
//! describe, as drive files of our own, and a list of what could not be carried
//! over.
//!
//! ```no_run
//! use fullstroke_disksim::{Options, import};
//! for disk in import("cheetah9LP.diskspecs".as_ref(), &Options::default())? {
//!     println!("{}: {} sectors", disk.name, disk.config.capacity_sectors.0);
//!     for loss in &disk.losses {
//!         println!("  {}: {}", loss.key, loss.what);
//!     }
//! }
//! # Ok::<(), fullstroke_disksim::ImportError>(())
//! ```
//!
//! In the order in which a file passes:
//!
//! | file | what |
//! |---|---|
//! | `files.rs` | where the text comes from |
//! | `grammar/` | blocks, lists, ranges, inheritance, `source`, as a tree with places |
//! | `fields.rs` | the keys of a block, with their types checked |
//! | `import.rs` | `.parv`, `.diskspecs` and `.model`: which disks, and their parts |
//! | `electronics.rs` | buffer, overheads, scheduler, bus |
//! | `seek.rs` | seek files and formulas |
//! | `g1.rs` | layouts by zones and sparing schemes |
//! | `g4/` | layouts as a tree of track patterns |
//! | `layout.rs` | what layouts have in common |
//! | `reading.rs` | the rules and constants that stand in no file |
//! | `rules.rs` | what the numbers are taken to mean by them |

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

pub use electronics::{BUS_USES, Bus, DiskKeys, Electronics, KeyUse, Scheduler, Use};
pub use error::{ErrorKind, ImportError, Loss};
pub use files::{FileSystem, ReadFiles};
pub use grammar::{Block, Content, Document, Item, Parameter, Place, Topology, Value};
pub use import::{Imported, Options, document, import, import_from};
pub use reading::{Reading, ReadingError, Rule};
pub use seek::seek_file;
