//! Points and shares of Student's t.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Returns the one-sided point of Student's t.
pub(crate) fn student_point(confidence: f64, freedom: f64) -> f64 {
    // An infinite point makes an interval that excludes nothing.
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |distribution| {
        distribution.inverse_cdf(confidence)
    })
}

/// Returns the share of Student's t below `value`.
pub(crate) fn student_share(value: f64, freedom: f64) -> f64 {
    // Student's distribution exists for all degrees of freedom above 0. 0.5 says nothing.
    StudentsT::new(0.0, 1.0, freedom).map_or(0.5, |distribution| distribution.cdf(value))
}

/// Returns the two-sided point of Student's t.
pub(crate) fn student_t(confidence: f64, freedom: f64) -> f64 {
    student_point(0.5 + confidence / 2.0, freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_points_are_those_of_the_tables() {
        for (freedom, expected) in [(9.0, 2.262), (19.0, 2.093), (63.0, 1.998)] {
            assert!(
                (student_t(0.95, freedom) - expected).abs() < 1e-3,
                "{freedom}"
            );
        }
        assert!((student_t(0.99, 9.0) - 3.250).abs() < 1e-3);
    }
}
