//! The operations on slices, and the choice of their implementation.

use crate::kernels::Kernels;
use crate::scalar;
use std::sync::OnceLock;

impl Kernels {
    /// Returns all kernels for this processor, the fastest first. Plain arithmetic is always the
    /// last.
    pub fn available() -> &'static [Kernels] {
        static AVAILABLE: OnceLock<Vec<Kernels>> = OnceLock::new();
        AVAILABLE.get_or_init(|| {
            let mut available = Vec::new();
            #[cfg(target_arch = "x86_64")]
            available.extend(crate::x86_64::detected());
            #[cfg(target_arch = "aarch64")]
            available.extend(crate::aarch64::detected());
            available.push(scalar::KERNELS);
            available
        })
    }

    /// Returns the fastest kernels for this processor.
    #[inline]
    pub fn best() -> &'static Kernels {
        // The list is never empty, because plain arithmetic is always available.
        &Kernels::available()[0]
    }
}

/// Computes `into ^= from`.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub fn xor_into(into: &mut [u8], from: &[u8]) {
    Kernels::best().xor_into(into, from);
}

/// Computes `into = coefficient * from`, byte by byte.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub fn multiply_into(coefficient: u8, into: &mut [u8], from: &[u8]) {
    Kernels::best().multiply_into(coefficient, into, from);
}

/// Computes `into ^= coefficient * from`, byte by byte.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub fn multiply_add(coefficient: u8, into: &mut [u8], from: &[u8]) {
    Kernels::best().multiply_add(coefficient, into, from);
}

/// Computes P and Q of a row in one pass over the data. `p` is the exclusive or of all data. `q` is
/// the sum of `data[i]` times the generator to the power of `i`. Without data both are zero.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub fn syndromes(data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
    Kernels::best().syndromes(data, p, q);
}
