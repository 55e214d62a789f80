//! The loops of the operations, for any kind of vector.
//!
//! Each function here is inlined into a function with the target features of a [`Vector`]. Without
//! the inlining, the compiler would not use the vector instructions.

#![allow(unsafe_code)]

use crate::scalar;

/// A vector register of bytes.
///
/// # Safety
/// Every method may only be called on a processor that has the instructions of the vector.
pub(crate) trait Vector: Copy {
    /// Number of bytes in a vector.
    const BYTES: usize;
    /// A coefficient, prepared for multiplication.
    type Factor: Copy;

    /// # Safety
    /// As for the trait; `from` must be readable for [`Vector::BYTES`].
    unsafe fn load(from: *const u8) -> Self;
    /// # Safety
    /// As for the trait; `into` must be writable for [`Vector::BYTES`].
    unsafe fn store(self, into: *mut u8);
    /// # Safety
    /// As for the trait.
    unsafe fn zero() -> Self;
    /// # Safety
    /// As for the trait.
    unsafe fn xor(self, other: Self) -> Self;
    /// Multiplies each byte by the generator.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn double(self) -> Self;
    /// # Safety
    /// As for the trait.
    unsafe fn factor(coefficient: u8) -> Self::Factor;
    /// Multiplies each byte by the factor.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn multiply(self, factor: Self::Factor) -> Self;
}

/// # Safety
/// As for [`Vector`]; the slices must have equal lengths.
#[inline(always)]
pub(crate) unsafe fn xor_into<V: Vector>(into: &mut [u8], from: &[u8]) {
    let whole = into.len() - into.len() % V::BYTES;
    for at in (0..whole).step_by(V::BYTES) {
        // SAFETY: the vector at `at` ends at `whole`, within both slices.
        unsafe {
            let into = into.as_mut_ptr().add(at);
            V::load(into)
                .xor(V::load(from.as_ptr().add(at)))
                .store(into);
        }
    }
    scalar::xor_into(&mut into[whole..], &from[whole..]);
}

/// # Safety
/// As for [`Vector`]; the slices must have equal lengths.
#[inline(always)]
pub(crate) unsafe fn multiply_into<V: Vector>(coefficient: u8, into: &mut [u8], from: &[u8]) {
    let whole = into.len() - into.len() % V::BYTES;
    // SAFETY: guaranteed by the caller.
    let factor = unsafe { V::factor(coefficient) };
    for at in (0..whole).step_by(V::BYTES) {
        // SAFETY: the vector at `at` ends at `whole`, within both slices.
        unsafe {
            V::load(from.as_ptr().add(at))
                .multiply(factor)
                .store(into.as_mut_ptr().add(at))
        };
    }
    scalar::multiply_into(coefficient, &mut into[whole..], &from[whole..]);
}

/// # Safety
/// As for [`Vector`]; the slices must have equal lengths.
#[inline(always)]
pub(crate) unsafe fn multiply_add<V: Vector>(coefficient: u8, into: &mut [u8], from: &[u8]) {
    let whole = into.len() - into.len() % V::BYTES;
    // SAFETY: guaranteed by the caller.
    let factor = unsafe { V::factor(coefficient) };
    for at in (0..whole).step_by(V::BYTES) {
        // SAFETY: the vector at `at` ends at `whole`, within both slices.
        unsafe {
            let into = into.as_mut_ptr().add(at);
            V::load(into)
                .xor(V::load(from.as_ptr().add(at)).multiply(factor))
                .store(into);
        }
    }
    scalar::multiply_add(coefficient, &mut into[whole..], &from[whole..]);
}

/// # Safety
/// As for [`Vector`]; all slices must have equal lengths.
#[inline(always)]
pub(crate) unsafe fn syndromes<V: Vector>(data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
    /// Number of vectors side by side. The sums of one vector need not wait for the sums of
    /// another.
    const ABREAST: usize = 4;
    let wide = p.len() - p.len() % (ABREAST * V::BYTES);
    let whole = p.len() - p.len() % V::BYTES;
    for at in (0..wide).step_by(ABREAST * V::BYTES) {
        // SAFETY: the vectors from `at` end at `wide`, within all slices.
        unsafe { syndromes_at::<V, ABREAST>(at, data, p, q) };
    }
    for at in (wide..whole).step_by(V::BYTES) {
        // SAFETY: the vector at `at` ends at `whole`, within all slices.
        unsafe { syndromes_at::<V, 1>(at, data, p, q) };
    }
    scalar::syndromes_from(whole, data, p, q);
}

/// # Safety
/// As for [`Vector`]; `ABREAST` vectors from `at` must lie within all slices.
#[inline(always)]
unsafe fn syndromes_at<V: Vector, const ABREAST: usize>(
    at: usize,
    data: &[&[u8]],
    p: &mut [u8],
    q: &mut [u8],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (mut sum, mut weighted) = ([V::zero(); ABREAST], [V::zero(); ABREAST]);
        for data in data.iter().rev() {
            let from = data.as_ptr().add(at);
            for lane in 0..ABREAST {
                let bytes = V::load(from.add(lane * V::BYTES));
                sum[lane] = sum[lane].xor(bytes);
                weighted[lane] = weighted[lane].double().xor(bytes);
            }
        }
        for lane in 0..ABREAST {
            sum[lane].store(p.as_mut_ptr().add(at + lane * V::BYTES));
            weighted[lane].store(q.as_mut_ptr().add(at + lane * V::BYTES));
        }
    }
}

/// Builds the operations over the vector `$vector` with the instructions `$features`, as a constant
/// `KERNELS` in the module `$module`.
macro_rules! kernels {
    ($module:ident, $name:literal, $vector:ty, $features:literal) => {
        mod $module {
            use super::*;
            use crate::vector;

            /// May run only on a processor with the instructions: see `detected`.
            pub(super) const KERNELS: crate::Kernels = crate::Kernels {
                name: $name,
                // SAFETY (all four): only `detected` returns these constants, after a check of the
                // processor's instructions. `Kernels` checks the lengths.
                xor_into: |into, from| unsafe { xor_into(into, from) },
                multiply_into: |factor, into, from| unsafe { multiply_into(factor, into, from) },
                multiply_add: |factor, into, from| unsafe { multiply_add(factor, into, from) },
                syndromes: |data, p, q| unsafe { syndromes(data, p, q) },
            };

            #[target_feature(enable = $features)]
            unsafe fn xor_into(into: &mut [u8], from: &[u8]) {
                // SAFETY: this function enables the instructions.
                unsafe { vector::xor_into::<$vector>(into, from) }
            }
            #[target_feature(enable = $features)]
            unsafe fn multiply_into(coefficient: u8, into: &mut [u8], from: &[u8]) {
                // SAFETY: this function enables the instructions.
                unsafe { vector::multiply_into::<$vector>(coefficient, into, from) }
            }
            #[target_feature(enable = $features)]
            unsafe fn multiply_add(coefficient: u8, into: &mut [u8], from: &[u8]) {
                // SAFETY: this function enables the instructions.
                unsafe { vector::multiply_add::<$vector>(coefficient, into, from) }
            }
            #[target_feature(enable = $features)]
            unsafe fn syndromes(data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
                // SAFETY: this function enables the instructions.
                unsafe { vector::syndromes::<$vector>(data, p, q) }
            }
        }
    };
}
pub(crate) use kernels;
