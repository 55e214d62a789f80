//! Kernels for AArch64 with NEON. A table lookup multiplies each half of a byte.

#![allow(unsafe_code)]

use crate::Kernels;
use crate::field::REDUCTION;
use crate::scalar::products;
use crate::vector::{Vector, kernels};
use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

/// Returns the kernels for this processor.
pub(crate) fn detected() -> impl Iterator<Item = Kernels> {
    is_aarch64_feature_detected!("neon")
        .then_some(neon::KERNELS)
        .into_iter()
}

kernels!(neon, "neon", uint8x16_t, "neon");

// SAFETY (every block): the instructions exist, by the contract of `Vector`.

impl Vector for uint8x16_t {
    const BYTES: usize = 16;
    /// Products with the low and the high half of a byte.
    type Factor = (uint8x16_t, uint8x16_t);

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { vld1q_u8(from) }
    }
    #[inline(always)]
    unsafe fn store(self, into: *mut u8) {
        unsafe { vst1q_u8(into, self) }
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { vdupq_n_u8(0) }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { veorq_u8(self, other) }
    }
    #[inline(always)]
    unsafe fn double(self) -> Self {
        unsafe {
            // A byte with the high bit set is negative.
            let carried = vcltzq_s8(vreinterpretq_s8_u8(self));
            veorq_u8(
                vaddq_u8(self, self),
                vandq_u8(carried, vdupq_n_u8(REDUCTION)),
            )
        }
    }
    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        let products = products(coefficient);
        unsafe {
            (
                vld1q_u8(products.low.as_ptr()),
                vld1q_u8(products.high.as_ptr()),
            )
        }
    }
    #[inline(always)]
    unsafe fn multiply(self, (low, high): Self::Factor) -> Self {
        unsafe {
            let of_low = vqtbl1q_u8(low, vandq_u8(self, vdupq_n_u8(15)));
            let of_high = vqtbl1q_u8(high, vshrq_n_u8::<4>(self));
            veorq_u8(of_low, of_high)
        }
    }
}
