//! The loops of the operations, over any kind of vector.
//!
//! Each function here is inlined into one that the compiler may build with the
//! instructions of a [`Vector`]; by itself it would not reach them.

#![allow(unsafe_code)]

use crate::scalar;

/// A vector register of bytes.
///
/// # Safety
/// Every method may only be called where the instructions of the vector are
/// known to exist.
pub(crate) trait Vector: Copy {
    /// Bytes in a vector.
    const BYTES: usize;
    /// A coefficient, prepared for multiplication.
    type Factor: Copy;

    /// # Safety
    /// That of the trait; `from` may be read for [`Vector::BYTES`].
    unsafe fn load(from: *const u8) -> Self;
    /// # Safety
    /// That of the trait; `into` may be written for [`Vector::BYTES`].
    unsafe fn store(self, into: *mut u8);
    /// # Safety
    /// That of the trait.
    unsafe fn zero() -> Self;
    /// # Safety
    /// That of the trait.
    unsafe fn xor(self, other: Self) -> Self;
    /// Each byte times the generator.
    ///
    /// # Safety
    /// That of the trait.
    unsafe fn double(self) -> Self;
    /// # Safety
    /// That of the trait.
    unsafe fn factor(coefficient: u8) -> Self::Factor;
    /// Each byte times the factor.
    ///
    /// # Safety
    /// That of the trait.
    unsafe fn multiply(self, factor: Self::Factor) -> Self;
}

/// # Safety
/// That of [`Vector`]; the slices have one length.
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
/// That of [`Vector`]; the slices have one length.
#[inline(always)]
pub(crate) unsafe fn multiply_into<V: Vector>(coefficient: u8, into: &mut [u8], from: &[u8]) {
    let whole = into.len() - into.len() % V::BYTES;
    // SAFETY: the caller's.
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
/// That of [`Vector`]; the slices have one length.
#[inline(always)]
pub(crate) unsafe fn multiply_add<V: Vector>(coefficient: u8, into: &mut [u8], from: &[u8]) {
    let whole = into.len() - into.len() % V::BYTES;
    // SAFETY: the caller's.
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
/// That of [`Vector`]; all slices have one length.
#[inline(always)]
pub(crate) unsafe fn syndromes<V: Vector>(data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
    /// Vectors side by side: the sums of one need not wait for another's.
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
/// That of [`Vector`]; `ABREAST` vectors from `at` lie within all slices.
#[inline(always)]
unsafe fn syndromes_at<V: Vector, const ABREAST: usize>(
    at: usize,
    data: &[&[u8]],
    p: &mut [u8],
    q: &mut [u8],
) {
    // SAFETY: the caller's.
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

/// Builds the operations over the vector `$vector` with the instructions
/// `$features`, as a constant `KERNELS` in the module `$module`.
macro_rules! kernels {
    ($module:ident, $name:literal, $vector:ty, $features:literal) => {
        mod $module {
            use super::*;
            use crate::vector;

            /// To be run only where the instructions exist: see `detected`.
            pub(super) const KERNELS: crate::Kernels = crate::Kernels {
                name: $name,
                // SAFETY (all four): these constants are handed out by
                // `detected` alone, which asks the processor for the
                // instructions first; `Kernels` checks the lengths.
                xor_into: |into, from| unsafe { xor_into(into, from) },
                multiply_into: |factor, into, from| unsafe { multiply_into(factor, into, from) },
                multiply_add: |factor, into, from| unsafe { multiply_add(factor, into, from) },
                syndromes: |data, p, q| unsafe { syndromes(data, p, q) },
            };

            #[target_feature(enable = $features)]
            unsafe fn xor_into(into: &mut [u8], from: &[u8]) {
                // SAFETY: the instructions are those of this function.
                unsafe { vector::xor_into::<$vector>(into, from) }
            }
            #[target_feature(enable = $features)]
            unsafe fn multiply_into(coefficient: u8, into: &mut [u8], from: &[u8]) {
                // SAFETY: the instructions are those of this function.
                unsafe { vector::multiply_into::<$vector>(coefficient, into, from) }
            }
            #[target_feature(enable = $features)]
            unsafe fn multiply_add(coefficient: u8, into: &mut [u8], from: &[u8]) {
                // SAFETY: the instructions are those of this function.
                unsafe { vector::multiply_add::<$vector>(coefficient, into, from) }
            }
            #[target_feature(enable = $features)]
            unsafe fn syndromes(data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
                // SAFETY: the instructions are those of this function.
                unsafe { vector::syndromes::<$vector>(data, p, q) }
            }
        }
    };
}
pub(crate) use kernels;
