//! Which build a result comes from.

/// The version and a digest of the code that decides what a simulation gives
/// (of the version alone where those are not at hand, as in a packaged crate).
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("FULLSTROKE_SOURCES"));
