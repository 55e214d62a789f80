//! What is made of many values.

use super::{Estimate, Value};
use crate::unknown::UnknownName;

/// What is made of many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The one with the smallest estimate, whole.
    Min,
    /// The one with the largest estimate, whole.
    Max,
    /// The arithmetic mean.
    Mean,
    /// The sum.
    Sum,
    /// How many are true.
    Count,
    /// Whether all are true.
    All,
    /// Whether one is true.
    Any,
    /// The first, in the order of the axis.
    First,
    /// The last.
    Last,
    /// The axis' value that gives the smallest.
    Argmin,
    /// The axis' value that gives the largest.
    Argmax,
}

/// Every aggregate by its name, and what it gives.
pub(crate) const AGGREGATES: &[(&str, Aggregate, &str)] = &[
    ("min", Aggregate::Min, "the smallest"),
    ("max", Aggregate::Max, "the largest"),
    ("mean", Aggregate::Mean, "the arithmetic mean"),
    ("sum", Aggregate::Sum, "the sum"),
    ("count", Aggregate::Count, "how many are true"),
    ("all", Aggregate::All, "whether all are true"),
    ("any", Aggregate::Any, "whether one is true"),
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

/// One value, and that of the first variable which it belongs to.
pub(super) type Item = (Value, Value);

impl Aggregate {
    /// The aggregate called `name`.
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

    /// Whether the values of axes count as their numbers.
    pub(super) fn takes_numbers(self) -> bool {
        use Aggregate::{Argmax, Argmin, Max, Mean, Min, Sum};
        matches!(self, Min | Max | Mean | Sum | Argmin | Argmax)
    }

    /// What it makes of `items`; of none, no number. The error says what an item
    /// should have been.
    pub(super) fn of(self, items: Vec<Item>) -> Result<Value, &'static str> {
        let none = || Value::Number(Estimate::exact(f64::NAN));
        let count = items.len();
        Ok(match self {
            Aggregate::First => items.into_iter().next().map_or_else(none, |item| item.1),
            Aggregate::Last => items.into_iter().last().map_or_else(none, |item| item.1),
            Aggregate::Count => {
                let true_ones = truths(&items)?.into_iter().filter(|&truth| truth).count();
                Value::Number(Estimate::exact(true_ones as f64))
            }
            Aggregate::All => Value::Truth(truths(&items)?.into_iter().all(|truth| truth)),
            Aggregate::Any => Value::Truth(truths(&items)?.into_iter().any(|truth| truth)),
            Aggregate::Min | Aggregate::Argmin => self.extreme(items, -1.0)?.unwrap_or_else(none),
            Aggregate::Max | Aggregate::Argmax => self.extreme(items, 1.0)?.unwrap_or_else(none),
            Aggregate::Sum => Value::Number(sum(items)?),
            Aggregate::Mean => Value::Number(sum(items)?.divide(&Estimate::exact(count as f64))),
        })
    }

    /// The item, or its variable's value, whose number times `sign` is largest.
    fn extreme(self, items: Vec<Item>, sign: f64) -> Result<Option<Value>, &'static str> {
        let mut best: Option<(f64, Value)> = None;
        for (variable, value) in items {
            let Value::Number(number) = &value else {
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
        Value::Truth(truth) => Ok(truth),
        _ => Err("true or false, such as a comparison"),
    };
    items.iter().map(truth).collect()
}

fn sum(items: Vec<Item>) -> Result<Estimate, &'static str> {
    items
        .into_iter()
        .try_fold(Estimate::exact(0.0), |sum, item| match item.1 {
            Value::Number(number) => Ok(sum.add(&number)),
            _ => Err("a number"),
        })
}
