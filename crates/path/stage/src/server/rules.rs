//! The rules of a protocol, by the keys.

use super::config::{ServerKeys, ServerProtocol, ServiceRules};
use super::{nfs, smb};
use fullstroke_contract::ConfigError;
use fullstroke_units::Duration;

impl ServerKeys {
    /// Returns the rules of the protocol.
    ///
    /// # Errors
    /// A size, number or rate that is impossible, or a key of the other protocol.
    pub(super) fn rules(&self) -> Result<ServiceRules, ConfigError> {
        for (key, rate) in [
            ("client_mb_per_s", self.client_mb_per_s),
            ("server_mb_per_s", self.server_mb_per_s),
        ] {
            if !(rate > 0.0 && rate.is_finite()) {
                let message =
                    format!("found {rate}; expected a rate above 0, in 10^6 bytes a second");
                return Err(ConfigError::new(key, message));
            }
        }
        if self.latency > Duration::from_secs(10) {
            let message = format!("found {}; expected at most 10s", self.latency);
            return Err(ConfigError::new("latency", message));
        }
        match self.protocol {
            ServerProtocol::Nfs => nfs::rules(self),
            ServerProtocol::Smb => smb::rules(self),
        }
    }

    /// Checks the keys.
    ///
    /// # Errors
    /// As for `rules`.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.rules().map(drop)
    }
}
