//! Expressions over the results of a study.
//!
//! | form | what |
//! |---|---|
//! | `mb_per_s(scheduler=FIFO, load=32)` | a metric at one point; an axis that is not named takes the variable of its own name, or its only value |
//! | `mean(policy=xpwt, segments=8)` | the study's first metric, over all points with these values; so `min`, `max`, `sum` |
//! | `min(a in array, l in load where l > 32: ...)` | over the values of axes or sets: `min`, `max`, `mean`, `sum`, `count`, `all`, `any`, `first`, `last`, `argmin`, `argmax` |
//! | `abs(x)`, `if(c, x, y)`, `default(x, y)`, `low(x)`, `high(x)`, ... | functions |
//! | `+ - * /`, `< <= > >= == !=`, `and or not` | as usual |
//!
//! A number carries one value for each seed. Arithmetic is done seed by seed, so
//! that what two points of one seed have in common drops out of their difference
//! or ratio; the interval is that of Student's t over the seeds (95 %). With one
//! replication it is that of the metric within its run (batch means), and those
//! of two runs are taken as independent: wide rather than narrow, because runs
//! of one seed share their random numbers. Comparisons are between estimates.
//!
//! | file | what |
//! |---|---|
//! | `lexer.rs`, `parser.rs` | from text to a tree |
//! | `estimate.rs` | numbers with their intervals |
//! | `functions.rs` | the registry of functions |
//! | `names.rs` | whether every name is known |
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
pub use evaluate::{Bindings, Data, Evaluator, Problem, Value};
pub use functions::FUNCTIONS;
pub use names::check_names;
pub use parser::{parse, parse_signature};

use std::fmt;
use std::ops::Range;

/// A parsed expression and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// As written.
    pub text: String,
    pub(crate) root: Node,
}

/// A name for an expression, with or without parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// The names of its parameters.
    pub parameters: Vec<String>,
    /// What it stands for.
    pub body: Expression,
}

/// A part of an expression, and the bytes that it was written with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Number(f64),
    Text(String),
    Truth(bool),
    /// A variable, a definition without parameters, or a metric.
    Name(String),
    Negate(Box<Node>),
    Not(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Call(String, Vec<Node>),
    /// A metric, or an aggregate of the first one, at chosen points.
    Select(String, Vec<Selector>),
    Each(Box<Each>),
}

/// An axis that is fixed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selector {
    pub(crate) axis: String,
    pub(crate) span: Range<usize>,
    pub(crate) value: Node,
}

/// An aggregate over bound variables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Each {
    pub(crate) aggregate: Aggregate,
    pub(crate) loops: Vec<Loop>,
    pub(crate) condition: Option<Node>,
    pub(crate) body: Node,
}

/// A variable that takes the values of an axis or set in turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loop {
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

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// The expression, or the definition that it uses, as written.
    pub text: String,
    /// The bytes that are meant.
    pub span: Range<usize>,
    /// What was found, what was expected.
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

    /// The column where it begins, from 1, in characters.
    pub fn column(&self) -> usize {
        self.text
            .get(..self.span.start)
            .map_or(1, |before| before.chars().count() + 1)
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column();
        // Line breaks would part the text from its carets.
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
