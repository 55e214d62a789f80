//! Aggregates of many values.

use super::{Estimate, ExpressionValue};
use crate::unknown::UnknownName;

/// An aggregate of many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The value with the smallest estimate, including its interval.
    Min,
    /// The value with the largest estimate, including its interval.
    Max,
    /// The arithmetic mean.
    Mean,
    /// The sum.
    Sum,
    /// Number of true values.
    Count,
    /// True if all values are true.
    All,
    /// True if at least one value is true.
    Any,
    /// The first value, in the order of the axis.
    First,
    /// The last value, in the order of the axis.
    Last,
    /// The axis' value with the smallest result.
    Argmin,
    /// The axis' value with the largest result.
    Argmax,
}

/// Name, aggregate and description of every aggregate.
pub(crate) const AGGREGATES: &[(&str, Aggregate, &str)] = &[
    ("min", Aggregate::Min, "the smallest"),
    ("max", Aggregate::Max, "the largest"),
    ("mean", Aggregate::Mean, "the arithmetic mean"),
    ("sum", Aggregate::Sum, "the sum"),
    ("count", Aggregate::Count, "how many are true"),
    ("all", Aggregate::All, "whether all are true"),
    ("any", Aggregate::Any, "true if one is true"),
    (
        "first",
        Aggregate::First,
        "the first, in the order of the axis",
    ),
    ("last", Aggregate::Last, "the last"),
    (
        "argmin",
        Aggregate::Argmin,
        "the axis' value that gives the smallest",
    ),
    (
        "argmax",
        Aggregate::Argmax,
        "the axis' value that gives the largest",
    ),
];

/// The value of the first variable, and the result for this value.
pub(super) type Item = (ExpressionValue, ExpressionValue);

impl Aggregate {
    /// Returns the aggregate called `name`.
    pub(super) fn find(name: &str) -> Result<Aggregate, UnknownName> {
        AGGREGATES
            .iter()
            .find(|entry| entry.0 == name)
            .map(|entry| entry.1)
            .ok_or_else(|| {
                let names: Vec<&str> = AGGREGATES.iter().map(|entry| entry.0).collect();
                UnknownName::of("aggregate", name, &names)
            })
    }

    /// Returns true if the values of axes count as their numbers.
    pub(super) fn takes_numbers(self) -> bool {
        use Aggregate::{Argmax, Argmin, Max, Mean, Min, Sum};
        matches!(self, Min | Max | Mean | Sum | Argmin | Argmax)
    }

    /// Returns the aggregate of `items`; NaN without items. The error names the expected type of an
    /// item.
    pub(super) fn of(self, items: Vec<Item>) -> Result<ExpressionValue, &'static str> {
        let none = || ExpressionValue::Number(Estimate::exact(f64::NAN));
        let count = items.len();
        Ok(match self {
            Aggregate::First => items.into_iter().next().map_or_else(none, |item| item.1),
            Aggregate::Last => items.into_iter().last().map_or_else(none, |item| item.1),
            Aggregate::Count => {
                let true_ones = truths(&items)?.into_iter().filter(|&truth| truth).count();
                ExpressionValue::Number(Estimate::exact(true_ones as f64))
            }
            Aggregate::All => {
                ExpressionValue::Truth(truths(&items)?.into_iter().all(|truth| truth))
            }
            Aggregate::Any => {
                ExpressionValue::Truth(truths(&items)?.into_iter().any(|truth| truth))
            }
            // The sign makes the search for the smallest a search for the largest.
            Aggregate::Min | Aggregate::Argmin => self.extreme(items, -1.0)?.unwrap_or_else(none),
            Aggregate::Max | Aggregate::Argmax => self.extreme(items, 1.0)?.unwrap_or_else(none),
            Aggregate::Sum => ExpressionValue::Number(sum(items)?),
            Aggregate::Mean => {
                ExpressionValue::Number(sum(items)?.divide(&Estimate::exact(count as f64)))
            }
        })
    }

    /// Returns the item with the largest number times `sign`, or the variable's value of that item.
    /// NaN items are ignored.
    fn extreme(self, items: Vec<Item>, sign: f64) -> Result<Option<ExpressionValue>, &'static str> {
        let mut best: Option<(f64, ExpressionValue)> = None;
        for (variable, value) in items {
            let ExpressionValue::Number(number) = &value else {
                return Err("a number");
            };
            let size = sign * number.mean();
            if !size.is_nan() && best.as_ref().is_none_or(|(other, _)| size > *other) {
                let of_variable = matches!(self, Aggregate::Argmin | Aggregate::Argmax);
                best = Some((size, if of_variable { variable } else { value }));
            }
        }
        Ok(best.map(|(_, value)| value))
    }
}

fn truths(items: &[Item]) -> Result<Vec<bool>, &'static str> {
    let truth = |item: &Item| match item.1 {
        ExpressionValue::Truth(truth) => Ok(truth),
        _ => Err("true or false, such as a comparison"),
    };
    items.iter().map(truth).collect()
}

fn sum(items: Vec<Item>) -> Result<Estimate, &'static str> {
    items
        .into_iter()
        .try_fold(Estimate::exact(0.0), |sum, item| match item.1 {
            ExpressionValue::Number(number) => Ok(sum.add(&number)),
            _ => Err("a number"),
        })
}
