//! The study file, as it is written.

use crate::expression::CONFIDENCE;
use fullstroke_contract::registry::Keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One study: a question, the points that answer it, and what was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyConfig {
    /// One line for people.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// Where it was answered first: paper, section, figure or table.
    pub source: String,
    /// What a reader of the results has to know; Markdown, numbers of the results as expressions in braces.
    pub notes: Option<String>,
    /// Where its section stands on the page of its folder: in ascending order, those without one last.
    pub order: Option<u32>,
    /// The base stack, relative to the study file. A study without points needs none.
    pub stack: Option<PathBuf>,
    /// Keys of the stack file that every point sets, as by --set.
    #[serde(default)]
    pub set: Vec<String>,
    /// How many seeds each point is run with.
    #[serde(default = "one")]
    pub replications: u32,
    /// The confidence of its intervals over seeds, between 0.5 and 1; that of an interval within a run is 0.95.
    #[serde(default = "confidence", skip_serializing_if = "is_usual")]
    pub confidence: f64,
    /// The first seed; the others follow it.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Numbers that are kept beside the metrics of `compare --by`, by their path in the report: `groups[reader].mb_per_s`,
    /// `processes[0].mb_per_s`; `windows.latency_ms.p50` and others by windows of arrivals, `predicted.mean_w` and others by the
    /// equations of `fullstroke predict`. The first metric is the one that `mean(...)` means.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// Whether it takes only seconds, so that tests run it.
    #[serde(default)]
    pub short: bool,
    /// What varies; the points are all combinations, the last axis varying fastest.
    #[serde(default)]
    pub axes: Vec<AxisConfig>,
    /// Only these points, each a table of axis = value, list of values or name of a set; an axis that is not named takes
    /// all its values.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    pub points: Vec<Keys>,
    /// All but these points, written as those of `points`.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    pub exclude: Vec<Keys>,
    /// Keys that only some points set: for what depends on more than one axis.
    #[serde(default)]
    pub settings: Vec<SettingConfig>,
    /// Names for some values of an axis.
    #[serde(default)]
    pub sets: Vec<SetConfig>,
    /// Names for expressions, with or without parameters: `"gain(a, l)" = "..."`.
    #[serde(default)]
    pub define: BTreeMap<String, String>,
    /// What was published, and when it is held to be reproduced.
    #[serde(default)]
    pub claims: Vec<ClaimConfig>,
    /// Sentences of the source that cannot be tested here.
    #[serde(default)]
    pub untestable: Vec<UntestableConfig>,
    /// One thing changed; every claim that it touches is looked at then.
    #[serde(default)]
    pub variants: Vec<VariantConfig>,
    /// What the source leaves open, and what else could have been taken.
    #[serde(default)]
    pub free: Vec<FreeConfig>,
    /// A file, relative to the study file, with further `[[free]]`: what several studies have in common.
    pub choices: Option<PathBuf>,
    /// What is drawn.
    #[serde(default)]
    pub figures: Vec<FigureConfig>,
}

/// One thing that varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AxisConfig {
    /// Its name in expressions.
    pub name: String,
    /// The key of the stack file that takes the values in turn.
    pub key: Option<String>,
    /// Further keys that take the same values.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Stands behind each number when it is set: `us`, `KiB`.
    pub unit: Option<String>,
    /// A number, text or truth for the key; or a table `{ name, number, stack, set }`.
    pub values: Vec<Value>,
}

/// A value of an axis that sets more than one key, or chooses another stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueConfig {
    /// Its name in expressions.
    pub name: String,
    /// What it counts as in arithmetic.
    pub number: Option<f64>,
    /// A stack in place of the base stack, relative to the study file.
    pub stack: Option<PathBuf>,
    /// Keys of the stack file, as by --set.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A name for some values of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// Its name in expressions.
    pub name: String,
    /// The axis.
    pub axis: String,
    /// Some of its values.
    pub values: Vec<Value>,
}

/// Keys that only some points set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingConfig {
    /// The points, written as those of `points`.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub at: Keys,
    /// Keys of the stack file, as by --set; they come after those of the axes.
    pub set: Vec<String>,
}

/// How a claim is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClaimKind {
    /// The published number itself, to the digits printed.
    Exact,
    /// A number of about that size.
    Near,
    /// An order, a sign, a trend.
    Shape,
}

/// What was published, and when it is held to be reproduced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimConfig {
    /// Its name, unique in the study.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// The sentence of the source, or the part of it, that is tested; every claim has one but those of ours.
    pub quote: Option<String>,
    /// Where it stands: `section 5.1.1`, `table 3.2`.
    pub at: Option<String>,
    /// Whether it is a claim of ours, which the source does not make.
    #[serde(default)]
    pub ours: bool,
    /// The published number, or what was published in words.
    pub published: Value,
    /// How it is to be read.
    pub kind: ClaimKind,
    /// The expression that gives what was obtained.
    pub obtained: String,
    /// How that is printed: text with expressions in braces, `{min(...):percent} to {max(...):percent}`. A published
    /// number is printed in the format of `obtained` there.
    pub shown: Option<String>,
    /// It holds if what was obtained lies within these bounds.
    pub within: Option<[f64; 2]>,
    /// It holds if what was obtained differs from the published number by no more than this share of `effect`.
    pub tolerance: Option<f64>,
    /// The published effect; the published number unless said.
    pub effect: Option<f64>,
    /// It holds if this expression is true; `obtained` names what was obtained.
    pub holds: Option<String>,
    /// Whose the bound is.
    #[serde(default)]
    pub bound: Bound,
    /// Why it does not hold, shown by a variant in which it does.
    #[schemars(with = "Option<ExplainedConfig>")]
    pub explained: Option<Value>,
    /// What is thought to be the reason where no variant shows it; decides nothing. Numbers of the results as expressions
    /// in braces.
    pub supposed: Option<String>,
}

/// Whose the bound of a claim is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The quoted sentence gives it.
    Quoted,
    /// It is ours.
    #[default]
    Ours,
}

/// An explanation: in the variant the claim holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainedConfig {
    /// The title of the variant that restores the statement.
    pub variant: String,
    /// What the difference is; numbers of the results as expressions in braces.
    pub why: String,
}

/// A sentence of the source that cannot be tested here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UntestableConfig {
    /// The sentence, or the part of it.
    pub quote: String,
    /// Where it stands.
    pub at: String,
    /// Why it cannot be tested.
    pub why: String,
}

/// One thing changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariantConfig {
    /// What is changed, for people; unique in the study.
    pub title: String,
    /// Keys of the stack file that every point sets then, as by --set; they come last.
    #[serde(default)]
    pub set: Vec<String>,
    /// Keys that only some points set then.
    #[serde(default)]
    pub settings: Vec<SettingConfig>,
}

/// What the source leaves open, and what else could have been taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FreeConfig {
    /// What is chosen, for people; unique in the study.
    pub name: String,
    /// What the study takes.
    pub taken: String,
    /// What the source says of it, or that it says nothing; why this was taken.
    pub why: String,
    /// When it was chosen: before or after which results had been seen.
    pub chosen: String,
    /// The key of the stack file that takes the other values in turn.
    pub key: Option<String>,
    /// Further keys that take the same values.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Stands behind each number when it is set: `us`, `KiB`.
    pub unit: Option<String>,
    /// What else could have been taken: a number, text or truth for the key; or a table `{ name, set, settings }`.
    pub values: Vec<Value>,
}

/// Another value of a free choice that sets more than one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FreeValueConfig {
    /// Its name, for people.
    pub name: String,
    /// Keys of the stack file, as by --set; they come last.
    #[serde(default)]
    pub set: Vec<String>,
    /// Keys that only some points set.
    #[serde(default)]
    pub settings: Vec<SettingConfig>,
}

/// Choices that several studies have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChoicesConfig {
    /// The choices.
    #[serde(default)]
    pub free: Vec<FreeConfig>,
}

/// One chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FigureConfig {
    /// Names the file.
    pub id: String,
    /// Stands above it.
    pub title: String,
    /// The axis along the abscissa.
    pub x: String,
    /// The axis or set that gives one line for each value.
    pub series: Option<String>,
    /// What is drawn: an expression in which the names of `x` and `series` are variables.
    pub y: String,
    /// What stands at the abscissa; the axis' name unless said.
    pub x_label: Option<String>,
    /// What stands at the ordinate; the expression unless said.
    pub y_label: Option<String>,
    /// What to see in it; numbers of the results as expressions in braces.
    pub caption: Option<String>,
    /// Whether the ordinate begins at zero; unless said, where the smallest value is less than half of the largest.
    pub zero: Option<bool>,
    /// Published points, laid over.
    #[serde(default)]
    pub published: Vec<PublishedConfig>,
}

/// Published points of one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedConfig {
    /// The value of the series' axis that they belong to.
    pub series: Option<Value>,
    /// Pairs of a value of the abscissa's axis and a number.
    pub points: Vec<(Value, f64)>,
}

impl StudyConfig {
    /// What its verdicts follow from, as text: the file without what stands in it for people only.
    pub(crate) fn substance(&self) -> String {
        let mut bare = self.clone();
        (bare.title, bare.question, bare.source) = Default::default();
        (bare.notes, bare.order, bare.short, bare.choices) = Default::default();
        (bare.variants, bare.free, bare.untestable, bare.figures) = Default::default();
        for claim in &mut bare.claims {
            (claim.says, claim.quote, claim.at, claim.shown) = Default::default();
            (claim.bound, claim.ours, claim.explained, claim.supposed) = Default::default();
        }
        // A file that was read can be written.
        serde_json::to_string(&bare).unwrap_or_default()
    }
}

fn one() -> u32 {
    1
}

fn first_seed() -> u64 {
    1
}

fn confidence() -> f64 {
    CONFIDENCE
}

/// What is usual is not written, so that it is not part of a study's substance.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_usual(confidence: &f64) -> bool {
    *confidence == CONFIDENCE
}
