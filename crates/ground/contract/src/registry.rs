//! The lookup of a policy by name.
//!
//! Each kind of policy has one registry: a constant slice of entries, one line per policy. Names on
//! the command line, the JSON schema of stack files, the reference page and the conformance tests
//! all derive from the registry.

mod fields;
mod reader;

use crate::ConfigError;
use fields::field_names;
use fullstroke_units::order_by;
pub use reader::read_value;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// One policy of a kind: its name and its factory. `F` is the type of the factory function.
#[derive(Clone, Copy, Debug)]
pub struct PolicyEntry<F> {
    /// Name in a stack file.
    pub name: &'static str,
    /// One sentence for lists and reference pages.
    pub summary: &'static str,
    /// JSON schema of the policy's own keys.
    pub schema: fn() -> Schema,
    /// Builds the policy from its keys.
    pub build: F,
}

/// The keys of one policy, as written in the user's file.
pub type Keys = Map<String, Value>;

/// Returns the JSON schema of a config type, for [`PolicyEntry::schema`].
#[cfg(not(target_family = "wasm"))]
pub fn schema_of<C: JsonSchema + DeserializeOwned>() -> Schema {
    schemars::SchemaGenerator::default().into_root_schema_for::<C>()
}

/// Returns the names of the keys of a config type as a schema, for [`PolicyEntry::schema`]. A run
/// uses nothing else of a schema, and whole schemas are a tenth of the module for browsers.
#[cfg(target_family = "wasm")]
pub fn schema_of<C: JsonSchema + DeserializeOwned>() -> Schema {
    schema_of_names(field_names::<C>())
}

// The generic functions of this file call functions that are not generic: hundreds of types read
// their keys here.
#[cfg(target_family = "wasm")]
fn schema_of_names(names: &[&str]) -> Schema {
    let named = sorted(names).into_iter();
    let named = named.map(|name| (name, Value::Bool(true)));
    let mut schema = Schema::default();
    schema.insert("properties".to_owned(), Value::Object(keys_of(named)));
    schema
}

/// Returns names of keys in the order of messages.
fn sorted(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|&name| name.into()).collect();
    order_by(&mut names, Ord::cmp);
    names
}

/// Returns the entry called `name`. Otherwise returns an error at `key` with the most similar name.
pub fn find<'a, F>(
    kind: &str,
    registry: &'a [PolicyEntry<F>],
    key: &str,
    name: &str,
) -> Result<&'a PolicyEntry<F>, ConfigError> {
    registry
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = registry.iter().map(|entry| entry.name).collect();
            ConfigError::new(
                key,
                format!(
                    "there is no {kind} `{name}`{}; known: {}",
                    nearest(name, &names),
                    names.join(", ")
                ),
            )
        })
}

/// Reads a config type from `keys`. Errors: an unknown key (the message suggests the most similar
/// known key), a missing key, or a value of the wrong type.
pub fn read<C: DeserializeOwned + JsonSchema>(keys: &Keys) -> Result<C, ConfigError> {
    let names = field_names::<C>();
    #[cfg(not(target_family = "wasm"))]
    debug_assert_eq!(
        sorted(names),
        known_keys(&schema_of::<C>()),
        "names and schema"
    );
    read_value(checked(keys, names)?).map_err(refused)
}

/// Reads a type without a schema from `keys`. The type itself refuses unknown keys. Errors: as for
/// [`read`], but an unknown key is listed with the known keys, without the most similar one.
pub fn read_unlisted<C: DeserializeOwned>(keys: &Keys) -> Result<C, ConfigError> {
    read_value(Value::Object(keys.clone())).map_err(refused)
}

/// Collects keys. [`Keys::from_iter`] is compiled anew for each iterator, with a sort of the pairs.
pub fn keys_of(pairs: impl IntoIterator<Item = (String, Value)>) -> Keys {
    let mut keys = Keys::new();
    for (key, value) in pairs {
        keys.insert(key, value);
    }
    keys
}

/// Returns the keys whose names are among `known`.
pub fn known_part(keys: &Keys, known: &[String]) -> Keys {
    let own = keys.iter().filter(|(key, _)| known.contains(key));
    keys_of(own.map(|(key, value)| (key.clone(), value.clone())))
}

/// Returns `keys` as a value if all keys are among `names`.
fn checked(keys: &Keys, names: &[&str]) -> Result<Value, ConfigError> {
    // serde alone would say "unknown field" without a suggestion.
    check_known(keys, &sorted(names))?;
    Ok(Value::Object(keys.clone()))
}

fn refused((key, error): (String, serde_json::Error)) -> ConfigError {
    ConfigError::new(key, plain(&without_position(&error)))
}

/// Names of serde for the types of Rust and of JSON, and the words of a stack file for them.
const EXPECTED: &[(&str, &str)] = &[
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number, at least 0"),
    ("usize", "a whole number, at least 0"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a string", "a text in quotes"),
    ("a sequence", "a list in square brackets"),
    ("a map", "a table"),
    ("string or map", "a text in quotes"),
];

/// Returns a message of serde about a value of the wrong type in the words of a stack file, and any
/// other message as it is.
fn plain(message: &str) -> String {
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    if let Some(name) = message.strip_prefix("unknown variant ") {
        return format!("found {}", name.replacen(", expected", "; expected", 1));
    }
    let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        // The last one, because a text of the user may have the same words.
        .and_then(|text| text.rsplit_once(", expected "))
    else {
        return message.to_owned();
    };
    let found = match found {
        "sequence" => "a list",
        "map" => "a table",
        // The value itself shows its type.
        _ => ["string ", "integer ", "boolean ", "floating point "]
            .iter()
            .find_map(|kind| found.strip_prefix(kind))
            .map_or(found, |value| value.trim_matches('`')),
    };
    let expected = match expected.strip_prefix("struct ") {
        // serde adds the name of a type of Rust.
        Some(_) => "a table",
        None => EXPECTED
            .iter()
            .find(|(name, _)| *name == expected)
            .map_or(expected, |(_, words)| words),
    };
    format!("found {found}; expected {expected}")
}

/// Returns an error at the first key outside `known`.
pub fn check_known(keys: &Keys, known: &[String]) -> Result<(), ConfigError> {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    match keys.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) if known.is_empty() => Err(ConfigError::new(
            key.as_str(),
            "unknown key; no key is known here",
        )),
        Some(key) => Err(ConfigError::new(
            key.as_str(),
            format!(
                "unknown key{}; known here: {}",
                nearest(key, &known),
                known.join(", ")
            ),
        )),
    }
}

/// Returns the property names of an object schema.
pub fn known_keys(schema: &Schema) -> Vec<String> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default()
}

/// Returns ` (did you mean `x`?)` if an entry of `known` is similar to `name`, otherwise an empty
/// string. Upper and lower case count as equal. Both names must have the same digits, in any order,
/// because digits carry the meaning of a name: `raid50` is not a misspelt `raid0`, nor `p9` a
/// misspelt `p95`.
pub fn nearest(name: &str, known: &[&str]) -> String {
    let lower = name.to_lowercase();
    known
        .iter()
        .filter(|candidate| digits(candidate) == digits(name))
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
            (distance, *candidate)
        })
        // The minimum compares distance and then name, so equal distances always give the same
        // suggestion.
        .filter(|(distance, candidate)| *distance <= (candidate.len().max(name.len()) / 2).max(1))
        .min()
        .map(|(_, candidate)| format!(" (did you mean `{candidate}`?)"))
        .unwrap_or_default()
}

/// Returns the digits of `name` in ascending order.
fn digits(name: &str) -> Vec<char> {
    let mut digits: Vec<char> = name.chars().filter(char::is_ascii_digit).collect();
    order_by(&mut digits, Ord::cmp);
    digits
}

/// Returns serde_json's message without line and column. The position refers to JSON text, while
/// the user's file is TOML.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // The last ` at line ` is serde_json's own; the value in the message may contain the same
    // words.
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_the_wrong_type_is_refused_in_the_words_of_a_stack_file() {
        #[derive(Debug, serde::Deserialize, JsonSchema)]
        #[allow(dead_code, reason = "the keys are only read")]
        struct Table {
            count: Option<u32>,
            share: Option<f64>,
            on: Option<bool>,
            list: Option<Vec<u32>>,
        }
        for (key, value, message) in [
            (
                "count",
                serde_json::json!("x, expected u8"),
                "found \"x, expected u8\"; expected a whole number from 0 to 4294967295",
            ),
            (
                "count",
                serde_json::json!(-1),
                "found -1; expected a whole number from 0 to 4294967295",
            ),
            (
                "share",
                serde_json::json!([1]),
                "found a list; expected a number",
            ),
            (
                "count",
                serde_json::json!(1.5),
                "found 1.5; expected a whole number from 0 to 4294967295",
            ),
            (
                "on",
                serde_json::json!(1),
                "found 1; expected true or false",
            ),
            (
                "list",
                serde_json::json!({}),
                "found a table; expected a list in square brackets",
            ),
        ] {
            let keys = Keys::from_iter([(key.to_owned(), value)]);
            let error = read::<Table>(&keys).unwrap_err();
            assert_eq!((error.key.as_str(), error.message.as_str()), (key, message));
        }
    }

    #[test]
    fn a_suggestion_has_the_digits_of_the_name() {
        let layouts = ["jbod", "raid0", "raid1", "raid10", "raid5", "raid6"];
        for name in ["raidz", "raidz2", "raid50", "raid60", "raid", "raid2"] {
            assert_eq!(nearest(name, &layouts), "", "{name}");
        }
        for name in ["RAID6", "raid-6", "rais6", "riad6"] {
            assert_eq!(
                nearest(name, &layouts),
                " (did you mean `raid6`?)",
                "{name}"
            );
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_known_keys() {
        let keys: Keys = [("chunks".to_owned(), Value::from(1))]
            .into_iter()
            .collect();
        for (known, says) in [
            (
                vec!["chunk".to_owned(), "failed".to_owned()],
                "unknown key (did you mean `chunk`?); known here: chunk, failed",
            ),
            (vec![], "unknown key; no key is known here"),
        ] {
            let error = check_known(&keys, &known).unwrap_err();
            assert_eq!(error.key, "chunks");
            assert_eq!(error.message, says);
        }
    }

    #[test]
    fn a_suggestion_is_similar() {
        let elevators = ["noop", "c-scan", "mq-deadline"];
        assert_eq!(nearest("cscan", &elevators), " (did you mean `c-scan`?)");
        assert_eq!(nearest("bfq", &elevators), "");
    }
}
