//! What a server offers: exports, their sizes and features.

use crate::wire;
use bitflags::bitflags;
use thiserror::Error;

/// The longest payload that the protocol asks every server to take (32 MiB).
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// The largest smallest block of the protocol.
const BLOCK_BYTES_MIN_LIMIT: u32 = 1 << 16;
/// The smallest preferred block of the protocol.
const PREFERRED_BYTES_LIMIT: u32 = 512;

bitflags! {
    /// What an export can do: those transmission flags that are its own matter.
    /// A command or a flag that was not offered is refused.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Features: u16 {
        /// Whatever would change it is refused.
        const READ_ONLY = 1 << 1;
        /// [`Command::Flush`](crate::Command::Flush).
        const FLUSH = 1 << 2;
        /// [`CommandFlags::FORCE_UNIT_ACCESS`](crate::CommandFlags::FORCE_UNIT_ACCESS).
        const FORCE_UNIT_ACCESS = 1 << 3;
        /// The client should schedule as for a spinning disk.
        const ROTATIONAL = 1 << 4;
        /// [`Command::Trim`](crate::Command::Trim).
        const TRIM = 1 << 5;
        /// [`Command::WriteZeroes`](crate::Command::WriteZeroes).
        const WRITE_ZEROES = 1 << 6;
        /// What one connection flushed is durable for all: a client may open
        /// several.
        const MULTIPLE_CONNECTIONS = 1 << 8;
        /// [`Command::Cache`](crate::Command::Cache).
        const CACHE = 1 << 10;
        /// [`CommandFlags::FAST_ZERO`](crate::CommandFlags::FAST_ZERO).
        const FAST_ZERO = 1 << 11;
    }
}

/// One disk that clients may open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name by which clients choose it; at most 4096 bytes, no NUL.
    pub name: String,
    /// For people; at most 4096 bytes, may be empty.
    pub description: String,
    /// Size; a multiple of `block_bytes_min`.
    pub size_bytes: u64,
    /// What it can do.
    pub features: Features,
    /// What clients that ask are told to align their requests to; a power of
    /// two up to 65,536.
    pub block_bytes_min: u32,
    /// Requests that are not aligned so are taken all the same, as a client that
    /// was told nothing may expect ("Size constraints" in the protocol).
    pub takes_unaligned: bool,
    /// Requests aligned to this are served best; a power of two of at least
    /// 512 and of at least `block_bytes_min`.
    pub block_bytes_preferred: u32,
    /// No read or write is longer; a multiple of `block_bytes_min`, at least
    /// `block_bytes_preferred`, and at most [`PAYLOAD_BYTES_MAX`].
    pub payload_bytes_max: u32,
}

/// Why an export cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("export `{export}`: {key}: found {found}; expected {expected}")]
pub struct ExportError {
    /// The export's name.
    pub export: String,
    /// The field that is wrong.
    pub key: &'static str,
    /// What it holds.
    pub found: String,
    /// What it should hold.
    pub expected: &'static str,
}

impl Export {
    /// A disk of 512-byte sectors that can be written, flushed, trimmed and
    /// zeroed, and says that it rotates.
    pub fn new(name: impl Into<String>, size_bytes: u64) -> Export {
        Export {
            name: name.into(),
            description: String::new(),
            size_bytes,
            features: Features::FLUSH
                | Features::FORCE_UNIT_ACCESS
                | Features::ROTATIONAL
                | Features::TRIM
                | Features::WRITE_ZEROES
                | Features::CACHE
                | Features::MULTIPLE_CONNECTIONS,
            block_bytes_min: 512,
            takes_unaligned: false,
            block_bytes_preferred: 4096,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    /// Whether it may be used so. What changes an export is not offered where
    /// it can only be read.
    pub(crate) fn offers(&self, feature: Features) -> bool {
        self.offered().contains(feature)
    }

    fn offered(&self) -> Features {
        let writing = Features::TRIM | Features::WRITE_ZEROES | Features::FAST_ZERO;
        if self.features.contains(Features::READ_ONLY) {
            self.features - writing
        } else {
            self.features
        }
    }

    /// The transmission flags; reads can be kept in one chunk where replies are
    /// structured.
    pub(crate) fn transmission_flags(&self, structured: bool) -> u16 {
        let fragments = if structured { wire::SEND_DF } else { 0 };
        wire::HAS_FLAGS | self.offered().bits() | fragments
    }

    fn check(&self) -> Result<(), ExportError> {
        let fault = |key, found: String, expected| {
            Err(ExportError {
                export: self.name.clone(),
                key,
                found,
                expected,
            })
        };
        for (key, text) in [("name", &self.name), ("description", &self.description)] {
            if text.len() > wire::STRING_BYTES_MAX {
                return fault(
                    key,
                    format!("{} bytes", text.len()),
                    "at most 4096 bytes; shorten it",
                );
            }
            if text.contains('\0') {
                return fault(key, "a NUL".into(), "text without NUL; remove it");
            }
        }
        let least = self.block_bytes_min;
        if !least.is_power_of_two() || least > BLOCK_BYTES_MIN_LIMIT {
            return fault(
                "block_bytes_min",
                least.to_string(),
                "a power of two up to 65536",
            );
        }
        let preferred = self.block_bytes_preferred;
        if !preferred.is_power_of_two() || preferred < least.max(PREFERRED_BYTES_LIMIT) {
            let expected = "a power of two of at least 512 and block_bytes_min";
            return fault("block_bytes_preferred", preferred.to_string(), expected);
        }
        let longest = self.payload_bytes_max;
        if !longest.is_multiple_of(least) || !(preferred..=PAYLOAD_BYTES_MAX).contains(&longest) {
            let expected = "a multiple of block_bytes_min, from block_bytes_preferred to 33554432";
            return fault("payload_bytes_max", longest.to_string(), expected);
        }
        if !self.size_bytes.is_multiple_of(least.into()) {
            let expected = "a multiple of block_bytes_min; round it down";
            return fault("size_bytes", self.size_bytes.to_string(), expected);
        }
        if self.features.contains(Features::FAST_ZERO)
            && !self.features.contains(Features::WRITE_ZEROES)
        {
            return fault(
                "features",
                "FAST_ZERO alone".into(),
                "FAST_ZERO with WRITE_ZEROES; add it",
            );
        }
        Ok(())
    }
}

/// All exports of a server. Shared by its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exports {
    exports: Vec<Export>,
}

impl Exports {
    /// Exports in the order in which they are listed. The empty name means the
    /// first, unless one is called so.
    ///
    /// # Errors
    /// A field of an export breaks a rule of its documentation, two have one
    /// name, or there is none.
    pub fn new(exports: Vec<Export>) -> Result<Exports, ExportError> {
        if exports.is_empty() {
            return Err(ExportError {
                export: String::new(),
                key: "exports",
                found: "none".into(),
                expected: "at least one",
            });
        }
        let mut names = std::collections::BTreeSet::new();
        for export in &exports {
            export.check()?;
            if !names.insert(&export.name) {
                return Err(ExportError {
                    export: export.name.clone(),
                    key: "name",
                    found: "two exports of this name".into(),
                    expected: "a name of its own for each; rename one",
                });
            }
        }
        Ok(Exports { exports })
    }

    /// The exports, by the number that [`Event::Opened`](crate::Event::Opened) tells.
    pub fn all(&self) -> &[Export] {
        &self.exports
    }

    /// The number of the export that a client means by a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        let named = self.exports.iter().position(|export| export.name == name);
        named.or_else(|| name.is_empty().then_some(0))
    }
}

#[cfg(test)]
#[allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_means_the_export_called_so_or_else_the_first() {
        let named = Exports::new(vec![Export::new("a", 512), Export::new("b", 512)]).unwrap();
        assert_eq!(
            [named.find(""), named.find("b"), named.find("c")],
            [Some(0), Some(1), None]
        );
        let nameless = Exports::new(vec![Export::new("a", 512), Export::new("", 512)]).unwrap();
        assert_eq!(nameless.find(""), Some(1));
    }

    #[test]
    fn an_export_that_breaks_a_rule_is_refused_by_the_name_of_the_field() {
        let good = Export::new("disk", 1 << 20);
        let cases = [
            (
                "name",
                Export {
                    name: "a\0b".into(),
                    ..good.clone()
                },
            ),
            (
                "description",
                Export {
                    description: "x".repeat(5000),
                    ..good.clone()
                },
            ),
            (
                "block_bytes_min",
                Export {
                    block_bytes_min: 0,
                    ..good.clone()
                },
            ),
            (
                "block_bytes_min",
                Export {
                    block_bytes_min: 1 << 17,
                    ..good.clone()
                },
            ),
            (
                "block_bytes_preferred",
                Export {
                    block_bytes_preferred: 256,
                    ..good.clone()
                },
            ),
            (
                "payload_bytes_max",
                Export {
                    payload_bytes_max: PAYLOAD_BYTES_MAX + 512,
                    ..good.clone()
                },
            ),
            (
                "payload_bytes_max",
                Export {
                    payload_bytes_max: 5000,
                    ..good.clone()
                },
            ),
            (
                "size_bytes",
                Export {
                    size_bytes: 1000,
                    ..good.clone()
                },
            ),
            (
                "features",
                Export {
                    features: Features::FAST_ZERO,
                    ..good.clone()
                },
            ),
        ];
        for (key, export) in cases {
            assert_eq!(Exports::new(vec![export]).unwrap_err().key, key);
        }
        assert_eq!(
            Exports::new(vec![good.clone(), good]).unwrap_err().key,
            "name"
        );
        assert_eq!(Exports::new(Vec::new()).unwrap_err().key, "exports");
    }

    #[test]
    fn what_changes_an_export_is_not_offered_where_it_can_only_be_read() {
        let mut export = Export::new("disk", 512);
        export.features |= Features::READ_ONLY;
        assert_eq!(export.transmission_flags(false), 0b101_0001_1111);
        assert_eq!(export.transmission_flags(true), 0b101_1001_1111);
    }
}
