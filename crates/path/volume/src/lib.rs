//! Disk arrays: address maps, parity plans, and the layer that carries them
//! out.
//!
//! A [`Layout`] says where the volume's sectors lie on its members and turns
//! each request into a [`Plan`]: member I/O in phases, with the parity
//! arithmetic between them written down. The [`Volume`] is the layer that
//! issues that I/O in order, keeps writes of one stripe apart, and says where
//! the time went. Layouts nest as layers do: a member may be a volume.
//!
//! Members fail, are replaced by empty ones and are filled again while the
//! volume is in use: [`MemberStates`] is what layouts know of it,
//! [`Layout::plan_rebuild`] plans the filling, and the [`Volume`] does it in the
//! background.
//!
//! One file a layout: [`jbod`], [`raid0`], [`raid1`], [`raid10`], [`raid4`],
//! [`raid5`], [`raid6`], [`lzvs`], [`lzvs_geo`], [`lzvs_naive`], [`paraid`]; all by
//! name in [`REGISTRY`]. Those with parity share their planning of rows, those with copies
//! their choice of the copy to read, those for a constant transfer rate their
//! pairs of members.

#[cfg(test)]
mod bytes;
mod counts;
mod gears;
mod geometry;
pub mod gf256;
pub mod jbod;
mod layout;
mod locks;
pub mod lzvs;
pub mod lzvs_geo;
pub mod lzvs_naive;
mod members;
mod mirror;
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

pub use gears::{CopiedRows, GearedRows, Gears, ShiftRules};
pub use geometry::{Geometry, ParityRows, Stripe};
pub use layout::{BuildLayout, Layout, Location, Role};
pub use lzvs::LzvsConfig;
pub use lzvs_geo::LzvsGeoConfig;
pub use lzvs_naive::LzvsNaiveConfig;
pub use mirror::ReadPolicy;
pub use paired::{
    Floor, Fraction, MemberZone, Part, Ratio, RatioError, ZONES_MAX, ZonePair, Zoning,
};
pub use parity::Rotation;
pub use plan::{Band, Content, Detail, MemberIo, Method, Piece, Place, Plan, Rows, Step, Strand};
pub use registry::REGISTRY;
pub use shape::Shape;
pub use states::MemberStates;
pub use volume::{Coordination, Volume};
