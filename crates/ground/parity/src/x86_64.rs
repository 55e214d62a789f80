//! Kernels for x86-64.
//!
//! SSSE3 and AVX2 multiply with two tables of sixteen entries, one for each half of a byte. GFNI
//! multiplies each byte, as a column of bits, by an 8x8 matrix of bits. Multiplication by a
//! constant is linear over bits, so this works for any polynomial.

#![allow(unsafe_code)]

use crate::Kernels;
use crate::field::{REDUCTION, multiply};
use crate::scalar::products;
use crate::vector::{Vector, kernels};
use std::arch::is_x86_feature_detected;
use std::arch::x86_64::*;

/// Returns the kernels for this processor, the fastest first.
pub(crate) fn detected() -> impl Iterator<Item = Kernels> {
    let gfni = is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("gfni");
    let found = [
        (gfni, avx512::KERNELS),
        (is_x86_feature_detected!("avx2"), avx2::KERNELS),
        (is_x86_feature_detected!("ssse3"), ssse3::KERNELS),
    ];
    found
        .into_iter()
        .filter_map(|(has, kernels)| has.then_some(kernels))
}

kernels!(ssse3, "ssse3", __m128i, "ssse3");
kernels!(avx2, "avx2", __m256i, "avx2");
kernels!(avx512, "avx512-gfni", __m512i, "avx512f,avx512bw,gfni");

// SAFETY (every block of the three implementations): the instructions exist,
// by the contract of `Vector`, and loads and stores need no alignment.

impl Vector for __m128i {
    const BYTES: usize = 16;
    /// Products with the low and the high half of a byte.
    type Factor = (__m128i, __m128i);

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { _mm_loadu_si128(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, into: *mut u8) {
        unsafe { _mm_storeu_si128(into.cast(), self) }
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm_setzero_si128() }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { _mm_xor_si128(self, other) }
    }
    #[inline(always)]
    unsafe fn double(self) -> Self {
        unsafe {
            // A byte with the high bit set is negative.
            let carried = _mm_cmpgt_epi8(_mm_setzero_si128(), self);
            let reduction = _mm_and_si128(carried, _mm_set1_epi8(REDUCTION as i8));
            _mm_xor_si128(_mm_add_epi8(self, self), reduction)
        }
    }
    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        let products = products(coefficient);
        unsafe {
            (
                Self::load(products.low.as_ptr()),
                Self::load(products.high.as_ptr()),
            )
        }
    }
    #[inline(always)]
    unsafe fn multiply(self, (low, high): Self::Factor) -> Self {
        unsafe {
            let half = _mm_set1_epi8(15);
            let of_low = _mm_shuffle_epi8(low, _mm_and_si128(self, half));
            let of_high = _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi64::<4>(self), half));
            _mm_xor_si128(of_low, of_high)
        }
    }
}

impl Vector for __m256i {
    const BYTES: usize = 32;
    /// Products with the low and the high half of a byte. Each table is there twice, because a
    /// shuffle works within half a register.
    type Factor = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { _mm256_loadu_si256(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, into: *mut u8) {
        unsafe { _mm256_storeu_si256(into.cast(), self) }
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { _mm256_xor_si256(self, other) }
    }
    #[inline(always)]
    unsafe fn double(self) -> Self {
        unsafe {
            // A byte with the high bit set is negative.
            let carried = _mm256_cmpgt_epi8(_mm256_setzero_si256(), self);
            let reduction = _mm256_and_si256(carried, _mm256_set1_epi8(REDUCTION as i8));
            _mm256_xor_si256(_mm256_add_epi8(self, self), reduction)
        }
    }
    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        let products = products(coefficient);
        unsafe {
            let low = _mm_loadu_si128(products.low.as_ptr().cast());
            let high = _mm_loadu_si128(products.high.as_ptr().cast());
            (
                _mm256_broadcastsi128_si256(low),
                _mm256_broadcastsi128_si256(high),
            )
        }
    }
    #[inline(always)]
    unsafe fn multiply(self, (low, high): Self::Factor) -> Self {
        unsafe {
            let half = _mm256_set1_epi8(15);
            let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(self, half));
            let of_high =
                _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(self), half));
            _mm256_xor_si256(of_low, of_high)
        }
    }
}

impl Vector for __m512i {
    const BYTES: usize = 64;
    /// The matrix of the multiplication, eight times.
    type Factor = __m512i;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, into: *mut u8) {
        unsafe { _mm512_storeu_si512(into.cast(), self) }
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { _mm512_xor_si512(self, other) }
    }
    #[inline(always)]
    unsafe fn double(self) -> Self {
        unsafe { self.multiply(Self::factor(2)) }
    }
    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        unsafe { _mm512_set1_epi64(matrix(coefficient) as i64) }
    }
    #[inline(always)]
    unsafe fn multiply(self, matrix: Self::Factor) -> Self {
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self, matrix) }
    }
}

/// Returns the multiplication by `coefficient` as a matrix. Byte 7 - i has the bits of the factor
/// whose parity is bit i of the product.
#[inline(always)]
fn matrix(coefficient: u8) -> u64 {
    static ALL: [u64; 256] = all_matrices();
    ALL[usize::from(coefficient)]
}

const fn all_matrices() -> [u64; 256] {
    let mut all = [0u64; 256];
    let mut coefficient = 0;
    while coefficient < 256 {
        let mut column = 0;
        while column < 8 {
            let product = multiply(coefficient as u8, 1 << column);
            let mut row = 0;
            while row < 8 {
                if product >> row & 1 == 1 {
                    // GF2P8AFFINEQB computes bit i of a byte with byte 7 - i of the matrix (Intel
                    // SDM, volume 2).
                    all[coefficient] |= 1 << (8 * (7 - row) + column);
                }
                row += 1;
            }
            column += 1;
        }
        coefficient += 1;
    }
    all
}
