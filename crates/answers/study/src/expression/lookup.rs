//! Names of an expression and the points behind the names.

use super::evaluate::Scope;
use super::{
    Aggregate, Estimate, Evaluator, ExpressionKind, ExpressionNode, ExpressionValue, Problem,
    Selector,
};

impl Evaluator<'_> {
    /// Evaluates a definition without parameters, a metric, or an aggregate of the first metric.
    pub(super) fn named(
        &self,
        name: &str,
        selectors: &[Selector],
        node: &ExpressionNode,
        scope: &mut Scope<'_>,
    ) -> Result<ExpressionValue, Problem> {
        if let Some(definition) = self
            .definitions
            .iter()
            .find(|definition| definition.name == name)
        {
            if definition.parameters.is_empty() && selectors.is_empty() {
                return self.expand(definition, Vec::new(), node, scope);
            }
            let count = definition.parameters.len();
            return Err(scope.wrong(
                &node.span,
                format!("`{name}` takes {count} arguments; found none"),
            ));
        }
        let mut fixed = vec![None; self.matrix.axes.len()];
        for (index, axis) in self.matrix.axes.iter().enumerate() {
            // An axis without a selector takes the variable of its own name.
            if let Some(ExpressionValue::Label(axis, value)) = scope.variable(&axis.name)
                && *axis == index
            {
                fixed[index] = Some(*value);
            }
        }
        for selector in selectors {
            let axis = self
                .matrix
                .axis(&selector.axis)
                .map_err(|message| scope.wrong(&selector.span, message))?;
            match self.selected(axis, &selector.value, scope)? {
                Some(value) => fixed[axis] = Some(value),
                // Without a point the value is NaN.
                None => return Ok(ExpressionValue::Number(Estimate::exact(f64::NAN))),
            }
        }
        if let Some(metric) = metric_index(self.metrics, name) {
            return Ok(ExpressionValue::Number(
                self.at(metric, fixed, node, scope)?,
            ));
        }
        match Aggregate::find(name) {
            Ok(aggregate) => self.over_points(aggregate, &fixed, node, scope),
            Err(_) => Err(scope.wrong(
                &node.span,
                format!("there is no metric or definition `{name}`"),
            )),
        }
    }

    /// Returns the index of the value of a selector. `None` if the value is NaN, such as the result
    /// of `first` without items.
    fn selected(
        &self,
        axis: usize,
        node: &ExpressionNode,
        scope: &mut Scope<'_>,
    ) -> Result<Option<usize>, Problem> {
        let of = &self.matrix.axes[axis];
        let value = match &node.kind {
            // A name without a variable is the name of a value.
            ExpressionKind::Name(name) if scope.variable(name).is_none() => {
                ExpressionValue::Text(name.clone())
            }
            _ => self.value(node, scope)?,
        };
        match value {
            ExpressionValue::Label(other, value) if other == axis => Ok(value),
            ExpressionValue::Number(number) if number.mean().is_nan() => return Ok(None),
            ExpressionValue::Label(other, value) => of.index(self.label(other, value)),
            ExpressionValue::Text(name) => of.index(&name),
            ExpressionValue::Truth(truth) => of.index(&truth.to_string()),
            ExpressionValue::Number(number) => {
                let number = number.mean();
                let found = of
                    .values
                    .iter()
                    .position(|value| value.number == Some(number));
                found.map_or_else(|| of.index(&number.to_string()), Ok)
            }
        }
        .map(Some)
        .map_err(|message| scope.wrong(&node.span, message))
    }

    fn at(
        &self,
        metric: usize,
        fixed: Vec<Option<usize>>,
        node: &ExpressionNode,
        scope: &Scope<'_>,
    ) -> Result<Estimate, Problem> {
        let mut values = Vec::with_capacity(fixed.len());
        for (axis, value) in self.matrix.axes.iter().zip(fixed) {
            let only = (axis.values.len() == 1).then_some(0);
            values.push(value.or(only).ok_or_else(|| {
                let message = format!("a value of axis `{0}` is missing; write {0}=...", axis.name);
                scope.wrong(&node.span, message)
            })?);
        }
        let point = self.matrix.point(&values).ok_or_else(|| {
            let described = self.matrix.describe(&values);
            scope.wrong(&node.span, format!("the study has no point {described}"))
        })?;
        self.data.value(point, metric).ok_or(Problem::Missing)
    }

    /// Returns an aggregate of the first metric over all points with the fixed values.
    fn over_points(
        &self,
        aggregate: Aggregate,
        fixed: &[Option<usize>],
        node: &ExpressionNode,
        scope: &Scope<'_>,
    ) -> Result<ExpressionValue, Problem> {
        let mut items = Vec::new();
        for (point, values) in self.matrix.points().iter().enumerate() {
            if fixed
                .iter()
                .zip(values)
                .all(|(fixed, value)| fixed.is_none_or(|fixed| fixed == *value))
            {
                let found = self
                    .data
                    .value(point, self.first_metric)
                    .ok_or(Problem::Missing)?;
                items.push((
                    ExpressionValue::Number(found.clone()),
                    ExpressionValue::Number(found),
                ));
            }
        }
        if items.is_empty() {
            return Err(scope.wrong(&node.span, "the study has no point with these values"));
        }
        self.aggregate(aggregate, items, node, scope)
    }
}

/// Returns the index of the metric called `name`; a time alone means its mean.
pub(super) fn metric_index(metrics: &[String], name: &str) -> Option<usize> {
    metrics
        .iter()
        .position(|metric| metric == name)
        .or_else(|| {
            metrics
                .iter()
                .position(|metric| metric.strip_suffix(".mean") == Some(name))
        })
}
