//! Divisors.

/// Returns the greatest number that divides both. If one number is 0, returns the other.
pub fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_divides_both_and_nothing_greater_does() {
        for (a, b) in (0..60).flat_map(|a| (0..60).map(move |b| (a, b))).skip(1) {
            let greatest = (1..=a.max(b)).rev().find(|d| a % d == 0 && b % d == 0);
            assert_eq!(Some(greatest_common_divisor(a, b)), greatest, "{a}, {b}");
        }
    }
}
