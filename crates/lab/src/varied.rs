//! What tells the candidates of one stack apart.

use crate::LabError;
use fullstroke_stack::StackError;
use serde::{Serialize, Serializer};
use std::fmt;

/// The keys that were varied, in the order of the command line, and this
/// candidate's values. As JSON an object: `{"volume.chunk": "64KiB"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Varied(Vec<(String, String)>);

impl Varied {
    /// From assignments, `key=value` each.
    pub(crate) fn new(assignments: &[String]) -> Varied {
        let split = |assignment: &String| {
            let (key, value) = assignment.split_once('=').unwrap_or((assignment, ""));
            (key.to_owned(), value.to_owned())
        };
        Varied(assignments.iter().map(split).collect())
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// The keys with their values, `key=value` each.
    pub fn assignments(&self) -> Vec<String> {
        self.0.iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    /// The value of `key`, if that was varied.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Why these values make no stack; without any, why the stack is none.
    pub(crate) fn refused(&self, source: StackError) -> LabError {
        if self.0.is_empty() {
            source.into()
        } else {
            LabError::Combination { combination: self.to_string(), source }
        }
    }

    /// The candidate called `name`, told apart from others of that name.
    pub fn label(&self, name: &str) -> String {
        if self.0.is_empty() { name.to_owned() } else { format!("{name} {self}") }
    }
}

impl fmt::Display for Varied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
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
        assert_eq!((varied.get("volume.chunk"), varied.get("title")), (Some("64KiB"), Some("a=b")));
        assert_eq!(varied.get("seed"), None);
        assert_eq!(varied.label("raid5"), "raid5 volume.chunk=64KiB title=a=b");
        assert_eq!(Varied::default().label("raid5"), "raid5");
        let json = serde_json::to_value(&varied).unwrap();
        assert_eq!(json, serde_json::json!({ "volume.chunk": "64KiB", "title": "a=b" }));
    }
}
