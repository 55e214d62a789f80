//! Pages of a cache, as runs, which of them goes when another needs its place, and
//! which are read ahead.

pub mod pages;
pub mod read_ahead;
pub mod replacement;
mod run;

pub use run::{PAGE_BYTES, Run, pages_in};
