//! Tests of the language of claims, with made-up results.

mod common;

use common::{STUDY, study};
use fullstroke_study::Study;
use fullstroke_study::expression::{
    Bindings, Estimate, ExpressionValue, Problem, ResultSource, check_names, parse,
};

/// Made-up results. At policy number `p` and load number `l` the first metric is `10 (p + 1) (l +
/// 1)` with one seed and 2 more with the other seed. Every other metric is a tenth of the first.
struct MadeUpResults<'a>(&'a Study);

impl ResultSource for MadeUpResults<'_> {
    fn value(&self, point: usize, metric: usize) -> Option<Estimate> {
        let values = &self.0.matrix.points()[point];
        let value = 10.0 * (values[0] + 1) as f64 * (values[1] + 1) as f64;
        let scale = if metric == self.0.first_metric {
            1.0
        } else {
            0.1
        };
        Some(Estimate::of_seeds(
            vec![scale * value, scale * (value + 2.0)],
            0.95,
        ))
    }
}

fn evaluate(study: &Study, text: &str) -> Result<ExpressionValue, Problem> {
    let expression = parse(text).unwrap_or_else(|error| panic!("{error}"));
    study
        .evaluator(&MadeUpResults(study))
        .evaluate(&expression, &Bindings::new())
}

/// Returns a number, or a truth as 1 or 0.
fn number(study: &Study, text: &str) -> f64 {
    match evaluate(study, text) {
        Ok(ExpressionValue::Number(number)) => number.mean(),
        Ok(ExpressionValue::Truth(truth)) => f64::from(u8::from(truth)),
        Ok(ExpressionValue::Label(axis, value)) => {
            study.matrix.axes[axis].values[value].number.unwrap()
        }
        other => panic!("{text}: {other:?}"),
    }
}

fn defined() -> Study {
    let definitions = r#"[define]
half = "0.5"
"ratio(p, l)" = "mean(policy=p, load=l) / mean(policy=fcfs, load=l)"
"doubled(p)" = "first(l in load where mean(policy=p, load=l) > 2 * mean(policy=p, load=10): l)"
"#;
    study(&format!("{STUDY}\n{definitions}")).1.unwrap()
}

#[test]
fn expressions_have_the_values_that_they_look_like() {
    let study = defined();
    for (text, value) in [
        ("1 - mean(policy=satf, load=20) / 82", 0.5),
        ("mean(policy=fcfs)", 21.0),
        ("mb_per_s(policy='look', load=40)", 9.1),
        ("response_ms(policy=fcfs, load=10)", 11.0),
        ("max(policy=look)", 91.0),
        (
            "min(p in sorted, l in load where l > 10: response_ms.mean(policy=p, load=l))",
            41.0,
        ),
        ("max(l in load: l) + sum(l in load: l)", 110.0),
        ("mean(p in policy: response_ms(policy=p, load=10))", 21.0),
        (
            "count(p in policy, l in load where p != 'fcfs' and l < 40)",
            4.0,
        ),
        (
            "count(p in policy: response_ms(policy=p, load=10) > 15)",
            2.0,
        ),
        ("argmax(l in load: response_ms(policy=look, load=l))", 40.0),
        ("argmin(l in load: response_ms(policy=look, load=l))", 10.0),
        ("argmax(l in load: 1)", 10.0),
        ("last(l in load where l < 40: l)", 20.0),
        ("first(l in load where l > 10: l)", 20.0),
        ("all(policy in policy: response_ms(load=10) > 5)", 1.0),
        ("any(policy in policy: response_ms(load=10) > 500)", 0.0),
        (
            "argmin(p in policy: response_ms(policy=p, load=10)) == 'fcfs'",
            1.0,
        ),
        ("default(first(l in load where l > 99: l), -7)", -7.0),
        ("exists(first(l in load where l > 99: l))", 0.0),
        (
            "default(mean(load=first(l in load where l > 99: l)), 3)",
            3.0,
        ),
        ("if(2 > 1 and not false, 1, 1 / 0) * half", 0.5),
        ("min(3, 2) + max(3, 2) + abs(-1)", 6.0),
        ("doubled('fcfs')", 40.0),
        (
            "high(mean(policy=satf, load=20) - mean(policy=fcfs, load=20))",
            20.0,
        ),
        ("low(ratio('satf', 40)) < 2", 1.0),
        ("smallest(response_ms(policy=fcfs, load=10))", 10.0),
        ("largest(response_ms(policy=fcfs, load=10))", 12.0),
        ("round(100 * idle_probability(32, 8))", 11.0),
    ] {
        let found = number(&study, text);
        assert!(
            (found - value).abs() < 1e-9,
            "{text}: {found}, expected {value}"
        );
    }
}

#[test]
fn what_an_expression_cannot_mean_is_said_where_it_stands() {
    let study = defined();
    for (text, column, words) in [
        ("1 + response_ms(policy=fcfs)", 5, "axis `load` is missing"),
        (
            "mean(policy=clook)",
            13,
            "no value `clook` (did you mean `look`?)",
        ),
        ("mean(load=30)", 11, "no value `30`"),
        ("min(a in array: 1)", 5, "no axis or set `array`"),
        ("1 + (2 > 1)", 6, "expected a number"),
        ("if(1, 2, 3)", 4, "expected a comparison"),
        ("abs(1, 2)", 1, "takes 1 arguments; found 2"),
        ("ratio(1)", 1, "takes 2 arguments; found 1"),
        ("'fcfs' > 2", 1, "expected a number"),
        ("all(l in load: 1)", 1, "expected each to be true or false"),
        ("argmax(p in policy, l in load: 1)", 1, "one variable"),
    ] {
        match evaluate(&study, text) {
            Err(Problem::Wrong(error)) => {
                assert_eq!(
                    (error.column(), error.message.contains(words)),
                    (column, true),
                    "{error}"
                );
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn names_are_checked_also_where_no_value_depends_on_them() {
    let study = defined();
    let check = |text: &str| {
        let expression = parse(text).unwrap();
        check_names(
            &expression,
            &[],
            &study.matrix,
            &study.metrics,
            &study.definitions,
        )
    };
    for (text, column, words) in [
        (
            "sum(l in load: l) + l",
            21,
            "no variable, definition or metric `l`",
        ),
        (
            "min(l in load where false: mb_pr_s(load=l))",
            28,
            "did you mean `mb_per_s`?",
        ),
        ("if(true, 1, rati('look', 10))", 13, "did you mean `ratio`?"),
        ("if(true, 1, mean(policy=lok))", 25, "did you mean `look`?"),
    ] {
        let error = check(text).unwrap_err();
        assert_eq!(
            (error.column(), error.message.contains(words)),
            (column, true),
            "{error}"
        );
    }
    check("min(p in sorted, l in load where l > 10: ratio(p, l) * half)").unwrap();
}

#[test]
fn a_loop_leaves_out_what_is_no_point() {
    let sparse = STUDY.replace(
        "[[axes]]\nname = \"policy\"",
        "exclude = [{ policy = \"look\", load = [20, 40] }]\n\n[[axes]]\nname = \"policy\"",
    );
    let study = study(&sparse).1.unwrap();
    assert_eq!(study.matrix.points().len(), 7);
    assert_eq!(
        number(
            &study,
            "max(p in policy, l in load: response_ms(policy=p, load=l))"
        ),
        61.0
    );
    assert!(matches!(
        evaluate(&study, "response_ms(policy=look, load=40)"),
        Err(Problem::Wrong(_))
    ));
}

#[test]
fn a_definition_that_uses_itself_is_refused_and_no_loop_runs_for_ever() {
    let text = format!(
        "{STUDY}\n[define]\n\"again(x)\" = \"again(x) + 1\"\n\n[[claims]]\nid = \"X\"\nsays = \"\"\npublished = 1\nkind = \"near\"\nobtained = \"again(1)\"\n"
    );
    let error = study(&text).1.unwrap_err();
    assert!(error.contains("defined by itself"), "{error}");
    let loops = (0..20)
        .map(|number| format!("v{number} in load"))
        .collect::<Vec<_>>()
        .join(", ");
    match evaluate(&defined(), &format!("sum({loops}: 1)")) {
        Err(Problem::Wrong(error)) => assert!(error.message.contains("too long"), "{error}"),
        other => panic!("{other:?}"),
    }
}
