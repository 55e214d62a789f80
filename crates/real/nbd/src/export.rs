//! The offer of a server: exports, their sizes and features.

use crate::wire;
use bitflags::bitflags;
use thiserror::Error;

/// Longest payload that the protocol requires of every server (32 MiB).
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// Largest permitted minimum block size of the protocol.
const BLOCK_BYTES_MIN_LIMIT: u32 = 1 << 16;
/// Smallest permitted preferred block size of the protocol.
const PREFERRED_BYTES_LIMIT: u32 = 512;

bitflags! {
    /// Features of an export: the transmission flags that belong to the export. A command or flag
    /// outside the offer is refused.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Features: u16 {
        /// Requests that change the export are refused.
        const READ_ONLY = 1 << 1;
        /// [`RequestCommand::Flush`](crate::RequestCommand::Flush).
        const FLUSH = 1 << 2;
        /// [`CommandFlags::FORCE_UNIT_ACCESS`](crate::CommandFlags::FORCE_UNIT_ACCESS).
        const FORCE_UNIT_ACCESS = 1 << 3;
        /// The client should schedule for a spinning disk.
        const ROTATIONAL = 1 << 4;
        /// [`RequestCommand::Trim`](crate::RequestCommand::Trim).
        const TRIM = 1 << 5;
        /// [`RequestCommand::WriteZeroes`](crate::RequestCommand::WriteZeroes).
        const WRITE_ZEROES = 1 << 6;
        /// A flush on one connection makes the writes of all connections durable, so a client may
        /// open several.
        const MULTIPLE_CONNECTIONS = 1 << 8;
        /// [`RequestCommand::Cache`](crate::RequestCommand::Cache).
        const CACHE = 1 << 10;
        /// [`CommandFlags::FAST_ZERO`](crate::CommandFlags::FAST_ZERO).
        const FAST_ZERO = 1 << 11;
    }
}

/// A disk that clients may open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name by which clients choose the export; at most 4096 bytes, no NUL.
    pub name: String,
    /// Description for people; at most 4096 bytes, may be empty.
    pub description: String,
    /// Size in bytes; a multiple of `block_bytes_min`.
    pub size_bytes: u64,
    /// Features of the export.
    pub features: Features,
    /// Alignment of requests, as reported to clients that ask; a power of two up to 65,536.
    pub block_bytes_min: u32,
    /// True to accept unaligned requests as well. A client that was told no block size may expect
    /// this ("Size constraints" in the protocol).
    pub takes_unaligned: bool,
    /// Alignment of the fastest requests; a power of two of at least 512 and of at least
    /// `block_bytes_min`.
    pub block_bytes_preferred: u32,
    /// Longest read or write; a multiple of `block_bytes_min`, at least `block_bytes_preferred`,
    /// and at most [`PAYLOAD_BYTES_MAX`].
    pub payload_bytes_max: u32,
}

/// Reason why an export cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("export `{export}`: {key}: found {found}; expected {expected}")]
pub struct ExportError {
    /// Name of the export.
    pub export: String,
    /// Name of the wrong field.
    pub key: &'static str,
    /// Value of the field.
    pub found: String,
    /// Expected value.
    pub expected: &'static str,
}

impl Export {
    /// Creates a disk of 512-byte sectors. The disk can be written, flushed, trimmed and zeroed,
    /// and reports that it rotates.
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

    /// Returns true if the export offers `feature`. A read-only export offers no feature that
    /// changes data.
    pub(crate) fn offers(&self, feature: Features) -> bool {
        self.offered().contains(feature)
    }

    fn offered(&self) -> Features {
        // The protocol forbids the offer of changes with a read-only export.
        let writing = Features::TRIM | Features::WRITE_ZEROES | Features::FAST_ZERO;
        if self.features.contains(Features::READ_ONLY) {
            self.features - writing
        } else {
            self.features
        }
    }

    /// Returns the transmission flags. With structured replies, reads can be kept in one chunk.
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
        // A last part below one block could never be addressed by an aligned request.
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

/// All exports of a server, shared by its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exports {
    exports: Vec<Export>,
}

impl Exports {
    /// Creates the list of exports, in the order of listings. The empty name selects the first
    /// export, unless an export has the empty name.
    ///
    /// # Errors
    /// If a field of an export breaks a rule of its documentation, two exports have one name, or
    /// there is no export.
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

    /// Returns the exports, indexed by the number in
    /// [`ConnectionEvent::Opened`](crate::ConnectionEvent::Opened).
    pub fn all(&self) -> &[Export] {
        &self.exports
    }

    /// Returns the number of the export that a client selects by `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        let named = self.exports.iter().position(|export| export.name == name);
        // The protocol: an empty name means the default export.
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
