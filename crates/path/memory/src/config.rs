//! The keys of a cache, and its policies.

use crate::read_ahead::{self, ReadAhead};
use crate::replacement::{self, PolicySite, Replacement};
use crate::run::{PAGE_BYTES, pages_in};
use crate::write_back::{self, WriteBack};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, find, read};
use fullstroke_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Smallest number of pages of a cache: enough for a read-ahead window and the writes during its
/// I/O.
pub const LIMIT_LEAST: u64 = 64;

/// The keys of a cache. `replacement`, `read_ahead` and `write_back` each take the name of a
/// policy, or a table with the policy's keys and its name as `policy`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryKeys {
    /// Memory for pages, such as "512MiB"; at least 256 KiB.
    pub size: Bytes,
    /// Policy of replacement: choice of the page to evict. Default "lru2".
    pub replacement: Option<CachePolicy>,
    /// Policy of read-ahead: pages read beside the requested pages. Default "today".
    pub read_ahead: Option<CachePolicy>,
    /// Policy of write-back: time of the write-back of dirty pages. Default "today".
    pub write_back: Option<CachePolicy>,
}

/// A policy: a name, or a table of keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a policy's name, or a table of its keys"
)]
pub enum CachePolicy {
    /// Name of a policy with default keys.
    Name(String),
    /// Name of a policy with default keys, if the name looks like a number: 2.4.
    Number(f64),
    /// Table with `policy` and the keys of the policy.
    Table(Keys),
}

/// The three policies of a cache.
pub(crate) struct Policies {
    pub limit: u64,
    pub replacement: Box<dyn Replacement>,
    pub read_ahead: Box<dyn ReadAhead>,
    pub write_back: Box<dyn WriteBack>,
}

impl MemoryKeys {
    /// Returns the keys of a cache of this size, with default policies.
    pub fn of(size: Bytes) -> MemoryKeys {
        MemoryKeys {
            size,
            ..MemoryKeys::default()
        }
    }

    /// Reads a `[memory]` table.
    ///
    /// # Errors
    /// A key is unknown, the size is too small, a policy is unknown, or a policy does not have the
    /// key.
    pub fn read(table: &Keys) -> Result<MemoryKeys, ConfigError> {
        let keys: MemoryKeys = read(table)?;
        keys.policies()?;
        Ok(keys)
    }

    /// Returns these keys with other defaults of read-ahead and write-back. A table of keys without
    /// `policy` keeps today's policy, because its keys are those of that policy.
    #[must_use]
    pub fn or_else(self, read_ahead: &str, write_back: &str) -> MemoryKeys {
        let default = |policy: Option<CachePolicy>, name: &str| match policy {
            None => CachePolicy::Name(name.to_owned()),
            Some(policy) => policy,
        };
        MemoryKeys {
            read_ahead: Some(default(self.read_ahead, read_ahead)),
            write_back: Some(default(self.write_back, write_back)),
            ..self
        }
    }

    /// Returns the number of pages of this memory.
    pub fn pages(&self) -> u64 {
        pages_in(self.size)
    }

    pub(crate) fn policies(&self) -> Result<Policies, ConfigError> {
        let limit = self.pages();
        if limit < LIMIT_LEAST {
            let least = LIMIT_LEAST * PAGE_BYTES;
            let message = format!(
                "found {} bytes; expected at least {least}, {LIMIT_LEAST} pages",
                self.size.0
            );
            return Err(ConfigError::new("size", message));
        }
        let (name, keys) = named("replacement", self.replacement.as_ref(), "lru2")?;
        let entry = find("replacement", replacement::REGISTRY, "replacement", &name)?;
        let replacement = (entry.build)(&keys, &PolicySite { limit })
            .map_err(|error| error.below("replacement"))?;
        let (name, keys) = named("read_ahead", self.read_ahead.as_ref(), "today")?;
        let entry = find("read-ahead", read_ahead::REGISTRY, "read_ahead", &name)?;
        let read_ahead = (entry.build)(&keys).map_err(|error| error.below("read_ahead"))?;
        let (name, keys) = named("write_back", self.write_back.as_ref(), "today")?;
        let entry = find("write-back", write_back::REGISTRY, "write_back", &name)?;
        let write_back = (entry.build)(&keys, limit).map_err(|error| error.below("write_back"))?;
        Ok(Policies {
            limit,
            replacement,
            read_ahead,
            write_back,
        })
    }
}

/// Returns the name of a policy and its keys.
fn named(
    kind: &str,
    policy: Option<&CachePolicy>,
    default: &str,
) -> Result<(String, Keys), ConfigError> {
    match policy {
        None => Ok((default.to_owned(), Keys::new())),
        Some(CachePolicy::Name(name)) => Ok((name.clone(), Keys::new())),
        Some(CachePolicy::Number(number)) => Ok((number.to_string(), Keys::new())),
        Some(CachePolicy::Table(table)) => {
            let mut keys = table.clone();
            match keys.remove("policy") {
                Some(Value::String(name)) => Ok((name, keys)),
                None => Ok((default.to_owned(), keys)),
                Some(other) => Err(ConfigError::new(
                    format!("{kind}.policy"),
                    format!("found {other}; expected a name in quotes"),
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(value: Value) -> Keys {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn policies_are_named_or_have_tables() {
        let read = MemoryKeys::read(&keys(json!({
            "size": "1MiB",
            "replacement": "arc",
            "read_ahead": 2.4,
        })));
        assert_eq!(read.unwrap().pages(), 256);
        let read = MemoryKeys::read(&keys(json!({
            "size": "1MiB",
            "read_ahead": { "policy": "two-window", "read_ahead_kb": 64 },
            "write_back": { "dirty_ratio": 30 },
        })));
        assert_eq!(read.unwrap().pages(), 256);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (value, key, part) in [
            (json!({ "size": "64KiB" }), "size", "64 pages"),
            (
                json!({ "size": "1MiB", "replacment": "lru" }),
                "replacment",
                "did you mean `replacement`",
            ),
            (
                json!({ "size": "1MiB", "replacement": true }),
                "replacement",
                "a policy's name",
            ),
            (
                json!({ "size": "1MiB", "replacement": "lur" }),
                "replacement",
                "did you mean `lru`",
            ),
            (
                json!({ "size": "1MiB", "write_back": { "policy": "2.6.17", "dirty_ratoi": 4 } }),
                "write_back.dirty_ratoi",
                "did you mean `dirty_ratio`",
            ),
            (
                json!({ "size": "1MiB", "write_back": { "dirty_ratio": 400 } }),
                "write_back.dirty_ratio",
                "400",
            ),
            (
                json!({ "size": "1MiB", "read_ahead": { "policy": 4 } }),
                "read_ahead.policy",
                "found 4",
            ),
        ] {
            let error = MemoryKeys::read(&keys(value.clone())).unwrap_err();
            assert_eq!(error.key, key, "{value}");
            assert!(error.message.contains(part), "{error}");
        }
    }
}
