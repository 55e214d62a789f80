//! Parses an expression of arbitrary bytes. The place of an error must lie within the expression.
#![no_main]

use fullstroke_study::Matrix;
use fullstroke_study::expression::{Bindings, Estimate, Evaluator, Problem, ResultSource, parse};
use libfuzzer_sys::fuzz_target;

/// A study without points. Expressions may still calculate.
struct Nothing;

impl ResultSource for Nothing {
    fn value(&self, _: usize, _: usize) -> Option<Estimate> {
        None
    }
}

fuzz_target!(|text: &[u8]| {
    let text = String::from_utf8_lossy(text);
    let expression = match parse(&text) {
        Ok(expression) => expression,
        Err(error) => {
            assert!(error.span.end <= text.len() && !error.to_string().is_empty());
            return;
        }
    };
    let matrix = Matrix::default();
    let evaluator = Evaluator {
        matrix: &matrix,
        definitions: &[],
        metrics: &["mb_per_s".to_owned()],
        first_metric: 0,
        data: &Nothing,
        thorough: true,
    };
    if let Err(Problem::Wrong(error)) = evaluator.evaluate(&expression, &Bindings::new()) {
        assert!(error.span.end <= text.len() && !error.to_string().is_empty());
    }
});
