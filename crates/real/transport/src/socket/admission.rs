//! Admission over a network, and permitted host names. `serve`, `array assemble` and `cache` have
//! the same rules, for their clients and for their pages of metrics.

use crate::socket::allow::Network;
use crate::socket::sockets::{ClientSocket, Listener};
use crate::socket::tls::{TlsConfig, TlsError, TlsOptions};
use fullstroke_nbd::Encryption;
use std::net::{IpAddr, SocketAddr};

/// Rules of admission, as the operator gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionOptions {
    /// Networks whose addresses may connect over TCP; empty for any address.
    pub allow: Vec<Network>,
    /// Encryption of NBD connections; `None` for no encryption.
    pub tls: Option<TlsOptions>,
    /// Further host names under which browsers may ask for pages.
    pub hosts: Vec<String>,
}

/// Rules of admission. The TLS files have been read.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    options: AdmissionOptions,
    config: Option<TlsConfig>,
}

impl Admission {
    /// Reads certificates and keys, if connections are encrypted.
    ///
    /// # Errors
    /// If a TLS file cannot be used.
    pub fn new(options: &AdmissionOptions) -> Result<Admission, TlsError> {
        let config = options.tls.as_ref().map(TlsOptions::load).transpose()?;
        Ok(Admission {
            options: options.clone(),
            config,
        })
    }

    /// Returns true if the other end of the stream may connect. Unix sockets are always admitted,
    /// because the file system checks their permissions.
    pub fn admits(&self, stream: &ClientSocket) -> bool {
        let allow = &self.options.allow;
        let is_within = |address| allow.iter().any(|network| network.contains(address));
        allow.is_empty() || stream.peer().is_none_or(is_within)
    }

    /// Returns the TLS mode announced by the NBD protocol; `None` if there is no TLS.
    pub fn encryption(&self) -> Option<Encryption> {
        self.options.tls.as_ref().map(TlsOptions::encryption)
    }

    /// Returns the TLS configuration of connections.
    pub fn tls_config(&self) -> Option<TlsConfig> {
        self.config.clone()
    }

    /// Returns the address for clients as an NBD URI; a URI for TLS if TLS is required.
    pub fn uri(&self, listener: &Listener) -> String {
        let uri = listener.to_string();
        let is_required = self.options.tls.as_ref().is_some_and(|tls| tls.required);
        match uri.strip_prefix("nbd") {
            Some(rest) if is_required => format!("nbds{rest}"),
            _ => uri,
        }
    }

    /// Returns a warning for the operator if anybody can reach the listener. Returns `None` if only
    /// named networks, or clients with a certificate, are admitted.
    pub fn warning(&self, listener: &Listener, is_read_only: bool) -> Option<String> {
        let knows_clients = self
            .options
            .tls
            .as_ref()
            .is_some_and(|tls| tls.required && tls.verify_peer);
        let is_open = self.options.allow.is_empty() && !knows_clients && listener.is_reachable();
        is_open.then(|| {
            format!(
                "every host that reaches {} can read{} all bytes: restrict the hosts by --allow, or by --tls require with --tls-verify-peer",
                self.uri(listener),
                if is_read_only { "" } else { " and write" }
            )
        })
    }

    /// Returns the warning for pages of metrics, which are not encrypted.
    pub fn warning_of_pages(&self, at: SocketAddr) -> Option<String> {
        let is_open = self.options.allow.is_empty() && !at.ip().is_loopback();
        is_open.then(|| {
            format!(
                "every host that reaches http://{at} can read all numbers: restrict the hosts by --allow"
            )
        })
    }

    /// Returns true if a request for pages under this `Host` is meant for this server. The host
    /// must be a loopback name, the address at which the request came in, or a name given by the
    /// operator.
    ///
    /// A foreign web page can point its own name to this server's address (DNS rebinding). Then the
    /// browser of a user inside the network asks this server, but still sends the foreign name.
    pub fn knows_host(&self, host: &str, local: Option<IpAddr>) -> bool {
        let name = name_of(host);
        let is_given = |given: &String| given.trim_end_matches('.').eq_ignore_ascii_case(name);
        if self.options.hosts.iter().any(is_given) {
            return true;
        }
        match name.parse::<IpAddr>() {
            Ok(address) => {
                let address = address.to_canonical();
                address.is_loopback() || local.is_some_and(|local| local.to_canonical() == address)
            }
            Err(_) => {
                let name = name.to_ascii_lowercase();
                name == "localhost" || name.ends_with(".localhost")
            }
        }
    }
}

/// Returns the name or address of a `Host` header, without its port.
fn name_of(host: &str) -> &str {
    let host = host.trim();
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Listen;
    use std::net::Ipv4Addr;

    #[test]
    fn only_hosts_that_are_meant_are_known() {
        let admission = Admission::new(&AdmissionOptions {
            hosts: vec!["nas.example".into()],
            ..AdmissionOptions::default()
        })
        .unwrap();
        let local = Some(IpAddr::from([192, 168, 4, 9]));
        let cases = [
            ("localhost", true),
            ("LOCALHOST:9100", true),
            ("array.localhost.:80", true),
            ("127.0.0.1:9100", true),
            ("[::1]:9100", true),
            ("192.168.4.9:9100", true),
            ("[::ffff:192.168.4.9]", true),
            ("nas.example:9100", true),
            ("NAS.example.", true),
            ("192.168.4.8:9100", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example:9100", false),
            ("nas.example.evil.example", false),
            ("", false),
        ];
        for (host, expected) in cases {
            assert_eq!(admission.knows_host(host, local), expected, "{host}");
        }
    }

    #[test]
    fn who_listens_to_the_world_is_warned_unless_clients_are_named() {
        let open = Listen::Tcp((Ipv4Addr::UNSPECIFIED, 0).into());
        let listener = Listener::open(&open, 0o600).unwrap().remove(0);
        let anybody = Admission::default();
        let warned = anybody.warning(&listener, false).unwrap();
        assert!(
            warned.contains("read and write all bytes") && warned.contains("--allow"),
            "{warned}"
        );
        assert!(!anybody.warning(&listener, true).unwrap().contains("write"));
        let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 9100));
        assert!(
            anybody
                .warning_of_pages(at)
                .unwrap()
                .contains("0.0.0.0:9100")
        );
        assert_eq!(
            anybody.warning_of_pages((Ipv4Addr::LOCALHOST, 9100).into()),
            None
        );
        let named = Admission::new(&AdmissionOptions {
            allow: vec!["10.0.0.0/8".parse().unwrap()],
            ..AdmissionOptions::default()
        })
        .unwrap();
        assert_eq!(named.warning(&listener, false), None);
        assert_eq!(named.warning_of_pages(at), None);
    }
}
