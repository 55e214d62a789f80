//! Addresses and amounts of storage, and the two units of energy.

use crate::quantity::{format_bytes, parse_bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Bytes in one sector. Every address in fullstroke counts 512-byte sectors; a
/// drive with larger physical sectors is described by its 512-byte emulation.
pub const SECTOR_BYTES: u64 = 512;

/// A logical block number: the address of a 512-byte sector on a volume, a
/// member or a drive.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Lbn(pub u64);

/// A number of 512-byte sectors.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Sectors(pub u64);

/// A number of bytes. Configuration files write it with its unit, `"64KiB"`,
/// or as a plain integer of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A cylinder, counted from 0 at the outer edge.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Cylinder(pub u32);

/// Power in watts.
#[derive(
    Clone, Copy, Debug, PartialEq, PartialOrd, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Watts(pub f64);

/// Energy in joules.
#[derive(
    Clone, Copy, Debug, PartialEq, PartialOrd, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Joules(pub f64);

impl Lbn {
    /// The sectors from `start` up to this address, which does not lie below: in
    /// a build with checks that is a fault.
    #[inline]
    #[track_caller]
    pub const fn since(self, start: Lbn) -> Sectors {
        debug_assert!(
            self.0 >= start.0,
            "an address lies below the one it is counted from"
        );
        Sectors(self.0.saturating_sub(start.0))
    }
}

impl Sectors {
    /// No sectors.
    pub const ZERO: Sectors = Sectors(0);
    /// The same amount in bytes, saturating.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0.saturating_mul(SECTOR_BYTES))
    }
}

impl Bytes {
    /// The same amount in whole sectors, or `None` if it is not a multiple.
    pub const fn sectors(self) -> Option<Sectors> {
        if self.0.is_multiple_of(SECTOR_BYTES) {
            Some(Sectors(self.0 / SECTOR_BYTES))
        } else {
            None
        }
    }
}

impl Cylinder {
    /// Tracks that the arm crosses between the two.
    pub const fn distance(self, other: Cylinder) -> u32 {
        self.0.abs_diff(other.0)
    }
}

impl Watts {
    /// The energy of this power drawn for `span`.
    pub fn during(self, span: crate::Duration) -> Joules {
        Joules(self.0 * span.as_secs_f64())
    }
}

impl Add<Sectors> for Lbn {
    type Output = Lbn;
    fn add(self, sectors: Sectors) -> Lbn {
        Lbn(self.0.saturating_add(sectors.0))
    }
}
impl AddAssign<Sectors> for Lbn {
    fn add_assign(&mut self, sectors: Sectors) {
        *self = *self + sectors;
    }
}
impl Add for Sectors {
    type Output = Sectors;
    fn add(self, other: Sectors) -> Sectors {
        Sectors(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Sectors {
    fn add_assign(&mut self, other: Sectors) {
        *self = *self + other;
    }
}
impl Sub for Sectors {
    type Output = Sectors;
    fn sub(self, other: Sectors) -> Sectors {
        debug_assert!(self >= other, "an amount of sectors cannot be negative");
        Sectors(self.0.wrapping_sub(other.0))
    }
}
impl Add for Joules {
    type Output = Joules;
    fn add(self, other: Joules) -> Joules {
        Joules(self.0 + other.0)
    }
}

impl fmt::Display for Lbn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LBN {}", self.0)
    }
}
impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sectors", self.0)
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_bytes(self.0))
    }
}

impl std::str::FromStr for Bytes {
    type Err = crate::QuantityError;
    fn from_str(text: &str) -> Result<Bytes, crate::QuantityError> {
        parse_bytes(text).map(Bytes)
    }
}
impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"64KiB\", or a whole number of bytes")
            }
            fn visit_u64<E>(self, bytes: u64) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
            fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<Bytes, E> {
                u64::try_from(bytes)
                    .map(Bytes)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(bytes), &self))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bytes, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
impl JsonSchema for Bytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bytes".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "a size with its unit (KiB, MiB, GiB, TiB: powers of 1024; KB, MB, GB, TB: of 1000), or bytes",
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([KMGT]i?)?B?\s*$" },
            ],
        })
    }
}
