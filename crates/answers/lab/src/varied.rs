//! Labels to distinguish the candidates of one stack.

use crate::{LabError, Vary};
use fullstroke_stack::StackError;
use serde::{Serialize, Serializer};
use std::fmt;

/// The varied keys, in the order of the command line, with the values of one candidate. As JSON an
/// object: `{"volume.chunk": "64KiB"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Varied(Vec<(String, String)>);

impl Varied {
    /// Parses assignments, each `key=value`.
    pub fn new(assignments: &[String]) -> Varied {
        let split = |assignment: &String| {
            let (key, value) = assignment.split_once('=').unwrap_or((assignment, ""));
            (key.to_owned(), value.to_owned())
        };
        Varied(assignments.iter().map(split).collect())
    }

    /// Returns each key with its value.
    pub fn each(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// Returns the keys with their values, each as `key=value`.
    pub fn assignments(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }

    /// Returns the value of `key`; `None` if the key was not varied.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the error of the stack. If keys were varied, the error names their values.
    pub(crate) fn refused(&self, source: StackError) -> LabError {
        if self.0.is_empty() {
            source.into()
        } else {
            LabError::Combination {
                combination: self.to_string(),
                source,
            }
        }
    }

    /// Returns `name` with the values of the varied keys, which distinguish candidates of the same
    /// name.
    pub fn label(&self, name: &str) -> String {
        if self.0.is_empty() {
            name.to_owned()
        } else {
            format!("{name} {self}")
        }
    }
}

/// The varied keys, each with its values in the order given. As JSON an object: `{"volume.chunk":
/// ["16KiB", "64KiB"]}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariedValues(Vec<(String, Vec<String>)>);

impl VariedValues {
    /// Collects the keys and values of candidates, in the order given.
    pub fn of<'a>(candidates: impl Iterator<Item = &'a Varied>) -> VariedValues {
        let mut keys: Vec<(String, Vec<String>)> = Vec::new();
        for (key, value) in candidates.flat_map(|varied| &varied.0) {
            let place = keys
                .iter()
                .position(|(known, _)| known == key)
                .unwrap_or_else(|| {
                    keys.push((key.clone(), Vec::new()));
                    keys.len() - 1
                });
            let values = &mut keys[place].1;
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        VariedValues(keys)
    }
}

impl From<&[Vary]> for VariedValues {
    fn from(varied: &[Vary]) -> VariedValues {
        VariedValues(
            varied
                .iter()
                .map(|vary| (vary.key().to_owned(), vary.values().to_vec()))
                .collect(),
        )
    }
}

impl VariedValues {
    /// Returns the values of the key `key` in the order given; empty if the key was not varied.
    pub fn of_key(&self, key: &str) -> &[String] {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map_or(&[], |(_, values)| values)
    }
}

impl Serialize for VariedValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, values)| (key, values)))
    }
}

impl fmt::Display for Varied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self
            .0
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        f.write_str(&each.join(" "))
    }
}

impl Serialize for Varied {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_key_and_stand_behind_the_name() {
        let varied = Varied::new(&["volume.chunk=64KiB".to_owned(), "title=a=b".to_owned()]);
        assert_eq!(
            (varied.get("volume.chunk"), varied.get("title")),
            (Some("64KiB"), Some("a=b"))
        );
        assert_eq!(varied.get("seed"), None);
        assert_eq!(varied.label("raid5"), "raid5 volume.chunk=64KiB title=a=b");
        assert_eq!(Varied::default().label("raid5"), "raid5");
        let json = serde_json::to_value(&varied).unwrap();
        assert_eq!(
            json,
            serde_json::json!({ "volume.chunk": "64KiB", "title": "a=b" })
        );
    }

    #[test]
    fn values_of_a_key_keep_the_order_in_which_they_were_given() {
        let given: Vec<Vary> = ["a=x,b,c", "d=1,2"]
            .map(|argument| argument.parse().unwrap())
            .to_vec();
        let candidates: Vec<Varied> = Vary::combinations(&given)
            .iter()
            .map(|one| Varied::new(one))
            .collect();
        let values = VariedValues::of(candidates.iter());
        assert_eq!(values, VariedValues::from(given.as_slice()));
        let json = serde_json::to_value(&values).unwrap();
        assert_eq!(
            json,
            serde_json::json!({ "a": ["x", "b", "c"], "d": ["1", "2"] })
        );
    }
}
