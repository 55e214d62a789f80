//! Verdicts on claims.

use super::{Claim, Explained, OBTAINED, RESTORED, Rule};
use crate::axes::label;
use crate::config::Bound;
use crate::expression::{
    Bindings, Estimate, Evaluator, ExpressionError, ExpressionValue, Problem, ResultSource,
};
use crate::record::StudyRecord;
use crate::run_list::StudyTable;
use crate::study::Study;
use crate::text::{self, NumberFormat, Template};
use crate::variation::Variation;
use crate::verdict::{ClaimVerdict, Headline, JudgedClaim};

/// Obtained value of a claim, as a value and as text, with the judgement by the claim's rule.
struct Obtained {
    value: ExpressionValue,
    shown: String,
    /// True if the estimate fulfils the claim.
    holds: bool,
    /// True if the tested values of the interval give the same answer as the estimate.
    decided: bool,
}

impl Claim {
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
        judged.undecided_with = record
            .and_then(|record| record.undecided.get(&self.config.id))
            .cloned()
            .unwrap_or_default();
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
            undecided_with: Vec::new(),
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
            let (low, high) = (number.mean() - width, number.mean() + width);
            for value in self.rule.tested_values(low, high) {
                let value = ExpressionValue::Number(Estimate::exact(value));
                decided &= self.fulfils(&value, study, &evaluator)? == holds;
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
