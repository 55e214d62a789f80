//! A policy from outside, tried beside those of a registry.

use crate::ConfigError;
use std::fmt;
use std::sync::Arc;

/// A policy `P` that is in no registry, and how one is built for each site `S`.
pub struct Trial<S, P: ?Sized> {
    name: Arc<str>,
    build: Arc<Build<S, P>>,
}

type Build<S, P> = dyn Fn(&S) -> Result<Box<P>, ConfigError> + Send + Sync;

impl<S, P: ?Sized> Trial<S, P> {
    /// The policy called `name` in results.
    pub fn new(
        name: impl Into<Arc<str>>,
        build: impl Fn(&S) -> Result<Box<P>, ConfigError> + Send + Sync + 'static,
    ) -> Trial<S, P> {
        Trial {
            name: name.into(),
            build: Arc::new(build),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One of it.
    ///
    /// # Errors
    /// What it says against the site.
    pub fn build(&self, site: &S) -> Result<Box<P>, ConfigError> {
        (self.build)(site)
    }
}

impl<S, P: ?Sized> Clone for Trial<S, P> {
    fn clone(&self) -> Trial<S, P> {
        Trial {
            name: Arc::clone(&self.name),
            build: Arc::clone(&self.build),
        }
    }
}

impl<S, P: ?Sized> fmt::Debug for Trial<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trial").field(&self.name).finish()
    }
}

/// The same one, not merely one of that name.
impl<S, P: ?Sized> PartialEq for Trial<S, P> {
    fn eq(&self, other: &Trial<S, P>) -> bool {
        Arc::ptr_eq(&self.build, &other.build)
    }
}
