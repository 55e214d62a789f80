//! Checks that every name of an expression is known, also a name without influence on the value.

use super::aggregate::AGGREGATES;
use super::lookup::metric_index;
use super::{Definition, Expression, ExpressionError, ExpressionKind, ExpressionNode, FUNCTIONS};
use crate::axes::Matrix;
use fullstroke_contract::registry::nearest;

/// Checks the names of axes, sets, values, metrics, functions and definitions. The caller binds
/// `variables`.
///
/// # Errors
/// The first unknown name, and the nearest known one.
pub fn check_names(
    expression: &Expression,
    variables: &[String],
    matrix: &Matrix,
    metrics: &[String],
    definitions: &[Definition],
) -> Result<(), ExpressionError> {
    let mut names = Names {
        text: &expression.text,
        variables: variables.to_vec(),
        matrix,
        metrics,
        definitions,
    };
    names.check(&expression.root)
}

struct Names<'a> {
    text: &'a str,
    variables: Vec<String>,
    matrix: &'a Matrix,
    metrics: &'a [String],
    definitions: &'a [Definition],
}

impl Names<'_> {
    fn check(&mut self, node: &ExpressionNode) -> Result<(), ExpressionError> {
        match &node.kind {
            ExpressionKind::Number(_) | ExpressionKind::Text(_) | ExpressionKind::Truth(_) => {
                Ok(())
            }
            ExpressionKind::Name(name) => self.value(name, node, false),
            ExpressionKind::Negate(inner) | ExpressionKind::Not(inner) => self.check(inner),
            ExpressionKind::Binary(_, one, other) => {
                self.check(one)?;
                self.check(other)
            }
            ExpressionKind::Call(name, arguments) => {
                self.function(name, node)?;
                arguments
                    .iter()
                    .try_for_each(|argument| self.check(argument))
            }
            ExpressionKind::Select(name, selectors) => {
                self.value(name, node, true)?;
                for selector in selectors {
                    let axis = self
                        .matrix
                        .axis(&selector.axis)
                        .map_err(|message| self.wrong(selector.span.clone(), message))?;
                    match &selector.value.kind {
                        ExpressionKind::Name(name) if self.variables.contains(name) => {}
                        ExpressionKind::Name(name) | ExpressionKind::Text(name) => {
                            self.matrix.axes[axis].index(name).map_err(|message| {
                                self.wrong(selector.value.span.clone(), message)
                            })?;
                        }
                        _ => self.check(&selector.value)?,
                    }
                }
                Ok(())
            }
            ExpressionKind::Each(each) => {
                let outer = self.variables.len();
                for bound in &each.loops {
                    self.matrix
                        .domain(&bound.domain)
                        .map_err(|message| self.wrong(bound.span.clone(), message))?;
                    self.variables.push(bound.variable.clone());
                }
                let parts = each.condition.iter().chain([&each.body]);
                let checked = parts.into_iter().try_for_each(|part| self.check(part));
                self.variables.truncate(outer);
                checked
            }
        }
    }

    /// Checks a variable, a definition or a metric. If selectors are allowed, the name may also be
    /// an aggregate.
    fn value(
        &self,
        name: &str,
        node: &ExpressionNode,
        selects: bool,
    ) -> Result<(), ExpressionError> {
        let aggregate = selects && AGGREGATES.iter().any(|entry| entry.0 == name);
        let known = self.variables.iter().any(|variable| variable == name)
            || self
                .definitions
                .iter()
                .any(|definition| definition.name == name)
            || metric_index(self.metrics, name).is_some();
        if known || aggregate {
            return Ok(());
        }
        let variables = self.variables.iter().map(String::as_str);
        let definitions = self
            .definitions
            .iter()
            .map(|definition| definition.name.as_str());
        let metrics = self.metrics.iter().map(String::as_str);
        let names: Vec<&str> = variables.chain(definitions).chain(metrics).collect();
        let message = format!(
            "there is no variable, definition or metric `{name}`{}; the value of an axis is written \"{name}\"",
            nearest(name, &names)
        );
        Err(self.wrong(node.span.start..node.span.start + name.len(), message))
    }

    fn function(&self, name: &str, node: &ExpressionNode) -> Result<(), ExpressionError> {
        let definitions = self
            .definitions
            .iter()
            .map(|definition| definition.name.as_str());
        let functions = FUNCTIONS.iter().map(|function| function.name);
        let aggregates = AGGREGATES.iter().map(|entry| entry.0);
        let names: Vec<&str> = definitions
            .chain(functions)
            .chain(aggregates)
            .chain(["if", "exists"])
            .collect();
        if names.contains(&name) {
            return Ok(());
        }
        let message = format!(
            "there is no function or definition `{name}`{}",
            nearest(name, &names)
        );
        Err(self.wrong(node.span.start..node.span.start + name.len(), message))
    }

    fn wrong(&self, span: std::ops::Range<usize>, message: impl Into<String>) -> ExpressionError {
        ExpressionError::new(self.text, span, message)
    }
}
