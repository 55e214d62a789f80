//! From a tree to a value.

use super::functions::FUNCTIONS;
use super::{
    Aggregate, BoundAggregate, Definition, Estimate, Expression, ExpressionError, ExpressionKind,
    ExpressionNode, Operator,
};
use crate::axes::Matrix;
use std::cell::Cell;
use std::ops::Range;

/// Largest depth of definitions that use each other.
const DEPTH_MAX: usize = 16;

/// Largest number of steps of an expression.
const STEPS_MAX: u64 = 2_000_000;

/// Result of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionValue {
    /// A number.
    Number(Estimate),
    /// True or false.
    Truth(bool),
    /// The value of an axis, by the indices of both.
    Label(usize, usize),
    /// A text.
    Text(String),
}

/// Reason why there is no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The expression cannot be evaluated.
    Wrong(ExpressionError),
    /// A point has no results yet.
    Missing,
}

/// Names with their values.
pub type Bindings = Vec<(String, ExpressionValue)>;

/// Source of results.
pub trait ResultSource {
    /// Returns a metric at a point of the matrix; `metric` is the index among the evaluator's
    /// metrics. `None` if the point was not run yet.
    fn value(&self, point: usize, metric: usize) -> Option<Estimate>;
}

/// Evaluates expressions over results.
pub struct Evaluator<'a> {
    /// Axes, sets and points.
    pub matrix: &'a Matrix,
    /// Names for expressions.
    pub definitions: &'a [Definition],
    /// The metrics' names.
    pub metrics: &'a [String],
    /// Index of the metric that aggregates without an expression use.
    pub first_metric: usize,
    /// The results.
    pub data: &'a dyn ResultSource,
    /// True if every branch is evaluated, also a branch without influence, to find mistakes before
    /// there are results.
    pub thorough: bool,
}

/// State of the evaluation of an expression.
pub(super) struct Scope<'a> {
    /// Expression under evaluation.
    text: &'a str,
    bindings: Bindings,
    depth: usize,
    steps: &'a Cell<u64>,
}

impl Scope<'_> {
    pub(super) fn wrong(&self, span: &Range<usize>, message: impl Into<String>) -> Problem {
        Problem::Wrong(ExpressionError::new(self.text, span.clone(), message))
    }

    pub(super) fn variable(&self, name: &str) -> Option<&ExpressionValue> {
        self.bindings
            // From the end, because the innermost variable of a name counts.
            .iter()
            .rev()
            .find(|(bound, _)| bound == name)
            .map(|(_, value)| value)
    }
}

impl Evaluator<'_> {
    /// Returns the value of `expression` with the variables `bindings`.
    ///
    /// # Errors
    /// A mistake in the expression, or missing results.
    pub fn evaluate(
        &self,
        expression: &Expression,
        bindings: &Bindings,
    ) -> Result<ExpressionValue, Problem> {
        let steps = Cell::new(0);
        let mut scope = Scope {
            text: &expression.text,
            bindings: bindings.clone(),
            depth: 0,
            steps: &steps,
        };
        self.value(&expression.root, &mut scope)
    }

    pub(super) fn value(
        &self,
        node: &ExpressionNode,
        scope: &mut Scope<'_>,
    ) -> Result<ExpressionValue, Problem> {
        scope.steps.set(scope.steps.get() + 1);
        if scope.steps.get() > STEPS_MAX {
            return Err(scope.wrong(&node.span, "this takes too long; loop over less"));
        }
        match &node.kind {
            ExpressionKind::Number(number) => Ok(ExpressionValue::Number(Estimate::exact(*number))),
            ExpressionKind::Text(text) => Ok(ExpressionValue::Text(text.clone())),
            ExpressionKind::Truth(truth) => Ok(ExpressionValue::Truth(*truth)),
            ExpressionKind::Name(name) => match scope.variable(name) {
                Some(value) => Ok(value.clone()),
                None => self.named(name, &[], node, scope),
            },
            ExpressionKind::Negate(inner) => {
                Ok(ExpressionValue::Number(self.number(inner, scope)?.negate()))
            }
            ExpressionKind::Not(inner) => Ok(ExpressionValue::Truth(!self.truth(inner, scope)?)),
            ExpressionKind::Binary(operator, one, other) => {
                self.binary(*operator, one, other, scope)
            }
            ExpressionKind::Call(name, arguments) => self.call(name, arguments, node, scope),
            ExpressionKind::Select(name, selectors) => self.named(name, selectors, node, scope),
            ExpressionKind::Each(each) => self.each(each, node, scope),
        }
    }

    fn number(&self, node: &ExpressionNode, scope: &mut Scope<'_>) -> Result<Estimate, Problem> {
        let value = self.value(node, scope)?;
        self.as_number(&value).ok_or_else(|| {
            scope.wrong(
                &node.span,
                format!("this is {}; expected a number", self.describe(&value)),
            )
        })
    }

    fn truth(&self, node: &ExpressionNode, scope: &mut Scope<'_>) -> Result<bool, Problem> {
        match self.value(node, scope)? {
            ExpressionValue::Truth(truth) => Ok(truth),
            value => {
                let found = self.describe(&value);
                Err(scope.wrong(
                    &node.span,
                    format!("this is {found}; expected a comparison"),
                ))
            }
        }
    }

    fn as_number(&self, value: &ExpressionValue) -> Option<Estimate> {
        match value {
            ExpressionValue::Number(number) => Some(number.clone()),
            ExpressionValue::Label(axis, value) => self.matrix.axes[*axis].values[*value]
                .number
                .map(Estimate::exact),
            ExpressionValue::Truth(_) | ExpressionValue::Text(_) => None,
        }
    }

    /// Returns a value as text for messages.
    pub(super) fn describe(&self, value: &ExpressionValue) -> String {
        match value {
            ExpressionValue::Number(number) => format!("the number {}", number.mean()),
            ExpressionValue::Truth(truth) => format!("{truth}"),
            ExpressionValue::Text(text) => format!("the text `{text}`"),
            ExpressionValue::Label(axis, value) => {
                format!("the value `{}` of an axis", self.label(*axis, *value))
            }
        }
    }

    pub(super) fn label(&self, axis: usize, value: usize) -> &str {
        &self.matrix.axes[axis].values[value].name
    }

    fn binary(
        &self,
        operator: Operator,
        one: &ExpressionNode,
        other: &ExpressionNode,
        scope: &mut Scope<'_>,
    ) -> Result<ExpressionValue, Problem> {
        let operate = match operator {
            Operator::And | Operator::Or => {
                let decided = operator == Operator::Or;
                let first = self.truth(one, scope)?;
                // As in most languages, so that the first condition can guard the second.
                if first == decided && !self.thorough {
                    return Ok(ExpressionValue::Truth(first));
                }
                let second = self.truth(other, scope)?;
                // If the first decides, the second was evaluated only for its mistakes.
                return Ok(ExpressionValue::Truth(if first == decided {
                    first
                } else {
                    second
                }));
            }
            Operator::Equal | Operator::Unequal => {
                let equal = self.equal(one, other, scope)?;
                return Ok(ExpressionValue::Truth(
                    equal == (operator == Operator::Equal),
                ));
            }
            Operator::Add => Estimate::add,
            Operator::Subtract => Estimate::subtract,
            Operator::Multiply => Estimate::multiply,
            Operator::Divide => Estimate::divide,
            Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => {
                let (one, other) = (
                    self.number(one, scope)?.mean(),
                    self.number(other, scope)?.mean(),
                );
                return Ok(ExpressionValue::Truth(match operator {
                    Operator::Less => one < other,
                    Operator::LessOrEqual => one <= other,
                    Operator::Greater => one > other,
                    _ => one >= other,
                }));
            }
        };
        Ok(ExpressionValue::Number(operate(
            &self.number(one, scope)?,
            &self.number(other, scope)?,
        )))
    }

    fn equal(
        &self,
        one: &ExpressionNode,
        other: &ExpressionNode,
        scope: &mut Scope<'_>,
    ) -> Result<bool, Problem> {
        let (first, second) = (self.value(one, scope)?, self.value(other, scope)?);
        let text = |value: &ExpressionValue| match value {
            ExpressionValue::Text(text) => Some(text.clone()),
            ExpressionValue::Label(axis, value) => Some(self.label(*axis, *value).to_owned()),
            _ => None,
        };
        if let (ExpressionValue::Truth(first), ExpressionValue::Truth(second)) = (&first, &second) {
            return Ok(first == second);
        }
        // Before numbers: values of axes are equal by their names, even if two names stand for one
        // number.
        if let (Some(first), Some(second)) = (text(&first), text(&second)) {
            return Ok(first == second);
        }
        match (self.as_number(&first), self.as_number(&second)) {
            (Some(first), Some(second)) => Ok(first.mean() == second.mean()),
            _ => {
                let (first, second) = (self.describe(&first), self.describe(&second));
                let message = format!("{first} cannot be compared with {second}");
                Err(scope.wrong(&(one.span.start..other.span.end), message))
            }
        }
    }

    fn call(
        &self,
        name: &str,
        arguments: &[ExpressionNode],
        node: &ExpressionNode,
        scope: &mut Scope<'_>,
    ) -> Result<ExpressionValue, Problem> {
        let takes = |count: usize, scope: &Scope<'_>| {
            let message = format!(
                "`{name}` takes {count} arguments; found {}",
                arguments.len()
            );
            if arguments.len() == count {
                Ok(())
            } else {
                Err(scope.wrong(&node.span, message))
            }
        };
        // `if` and `exists` come first, because their arguments are not all evaluated, or may have
        // no value.
        if name == "if" {
            takes(3, scope)?;
            let chosen = if self.truth(&arguments[0], scope)? {
                1
            } else {
                2
            };
            if self.thorough {
                // The branch that was not chosen.
                self.value(&arguments[3 - chosen], scope)?;
            }
            return self.value(&arguments[chosen], scope);
        }
        if name == "exists" {
            takes(1, scope)?;
            return Ok(ExpressionValue::Truth(
                !self.number(&arguments[0], scope)?.mean().is_nan(),
            ));
        }
        if let Some(definition) = self
            .definitions
            .iter()
            .find(|definition| definition.name == name)
        {
            takes(definition.parameters.len(), scope)?;
            let values: Result<Vec<ExpressionValue>, Problem> = arguments
                .iter()
                .map(|argument| self.value(argument, scope))
                .collect();
            return self.expand(definition, values?, node, scope);
        }
        if let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) {
            takes(function.arguments, scope)?;
            let numbers: Result<Vec<Estimate>, Problem> = arguments
                .iter()
                .map(|argument| self.number(argument, scope))
                .collect();
            return Ok(ExpressionValue::Number((function.call)(&numbers?)));
        }
        let aggregate = Aggregate::find(name).map_err(|_| {
            scope.wrong(
                &node.span,
                format!("there is no function or definition `{name}`"),
            )
        })?;
        let mut items = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let value = match aggregate.takes_numbers() {
                true => ExpressionValue::Number(self.number(argument, scope)?),
                false => self.value(argument, scope)?,
            };
            items.push((value.clone(), value));
        }
        self.aggregate(aggregate, items, node, scope)
    }

    pub(super) fn aggregate(
        &self,
        aggregate: Aggregate,
        items: Vec<(ExpressionValue, ExpressionValue)>,
        node: &ExpressionNode,
        scope: &Scope<'_>,
    ) -> Result<ExpressionValue, Problem> {
        let wrong = |expected| scope.wrong(&node.span, format!("expected each to be {expected}"));
        aggregate.of(items).map_err(wrong)
    }

    pub(super) fn expand(
        &self,
        definition: &Definition,
        values: Vec<ExpressionValue>,
        node: &ExpressionNode,
        scope: &Scope<'_>,
    ) -> Result<ExpressionValue, Problem> {
        if scope.depth == DEPTH_MAX {
            let message = format!("`{}` is defined by itself, or too deeply", definition.name);
            return Err(scope.wrong(&node.span, message));
        }
        let mut inner = Scope {
            // Errors inside a definition point into its own text. Its body sees the parameters
            // only, and none of the caller's variables.
            text: &definition.body.text,
            bindings: definition.parameters.iter().cloned().zip(values).collect(),
            depth: scope.depth + 1,
            // The count of steps goes through all definitions: nested loops multiply.
            steps: scope.steps,
        };
        self.value(&definition.body.root, &mut inner)
    }

    fn each(
        &self,
        each: &BoundAggregate,
        node: &ExpressionNode,
        scope: &mut Scope<'_>,
    ) -> Result<ExpressionValue, Problem> {
        let mut domains = Vec::with_capacity(each.loops.len());
        for bound in &each.loops {
            let domain = self
                .matrix
                .domain(&bound.domain)
                .map_err(|message| scope.wrong(&bound.span, message))?;
            domains.push(domain);
        }
        if matches!(each.aggregate, Aggregate::Argmin | Aggregate::Argmax) && domains.len() != 1 {
            return Err(scope.wrong(
                &node.span,
                "this takes one variable: its value is the result",
            ));
        }
        let mut items = Vec::new();
        let outer = scope.bindings.len();
        let mut turn = vec![0; domains.len()];
        loop {
            for ((bound, (axis, values)), &at) in each.loops.iter().zip(&domains).zip(&turn) {
                scope.bindings.push((
                    bound.variable.clone(),
                    ExpressionValue::Label(*axis, values[at]),
                ));
            }
            let item = self.item(each, &domains, &turn, scope);
            let variable = scope.bindings[outer].1.clone();
            // Before the `?` of the item, because an error must not leave variables of the loop
            // behind.
            scope.bindings.truncate(outer);
            items.extend(item?.map(|value| (variable, value)));
            let Some(turning) = (0..turn.len())
                .rev()
                .find(|&at| turn[at] + 1 < domains[at].1.len())
            else {
                break;
            };
            turn[turning] += 1;
            turn[turning + 1..].fill(0);
        }
        self.aggregate(each.aggregate, items, node, scope)
    }

    /// Returns the body at one combination. `None` if there is no such point or if the condition
    /// excludes the combination.
    fn item(
        &self,
        each: &BoundAggregate,
        domains: &[(usize, Vec<usize>)],
        turn: &[usize],
        scope: &mut Scope<'_>,
    ) -> Result<Option<ExpressionValue>, Problem> {
        let chosen: Vec<(usize, usize)> = domains
            .iter()
            .zip(turn)
            .map(|((axis, values), &at)| (*axis, values[at]))
            .collect();
        // Two variables on one axis compare points with each other, and their pair is no point of
        // the matrix.
        let once = |at: usize| chosen[..at].iter().all(|(axis, _)| *axis != chosen[at].0);
        if (0..chosen.len()).all(once) && !self.matrix.holds_any(&chosen) {
            return Ok(None);
        }
        if let Some(condition) = &each.condition
            && !self.truth(condition, scope)?
        {
            if self.thorough {
                // The result is ignored, because an excluded combination need not be a point of the
                // study.
                let _ = self.value(&each.body, scope);
            }
            return Ok(None);
        }
        let value = match each.aggregate.takes_numbers() {
            true => ExpressionValue::Number(self.number(&each.body, scope)?),
            false => self.value(&each.body, scope)?,
        };
        Ok(Some(value))
    }
}
