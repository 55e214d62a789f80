//! Runs the race of `tune` on noisy functions with a known minimum, and prints values of these
//! functions for other search methods. `tools/tune-bench.py` writes one request a line; `make
//! bench` runs that script.
//!
//! - `race FUNCTION SAMPLE SEED` answers `{"found": POINT, "best": POINT, "told": VALUES}`;
//! - `values FUNCTION SEED POINT FROM TO` answers with the values of these batches.

mod functions;

use fullstroke_lab::{Combinations, RaceRules, Tuner, Vary};
use fullstroke_units::Seed;
use functions::{BATCHES, Noisy, VALLEY, unordered, valley};
use serde_json::{Value, json};
use std::io::{BufRead, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&line?)?)?;
        out.flush()?;
    }
    Ok(())
}

fn answer(line: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["race", function, sample, seed] => race(function, sample.parse()?, seed.parse()?),
        ["values", function, seed, point, from, to] => {
            let (function, _) = made_up(function, seed.parse()?)?;
            Ok(json!(
                function.values(point.parse()?, from.parse()?..to.parse()?)
            ))
        }
        _ => Err(format!(
            "{line:?}: expected race FUNCTION SAMPLE SEED or values FUNCTION SEED POINT FROM TO"
        )
        .into()),
    }
}

/// Returns the function `name` and the keys of its search space.
fn made_up(name: &str, seed: u64) -> Result<(Noisy, Vec<Vary>), Box<dyn std::error::Error>> {
    let (function, keys) = match name {
        "unordered" => {
            let names: Vec<String> = (0..200).map(|name| format!("n{name}")).collect();
            (unordered(seed), vec![format!("a={}", names.join(","))])
        }
        "valley" => {
            let key = |(key, values): (&str, usize)| format!("{key}=1..{values}");
            (
                valley(seed),
                ["a", "b", "c"].into_iter().zip(VALLEY).map(key).collect(),
            )
        }
        _ => return Err(format!("function {name:?}: expected unordered or valley").into()),
    };
    Ok((
        function,
        keys.iter()
            .map(|key| key.parse())
            .collect::<Result<_, _>>()?,
    ))
}

fn race(name: &str, sample: usize, seed: u64) -> Result<Value, Box<dyn std::error::Error>> {
    let (function, keys) = made_up(name, seed)?;
    let number = |point: &[usize]| {
        point.iter().zip(&keys).fold(0, |number, (value, key)| {
            number * key.values().len() + value
        })
    };
    let rules = RaceRules {
        batches: BATCHES,
        first: 8,
        confidence: 0.95,
        more_is_better: false,
        candidates: 200,
    };
    let random = &mut Seed(seed).stream("tune");
    let mut tuner = Tuner::new(
        Combinations::new(&keys),
        rules,
        sample,
        random,
        Box::new(|_| true),
    );
    loop {
        for (candidate, batches) in tuner.due() {
            let values = function.values(number(tuner.point(candidate)), batches);
            tuner.add_values(candidate, &values);
        }
        if !tuner.judge() {
            break;
        }
    }
    let found = tuner
        .race()
        .leader()
        .map(|leader| number(tuner.point(leader)));
    Ok(json!({ "found": found, "best": function.best(), "told": tuner.race().value_count() }))
}
