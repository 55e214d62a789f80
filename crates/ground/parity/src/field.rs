//! Arithmetic in GF(2^8) with generator 2 and polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), the
//! field of RAID-6's second parity (H. P. Anvin, "The mathematics of RAID-6").
//!
//! Addition and subtraction are exclusive or.

/// Low byte of the polynomial: x^8 modulo the polynomial.
pub(crate) const REDUCTION: u8 = 0x1d;

/// Order of the generator: exponents repeat with the period 255.
const ORDER: usize = 255;

/// Powers of the generator. The table has two periods, so a sum of two logarithms needs no
/// reduction. The second table has the logarithms.
const POWERS: [u8; 2 * ORDER] = powers();
const LOGARITHMS: [u8; 256] = logarithms();

const fn powers() -> [u8; 2 * ORDER] {
    let mut table = [0; 2 * ORDER];
    let mut value = 1u8;
    let mut exponent = 0;
    while exponent < table.len() {
        table[exponent] = value;
        let carry = value & 0x80 != 0;
        value <<= 1;
        if carry {
            value ^= REDUCTION;
        }
        exponent += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let mut table = [0; 256];
    let mut exponent = 0;
    while exponent < ORDER {
        table[POWERS[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    table
}

/// Returns the generator to the power of `exponent`.
pub const fn power(exponent: u32) -> u8 {
    POWERS[exponent as usize % ORDER]
}

/// Returns the product of two elements.
pub const fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    POWERS[LOGARITHMS[a as usize] as usize + LOGARITHMS[b as usize] as usize]
}

/// Returns the quotient `a / b`. Returns zero if `b` is zero, a case without use in any code word.
pub const fn divide(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    POWERS[LOGARITHMS[a as usize] as usize + ORDER - LOGARITHMS[b as usize] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplies by shift and reduction, bit by bit.
    fn multiply_slowly(mut a: u8, mut b: u8) -> u8 {
        let mut product = 0;
        while b != 0 {
            if b & 1 != 0 {
                product ^= a;
            }
            a = (a << 1) ^ if a & 0x80 != 0 { REDUCTION } else { 0 };
            b >>= 1;
        }
        product
    }

    #[test]
    fn products_agree_with_long_multiplication() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), multiply_slowly(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn division_undoes_multiplication() {
        for a in 0..=255 {
            for b in 1..=255 {
                assert_eq!(divide(multiply(a, b), b), a, "{a} * {b} / {b}");
            }
        }
    }

    #[test]
    fn the_generator_reaches_every_element_once() {
        let mut reached: Vec<u8> = (0..255).map(power).collect();
        reached.sort_unstable();
        assert_eq!(reached, (1..=255).collect::<Vec<u8>>());
        assert_eq!(power(255), 1);
    }
}
