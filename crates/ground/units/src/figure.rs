//! Numbers for people.

/// Returns `value` with three significant digits; `-` for NaN.
///
/// People read a table to compare sizes, and further digits hide the size behind chance. `--json`
/// and `--csv` print all digits. Values below 0.0001 and from 10^9 on have an exponent, because
/// many zeroes are hard to count.
#[must_use]
pub fn three_digits(value: f64) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    if value == 0.0 {
        // Without the sign of a negative zero.
        return "0".to_owned();
    }
    if value.is_infinite() {
        return value.to_string();
    }
    // The format of floating point rounds to three digits, also into the next power of ten.
    let rounded = format!("{value:.2e}");
    let exponent: i32 = match rounded.split_once('e') {
        Some((_, exponent)) => exponent.parse().unwrap_or(0),
        None => 0,
    };
    match exponent {
        ..=-5 | 9.. => rounded,
        // Digits before the point that chance decides are zeroes.
        3..=8 => {
            let unit = 10f64.powi(exponent - 2);
            format!("{:.0}", (value / unit).round() * unit)
        }
        _ => format!("{value:.*}", (2 - exponent) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::three_digits;

    #[test]
    fn people_see_three_digits_that_count() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (f64::NAN, "-"),
            (f64::INFINITY, "inf"),
            (19.123, "19.1"),
            (-19.123, "-19.1"),
            (0.084_2, "0.0842"),
            (0.000_123_4, "0.000123"),
            (0.000_012_34, "1.23e-5"),
            (3.0, "3.00"),
            (99.96, "100"),
            (9.996, "10.0"),
            (0.999_6, "1.00"),
            (512.0, "512"),
            (999.6, "1000"),
            (3883.6, "3880"),
            (132_766.0, "133000"),
            (999_999_999.0, "1.00e9"),
        ] {
            assert_eq!(three_digits(value), expected, "{value}");
        }
    }
}
