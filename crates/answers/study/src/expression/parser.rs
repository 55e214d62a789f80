//! From tokens to a tree, by recursive descent.

use super::lexer::{Token, tokens};
use super::{
    Aggregate, BoundAggregate, Expression, ExpressionError, ExpressionKind, ExpressionNode,
    LoopVariable, Operator, Selector,
};
use std::ops::Range;

/// Largest depth of a tree, so that no expression overflows the stack.
const DEPTH_MAX: usize = 48;

/// Largest number of nodes, because chains of operators are deep trees too.
const NODES_MAX: usize = 1000;

/// Operators by precedence, from the lowest to the highest. Operators of a level are equal.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide)],
];

const NOT_LEVEL: usize = 2;
const SUM_LEVEL: usize = 3;

const RESERVED: &[&str] = &["and", "or", "not", "in", "where", "true", "false"];

/// Parses an expression.
///
/// # Errors
/// Names the column, the found and the expected part.
pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
    let mut parser = ExpressionParser {
        text,
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        nodes: 0,
    };
    let root = parser.level(0)?;
    parser.end()?;
    Ok(Expression {
        text: text.to_owned(),
        root,
    })
}

/// Parses the left side of a definition: `alike` or `gain(array, load)`.
///
/// # Errors
/// As [`parse`].
pub fn parse_signature(text: &str) -> Result<(String, Vec<String>), ExpressionError> {
    let mut parser = ExpressionParser {
        text,
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        nodes: 0,
    };
    let name = parser.plain_name("a name")?;
    let mut parameters = Vec::new();
    if parser.take("(") {
        loop {
            parameters.push(parser.plain_name("the name of a parameter")?);
            if !parser.take(",") {
                break;
            }
        }
        parser.expect(")")?;
    }
    parser.end()?;
    Ok((name, parameters))
}

struct ExpressionParser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: usize,
    nodes: usize,
}

impl ExpressionParser<'_> {
    fn level(&mut self, level: usize) -> Result<ExpressionNode, ExpressionError> {
        self.depth += 1;
        // Each pair of brackets passes through all levels of precedence and the unary one.
        if self.depth > DEPTH_MAX * (LEVELS.len() + 1) {
            return Err(self.fail("brackets are nested too deeply; divide it by [define]"));
        }
        let node = self.operators(level);
        self.depth -= 1;
        node
    }

    fn operators(&mut self, level: usize) -> Result<ExpressionNode, ExpressionError> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let start = self.span().start;
        if level == NOT_LEVEL && self.take("not") {
            let inner = self.level(level)?;
            return self.node(ExpressionKind::Not(Box::new(inner)), start);
        }
        let mut left = self.level(level + 1)?;
        while let Some(&(_, operator)) = operators.iter().find(|(sign, _)| self.peek(sign)) {
            self.at += 1;
            let right = self.level(level + 1)?;
            left = self.node(
                ExpressionKind::Binary(operator, Box::new(left), Box::new(right)),
                start,
            )?;
            // Comparisons do not chain, because `a < b < c` would compare a truth.
            if level == NOT_LEVEL {
                break;
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<ExpressionNode, ExpressionError> {
        let start = self.span().start;
        if self.take("-") {
            // A minus binds more tightly than any operator with two sides.
            let inner = self.level(LEVELS.len())?;
            return self.node(ExpressionKind::Negate(Box::new(inner)), start);
        }
        let (token, _) = self.tokens[self.at].clone();
        match token {
            Token::Number(number) => self.leaf(ExpressionKind::Number(number), start),
            Token::Text(text) => self.leaf(ExpressionKind::Text(text), start),
            Token::Sign("(") => {
                self.at += 1;
                let inner = self.level(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Name(name) => match name.as_str() {
                "true" => self.leaf(ExpressionKind::Truth(true), start),
                "false" => self.leaf(ExpressionKind::Truth(false), start),
                name if RESERVED.contains(&name) => {
                    Err(self.fail(format!("found `{name}`; expected a value")))
                }
                _ => self.named(name, start),
            },
            _ => Err(self.unexpected("a value")),
        }
    }

    fn leaf(
        &mut self,
        kind: ExpressionKind,
        start: usize,
    ) -> Result<ExpressionNode, ExpressionError> {
        self.at += 1;
        self.node(kind, start)
    }

    fn named(&mut self, name: String, start: usize) -> Result<ExpressionNode, ExpressionError> {
        self.at += 1;
        if !self.take("(") {
            return self.node(ExpressionKind::Name(name), start);
        }
        let second = self.tokens.get(self.at + 1).map(|(token, _)| token.clone());
        let first_is_name = matches!(self.tokens[self.at].0, Token::Name(_));
        let kind = match second {
            // One token ahead tells a selection (`mean(load = 4)`) from a loop (`mean(l in load:
            // ...)`) and from a call.
            Some(Token::Sign("=")) if first_is_name => {
                ExpressionKind::Select(name, self.selectors()?)
            }
            Some(Token::Name(word)) if first_is_name && word == "in" => self.each(&name, start)?,
            _ if self.peek(")") => ExpressionKind::Select(name, Vec::new()),
            _ => ExpressionKind::Call(name, self.arguments()?),
        };
        self.expect(")")?;
        self.node(kind, start)
    }

    fn selectors(&mut self) -> Result<Vec<Selector>, ExpressionError> {
        let mut selectors: Vec<Selector> = Vec::new();
        loop {
            let span = self.span();
            let axis = self.plain_name("the name of an axis")?;
            if selectors.iter().any(|other| other.axis == axis) {
                let message = format!("`{axis}` is given twice");
                return Err(ExpressionError::new(self.text, span, message));
            }
            self.expect("=")?;
            // Without comparisons, because `a = b == c` would be read two ways.
            let value = self.level(SUM_LEVEL)?;
            selectors.push(Selector { axis, span, value });
            if !self.take(",") {
                return Ok(selectors);
            }
        }
    }

    fn each(&mut self, name: &str, start: usize) -> Result<ExpressionKind, ExpressionError> {
        let aggregate = Aggregate::find(name).map_err(|message| {
            ExpressionError::new(self.text, start..start + name.len(), message)
        })?;
        let mut loops = Vec::new();
        loop {
            let span = self.span();
            let variable = self.plain_name("the name of a variable")?;
            self.expect("in")?;
            let domain = self.plain_name("an axis or a set")?;
            loops.push(LoopVariable {
                variable,
                domain,
                span: span.start..self.before(),
            });
            if !self.take(",") {
                break;
            }
        }
        let condition = if self.take("where") {
            Some(self.level(0)?)
        } else {
            None
        };
        let here = self.span().start;
        let body = match aggregate {
            // `count(l in load where ...)` counts all values that the condition keeps.
            Aggregate::Count if self.peek(")") => self.node(ExpressionKind::Truth(true), here)?,
            _ => {
                self.expect(":")?;
                self.level(0)?
            }
        };
        Ok(ExpressionKind::Each(Box::new(BoundAggregate {
            aggregate,
            loops,
            condition,
            body,
        })))
    }

    fn arguments(&mut self) -> Result<Vec<ExpressionNode>, ExpressionError> {
        let mut arguments = vec![self.level(0)?];
        while self.take(",") {
            arguments.push(self.level(0)?);
        }
        Ok(arguments)
    }

    fn plain_name(&mut self, expected: &str) -> Result<String, ExpressionError> {
        match &self.tokens[self.at].0 {
            Token::Name(name)
                if !RESERVED.contains(&name.as_str()) && !name.contains(['.', '[']) =>
            {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn node(
        &mut self,
        kind: ExpressionKind,
        start: usize,
    ) -> Result<ExpressionNode, ExpressionError> {
        self.nodes += 1;
        let span = start..self.before().max(start);
        if self.nodes > NODES_MAX {
            return Err(ExpressionError::new(
                self.text,
                span,
                "the expression is too long; divide it by [define]",
            ));
        }
        Ok(ExpressionNode { kind, span })
    }

    fn peek(&self, sign: &str) -> bool {
        match &self.tokens[self.at].0 {
            Token::Sign(found) => *found == sign,
            Token::Name(word) => word == sign && RESERVED.contains(&sign),
            _ => false,
        }
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.peek(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), ExpressionError> {
        if self.take(sign) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{sign}`")))
        }
    }

    fn end(&self) -> Result<(), ExpressionError> {
        match self.tokens[self.at].0 {
            Token::End => Ok(()),
            _ => Err(self.unexpected("an operator or the end")),
        }
    }

    fn span(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    /// Returns the end of the last token.
    fn before(&self) -> usize {
        self.at
            // The parser may stand at the first token.
            .checked_sub(1)
            .map_or(0, |before| self.tokens[before].1.end)
    }

    fn unexpected(&self, expected: &str) -> ExpressionError {
        let found = match self.text.get(self.span()) {
            Some("") | None => "the end".to_owned(),
            Some(found) => format!("`{found}`"),
        };
        self.fail(format!("found {found}; expected {expected}"))
    }

    fn fail(&self, message: impl Into<String>) -> ExpressionError {
        ExpressionError::new(self.text, self.span(), message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn operators_bind_as_usual() {
        for (text, alike) in [
            ("1 - 2 * 3 - 4", "((1 - (2 * 3)) - 4)"),
            ("-1 + 2", "((-1) + 2)"),
            (
                "1 < 2 and 3 >= 4 or not 5 == 6",
                "(((1 < 2) and (3 >= 4)) or (not (5 == 6)))",
            ),
        ] {
            // The spans differ by the brackets.
            let shape =
                |text| format!("{:?}", parse(text).unwrap().root).replace(char::is_numeric, "");
            let shape = |text| shape(text).replace("span: ..", "").replace(". ", " ");
            assert_eq!(shape(text), shape(alike), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        for (text, column, words) in [
            ("1 +", 4, "found the end; expected a value"),
            ("mean(policy=)", 13, "found `)`; expected a value"),
            ("mean(policy=a, policy=b)", 16, "twice"),
            ("median(a in array: 1)", 1, "there is no aggregate `median`"),
            ("min(a in array 1)", 16, "expected `:`"),
            ("1 < 2 < 3", 7, "expected an operator or the end"),
            ("1 # 2", 3, "found `#`"),
            ("\"open", 1, "does not end"),
            ("a and", 6, "found the end"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.column(), column, "{error}");
            assert!(error.message.contains(words), "{error}");
            let caret = error.to_string().lines().last().unwrap().find('^');
            assert_eq!(caret, Some(column + 3), "{error}");
        }
    }

    #[test]
    fn an_expression_that_is_too_deep_or_too_long_is_refused() {
        let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
        assert!(parse(&deep).unwrap_err().message.contains("nested"));
        assert!(
            parse(&"-".repeat(100_000))
                .unwrap_err()
                .message
                .contains("nested")
        );
        assert!(
            parse(&vec!["1"; 5000].join("+"))
                .unwrap_err()
                .message
                .contains("too long")
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = parse(&text).map_err(|error| error.to_string());
            let _ = parse_signature(&text).map_err(|error| error.to_string());
        }

        #[test]
        fn no_mixture_of_its_words_makes_it_panic(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "min", "(", ")", "a", "in", "array", ",", "where", ":", "=", "<", "-", "1.5", "not", "and", "é", "\"", "x[",
                ]),
                0..40,
            ),
        ) {
            let _ = parse(&words.join(" ")).map_err(|error| error.to_string());
            let _ = parse(&words.concat()).map_err(|error| error.to_string());
        }
    }
}
