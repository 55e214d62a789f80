//! Compares every kernel with the field's own arithmetic.

use crate::Kernels;
use crate::field::{multiply, power};
use proptest::prelude::*;

/// Returns pseudo-random bytes. The tested slices are parts of them with any start.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Number of bytes behind the written slice. A kernel must not change the bytes around its slice.
const MARGIN: usize = 70;

fn check(
    kernels: &Kernels,
    expected: impl Fn(u8, u8) -> u8,
    run: impl Fn(&Kernels, &mut [u8], &[u8]),
    (seed, length, start_into, start_from): (u64, usize, usize, usize),
) {
    let before = noise(seed, length + start_into + MARGIN);
    let from = noise(seed ^ 0x5555, length + start_from);
    let from = &from[start_from..];
    let mut after = before.clone();
    run(kernels, &mut after[start_into..start_into + length], from);
    for (at, (&after, &before)) in after.iter().zip(&before).enumerate() {
        let within = (start_into..start_into + length).contains(&at);
        let expected = if within {
            expected(before, from[at - start_into])
        } else {
            before
        };
        assert_eq!(after, expected, "{} at {at}", kernels.name());
    }
}

#[test]
fn every_coefficient_multiplies_every_byte_rightly() {
    let every: Vec<u8> = (0..=255).collect();
    for kernels in Kernels::available() {
        for coefficient in 0..=255 {
            let mut product = vec![0xAA; 256];
            kernels.multiply_into(coefficient, &mut product, &every);
            let mut sum = every.clone();
            kernels.multiply_add(coefficient, &mut sum, &every);
            for byte in 0..=255u8 {
                let expected = multiply(coefficient, byte);
                assert_eq!(
                    product[usize::from(byte)],
                    expected,
                    "{} {coefficient}",
                    kernels.name()
                );
                assert_eq!(
                    sum[usize::from(byte)],
                    byte ^ expected,
                    "{} {coefficient}",
                    kernels.name()
                );
            }
        }
    }
}

#[test]
fn plain_arithmetic_is_always_available_and_last() {
    assert_eq!(
        Kernels::available().last().map(Kernels::name),
        Some("scalar")
    );
    assert_eq!(Kernels::best().name(), Kernels::available()[0].name());
}

#[test]
#[should_panic(expected = "one length")]
fn slices_of_different_lengths_are_the_callers_mistake() {
    crate::xor_into(&mut [0; 4], &[0; 5]);
}

proptest! {
    #[test]
    fn kernels_agree_with_the_field_at_any_length_and_alignment(
        seed: u64, length in 0usize..300, into in 0usize..65, from in 0usize..65, coefficient: u8,
    ) {
        let case = (seed, length, into, from);
        for kernels in Kernels::available() {
            check(kernels, |a, b| a ^ b, |kernels, into, from| kernels.xor_into(into, from), case);
            check(kernels, |_, b| multiply(coefficient, b),
                |kernels, into, from| kernels.multiply_into(coefficient, into, from), case);
            check(kernels, |a, b| a ^ multiply(coefficient, b),
                |kernels, into, from| kernels.multiply_add(coefficient, into, from), case);
        }
    }

    #[test]
    fn syndromes_are_the_sums_that_define_them(
        seed: u64, count in 0usize..20, length in 0usize..600, start in 0usize..65,
    ) {
        let data: Vec<Vec<u8>> = (0..count).map(|index| noise(seed ^ (index as u64 * 977), length + start)).collect();
        let data: Vec<&[u8]> = data.iter().map(|data| &data[start..]).collect();
        for kernels in Kernels::available() {
            let (mut p, mut q) = (vec![0x11; length + start], vec![0x22; length + start]);
            kernels.syndromes(&data, &mut p[start..], &mut q[start..]);
            for at in 0..length {
                let sum = data.iter().fold(0, |sum, data| sum ^ data[at]);
                let weighted = data.iter().enumerate()
                    .fold(0, |sum, (index, data)| sum ^ multiply(power(index as u32), data[at]));
                prop_assert_eq!((p[start + at], q[start + at]), (sum, weighted), "{} at {}", kernels.name(), at);
            }
        }
    }
}
