//! The build of a result.

/// Version and digest of the code that determines the results of a simulation. If the sources are
/// missing, as in a packaged crate, there is only the version.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("FULLSTROKE_SOURCES"));
