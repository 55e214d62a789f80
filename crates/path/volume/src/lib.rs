//! Disk arrays: address maps, parity plans, and the layer that carries out the plans.
//!
//! The terms of this crate:
//!
//! | term | meaning |
//! |---|---|
//! | member | a drive or a volume inside the volume, counted from 0 |
//! | sector | 512 bytes, the unit of all addresses and lengths |
//! | chunk | consecutive addresses of the volume on one member |
//! | row | the chunks of all members at one offset, with their parity |
//! | md | the software RAID of the Linux kernel |
//! | stripe | in an array like md: the pages of 4 KiB of all members at one offset |
//! | P, Q | the exclusive or of a row's data, and the second sum of RAID 6 |
//!
//! A [`Layout`] maps the sectors of a volume to sectors of its members. A layout turns each request
//! into a [`Plan`]: member I/O in phases, and the parity arithmetic between the phases. The
//! [`Volume`] is a layer: it issues the member I/O in order, keeps writes of one row apart, and
//! accounts for the time. Volumes nest: a member may be a volume with a layout of its own.
//!
//! Members fail, are replaced by empty members and are filled again while the volume is in use.
//! [`MemberStates`] holds the states of the members, [`Layout::plan_rebuild`] plans the rebuild,
//! and the [`Volume`] carries out the rebuild in the background.
//!
//! RAID 4, 5 and 6 like md ([`Like::Md`], the default of simulated stacks) plan stripe by stripe;
//! [`MdVolume`] is their layer. RAID 1 and 10 like md keep the [`Volume`], and
//! choose the copy to read by md's rule.
//!
//! `dm-zoned` above a drive with zones has a layer of its own, [`DmZoned`]: its chunks move.
//!
//! Each layout has a file: [`jbod`], [`raid0`], [`raid1`], [`raid10`], [`raid4`], [`raid5`],
//! [`raid6`], [`lzvs`], [`lzvs_geo`], [`lzvs_naive`], [`paraid`]. The layouts `lzvs…` transfer at
//! one rate at every address; [`paraid`] stops members under a low load. [`REGISTRY`] lists all
//! layouts by name. The layouts with parity share the planning of rows. The layouts with copies
//! share the choice of the copy to read. The layouts for a constant transfer rate share the pairing
//! of members.

#[cfg(test)]
mod bytes;
mod counts;
mod dm_zoned;
mod gears;
mod geometry;
pub mod gf256;
pub mod jbod;
mod late;
mod layout;
mod like;
mod locks;
pub mod lzvs;
pub mod lzvs_geo;
pub mod lzvs_naive;
mod md;
mod members;
mod mirror;
mod other_names;
mod paired;
pub mod paraid;
mod parity;
mod plan;
pub mod raid0;
pub mod raid1;
pub mod raid10;
pub mod raid4;
pub mod raid5;
pub mod raid6;
mod registry;
mod shape;
mod states;
mod volume;

#[cfg(test)]
mod proofs;
#[cfg(test)]
mod rebuild_proofs;

/// The example of CONTRIBUTING.md, compiled and tested.
#[cfg(test)]
#[path = "../../../../docs/examples/layout.rs"]
mod worked_example;

pub use dm_zoned::{DmZoned, DmZonedConfig, DriveZones, ZONED_REGISTRY};
pub use gears::{CopiedRows, GearedRows, Gears, ShiftRules};
pub use geometry::{Geometry, ParityRows, Stripe};
pub use late::{
    AroundConfig, BuildLateRule, FailConfig, IoTotals, LATE_REGISTRY, LateRule, LateVolume,
    PeerChange, PeerConfig, PeerWatch, SitOutConfig, WaitConfig, late_rule,
};
pub use layout::{BuildLayout, Layout, Location, Role};
pub use like::Like;
pub use lzvs::LzvsConfig;
pub use lzvs_geo::LzvsGeoConfig;
pub use lzvs_naive::LzvsNaiveConfig;
pub use md::{
    JournalDevice, MdKernel, MdRecords, MdVolume, ParityUpdates, Surroundings, WriteIntent,
};
pub use mirror::ReadPolicy;
pub use other_names::find_layout;
pub use paired::{
    Floor, Fraction, MemberZone, Ratio, RatioError, VolumePart, ZONES_MAX, ZonePair, Zoning,
};
pub use parity::Rotation;
pub use plan::{
    Band, BufferPlace, ChunkRows, Content, Detail, MemberIo, MemoryPiece, Method, ParityStep, Plan,
    Strand,
};
pub use raid10::Arrangement;
pub use registry::REGISTRY;
pub use shape::Shape;
pub use states::MemberStates;
pub use volume::{Coordination, REBUILD_WINDOW, Volume};
