//! Ready loads: a use of an array in one stack file.

use serde_json::{Value, json};

/// A ready load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Short name, for links.
    pub name: &'static str,
    /// The stack file. The comment at the top describes the load; the volume is only a place for
    /// the load.
    pub text: &'static str,
}

macro_rules! uses {
    ($($name:literal),* $(,)?) => {
        &[$(Use { name: $name, text: include_str!(concat!("../uses/", $name, ".toml")) }),*]
    };
}

/// The ready loads, in the order of a list.
pub const USES: &[Use] = uses![
    "films-backup",
    "films",
    "backup",
    "office",
    "photos",
    "database",
    "machines",
    "cameras",
];

impl Use {
    /// Returns the title.
    pub fn title(&self) -> &'static str {
        let line = self
            .text
            .lines()
            .find_map(|line| line.strip_prefix("title = "));
        line.unwrap_or(self.name).trim_matches('"')
    }

    /// Returns the description: the comment at the top.
    pub fn about(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix('#'));
        lines.map(str::trim).collect::<Vec<_>>().join(" ")
    }

    /// Returns name, title, description and text.
    pub(crate) fn json(&self) -> Value {
        let (title, about) = (self.title(), self.about());
        json!({ "name": self.name, "title": title, "about": about, "text": self.text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    #[test]
    fn each_use_is_answered_for_common_drives() {
        for one in USES {
            assert!(
                !one.about().is_empty() && one.title() != one.name,
                "{one:?}"
            );
            let mut session = Session::default();
            session.put("load.toml", one.text.as_bytes());
            let question = json!({
                "command": "ask", "stack": "load.toml", "drive": "seagate-exos-x16-16tb",
                "counts": [6], "wishes": { "failures": 1 }, "first": 500, "most": 500,
            });
            let asked = session.call(&question.to_string(), &|_, _| {});
            assert!(asked.contains("raid10 of 6"), "{}: {asked}", one.name);
            let mut last = String::new();
            for _ in 0..3 {
                last = session.call("{\"command\":\"step\"}", &|_, _| {});
                assert!(last.starts_with("{\"answer\""), "{}: {last}", one.name);
            }
            let last: Value = serde_json::from_str(&last).unwrap();
            let ranked = &last["answer"]["advice"]["ranking"];
            assert_eq!(
                ranked,
                &Value::Null,
                "the ranking's fields stand in the advice"
            );
            let candidates = last["answer"]["advice"]["candidates"].as_array().unwrap();
            assert!(candidates.len() == 3, "{}: {last}", one.name);
            for candidate in candidates {
                assert!(candidate["value"].as_f64().unwrap() > 0.0, "{}", one.name);
            }
        }
    }
}
