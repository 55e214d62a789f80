//! Options of all servers on a network.

use crate::output::CommandFailure;
use clap::{Args, ValueEnum};
use fullstroke_live::{AdmissionOptions, Network, TlsOptions};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of access over TCP and of encryption.
#[derive(Debug, Args)]
pub(crate) struct AccessOptions {
    /// Accept only these addresses and networks over TCP, also for --metrics, such as
    /// 192.168.0.0/16 (may be repeated, or separated by commas). Default: all.
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    allow: Vec<Network>,

    /// Encryption of connections.
    #[arg(long, value_name = "WHETHER", value_enum, default_value_t = Tls::Off)]
    tls: Tls,

    /// Folder with server-cert.pem and server-key.pem (PEM), and with ca-cert.pem for
    /// --tls-verify-peer.
    #[arg(long, value_name = "FOLDER")]
    tls_certificates: Option<PathBuf>,

    /// Accept only TLS clients with a certificate from the authority of ca-cert.pem.
    #[arg(long, requires = "tls_certificates")]
    tls_verify_peer: bool,
}

/// Encryption of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tls {
    /// Never.
    Off,
    /// On request of the client.
    On,
    /// Always; other clients are refused.
    Require,
}

/// Options of metrics.
#[derive(Debug, Args)]
pub(crate) struct MetricsOptions {
    /// Serve metrics for Prometheus on this address. Default host: loopback.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = tcp_address)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Further host name under which metrics are served (may be repeated, or separated by commas).
    /// Address and localhost always work. Browsers send the name in the Host header.
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "metrics")]
    metrics_host: Vec<String>,
}

impl AccessOptions {
    /// Returns the admission options, with the host names for metrics.
    ///
    /// # Errors
    /// The TLS options contradict each other.
    pub(crate) fn options(
        &self,
        numbers: Option<&MetricsOptions>,
    ) -> Result<AdmissionOptions, CommandFailure> {
        Ok(AdmissionOptions {
            allow: self.allow.clone(),
            tls: self.encryption()?,
            hosts: numbers.map_or_else(Vec::new, |numbers| numbers.metrics_host.clone()),
        })
    }

    fn encryption(&self) -> Result<Option<TlsOptions>, CommandFailure> {
        match (self.tls, &self.tls_certificates) {
            (Tls::Off, None) => Ok(None),
            // Certificates without TLS look like encryption and give none.
            (Tls::Off, Some(_)) => Err(CommandFailure::input(
                "--tls-certificates: found no --tls; expected --tls require, or --tls on for clients that ask for it",
            )),
            (Tls::On | Tls::Require, None) => Err(CommandFailure::input(
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

/// Parses `host:port`, or a port on loopback.
pub(crate) fn tcp_address(text: &str) -> Result<SocketAddr, String> {
    use std::net::{Ipv4Addr, ToSocketAddrs as _};
    // A bare port listens on loopback only: NBD has no authentication, and nobody should be served
    // by mistake.
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
