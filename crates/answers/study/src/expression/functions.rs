//! The functions of expressions.

use super::Estimate;
use fullstroke_predict::{idle_members, merge_chance};

/// A function of numbers.
pub struct Function {
    /// Name of the function.
    pub name: &'static str,
    /// Number of arguments.
    pub arguments: usize,
    /// Description of the result.
    pub summary: &'static str,
    pub(super) call: fn(&[Estimate]) -> Estimate,
}

/// Every function of numbers. `if(c, x, y)`, `exists(x)`, `min` and `max` belong to the language
/// itself.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "abs",
        arguments: 1,
        summary: "the absolute value",
        // The derivative is 1 or -1, and widths have no sign.
        call: |of| of[0].map(f64::abs, Some(1.0)),
    },
    Function {
        name: "round",
        arguments: 1,
        summary: "the nearest whole number",
        // A rounded number has no derivative, so its width is lost.
        call: |of| of[0].map(f64::round, None),
    },
    Function {
        name: "sqrt",
        arguments: 1,
        summary: "the square root",
        call: |of| of[0].map(f64::sqrt, Some(0.5 / of[0].mean().sqrt())),
    },
    Function {
        name: "low",
        arguments: 1,
        summary: "the lower end of the interval",
        call: |of| end(&of[0], -1.0),
    },
    Function {
        name: "high",
        arguments: 1,
        summary: "the upper end of the interval",
        call: |of| end(&of[0], 1.0),
    },
    Function {
        name: "smallest",
        arguments: 1,
        summary: "the smallest over the seeds",
        call: |of| Estimate::exact(of[0].values().iter().copied().fold(f64::NAN, f64::min)),
    },
    Function {
        name: "largest",
        arguments: 1,
        summary: "the largest over the seeds",
        call: |of| Estimate::exact(of[0].values().iter().copied().fold(f64::NAN, f64::max)),
    },
    Function {
        name: "default",
        arguments: 2,
        summary: "the first number, or the second where the first does not exist",
        call: |of| {
            if of[0].mean().is_nan() {
                of[1].clone()
            } else {
                of[0].clone()
            }
        },
    },
    Function {
        name: "idle_probability",
        arguments: 2,
        summary: "probability that one of `disks` is idle, by `requests` and `disks` (explain idle-members)",
        call: |of| {
            formula(of, |requests, disks| {
                Some(idle_members(requests, u32::try_from(disks).ok()?)?.any_idle)
            })
        },
    },
    Function {
        name: "merge_probability",
        arguments: 2,
        summary: "that any two of `requests` among `blocks` are neighbours (explain merge-chance)",
        call: |of| {
            formula(of, |requests, blocks| {
                Some(merge_chance(requests, blocks)?.any_adjacent)
            })
        },
    },
    Function {
        name: "merge_probability_by_carroll",
        arguments: 2,
        summary: "the same by Carroll's formula",
        call: |of| {
            formula(of, |requests, blocks| {
                Some(merge_chance(requests, blocks)?.as_published)
            })
        },
    },
];

/// Returns one end of the interval; NaN without an interval.
fn end(of: &Estimate, sign: f64) -> Estimate {
    Estimate::exact(of.mean() + sign * of.half_width().unwrap_or(f64::NAN))
}

/// Evaluates a closed formula of two whole numbers; NaN outside its domain.
fn formula(of: &[Estimate], formula: impl Fn(u32, u64) -> Option<f64>) -> Estimate {
    let (first, second) = (of[0].mean(), of[1].mean());
    // Larger arguments would take long, because the formulas are sums.
    let fits = (0.0..=4_096.0).contains(&first) && (0.0..=1e15).contains(&second);
    let value = fits.then(|| formula(first as u32, second as u64)).flatten();
    Estimate::exact(value.unwrap_or(f64::NAN))
}
