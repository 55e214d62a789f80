//! The operations in plain arithmetic: for processors without a supported vector unit, for the ends
//! of slices, and as the reference for the other kernels.

use crate::Kernels;
use crate::field::{REDUCTION, multiply};

/// Plain arithmetic.
pub(crate) const KERNELS: Kernels = Kernels {
    name: "scalar",
    xor_into,
    multiply_into,
    multiply_add,
    syndromes,
};

pub(crate) fn xor_into(into: &mut [u8], from: &[u8]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into ^= from;
    }
}

pub(crate) fn multiply_into(coefficient: u8, into: &mut [u8], from: &[u8]) {
    let products = products(coefficient);
    for (into, from) in into.iter_mut().zip(from) {
        *into = products.low[usize::from(from & 15)] ^ products.high[usize::from(from >> 4)];
    }
}

pub(crate) fn multiply_add(coefficient: u8, into: &mut [u8], from: &[u8]) {
    let products = products(coefficient);
    for (into, from) in into.iter_mut().zip(from) {
        *into ^= products.low[usize::from(from & 15)] ^ products.high[usize::from(from >> 4)];
    }
}

pub(crate) fn syndromes(data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
    syndromes_from(0, data, p, q);
}

/// Computes P and Q of the bytes from `begin` on. Q uses Horner's rule from the last data to the
/// first: each step doubles the sum so far.
pub(crate) fn syndromes_from(begin: usize, data: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
    const WORD: usize = size_of::<u64>();
    let words = (p.len() - begin) / WORD;
    for at in (0..words).map(|word| begin + word * WORD) {
        let (mut sum, mut weighted) = (0, 0);
        for data in data.iter().rev() {
            let mut word = [0; WORD];
            word.copy_from_slice(&data[at..at + WORD]);
            let word = u64::from_ne_bytes(word);
            sum ^= word;
            weighted = double(weighted) ^ word;
        }
        p[at..at + WORD].copy_from_slice(&sum.to_ne_bytes());
        q[at..at + WORD].copy_from_slice(&weighted.to_ne_bytes());
    }
    for at in begin + words * WORD..p.len() {
        let bytes = data.iter().rev().map(|data| data[at]);
        (p[at], q[at]) = bytes.fold((0, 0), |(p, q), byte| (p ^ byte, multiply(2, q) ^ byte));
    }
}

/// Multiplies each of the eight bytes by the generator.
fn double(word: u64) -> u64 {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    const REDUCTIONS: u64 = 0x0101_0101_0101_0101 * REDUCTION as u64;
    let carried = word & HIGH_BITS;
    // 0xff in each byte whose high bit was set.
    let mask = (carried << 1).wrapping_sub(carried >> 7);
    ((word & !HIGH_BITS) << 1) ^ (mask & REDUCTIONS)
}

/// The products of a coefficient with the sixteen values of each half of a byte. The product with a
/// byte is the sum of the products with its halves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Products {
    pub(crate) low: [u8; 16],
    pub(crate) high: [u8; 16],
}

pub(crate) fn products(coefficient: u8) -> &'static Products {
    static ALL: [Products; 256] = all_products();
    &ALL[usize::from(coefficient)]
}

const fn all_products() -> [Products; 256] {
    let mut all = [Products {
        low: [0; 16],
        high: [0; 16],
    }; 256];
    let mut coefficient = 0;
    while coefficient < 256 {
        let mut half = 0;
        while half < 16 {
            all[coefficient].low[half] = multiply(coefficient as u8, half as u8);
            all[coefficient].high[half] = multiply(coefficient as u8, (half as u8) << 4);
            half += 1;
        }
        coefficient += 1;
    }
    all
}
