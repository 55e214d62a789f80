//! Claims: published value, obtained value and verdict.

use crate::axes::label;
use crate::config::{Bound, ClaimConfig, ClaimKind, ExplainedConfig, HeadlineCause};
use crate::expression::{
    Bindings, Estimate, Evaluator, Expression, ExpressionError, ExpressionValue, Problem,
    ResultSource, parse,
};
use crate::held_out::StudyRecord;
use crate::run_list::StudyTable;
use crate::study::Study;
use crate::text::{self, NumberFormat, Template};
use crate::variation::Variation;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::read;
use serde::{Serialize, Serializer};
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

/// Rule by which a claim holds. Both ends of the interval must give the answer of the estimate;
/// otherwise the results do not decide the claim.
#[derive(Clone, Debug)]
enum Rule {
    Within(f64, f64),
    /// Number and largest distance from the number.
    Near(f64, f64),
    Condition(Expression),
}

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The claim holds.
    Holds,
    /// The claim holds with the study's assumptions, but not with other seeds or another free
    /// choice.
    Fragile,
    /// The claim holds, because a number of the setup was chosen so that the claim holds.
    Fitted,
    /// The interval of the obtained value reaches to both sides of the bound.
    Undecided,
    /// The claim does not hold.
    DoesNotHold,
    /// The claim does not hold, but holds in the variant that explains the difference.
    DiffersExplained,
    /// The claim holds although the study explains why it should not.
    HoldsThoughExplained,
    /// Points of the claim have no results yet.
    NotRun,
    /// The expression has no value because it names a point outside the study.
    Broken,
}

/// A claim with its obtained value and verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedClaim {
    /// The claim's name.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// Quoted sentence of the source.
    pub quote: Option<String>,
    /// Place of the quote in the source.
    pub at: Option<String>,
    /// True if the claim is this project's own.
    pub ours: bool,
    /// Kind of the claim.
    pub kind: ClaimKind,
    /// Published value, in the units of the obtained value.
    pub published: String,
    /// Rule by which the claim holds, and origin of its bound.
    pub holds_if: String,
    /// Obtained value as text.
    pub shown: String,
    /// Obtained value if it is a number.
    pub obtained: Option<f64>,
    /// Half the width of the interval of `obtained`, if there is one.
    pub ci_half_width: Option<f64>,
    /// Verdict on the claim.
    pub verdict: ClaimVerdict,
    /// Reason why the claim does not hold, proved or supposed. For a broken claim: the error.
    pub why: Option<String>,
    /// Tested settings that reverse the verdict.
    pub flips: Vec<String>,
    /// True if the estimate alone, without its interval, fulfils the claim.
    pub estimate_holds: bool,
    /// Cause of the result, if the claim is a headline of the source.
    pub headline: Option<Headline>,
}

/// Cause of a headline's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headline {
    /// Class of the cause.
    pub cause: HeadlineCause,
    /// The cause in words, with the numbers that show the cause.
    pub why: String,
}

/// Obtained value of a claim, as a value and as text, with the judgement by the claim's rule.
struct Obtained {
    value: ExpressionValue,
    shown: String,
    /// True if the estimate fulfils the claim.
    holds: bool,
    /// True if both ends of the interval give the same answer as the estimate.
    decided: bool,
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
            shown: template("shown", config.shown.as_deref())?,
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

    /// Judges the claim by `data` alone, without explanations and without settings that reverse the
    /// verdict.
    pub fn judge_plainly(&self, study: &Study, data: &dyn ResultSource) -> JudgedClaim {
        let mut judged = self.not_run();
        match self.obtain(study, data) {
            Ok(obtained) => {
                if let ExpressionValue::Number(number) = &obtained.value {
                    judged.obtained = Some(number.mean()).filter(|mean| mean.is_finite());
                    judged.ci_half_width = number.half_width();
                }
                judged.shown = obtained.shown;
                judged.estimate_holds = obtained.holds;
                judged.verdict = match (obtained.decided, obtained.holds) {
                    (false, _) => ClaimVerdict::Undecided,
                    (true, false) => ClaimVerdict::DoesNotHold,
                    (true, true) if self.config.fitted => ClaimVerdict::Fitted,
                    (true, true) => ClaimVerdict::Holds,
                };
            }
            Err(Problem::Missing) => {}
            Err(Problem::Wrong(error)) => {
                judged.verdict = ClaimVerdict::Broken;
                judged.shown = "cannot be evaluated".to_owned();
                judged.why = Some(error.to_string());
            }
        }
        judged
    }

    /// Judges the claim by the results of the study, of the variant that explains a difference, and
    /// by the record of other settings.
    pub fn judge<'a>(
        &self,
        study: &'a Study,
        table: &dyn Fn(Variation) -> StudyTable<'a>,
        record: Option<&StudyRecord>,
    ) -> JudgedClaim {
        let own = table(Variation::Base);
        let mut judged = self.judge_plainly(study, &own);
        if matches!(judged.verdict, ClaimVerdict::NotRun | ClaimVerdict::Broken) {
            return judged;
        }
        judged.headline = self.headline(study, &own);
        let held = judged.estimate_holds;
        let flips = record.and_then(|record| record.flips.get(&self.config.id));
        let flips = flips
            .into_iter()
            .flatten()
            // The results may have changed since the record. A setting with the present verdict
            // reverses nothing.
            .filter(|flip| flip.holds != held);
        judged.flips = flips
            .map(|flip| format!("{}: {}", flip.with, flip.obtained))
            .collect();
        if judged.verdict == ClaimVerdict::Undecided {
            return judged;
        }
        match (&self.explained, held) {
            (Some(_), true) => judged.verdict = ClaimVerdict::HoldsThoughExplained,
            (Some(explained), false) => self.explain(explained, study, table, &mut judged),
            (None, true) if self.config.fitted => {}
            (None, true) if !judged.flips.is_empty() => judged.verdict = ClaimVerdict::Fragile,
            (None, true) => {}
            (None, false) => {
                let words = self
                    .supposed
                    .as_ref()
                    .map(|supposed| self.say(supposed, study, &own, None));
                judged.why = words.map(|words| format!("supposed, not shown: {words}"));
            }
        }
        judged
    }

    /// Adds the explanation, which counts only if the claim holds in its variant.
    fn explain<'a>(
        &self,
        explained: &Explained,
        study: &'a Study,
        table: &dyn Fn(Variation) -> StudyTable<'a>,
        judged: &mut JudgedClaim,
    ) {
        let titles = study.config.variants.iter().map(|variant| &variant.title);
        let number = titles
            .enumerate()
            .find(|(_, title)| **title == explained.variant);
        let Some((number, title)) = number else {
            return;
        };
        let changed = table(Variation::Variant(number));
        let then = self.judge_plainly(study, &changed);
        match then.verdict {
            ClaimVerdict::Holds | ClaimVerdict::Fitted => {
                let restored = study
                    .evaluator(&changed)
                    .evaluate(&self.obtained, &Bindings::new())
                    .ok();
                let words = self.say(&explained.why, study, &table(Variation::Base), restored);
                judged.verdict = ClaimVerdict::DiffersExplained;
                judged.why = Some(format!("{words} With \"{title}\": {}", then.shown));
            }
            ClaimVerdict::NotRun => judged.verdict = ClaimVerdict::NotRun,
            _ => judged.why = Some(format!("\"{title}\" does not restore it: {}", then.shown)),
        }
    }

    /// Returns the cause of a headline with its numbers.
    fn headline(&self, study: &Study, own: &dyn ResultSource) -> Option<Headline> {
        let (config, why) = (self.config.headline.as_ref()?, self.headline.as_ref()?);
        Some(Headline {
            cause: config.cause,
            why: self.say(why, study, own, None),
        })
    }

    /// Fills a template with its numbers.
    fn say(
        &self,
        words: &Template,
        study: &Study,
        data: &dyn ResultSource,
        restored: Option<ExpressionValue>,
    ) -> String {
        let evaluator = study.evaluator(data);
        let own = evaluator.evaluate(&self.obtained, &Bindings::new()).ok();
        let named = [(OBTAINED, own), (RESTORED, restored)];
        let bindings: Bindings = named
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect();
        words
            .fill(&evaluator, &bindings)
            .unwrap_or_else(|_| "a number in these words is missing".to_owned())
    }

    /// Returns the claim without results.
    pub(crate) fn not_run(&self) -> JudgedClaim {
        let config = &self.config;
        JudgedClaim {
            id: config.id.clone(),
            says: config.says.clone(),
            quote: config.quote.clone(),
            at: config.at.clone(),
            ours: config.ours,
            kind: config.kind,
            published: self.published(),
            holds_if: self.holds_if(),
            shown: "not run yet".to_owned(),
            obtained: None,
            ci_half_width: None,
            verdict: ClaimVerdict::NotRun,
            why: None,
            flips: Vec::new(),
            estimate_holds: false,
            headline: None,
        }
    }

    /// Returns the published value in the format of the obtained value.
    fn published(&self) -> String {
        match self.config.published.as_f64() {
            Some(number) => self.write(number),
            None => label(&self.config.published),
        }
    }

    fn write(&self, number: f64) -> String {
        text::published(number, self.format())
    }

    /// Returns the format of the obtained value, which also applies to all values in comparison.
    fn format(&self) -> Option<NumberFormat> {
        self.shown
            .as_ref()
            .and_then(|shown| shown.format_of(OBTAINED))
    }

    /// Returns the rule by which the claim holds, and the origin of its bound.
    fn holds_if(&self) -> String {
        let bounds = |low: String, high: String| match low == high {
            true => low,
            false => format!("{low} to {high}"),
        };
        let rule = match &self.rule {
            Rule::Within(low, high) => bounds(self.write(*low), self.write(*high)),
            Rule::Near(centre, distance) => {
                let bound = |number| text::bound(number, self.format());
                bounds(bound(centre - distance), bound(centre + distance))
            }
            Rule::Condition(condition) => format!("`{}`", condition.text.trim()),
        };
        match self.config.bound {
            Bound::Quoted => format!("{rule} (as quoted)"),
            Bound::Ours => rule,
        }
    }

    fn obtain(&self, study: &Study, data: &dyn ResultSource) -> Result<Obtained, Problem> {
        let evaluator = study.evaluator(data);
        let value = evaluator.evaluate(&self.obtained, &Bindings::new())?;
        let bindings: Bindings = vec![(OBTAINED.to_owned(), value.clone())];
        let shown = match &self.shown {
            Some(template) => template.fill(&evaluator, &bindings)?,
            None => text::plain(&value, &study.matrix),
        };
        let holds = self.fulfils(&value, study, &evaluator)?;
        let mut decided = true;
        // The interval within one run counts two runs as independent, although they share random
        // numbers. Such an interval is too wide to leave a claim undecided.
        if let ExpressionValue::Number(number) = &value
            && number.has_seeds()
            && let Some(width) = number.half_width()
        {
            for end in [number.mean() - width, number.mean() + width] {
                let end = ExpressionValue::Number(Estimate::exact(end));
                decided &= self.fulfils(&end, study, &evaluator)? == holds;
            }
        }
        Ok(Obtained {
            value,
            shown,
            holds,
            decided,
        })
    }

    /// Returns true if a value fulfils the rule of the claim.
    fn fulfils(
        &self,
        value: &ExpressionValue,
        study: &Study,
        evaluator: &Evaluator<'_>,
    ) -> Result<bool, Problem> {
        let number = match value {
            ExpressionValue::Number(number) => number.mean(),
            ExpressionValue::Label(axis, value) => study.matrix.axes[*axis].values[*value]
                .number
                .unwrap_or(f64::NAN),
            ExpressionValue::Truth(_) | ExpressionValue::Text(_) => f64::NAN,
        };
        let holds = match &self.rule {
            Rule::Within(low, high) => (*low..=*high).contains(&number),
            Rule::Near(centre, distance) => (number - centre).abs() <= *distance,
            Rule::Condition(condition) => {
                let bindings: Bindings = vec![(OBTAINED.to_owned(), value.clone())];
                match evaluator.evaluate(condition, &bindings)? {
                    ExpressionValue::Truth(truth) => truth,
                    _ => {
                        let span = 0..condition.text.len();
                        let message = "expected a comparison, which is true or false";
                        return Err(Problem::Wrong(ExpressionError::new(
                            &condition.text,
                            span,
                            message,
                        )));
                    }
                }
            }
        };
        // A value that is not finite proves nothing, even if the comparison is true.
        let measured =
            !matches!(value, ExpressionValue::Number(number) if !number.mean().is_finite());
        Ok(holds && measured)
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

impl Serialize for ClaimVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl ClaimVerdict {
    /// All verdicts in the order of the tables.
    pub const ALL: [ClaimVerdict; 9] = [
        ClaimVerdict::Holds,
        ClaimVerdict::Fragile,
        ClaimVerdict::Fitted,
        ClaimVerdict::Undecided,
        ClaimVerdict::DiffersExplained,
        ClaimVerdict::DoesNotHold,
        ClaimVerdict::HoldsThoughExplained,
        ClaimVerdict::NotRun,
        ClaimVerdict::Broken,
    ];

    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::Fragile => "fragile",
            ClaimVerdict::Fitted => "fitted",
            ClaimVerdict::Undecided => "undecided",
            ClaimVerdict::DoesNotHold => "does-not-hold",
            ClaimVerdict::DiffersExplained => "differs-explained",
            ClaimVerdict::HoldsThoughExplained => "holds-though-explained",
            ClaimVerdict::NotRun => "not-run",
            ClaimVerdict::Broken => "broken",
        }
    }

    /// Returns the name in tables.
    pub fn text(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::Fragile => "fragile",
            ClaimVerdict::Fitted => "fitted",
            ClaimVerdict::Undecided => "undecided",
            ClaimVerdict::DoesNotHold => "does not hold",
            ClaimVerdict::DiffersExplained => "differs, explained",
            ClaimVerdict::HoldsThoughExplained => "holds; its explanation is stale",
            ClaimVerdict::NotRun => "not run",
            ClaimVerdict::Broken => "broken",
        }
    }

    /// Returns true if a check accepts the verdict. A stale explanation is not accepted: its words
    /// give a reason for a difference that is no longer there.
    pub fn passes(self) -> bool {
        matches!(
            self,
            ClaimVerdict::Holds
                | ClaimVerdict::Fragile
                | ClaimVerdict::Fitted
                | ClaimVerdict::Undecided
                | ClaimVerdict::DiffersExplained
        )
    }
}
