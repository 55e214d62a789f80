//! One stack at several values of a key.

use crate::LabError;
use fullstroke_contract::{Reason, reason};
use std::str::FromStr;

/// A key of the stack file and its values, as in `volume.chunk=16KiB,64KiB`. Commas inside
/// brackets, braces or quotes belong to a value: `volume.failed=[0],[0,1]`. `3..12` stands for
/// every whole number from 3 to 12, both included, and `4..16..4` for every fourth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    key: String,
    values: Vec<String>,
}

impl FromStr for Vary {
    type Err = LabError;

    fn from_str(argument: &str) -> Result<Vary, LabError> {
        let refuse = |problem: &str| LabError::Vary {
            argument: argument.to_owned(),
            problem: problem.to_owned(),
        };
        let (key, values) = argument
            .split_once('=')
            .ok_or_else(|| refuse("there is no `=`"))?;
        let key = key.trim();
        if key.is_empty() {
            return Err(refuse("there is no key before the `=`"));
        }
        let values: Vec<String> = split(values)
            .into_iter()
            .map(|value| range(value.trim()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|problem| refuse(&problem.to_string()))?
            .concat();
        if values.iter().any(String::is_empty) {
            return Err(refuse("a value is empty"));
        }
        match values
            .iter()
            .enumerate()
            .find(|(index, value)| values[..*index].contains(value))
        {
            Some((_, value)) => Err(refuse(&format!("the value `{value}` is given twice"))),
            None => Ok(Vary {
                key: key.to_owned(),
                values,
            }),
        }
    }
}

impl Vary {
    /// Checks the keys of several `--vary`. A key with two lists would take the values of the last list
    /// alone.
    ///
    /// # Errors
    /// If two of the keys are equal.
    pub fn check(varied: &[Vary]) -> Result<(), LabError> {
        let twice = varied
            .iter()
            .enumerate()
            .find(|(index, vary)| varied[..*index].iter().any(|other| other.key == vary.key));
        match twice {
            None => Ok(()),
            Some((_, vary)) => Err(LabError::Vary {
                argument: format!("{}={}", vary.key, vary.values.join(",")),
                problem: format!("another --vary has the key `{}`, too", vary.key),
            }),
        }
    }

    /// Returns the key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the values, in the order given.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Returns true if each value begins with a digit. The order of such values is probably an
    /// order of size.
    pub(crate) fn is_ordered(&self) -> bool {
        self.values
            .iter()
            .all(|value| value.starts_with(|letter: char| letter.is_ascii_digit()))
    }

    /// Returns every combination of the values of all keys, each as a list of `key=value`. The last
    /// key varies fastest. Without keys there is one empty combination.
    pub fn combinations(varied: &[Vary]) -> Vec<Vec<String>> {
        varied.iter().fold(vec![Vec::new()], |combinations, vary| {
            let extended = |combination: &Vec<String>| {
                let combination = combination.clone();
                vary.values.iter().map(move |value| {
                    let mut longer = combination.clone();
                    longer.push(format!("{}={value}", vary.key));
                    longer
                })
            };
            combinations.iter().flat_map(extended).collect()
        })
    }
}

/// Largest number of values of a range. A longer range is probably a typing error.
const RANGE_MAX: u64 = 1000;

/// Returns the values of `text`: the numbers of a range, or the text itself.
fn range(text: &str) -> Result<Vec<String>, Reason> {
    let parts: Vec<&str> = text.split("..").collect();
    let numbers: Option<Vec<u64>> = parts.iter().map(|part| part.parse().ok()).collect();
    let (first, last, step) = match numbers.as_deref() {
        Some([first, last]) => (*first, *last, 1),
        Some([first, last, step]) => (*first, *last, *step),
        _ => return single(text).map(|value| vec![value]),
    };
    if first > last || step == 0 {
        return Err(reason!(
            "the range `{text}` is empty; expected FIRST..LAST or FIRST..LAST..STEP"
        ));
    }
    let values = (last - first) / step + 1;
    if values > RANGE_MAX {
        return Err(reason!(
            "the range `{text}` has {values} values; expected at most {RANGE_MAX}"
        ));
    }
    Ok((0..values)
        .map(|index| (first + index * step).to_string())
        .collect())
}

/// Returns the value itself. Two numbers with a dash between are probably a range in the spelling
/// of other tools, and are refused. A text of this form stands in quotes: `title="3-8"`.
fn single(text: &str) -> Result<String, Reason> {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    match text.split_once(['-', ':']) {
        Some((first, last)) if number(first) && number(last) => Err(reason!(
            "`{text}` is not a number; did you mean the range {first}..{last}?"
        )),
        _ => Ok(text.to_owned()),
    }
}

/// Splits at commas outside of brackets, braces and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start) = (0usize, None, 0);
    let mut parts = Vec::new();
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            // A closing bracket too many is a mistake of the value, which its own parser reports.
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(argument: &str) -> Vary {
        argument.parse().unwrap()
    }

    #[test]
    fn keys_vary_in_every_combination() {
        let varied = [vary("volume.chunk=16KiB,64KiB"), vary("seed=1,2")];
        let combinations = Vary::combinations(&varied);
        let lines: Vec<String> = combinations
            .iter()
            .map(|combination| combination.join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "volume.chunk=16KiB seed=1",
                "volume.chunk=16KiB seed=2",
                "volume.chunk=64KiB seed=1",
                "volume.chunk=64KiB seed=2",
            ]
        );
        assert_eq!(Vary::combinations(&[]), [Vec::<String>::new()]);
    }

    #[test]
    fn a_key_varies_once() {
        let varied = ["a=1", "b=1", "a=2,3"].map(vary);
        assert!(Vary::check(&varied[..2]).is_ok());
        let error = Vary::check(&varied).unwrap_err().to_string();
        assert!(
            error.contains("`a=2,3`: another --vary has the key `a`"),
            "{error}"
        );
    }

    #[test]
    fn commas_inside_a_value_do_not_split_it() {
        assert_eq!(vary("volume.failed=[0],[0, 1]").values, ["[0]", "[0, 1]"]);
        assert_eq!(vary(r#"title="a,b",'c,d'"#).values, [r#""a,b""#, "'c,d'"]);
    }

    #[test]
    fn a_range_stands_for_its_whole_numbers() {
        assert_eq!(vary("volume.drives=3..6").values, ["3", "4", "5", "6"]);
        assert_eq!(
            vary("volume.drives=4..12..4,20").values,
            ["4", "8", "12", "20"]
        );
        assert_eq!(vary("seed=7..7").values, ["7"]);
        // Text that is no range of numbers stays a value, for example a relative path.
        assert_eq!(vary("workload.path=../a.trace").values, ["../a.trace"]);
    }

    #[test]
    fn a_range_that_cannot_be_meant_is_refused() {
        for (argument, word) in [
            ("volume.drives=12..3", "empty"),
            ("volume.drives=3..12..0", "empty"),
            ("seed=0..4000000000", "at most 1000"),
            ("volume.drives=3..5,4", "twice"),
        ] {
            let error = argument.parse::<Vary>().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_range_with_a_dash_gets_the_right_spelling() {
        for argument in ["volume.drives=3-8", "volume.drives=3:8"] {
            let error = argument.parse::<Vary>().unwrap_err().to_string();
            assert!(error.contains("3..8"), "{error}");
        }
        assert_eq!(vary("title=\"3-8\",a-b").values, ["\"3-8\"", "a-b"]);
    }

    #[test]
    fn what_cannot_be_varied_is_refused_with_an_example() {
        for argument in [
            "volume.chunk",
            "=64KiB",
            "volume.chunk=",
            "volume.chunk=1,,2",
            "seed=1,2,1",
        ] {
            let error = argument.parse::<Vary>().unwrap_err().to_string();
            assert!(
                error.contains(argument) && error.contains("--vary volume.chunk="),
                "{error}"
            );
        }
    }
}
