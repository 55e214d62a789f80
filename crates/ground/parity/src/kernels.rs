//! The operations on slices, and the choice of their implementation.

use crate::scalar;
use std::sync::OnceLock;

/// One implementation of the four operations. The slices of a call must have equal lengths. Any
/// length and any alignment is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    pub(crate) name: &'static str,
    pub(crate) xor_into: fn(&mut [u8], &[u8]),
    pub(crate) multiply_into: fn(u8, &mut [u8], &[u8]),
    pub(crate) multiply_add: fn(u8, &mut [u8], &[u8]),
    pub(crate) syndromes: fn(&[&[u8]], &mut [u8], &mut [u8]),
}

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

    /// Returns the name of the instruction set: `avx512-gfni`, `avx2`, `ssse3`, `neon` or `scalar`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// As [`xor_into`].
    ///
    /// # Panics
    /// If the slices differ in length.
    #[inline]
    pub fn xor_into(&self, into: &mut [u8], from: &[u8]) {
        assert_eq!(into.len(), from.len(), "both slices have one length");
        (self.xor_into)(into, from);
    }

    /// As [`multiply_into`].
    ///
    /// # Panics
    /// If the slices differ in length.
    #[inline]
    pub fn multiply_into(&self, coefficient: u8, into: &mut [u8], from: &[u8]) {
        assert_eq!(into.len(), from.len(), "both slices have one length");
        match coefficient {
            0 => into.fill(0),
            1 => into.copy_from_slice(from),
            _ => (self.multiply_into)(coefficient, into, from),
        }
    }

    /// As [`multiply_add`].
    ///
    /// # Panics
    /// If the slices differ in length.
    #[inline]
    pub fn multiply_add(&self, coefficient: u8, into: &mut [u8], from: &[u8]) {
        assert_eq!(into.len(), from.len(), "both slices have one length");
        match coefficient {
            0 => {}
            1 => (self.xor_into)(into, from),
            _ => (self.multiply_add)(coefficient, into, from),
        }
    }

    /// As [`syndromes`].
    ///
    /// # Panics
    /// If the slices differ in length.
    #[inline]
    pub fn syndromes(&self, data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
        assert_eq!(p.len(), q.len(), "all slices have one length");
        assert!(
            data.iter().all(|data| data.len() == p.len()),
            "all slices have one length"
        );
        (self.syndromes)(data, p, q);
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
