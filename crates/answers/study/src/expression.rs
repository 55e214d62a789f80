//! Expressions over the results of a study.
//!
//! | form | meaning |
//! |---|---|
//! | `mb_per_s(scheduler=FIFO, load=32)` | a metric at one point; an axis without an entry takes the variable of its own name, or its only value |
//! | `mean(policy=xpwt, segments=8)` | the study's first metric, over all points with these values; so `min`, `max`, `sum` |
//! | `min(a in array, l in load where l > 32: ...)` | over the values of axes or sets: `min`, `max`, `mean`, `sum`, `count`, `all`, `any`, `first`, `last`, `argmin`, `argmax` |
//! | `abs(x)`, `if(c, x, y)`, `default(x, y)`, `low(x)`, `high(x)`, ... | functions |
//! | `+ - * /`, `< <= > >= == !=`, `and or not` | as usual |
//!
//! A number carries one value for each seed. Arithmetic is done seed by seed, so the common part of
//! two points with one seed drops out of their difference or ratio. The interval is that of
//! Student's t over the seeds (95 %). With one replication the interval is that of the metric
//! within its run (batch means). The intervals of two runs are combined as if independent. The
//! result is wide rather than narrow, because runs with one seed share their random numbers.
//! Comparisons are between estimates.
//!
//! | file | contents |
//! |---|---|
//! | `lexer.rs`, `parser.rs` | from text to a tree |
//! | `estimate.rs` | numbers with their intervals |
//! | `functions.rs` | the registry of functions |
//! | `names.rs` | the check that every name is known |
//! | `evaluate.rs`, `lookup.rs`, `aggregate.rs` | from a tree to a value |

mod aggregate;
mod estimate;
mod evaluate;
mod functions;
mod lexer;
mod lookup;
mod names;
mod parser;

pub use aggregate::Aggregate;
pub use estimate::{CONFIDENCE, Estimate};
pub use evaluate::{Bindings, Evaluator, ExpressionValue, Problem, ResultSource};
pub use functions::FUNCTIONS;
pub use names::check_names;
pub use parser::{parse, parse_signature};

use std::fmt;
use std::ops::Range;

/// A parsed expression and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// The expression as written.
    pub text: String,
    pub(crate) root: ExpressionNode,
}

/// A name for an expression, with or without parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Name of the definition.
    pub name: String,
    /// Names of the parameters.
    pub parameters: Vec<String>,
    /// Expression behind the name.
    pub body: Expression,
}

/// A part of an expression with its range of bytes in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExpressionNode {
    pub(crate) kind: ExpressionKind,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ExpressionKind {
    Number(f64),
    Text(String),
    Truth(bool),
    /// A variable, a definition without parameters, or a metric.
    Name(String),
    Negate(Box<ExpressionNode>),
    Not(Box<ExpressionNode>),
    Binary(Operator, Box<ExpressionNode>, Box<ExpressionNode>),
    Call(String, Vec<ExpressionNode>),
    /// A metric, or an aggregate of the first one, at chosen points.
    Select(String, Vec<Selector>),
    Each(Box<BoundAggregate>),
}

/// An axis with a fixed value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selector {
    pub(crate) axis: String,
    pub(crate) span: Range<usize>,
    pub(crate) value: ExpressionNode,
}

/// An aggregate over bound variables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoundAggregate {
    pub(crate) aggregate: Aggregate,
    pub(crate) loops: Vec<LoopVariable>,
    pub(crate) condition: Option<ExpressionNode>,
    pub(crate) body: ExpressionNode,
}

/// A variable that takes the values of an axis or set in turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoopVariable {
    pub(crate) variable: String,
    pub(crate) domain: String,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    Unequal,
    And,
    Or,
}

/// An error in an expression and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Text of the expression, or of the definition with the error.
    pub text: String,
    /// Range of bytes of the error.
    pub span: Range<usize>,
    /// Message with the found and the expected part.
    pub message: String,
}

impl ExpressionError {
    pub(crate) fn new(
        text: &str,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> ExpressionError {
        ExpressionError {
            text: text.to_owned(),
            span,
            message: message.into(),
        }
    }

    /// Returns the column of the error, from 1, in characters.
    pub fn column(&self) -> usize {
        self.text
            .get(..self.span.start)
            .map_or(1, |before| before.chars().count() + 1)
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column();
        // A line break would separate the text from the carets below the error.
        let line: String = self
            .text
            .chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect();
        let width = self
            .text
            .get(self.span.clone())
            .map_or(1, |part| part.chars().count().max(1));
        write!(f, "column {column}: {}\n    {line}\n", self.message)?;
        write!(f, "    {}{}", " ".repeat(column - 1), "^".repeat(width))
    }
}

impl std::error::Error for ExpressionError {}
