//! Addresses and amounts of storage, and the two units of energy.

use crate::overflow;
use crate::quantity::{format_bytes, parse_bytes, parse_bytes_with_unit};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Bytes in one sector. Every address in fullstroke counts 512-byte sectors; a
/// drive with larger physical sectors is described by its 512-byte emulation.
pub const SECTOR_BYTES: u64 = 512;

/// The largest number of sectors, and the largest address, in a file: the sectors of 2^64 bytes.
/// Sums of such numbers fit in 64 bits.
const SECTORS_MAX: u64 = u64::MAX / SECTOR_BYTES;

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
pub struct Lbn(#[serde(deserialize_with = "within_bytes")] pub u64);

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
pub struct Sectors(#[serde(deserialize_with = "within_bytes")] pub u64);

fn within_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let sectors = u64::deserialize(deserializer)?;
    if sectors > SECTORS_MAX {
        return Err(serde::de::Error::custom(format_args!(
            "{sectors} sectors; expected at most {SECTORS_MAX}, which are 2^64 bytes"
        )));
    }
    Ok(sectors)
}

/// A number of bytes. Configuration files write the size with a unit, `"64KiB"`, or as a plain
/// integer of bytes. On the command line a size needs its unit.
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
    /// Returns the number of sectors from `start` up to this address.
    ///
    /// # Panics
    /// If `start` lies above this address.
    #[inline]
    #[track_caller]
    pub fn since(self, start: Lbn) -> Sectors {
        match self.0.checked_sub(start.0) {
            Some(sectors) => Sectors(sectors),
            None => overflow::stop("an address", self.0, "sectors since", start.0, ""),
        }
    }
    /// Returns the address `sectors` further on, or `None` if the sum does not fit.
    #[inline]
    pub fn checked_add(self, sectors: Sectors) -> Option<Lbn> {
        self.0.checked_add(sectors.0).map(Lbn)
    }
    /// Returns the address `sectors` further on, at most the last address.
    #[inline]
    pub const fn saturating_add(self, sectors: Sectors) -> Lbn {
        Lbn(self.0.saturating_add(sectors.0))
    }
}

impl Sectors {
    /// No sectors.
    pub const ZERO: Sectors = Sectors(0);
    /// Returns the same amount in bytes.
    ///
    /// # Panics
    /// If the amount exceeds 2^64 bytes.
    #[inline]
    #[track_caller]
    pub fn bytes(self) -> Bytes {
        match self.0.checked_mul(SECTOR_BYTES) {
            Some(bytes) => Bytes(bytes),
            None => overflow::stop("an amount of bytes", self.0, "sectors *", SECTOR_BYTES, ""),
        }
    }
    /// Returns the same amount in bytes, at most `u64::MAX` bytes.
    #[inline]
    pub const fn saturating_bytes(self) -> Bytes {
        Bytes(self.0.saturating_mul(SECTOR_BYTES))
    }
    /// Returns the sum of this amount and `other`, or `None` if the sum does not fit.
    #[inline]
    pub fn checked_add(self, other: Sectors) -> Option<Sectors> {
        self.0.checked_add(other.0).map(Sectors)
    }
}

impl Bytes {
    /// Returns the same amount in sectors, or `None` for a fraction of a sector.
    pub const fn sectors(self) -> Option<Sectors> {
        if self.0.is_multiple_of(SECTOR_BYTES) {
            Some(Sectors(self.0 / SECTOR_BYTES))
        } else {
            None
        }
    }
}

impl Cylinder {
    /// Returns the number of tracks that the arm crosses between the two cylinders.
    pub const fn distance(self, other: Cylinder) -> u32 {
        self.0.abs_diff(other.0)
    }
}

impl Watts {
    /// Returns the energy of this power over `span`.
    pub fn during(self, span: crate::Duration) -> Joules {
        Joules(self.0 * span.as_secs_f64())
    }
}

impl Add<Sectors> for Lbn {
    type Output = Lbn;
    #[inline]
    #[track_caller]
    fn add(self, sectors: Sectors) -> Lbn {
        match self.0.checked_add(sectors.0) {
            Some(sum) => Lbn(sum),
            None => overflow::stop("an address", self.0, "+", sectors.0, "sectors"),
        }
    }
}
impl AddAssign<Sectors> for Lbn {
    #[inline]
    #[track_caller]
    fn add_assign(&mut self, sectors: Sectors) {
        *self = *self + sectors;
    }
}
impl Add for Sectors {
    type Output = Sectors;
    #[inline]
    #[track_caller]
    fn add(self, other: Sectors) -> Sectors {
        match self.0.checked_add(other.0) {
            Some(sum) => Sectors(sum),
            None => overflow::stop("an amount", self.0, "sectors +", other.0, "sectors"),
        }
    }
}
impl AddAssign for Sectors {
    #[inline]
    #[track_caller]
    fn add_assign(&mut self, other: Sectors) {
        *self = *self + other;
    }
}
impl Sub for Sectors {
    type Output = Sectors;
    #[inline]
    #[track_caller]
    fn sub(self, other: Sectors) -> Sectors {
        match self.0.checked_sub(other.0) {
            Some(rest) => Sectors(rest),
            None => overflow::stop("an amount", self.0, "sectors -", other.0, "sectors"),
        }
    }
}
impl SubAssign for Sectors {
    #[inline]
    #[track_caller]
    fn sub_assign(&mut self, other: Sectors) {
        *self = *self - other;
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
        parse_bytes_with_unit(text).map(Bytes)
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
            // TOML has signed integers only, so the sizes of a stack file come this way.
            fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<Bytes, E> {
                u64::try_from(bytes)
                    .map(Bytes)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(bytes), &self))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bytes, E> {
                // A file may leave the unit out. Only a size that a person types needs a unit
                // (`FromStr`).
                parse_bytes(text).map(Bytes).map_err(E::custom)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overflow::tests::message;

    #[test]
    fn a_result_that_does_not_fit_stops_with_both_operands() {
        let all = Sectors(u64::MAX);
        for (stops, expected) in [
            (
                message(|| Sectors(5) - Sectors(7)),
                "an amount is out of range: 5 sectors - 7 sectors",
            ),
            (
                message(|| all + Sectors(1)),
                "an amount is out of range: 18446744073709551615 sectors + 1 sectors",
            ),
            (
                message(|| Lbn(9) + all),
                "an address is out of range: 9 + 18446744073709551615 sectors",
            ),
            (
                message(|| Lbn(5).since(Lbn(7))),
                "an address is out of range: 5 sectors since 7",
            ),
            (
                message(|| Sectors(1 << 55).bytes()),
                "an amount of bytes is out of range: 36028797018963968 sectors * 512",
            ),
        ] {
            assert_eq!(stops, expected);
        }
    }

    #[test]
    fn sums_that_fit_are_exact() {
        let mut at = Lbn(5);
        at += Sectors(3);
        assert_eq!(at.since(Lbn(1)), Sectors(7));
        let mut amount = Sectors(5);
        amount += Sectors(3);
        amount -= Sectors(8);
        assert_eq!(amount, Sectors::ZERO);
        assert_eq!(Sectors(SECTORS_MAX).bytes().0, u64::MAX - 511);
        assert_eq!(Sectors(1 << 55).saturating_bytes(), Bytes(u64::MAX));
        assert_eq!(Lbn(1).checked_add(Sectors(u64::MAX)), None);
        assert_eq!(Lbn(1).saturating_add(Sectors(u64::MAX)), Lbn(u64::MAX));
        assert_eq!(Sectors(1).checked_add(Sectors(u64::MAX)), None);
    }

    #[test]
    fn more_sectors_than_bytes_can_be_counted_are_refused_by_name() {
        let read = |text: &str| serde_json::from_str::<Sectors>(text);
        assert_eq!(read("36028797018963967").unwrap(), Sectors(SECTORS_MAX));
        let error = read("36028797018963968").unwrap_err().to_string();
        assert!(
            error.contains("expected at most 36028797018963967"),
            "{error}"
        );
        assert!(serde_json::from_str::<Lbn>("18446744073709551615").is_err());
    }
}
