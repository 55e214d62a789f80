//! Networks that may connect over TCP.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use thiserror::Error;

/// A network, such as `192.168.0.0/16` or `fd00::/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Returns true if an address lies in the network. An IPv4 address that comes over IPv6
    /// (`::ffff:192.168.0.1`) counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => same(
                // Shifted to the top of 128 bits, so that a prefix counts from the first bit of
                // either kind.
                u128::from(ours.to_bits()) << 96,
                u128::from(theirs.to_bits()) << 96,
                self.prefix,
            ),
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                same(ours.to_bits(), theirs.to_bits(), self.prefix)
            }
            _ => false,
        }
    }
}

/// Returns true if the first `prefix` bits agree.
fn same(ours: u128, theirs: u128, prefix: u8) -> bool {
    (ours ^ theirs).leading_zeros() >= u32::from(prefix)
}

/// Reason why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworkError {
    /// The address, or the number behind the slash, is invalid.
    #[error("found `{found}`; expected an address or a network, such as 192.168.0.0/16")]
    Address {
        /// The text.
        found: String,
    },
    /// The prefix is longer than the address.
    #[error("found `{found}`; expected at most {longest} bits behind the slash")]
    Prefix {
        /// The text.
        found: String,
        /// Number of bits of the address.
        longest: u8,
    },
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Network, NetworkError> {
        let wrong = || NetworkError::Address {
            found: text.to_owned(),
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(longest), |prefix| prefix.parse().map_err(|_| wrong()))?;
        if prefix > longest {
            return Err(NetworkError::Prefix {
                found: text.to_owned(),
                longest,
            });
        }
        Ok(Network { address, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_what_begins_with_its_bits() {
        let cases = [
            ("192.168.4.0/22", "192.168.7.255", true),
            ("192.168.4.0/22", "192.168.8.0", false),
            ("192.168.4.9", "::ffff:192.168.4.9", true),
            ("10.0.0.0/8", "fd00::1", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false),
        ];
        for (network, address, expected) in cases {
            let network: Network = network.parse().unwrap();
            assert_eq!(
                network.contains(address.parse().unwrap()),
                expected,
                "{network} {address}"
            );
        }
    }

    #[test]
    fn what_is_no_network_is_refused_with_what_was_found() {
        for text in ["here", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0/8"] {
            assert!(
                text.parse::<Network>()
                    .unwrap_err()
                    .to_string()
                    .contains(text)
            );
        }
    }
}
