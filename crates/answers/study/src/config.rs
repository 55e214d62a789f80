//! The study file as written.

use crate::expression::CONFIDENCE;
use fullstroke_contract::registry::Keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One study: a question, the points that answer the question, and the published claims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyConfig {
    /// One line for people.
    pub title: String,
    /// Question of the study.
    pub question: String,
    /// Source of the published answer: paper, section, figure or table.
    pub source: String,
    /// Notes for readers of the results, in Markdown. Expressions in braces stand for numbers of
    /// the results.
    pub notes: Option<String>,
    /// Position of the study's section on the page of its folder. Sections without a position come
    /// last.
    pub order: Option<u32>,
    /// The base stack, relative to the study file. A study without points needs none.
    pub stack: Option<PathBuf>,
    /// Keys of the stack file for every point, as by --set.
    #[serde(default)]
    pub set: Vec<String>,
    /// Number of seeds of each point.
    #[serde(default = "one")]
    pub replications: u32,
    /// Confidence of intervals over seeds, between 0.5 and 1. The confidence of an interval within
    /// a run is 0.95.
    #[serde(default = "confidence", skip_serializing_if = "is_usual")]
    pub confidence: f64,
    /// First seed; the other seeds follow one by one.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Further numbers besides the metrics of `compare --by`, by their path in the report:
    /// `groups[reader].mb_per_s`, `processes[0].mb_per_s`. `windows.latency_ms.p50` and similar
    /// paths are values by windows of arrivals. `predicted.mean_w` and similar paths come from the
    /// equations of `fullstroke predict`. `mean(...)` uses the first metric.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// True if the study takes only seconds, so that tests run the study.
    #[serde(default)]
    pub short: bool,
    /// Axes. The points are all combinations; the last axis varies fastest.
    #[serde(default)]
    pub axes: Vec<AxisConfig>,
    /// Only these points, each a table of axis = value, list of values or name of a set. An axis
    /// without an entry takes all its values.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    pub points: Vec<Keys>,
    /// Points to leave out, in the format of `points`.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    pub exclude: Vec<Keys>,
    /// Keys for some points only, for settings that depend on more than one axis.
    #[serde(default)]
    pub settings: Vec<SettingConfig>,
    /// Names for some values of an axis.
    #[serde(default)]
    pub sets: Vec<SetConfig>,
    /// Names for expressions, with or without parameters: `"gain(a, l)" = "..."`.
    #[serde(default)]
    pub define: BTreeMap<String, String>,
    /// Published claims and the rules by which they are reproduced.
    #[serde(default)]
    pub claims: Vec<ClaimConfig>,
    /// Untestable sentences of the source.
    #[serde(default)]
    pub untestable: Vec<UntestableConfig>,
    /// Variants of the study with one change each. Every claim that a variant affects is judged in
    /// the variant.
    #[serde(default)]
    pub variants: Vec<VariantConfig>,
    /// Choices that the source leaves open, with the alternatives.
    #[serde(default)]
    pub free: Vec<FreeConfig>,
    /// File, relative to the study file, with further `[[free]]` that several studies share.
    pub choices: Option<PathBuf>,
    /// Charts of the results.
    #[serde(default)]
    pub figures: Vec<FigureConfig>,
}

/// A quantity that varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AxisConfig {
    /// Name in expressions.
    pub name: String,
    /// Key of the stack file for the values.
    pub key: Option<String>,
    /// Further keys with the same values.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Unit appended to each number: `us`, `KiB`.
    pub unit: Option<String>,
    /// A number, text or truth for the key; or a table `{ name, number, stack, set }`.
    pub values: Vec<Value>,
}

/// A value of an axis that sets several keys, or chooses another stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueConfig {
    /// Name in expressions.
    pub name: String,
    /// Number of the value in arithmetic.
    pub number: Option<f64>,
    /// Stack that replaces the base stack, relative to the study file.
    pub stack: Option<PathBuf>,
    /// Keys of the stack file, as by --set.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A name for some values of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// Name in expressions.
    pub name: String,
    /// Name of the axis.
    pub axis: String,
    /// Values of the set.
    pub values: Vec<Value>,
}

/// Keys for some points only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingConfig {
    /// The points, in the format of `points`.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub at: Keys,
    /// Keys of the stack file, as by --set. These keys are set after those of the axes.
    pub set: Vec<String>,
}

/// Kind of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClaimKind {
    /// The published number itself, to the digits printed.
    Exact,
    /// A number of about the published size.
    Near,
    /// An order, a sign, a trend.
    Shape,
}

/// A published claim and the rule by which it is reproduced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimConfig {
    /// Name, unique in the study.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// Quoted sentence of the source, or the tested part. Every claim needs a quote unless `ours`
    /// is true.
    pub quote: Option<String>,
    /// Place of the quote: `section 5.1.1`, `table 3.2`.
    pub at: Option<String>,
    /// True if the claim is this project's own and not made by the source.
    #[serde(default)]
    pub ours: bool,
    /// Published number, or the published statement in words.
    pub published: Value,
    /// Kind of the claim.
    pub kind: ClaimKind,
    /// Expression of the obtained value.
    pub obtained: String,
    /// Format of the obtained value: text with expressions in braces, `{min(...):percent} to
    /// {max(...):percent}`. A published number is printed in the format of `obtained` there.
    pub shown: Option<String>,
    /// Bounds: the claim holds if the obtained value lies between both.
    pub within: Option<[f64; 2]>,
    /// Tolerance: the claim holds if the obtained value differs from the published number by no
    /// more than this share of `effect`.
    pub tolerance: Option<f64>,
    /// Published effect. Default: the published number.
    pub effect: Option<f64>,
    /// Condition: the claim holds if this expression is true. `obtained` is the obtained value.
    pub holds: Option<String>,
    /// Origin of the bound.
    #[serde(default)]
    pub bound: Bound,
    /// Explanation of a claim that does not hold, proved by a variant in which the claim holds.
    #[schemars(with = "Option<ExplainedConfig>")]
    pub explained: Option<Value>,
    /// Supposed reason without a variant as proof; does not change the verdict. Expressions in
    /// braces stand for numbers of the results.
    pub supposed: Option<String>,
    /// True if a number of the setup was chosen so that the claim holds. Such a claim counts as
    /// fitted, not as reproduced.
    // Not written while false, so that records of held-out verdicts from before stay valid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fitted: bool,
    /// Makes the claim a headline of the page, with the cause of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headline: Option<HeadlineConfig>,
}

/// A headline of the source, with the cause of the result here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeadlineConfig {
    /// Class of the cause.
    pub cause: HeadlineCause,
    /// The cause in one to three sentences. Expressions in braces stand for numbers of the results.
    pub why: String,
}

/// Class of the cause of a headline's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeadlineCause {
    /// The result is that of the source.
    Reproduced,
    /// The simulator lacks a mechanism, or has one that the source lacked.
    Mechanism,
    /// The setup here differs from that of the source.
    Setup,
    /// Arithmetic shows that such hardware cannot give the published result.
    Hardware,
    /// The source leaves a choice open that decides the result.
    Choice,
    /// The cause is not known. The words say which causes were tried.
    Unknown,
}

impl HeadlineCause {
    /// Returns the cause in words for a table.
    pub const fn text(self) -> &'static str {
        match self {
            HeadlineCause::Reproduced => "reproduced",
            HeadlineCause::Mechanism => "mechanism",
            HeadlineCause::Setup => "setup",
            HeadlineCause::Hardware => "arithmetic",
            HeadlineCause::Choice => "open choice",
            HeadlineCause::Unknown => "not known",
        }
    }
}

/// Origin of a claim's bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The quoted sentence gives the bound.
    Quoted,
    /// The bound is this project's own.
    #[default]
    Ours,
}

/// An explanation: the claim holds in the variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainedConfig {
    /// Title of the variant in which the claim holds.
    pub variant: String,
    /// Description of the difference. Expressions in braces stand for numbers of the results.
    pub why: String,
}

/// An untestable sentence of the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UntestableConfig {
    /// The sentence, or a part of the sentence.
    pub quote: String,
    /// Place of the sentence in the source.
    pub at: String,
    /// Reason why the sentence cannot be tested.
    pub why: String,
}

/// One change to the study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariantConfig {
    /// Description of the change; unique in the study.
    pub title: String,
    /// Keys of the stack file for every point of the variant, as by --set. These keys are set last.
    #[serde(default)]
    pub set: Vec<String>,
    /// Keys for some points of the variant only.
    #[serde(default)]
    pub settings: Vec<SettingConfig>,
}

/// A choice that the source leaves open, with the alternatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FreeConfig {
    /// Name of the choice; unique in the study.
    pub name: String,
    /// Value in the study.
    pub taken: String,
    /// Statement of the source about the choice, or its silence, and the reason for the value.
    pub why: String,
    /// Time of the choice: before or after which results were known.
    pub chosen: String,
    /// Key of the stack file for the alternatives.
    pub key: Option<String>,
    /// Further keys with the same values.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Unit appended to each number: `us`, `KiB`.
    pub unit: Option<String>,
    /// Alternatives: a number, text or truth for the key; or a table `{ name, set, settings }`.
    pub values: Vec<Value>,
}

/// Another value of a free choice that sets several keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FreeValueConfig {
    /// Name of the value.
    pub name: String,
    /// Keys of the stack file, as by --set. These keys are set last.
    #[serde(default)]
    pub set: Vec<String>,
    /// Keys for some points only.
    #[serde(default)]
    pub settings: Vec<SettingConfig>,
}

/// Choices of several studies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChoicesConfig {
    /// The choices.
    #[serde(default)]
    pub free: Vec<FreeConfig>,
}

/// Largest number of lines of a figure: the number of colours that a reader can distinguish.
pub const LINES_MAX: usize = 14;

/// One chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FigureConfig {
    /// Name of the figure's file.
    pub id: String,
    /// Title above the figure.
    pub title: String,
    /// The axis along the abscissa.
    pub x: String,
    /// Axis or set with one line for each value.
    pub series: Option<String>,
    /// Expression of the ordinate, in which the names of `x` and `series` are variables.
    pub y: String,
    /// Label of the abscissa. Default: the axis' name.
    pub x_label: Option<String>,
    /// Label of the ordinate. Default: the expression.
    pub y_label: Option<String>,
    /// Caption. Expressions in braces stand for numbers of the results.
    pub caption: Option<String>,
    /// True if the ordinate begins at zero. Default: true if the smallest value is less than half
    /// of the largest.
    pub zero: Option<bool>,
    /// Published points, drawn on top.
    #[serde(default)]
    pub published: Vec<PublishedConfig>,
}

/// Published points of one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedConfig {
    /// Value of the series' axis for these points.
    pub series: Option<Value>,
    /// Pairs of a value of the abscissa's axis and a number.
    pub points: Vec<(Value, f64)>,
}

impl StudyConfig {
    /// Returns the part of the file that determines the verdicts, as text, without the prose for
    /// readers.
    pub(crate) fn substance(&self) -> String {
        let mut bare = self.clone();
        (bare.title, bare.question, bare.source) = Default::default();
        (bare.notes, bare.order, bare.short, bare.choices) = Default::default();
        // Variants and free choices have verdicts of their own, which are recorded apart.
        (bare.variants, bare.free, bare.untestable, bare.figures) = Default::default();
        for claim in &mut bare.claims {
            (claim.says, claim.quote, claim.at, claim.shown) = Default::default();
            (claim.bound, claim.ours, claim.explained, claim.supposed) = Default::default();
            (claim.fitted, claim.headline) = Default::default();
        }
        // Serializing cannot fail, because the value was deserialized before.
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

/// Returns true for the default confidence. The default is not written, so that it does not change
/// a study's substance.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_usual(confidence: &f64) -> bool {
    *confidence == CONFIDENCE
}
