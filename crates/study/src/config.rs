//! The study file, as it is written.

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
    /// What a reader of the results has to know; Markdown.
    pub notes: Option<String>,
    /// The base stack, relative to the study file. A study without points needs none.
    pub stack: Option<PathBuf>,
    /// Keys of the stack file that every point sets, as by --set.
    #[serde(default)]
    pub set: Vec<String>,
    /// How many seeds each point is run with.
    #[serde(default = "one")]
    pub replications: u32,
    /// The first seed; the others follow it.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Numbers that are kept beside the metrics of `compare --by`, by their path in the report: `groups[reader].mb_per_s`,
    /// `processes[0].mb_per_s`. The first metric is the one that `mean(...)` means.
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
    /// One thing changed, and claims that are looked at then.
    #[serde(default)]
    pub variants: Vec<VariantConfig>,
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
    /// The published number, or what was published in words.
    pub published: Value,
    /// How it is to be read.
    pub kind: ClaimKind,
    /// The expression that gives what was obtained.
    pub obtained: String,
    /// How that is printed: text with expressions in braces, `{min(...):percent} to {max(...):percent}`.
    pub shown: Option<String>,
    /// It holds if what was obtained lies within these bounds.
    pub within: Option<[f64; 2]>,
    /// It holds if what was obtained differs from the published number by no more than this share of `effect`.
    pub tolerance: Option<f64>,
    /// The published effect; the published number unless said.
    pub effect: Option<f64>,
    /// It holds if this expression is true; `obtained` names what was obtained.
    pub holds: Option<String>,
    /// Why it does not hold, where that is understood.
    pub explained: Option<String>,
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
    /// The claims that are looked at.
    pub claims: Vec<String>,
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

fn one() -> u32 {
    1
}

fn first_seed() -> u64 {
    1
}
