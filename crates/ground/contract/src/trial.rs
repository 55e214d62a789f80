//! A policy from outside, compared with those of a registry.

use crate::ConfigError;
use std::fmt;
use std::sync::Arc;

/// A policy `P` outside the registries, with a function that builds it for a site `S`.
pub struct TrialPolicy<S, P: ?Sized> {
    name: Arc<str>,
    build: Arc<Build<S, P>>,
}

type Build<S, P> = dyn Fn(&S) -> Result<Box<P>, ConfigError> + Send + Sync;

impl<S, P: ?Sized> TrialPolicy<S, P> {
    /// Creates a policy called `name` in results.
    pub fn new(
        name: impl Into<Arc<str>>,
        build: impl Fn(&S) -> Result<Box<P>, ConfigError> + Send + Sync + 'static,
    ) -> TrialPolicy<S, P> {
        TrialPolicy {
            name: name.into(),
            build: Arc::new(build),
        }
    }

    /// Returns the name of the policy.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Builds the policy for `site`.
    ///
    /// # Errors
    /// Returns the policy's objection to the site.
    pub fn build(&self, site: &S) -> Result<Box<P>, ConfigError> {
        (self.build)(site)
    }
}

impl<S, P: ?Sized> Clone for TrialPolicy<S, P> {
    fn clone(&self) -> TrialPolicy<S, P> {
        TrialPolicy {
            name: Arc::clone(&self.name),
            build: Arc::clone(&self.build),
        }
    }
}

impl<S, P: ?Sized> fmt::Debug for TrialPolicy<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trial").field(&self.name).finish()
    }
}

/// Two trials are equal if they share the builder; equal names are not enough.
impl<S, P: ?Sized> PartialEq for TrialPolicy<S, P> {
    fn eq(&self, other: &TrialPolicy<S, P>) -> bool {
        Arc::ptr_eq(&self.build, &other.build)
    }
}
