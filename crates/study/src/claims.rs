//! Claims: what was published, what was obtained, and whether it holds.

use crate::axes::label;
use crate::config::{ClaimConfig, ClaimKind};
use crate::expression::{Bindings, Data, Expression, ExpressionError, Problem, Value, parse};
use crate::study::Study;
use crate::text::{self, Template};
use fullstroke_contract::ConfigError;
use serde::Serialize;

/// What was obtained goes by this name in `holds` and `shown`.
pub(crate) const OBTAINED: &str = "obtained";

/// "Near" means: within a third of the published effect, unless the claim says.
const NEAR: f64 = 1.0 / 3.0;

/// A claim that was read and checked.
#[derive(Clone, Debug)]
pub struct Claim {
    /// As written.
    pub config: ClaimConfig,
    obtained: Expression,
    shown: Option<Template>,
    rule: Rule,
}

/// When a claim holds. Bounds are held against the estimate, not against its
/// interval, which is shown beside it.
#[derive(Clone, Debug)]
enum Rule {
    Within(f64, f64),
    /// No farther than this from the number.
    Near(f64, f64),
    Condition(Expression),
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not.
    DoesNotHold,
    /// It does not, and the study says why.
    DiffersExplained,
    /// It holds, and the study explains why it does not.
    HoldsThoughExplained,
    /// Points that it is about have no results yet.
    NotRun,
    /// Its expression has no value: it names a point that the study has not.
    Broken,
}

/// A claim beside what was obtained.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The claim's name.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// How it is to be read.
    pub kind: ClaimKind,
    /// What was published.
    pub published: String,
    /// What was obtained, for people.
    pub shown: String,
    /// The number that was obtained, if it is one.
    pub obtained: Option<f64>,
    /// Half the width of its 95 % interval, if there is one.
    pub ci95_half_width: Option<f64>,
    /// Whether the claim holds.
    pub verdict: Verdict,
    /// Why it does not, if the study says so; what is wrong, if it is broken.
    pub why: Option<String>,
}

impl Claim {
    pub(crate) fn new(config: &ClaimConfig) -> Result<Claim, ConfigError> {
        let read =
            |key: &str, text: &str| parse(text).map_err(|error| ConfigError::new(key, error.to_string()));
        let shown = config.shown.as_deref().map(Template::parse).transpose();
        Ok(Claim {
            obtained: read("obtained", &config.obtained)?,
            shown: shown.map_err(|error| ConfigError::new("shown", error.to_string()))?,
            rule: Rule::new(config)?,
            config: config.clone(),
        })
    }

    /// Its expressions with their keys.
    pub(crate) fn expressions(&self) -> Vec<(&'static str, &Expression)> {
        let condition = match &self.rule {
            Rule::Condition(condition) => Some(("holds", condition)),
            _ => None,
        };
        let shown = self.shown.iter().flat_map(Template::expressions).map(|expression| ("shown", expression));
        [("obtained", &self.obtained)].into_iter().chain(condition).chain(shown).collect()
    }

    /// What `data` of a variant make of it. What is said of the difference is about
    /// the study itself, and does not count.
    pub fn judge_changed(&self, study: &Study, data: &dyn Data) -> Judged {
        let mut judged = self.judge(study, data);
        match judged.verdict {
            Verdict::HoldsThoughExplained => judged.verdict = Verdict::Holds,
            Verdict::DiffersExplained => judged.verdict = Verdict::DoesNotHold,
            Verdict::Holds | Verdict::DoesNotHold | Verdict::NotRun | Verdict::Broken => return judged,
        }
        judged.why = None;
        judged
    }

    /// What `data` makes of it.
    pub fn judge(&self, study: &Study, data: &dyn Data) -> Judged {
        let mut judged = Judged {
            id: self.config.id.clone(),
            says: self.config.says.clone(),
            kind: self.config.kind,
            published: label(&self.config.published),
            shown: "not run yet".to_owned(),
            obtained: None,
            ci95_half_width: None,
            verdict: Verdict::NotRun,
            why: self.config.explained.clone(),
        };
        match self.obtain(study, data) {
            Ok((value, shown, holds)) => {
                if let Value::Number(number) = &value {
                    judged.obtained = Some(number.mean()).filter(|mean| mean.is_finite());
                    judged.ci95_half_width = number.half_width();
                }
                judged.shown = shown;
                judged.verdict = match (holds, &self.config.explained) {
                    (true, None) => Verdict::Holds,
                    (true, Some(_)) => Verdict::HoldsThoughExplained,
                    (false, None) => Verdict::DoesNotHold,
                    (false, Some(_)) => Verdict::DiffersExplained,
                };
            }
            Err(Problem::Missing) => {}
            Err(Problem::Wrong(error)) => {
                judged.verdict = Verdict::Broken;
                judged.shown = "cannot be evaluated".to_owned();
                judged.why = Some(error.to_string());
            }
        }
        judged
    }

    fn obtain(&self, study: &Study, data: &dyn Data) -> Result<(Value, String, bool), Problem> {
        let evaluator = study.evaluator(data);
        let value = evaluator.evaluate(&self.obtained, &Bindings::new())?;
        let bindings: Bindings = vec![(OBTAINED.to_owned(), value.clone())];
        let shown = match &self.shown {
            Some(template) => template.fill(&evaluator, &bindings)?,
            None => text::plain(&value, &study.matrix),
        };
        let number = match &value {
            Value::Number(number) => number.mean(),
            Value::Label(axis, value) => study.matrix.axes[*axis].values[*value].number.unwrap_or(f64::NAN),
            Value::Truth(_) | Value::Text(_) => f64::NAN,
        };
        let holds = match &self.rule {
            Rule::Within(low, high) => (*low..=*high).contains(&number),
            Rule::Near(centre, distance) => (number - centre).abs() <= *distance,
            Rule::Condition(condition) => match evaluator.evaluate(condition, &bindings)? {
                Value::Truth(truth) => truth,
                _ => {
                    let span = 0..condition.text.len();
                    let message = "expected a comparison, which is true or false";
                    return Err(Problem::Wrong(ExpressionError::new(&condition.text, span, message)));
                }
            },
        };
        // What is no number holds nothing, whatever is compared with it.
        let measured = !matches!(&value, Value::Number(number) if !number.mean().is_finite());
        Ok((value, shown, holds && measured))
    }
}

impl Rule {
    fn new(config: &ClaimConfig) -> Result<Rule, ConfigError> {
        let near = config.tolerance.is_some() || config.effect.is_some();
        let given = [config.within.is_some(), near, config.holds.is_some()];
        match given.iter().filter(|&&given| given).count() {
            0 if config.kind == ClaimKind::Near => Rule::near(config),
            0 => Err(ConfigError::new(
                "holds",
                "the claim does not say when it holds; give within = [low, high], tolerance = ..., or holds = \"...\"",
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
            let message =
                format!("found {}; `tolerance` and kind = \"near\" need a number", config.published);
            return Err(ConfigError::new("published", message));
        };
        let tolerance = config.tolerance.unwrap_or(NEAR);
        if !(tolerance >= 0.0 && tolerance.is_finite()) {
            return Err(ConfigError::new(
                "tolerance",
                format!("found {tolerance}; expected a share, 0 or more"),
            ));
        }
        let effect = config.effect.unwrap_or(published).abs();
        Ok(Rule::Near(published, tolerance * effect))
    }
}

impl Verdict {
    /// As in tables.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::DiffersExplained => "differs, explained",
            Verdict::HoldsThoughExplained => "holds; its explanation is stale",
            Verdict::NotRun => "not run",
            Verdict::Broken => "broken",
        }
    }

    /// Whether a check may pass over it.
    pub fn passes(self) -> bool {
        matches!(self, Verdict::Holds | Verdict::DiffersExplained | Verdict::HoldsThoughExplained)
    }
}
