//! Identifiers of arrays and members.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read as _};
use std::str::FromStr;

/// Identifier of an array or a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// Makes a new identifier from the host's randomness (RFC 9562, version 4).
    ///
    /// # Errors
    /// The host's.
    pub fn new() -> io::Result<Uuid> {
        let mut bytes = [0; 16];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        // RFC 9562, section 5.4: version 4 in the upper half of byte 6, the variant in the upper
        // bits of byte 8.
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        Ok(Uuid(bytes))
    }

    /// Returns the sixteen bytes.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the identifier with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if [4, 6, 8, 10].contains(&index) {
                write!(f, "-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = String;
    fn from_str(text: &str) -> Result<Uuid, String> {
        let digits: String = text.chars().filter(|&digit| digit != '-').collect();
        // `from_str_radix` would also accept a sign.
        let whole = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u128::from_str_radix(&digits, 16).ok().filter(|_| whole);
        let number =
            number.ok_or_else(|| format!("found `{text}`; expected 32 hexadecimal digits"))?;
        Ok(Uuid(number.to_be_bytes()))
    }
}

impl Serialize for Uuid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uuid {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
