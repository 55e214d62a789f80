//! Division by a constant divisor.

/// A divisor with its reciprocal. A quotient then costs a few multiplications, several times faster
/// than a division.
///
/// With the reciprocal rounded up to 128 bits, the quotient of every 64-bit number is exact
/// (Lemire, Kaser & Kurz, "Faster remainder by direct computation", 2019, theorem 1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    value: u64,
    reciprocal: u128,
}

impl Divisor {
    /// Returns the divisor `value`.
    ///
    /// # Panics
    /// If `value` is below 2.
    pub(super) fn new(value: u64) -> Divisor {
        assert!(value >= 2, "{value} has no reciprocal below 1");
        Divisor {
            value,
            reciprocal: u128::MAX / u128::from(value) + 1,
        }
    }

    pub(super) fn value(&self) -> u64 {
        self.value
    }

    /// Returns quotient and remainder of `number`.
    #[inline]
    pub(super) fn divide(&self, number: u64) -> (u64, u64) {
        let number_wide = u128::from(number);
        let low = ((self.reciprocal & u128::from(u64::MAX)) * number_wide) >> 64;
        let high = (self.reciprocal >> 64) * number_wide;
        let quotient = ((high + low) >> 64) as u64;
        (quotient, number - quotient * self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_divides_as_division_does(number: u64, value in prop_oneof![2u64..100, 2u64..]) {
            let divisor = Divisor::new(value);
            for number in [number, number - number % value, (number - number % value).wrapping_sub(1), u64::MAX] {
                prop_assert_eq!(divisor.divide(number), (number / value, number % value));
            }
        }
    }
}
