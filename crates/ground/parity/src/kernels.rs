//! One implementation of the operations on slices.

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
    /// Returns the name of the instruction set: `avx512-gfni`, `avx2`, `ssse3`, `neon` or `scalar`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// As [`xor_into`](crate::xor_into).
    ///
    /// # Panics
    /// If the slices differ in length.
    #[inline]
    pub fn xor_into(&self, into: &mut [u8], from: &[u8]) {
        assert_eq!(into.len(), from.len(), "both slices have one length");
        (self.xor_into)(into, from);
    }

    /// As [`multiply_into`](crate::multiply_into).
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

    /// As [`multiply_add`](crate::multiply_add).
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

    /// As [`syndromes`](crate::syndromes).
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
