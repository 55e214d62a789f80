//! Claims: published value, obtained value and verdict.

mod judging;

use crate::config::{Bound, ClaimConfig, ClaimKind, ExplainedConfig};
use crate::expression::{Expression, ExpressionError, parse};
use crate::text::Template;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::read;
use std::collections::BTreeSet;

/// Name of the obtained value in all expressions of a claim except `obtained` itself.
pub(crate) const OBTAINED: &str = "obtained";

/// Name of the explaining variant's value in the explanation's `why`.
pub(crate) const RESTORED: &str = "restored";

/// Default tolerance of "near": a third of the published effect.
const NEAR: f64 = 1.0 / 3.0;

/// A parsed and checked claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claim in the study file.
    pub config: ClaimConfig,
    obtained: Expression,
    shown: Option<Template>,
    rule: Rule,
    explained: Option<Explained>,
    supposed: Option<Template>,
    headline: Option<Template>,
    /// Points that the claim may read.
    pub(crate) touched: BTreeSet<usize>,
}

/// A variant in which the claim holds, with the explanation.
#[derive(Clone, Debug)]
struct Explained {
    variant: String,
    why: Template,
}

/// Rule by which a claim holds. All tested values of the interval must give the answer of the
/// estimate; otherwise the results do not decide the claim.
#[derive(Clone, Debug)]
enum Rule {
    Within(f64, f64),
    /// Number and largest distance from the number.
    Near(f64, f64),
    Condition(Expression),
}

impl Claim {
    pub(crate) fn new(config: &ClaimConfig) -> Result<Claim, ConfigError> {
        let fail = |key: &'static str| {
            move |error: ExpressionError| ConfigError::new(key, error.to_string())
        };
        let template = |key: &'static str, text: Option<&str>| {
            text.map(Template::parse).transpose().map_err(fail(key))
        };
        let explained = match &config.explained {
            Some(serde_json::Value::Object(keys)) => {
                let ExplainedConfig { variant, why } =
                    read(keys).map_err(|error| error.below("explained"))?;
                let why = Template::parse(&why).map_err(fail("explained.why"))?;
                Some(Explained { variant, why })
            }
            Some(other) => {
                let message = format!(
                    "found {other}; expected {{ variant = \"...\", why = \"...\" }}; what no variant shows is `supposed`"
                );
                return Err(ConfigError::new("explained", message));
            }
            None => None,
        };
        if config.bound == Bound::Quoted && config.quote.is_none() {
            return Err(ConfigError::new(
                "bound",
                "found \"quoted\" without a `quote`",
            ));
        }
        Ok(Claim {
            obtained: parse(&config.obtained).map_err(fail("obtained"))?,
            // A reader needs the interval beside each value that a verdict judges.
            shown: template("shown", config.shown.as_deref())?
                .map(|shown| shown.with_intervals_of(OBTAINED)),
            rule: Rule::new(config)?,
            explained,
            supposed: template("supposed", config.supposed.as_deref())?,
            headline: template(
                "headline.why",
                config
                    .headline
                    .as_ref()
                    .map(|headline| headline.why.as_str()),
            )?,
            config: config.clone(),
            touched: BTreeSet::new(),
        })
    }

    /// Returns the title of the variant that explains the difference, if the study names one.
    pub(crate) fn explained_by(&self) -> Option<&str> {
        self.explained
            .as_ref()
            .map(|explained| explained.variant.as_str())
    }

    /// Returns the expressions with their keys.
    pub(crate) fn expressions(&self) -> Vec<(&'static str, &Expression)> {
        let condition = match &self.rule {
            Rule::Condition(condition) => Some(("holds", condition)),
            _ => None,
        };
        let why = self.explained.as_ref().map(|explained| &explained.why);
        let texts = [
            ("shown", self.shown.as_ref()),
            ("explained", why),
            ("supposed", self.supposed.as_ref()),
            ("headline.why", self.headline.as_ref()),
        ];
        let inner = texts.into_iter().flat_map(|(key, template)| {
            template
                .into_iter()
                .flat_map(Template::expressions)
                .map(move |expression| (key, expression))
        });
        [("obtained", &self.obtained)]
            .into_iter()
            .chain(condition)
            .chain(inner)
            .collect()
    }
}

/// Number of equal parts of an interval at whose ends a condition is tested.
const PARTS: u32 = 16;

impl Rule {
    /// Returns values of an interval that give every answer that the interval has. The accepted range
    /// can lie inside the interval, so that neither end is accepted.
    fn tested_values(&self, low: f64, high: f64) -> Vec<f64> {
        match self {
            // The centre is inside the interval if the whole range is.
            Rule::Within(least, most) => vec![low, f64::midpoint(*least, *most), high],
            Rule::Near(centre, _) => vec![low, *centre, high],
            Rule::Condition(_) => (0..PARTS)
                .map(|part| low + (high - low) * f64::from(part) / f64::from(PARTS))
                .chain([high])
                .collect(),
        }
        .into_iter()
        .filter(|value| (low..=high).contains(value))
        .collect()
    }

    fn new(config: &ClaimConfig) -> Result<Rule, ConfigError> {
        let near = config.tolerance.is_some() || config.effect.is_some();
        let given = [config.within.is_some(), near, config.holds.is_some()];
        match given.iter().filter(|&&given| given).count() {
            0 if config.kind == ClaimKind::Near => Rule::near(config),
            0 => Err(ConfigError::new(
                "holds",
                "the claim has no condition; give within = [low, high], tolerance = ..., or holds = \"...\"",
            )),
            1 => match (config.within, &config.holds) {
                (Some([low, high]), _) if low <= high => Ok(Rule::Within(low, high)),
                (Some([low, high]), _) => {
                    let message = format!("found [{low}, {high}]; expected the lower bound first");
                    Err(ConfigError::new("within", message))
                }
                (None, Some(condition)) => parse(condition)
                    .map(Rule::Condition)
                    .map_err(|error| ConfigError::new("holds", error.to_string())),
                (None, None) => Rule::near(config),
            },
            _ => Err(ConfigError::new(
                "holds",
                "expected one of `within`, `tolerance` and `holds`, not several",
            )),
        }
    }

    fn near(config: &ClaimConfig) -> Result<Rule, ConfigError> {
        let Some(published) = config.published.as_f64() else {
            let message = format!(
                "found {}; `tolerance` and kind = \"near\" need a number",
                config.published
            );
            return Err(ConfigError::new("published", message));
        };
        let tolerance = config.tolerance.unwrap_or(NEAR);
        // NaN fails the first comparison, so it is refused as well.
        if !(tolerance >= 0.0 && tolerance.is_finite()) {
            return Err(ConfigError::new(
                "tolerance",
                format!("found {tolerance}; expected a share, 0 or more"),
            ));
        }
        // A published number may be negative, but a distance is not.
        let effect = config.effect.unwrap_or(published).abs();
        Ok(Rule::Near(published, tolerance * effect))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_around_the_accepted_range_has_an_accepted_value() {
        let condition = parse("obtained > 0.9 and obtained < 1.1").unwrap();
        for (rule, low, high, accepted) in [
            (Rule::Within(0.9, 1.1), 0.0, 3.0, true),
            (Rule::Within(0.9, 1.1), 2.0, 3.0, false),
            (Rule::Near(1.0, 0.1), -2.0, 3.0, true),
            (Rule::Near(1.0, 0.1), -2.0, 0.5, false),
            (Rule::Condition(condition), 0.0, 2.0, true),
        ] {
            let values = rule.tested_values(low, high);
            let found = values.iter().any(|value| (0.9..=1.1).contains(value));
            assert_eq!(found, accepted, "{rule:?} {values:?}");
        }
    }
}
