//! Where requests come from: synthetic loads.
//!
//! A [`Synthetic`] source joins an arrival process (`arrivals/`, when), an
//! address pattern (`addresses/`, where), sizes and a read share (what). Each
//! process and each pattern is one file and one line in its registry.

pub mod addresses;
pub mod arrivals;
mod sizes;
mod synthetic;

pub use sizes::{SizeConfig, WeightedSize};
pub use synthetic::{AddressesConfig, ArrivalsConfig, Synthetic, SyntheticConfig};
