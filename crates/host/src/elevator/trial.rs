//! An elevator from outside, tried in the place of the one that a host names.

use super::{Elevator, Site};
use fullstroke_contract::ConfigError;
use std::fmt;
use std::sync::Arc;

/// An elevator that is in no registry, and how one is built for each host.
#[derive(Clone)]
pub struct Trial {
    name: String,
    build: Arc<Build>,
}

type Build = dyn Fn(&Site) -> Result<Box<dyn Elevator>, ConfigError> + Send + Sync;

impl Trial {
    /// The elevator called `name` in results.
    pub fn new(
        name: impl Into<String>,
        build: impl Fn(&Site) -> Result<Box<dyn Elevator>, ConfigError> + Send + Sync + 'static,
    ) -> Trial {
        Trial { name: name.into(), build: Arc::new(build) }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One of it.
    ///
    /// # Errors
    /// What it says against the place.
    pub fn build(&self, site: &Site) -> Result<Box<dyn Elevator>, ConfigError> {
        (self.build)(site)
    }
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trial").field(&self.name).finish()
    }
}

/// The same one, not merely one of that name.
impl PartialEq for Trial {
    fn eq(&self, other: &Trial) -> bool {
        Arc::ptr_eq(&self.build, &other.build)
    }
}
