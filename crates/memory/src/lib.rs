//! Pages of a cache, as runs, and which of them goes when another needs its place.

pub mod pages;
pub mod replacement;
mod run;

pub use run::{PAGE_BYTES, Run, pages_in};
