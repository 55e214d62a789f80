//! Options of all servers that clients reach over a network.

use crate::output::Failure;
use clap::{Args, ValueEnum};
use fullstroke_live::{AdmissionOptions, Network, TlsOptions};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Who may come in over TCP, and how connections are encrypted.
#[derive(Debug, Args)]
pub(crate) struct Admitted {
    /// Let only these connect over TCP, also to --metrics: addresses and networks, such
    /// as 192.168.0.0/16 (may be repeated, or separated by commas).
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    allow: Vec<Network>,

    /// Encrypt connections: of nobody, of clients that ask for it, or of all.
    #[arg(long, value_name = "WHETHER", value_enum, default_value_t = Tls::Off)]
    tls: Tls,

    /// The folder with server-cert.pem and server-key.pem (PEM), and with
    /// ca-cert.pem for --tls-verify-peer.
    #[arg(long, value_name = "FOLDER")]
    tls_certificates: Option<PathBuf>,

    /// Let only clients use TLS that show a certificate by the authority of ca-cert.pem.
    #[arg(long, requires = "tls_certificates")]
    tls_verify_peer: bool,
}

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tls {
    /// Never.
    Off,
    /// If the client asks for it.
    On,
    /// Always; other clients are refused.
    Require,
}

/// Where numbers are shown.
#[derive(Debug, Args)]
pub(crate) struct Numbers {
    /// Serve metrics to Prometheus on this address; without a host, on loopback.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = tcp_address)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Answer requests for metrics under this name, too, beside the address and
    /// localhost: browsers say which host they ask (may be repeated, or separated by
    /// commas).
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "metrics")]
    metrics_host: Vec<String>,
}

impl Admitted {
    /// What was said, with the names under which numbers are shown.
    ///
    /// # Errors
    /// Options of TLS that do not belong together.
    pub(crate) fn options(&self, numbers: Option<&Numbers>) -> Result<AdmissionOptions, Failure> {
        Ok(AdmissionOptions {
            allow: self.allow.clone(),
            tls: self.encryption()?,
            hosts: numbers.map_or_else(Vec::new, |numbers| numbers.metrics_host.clone()),
        })
    }

    fn encryption(&self) -> Result<Option<TlsOptions>, Failure> {
        match (self.tls, &self.tls_certificates) {
            (Tls::Off, None) => Ok(None),
            (Tls::Off, Some(_)) => Err(Failure::input(
                "--tls-certificates: found no --tls; expected --tls require, or --tls on for clients that ask for it",
            )),
            (Tls::On | Tls::Require, None) => Err(Failure::input(
                "--tls: found no certificates; expected --tls-certificates with the folder of server-cert.pem and \
                 server-key.pem",
            )),
            (tls, Some(certificates)) => Ok(Some(TlsOptions {
                required: tls == Tls::Require,
                certificates: certificates.clone(),
                verify_peer: self.tls_verify_peer,
            })),
        }
    }
}

/// `host:port`, or a port on loopback.
pub(crate) fn tcp_address(text: &str) -> Result<SocketAddr, String> {
    use std::net::{Ipv4Addr, ToSocketAddrs as _};
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let mut addresses = text.to_socket_addrs().map_err(|error| {
        format!("{error}; expected a port, or host:port such as 127.0.0.1:10809")
    })?;
    addresses
        .next()
        .ok_or_else(|| "the name has no address".to_owned())
}
