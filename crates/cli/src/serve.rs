//! `fullstroke serve`: stacks as block devices.

use crate::ctl;
use crate::options::Edits;
use crate::output::{Failure, Output};
use clap::{Args, ValueEnum};
use fullstroke_live::{
    LatenessSummary, Listen, Network, Pace, ServeOptions, Serving, Summary, TlsOptions, serve,
};
use fullstroke_stack::Stack;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Serve stacks as block devices over NBD, under the real clock.
///
/// The same layers and policies as in a simulation decide; requests are
/// answered when the model says, and the bytes are kept. Ends on SIGTERM or
/// Ctrl-C, after everything that was begun is done and durable.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The stack files; each is an export of its name, the first is the default.
    #[arg(required = true)]
    stacks: Vec<PathBuf>,

    /// Listen on this unix socket.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Listen on this TCP address; without a host, on loopback.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = tcp_address)]
    tcp: Option<SocketAddr>,

    /// Permissions of the unix socket, as chmod takes them.
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = socket_mode)]
    socket_mode: u32,

    /// Let only these connect over TCP: addresses and networks, such as
    /// 192.168.0.0/16 (may be repeated, or separated by commas).
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

    /// Serve the sockets that whoever started this program has opened (LISTEN_FDS).
    #[arg(long)]
    inherit: bool,

    /// Keep the bytes in this folder, one sparse file a drive; in memory unless given.
    #[arg(long, value_name = "FOLDER")]
    store: Option<PathBuf>,

    /// Open a store of which drives' files are missing, if the layout survives it.
    #[arg(long, requires = "store")]
    allow_degraded: bool,

    /// Refuse whatever would change the bytes.
    #[arg(long)]
    read_only: bool,

    /// Let the world run so many times as fast as the real clock.
    #[arg(
        long,
        value_name = "FACTOR",
        default_value_t = 1.0,
        conflicts_with = "no_delay"
    )]
    speed: f64,

    /// Wait for nothing: bytes and decisions are those of the stack, times are not.
    #[arg(long)]
    no_delay: bool,

    /// Record every request with what was decided: a trace for every command
    /// that reads traces, and for run --replay-decisions.
    #[arg(long, value_name = "FILE.parquet")]
    record: Option<PathBuf>,

    /// Serve metrics to Prometheus on this address; without a host, on loopback.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = tcp_address)]
    metrics: Option<SocketAddr>,

    /// Take orders of `fullstroke ctl` and `fullstroke top` on this unix socket
    /// [default: the path of --socket with .control behind it].
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,

    #[command(flatten)]
    edits: Edits,
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

/// Permissions as three octal digits.
fn socket_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8)
        .ok()
        .filter(|&mode| mode <= 0o777);
    mode.ok_or_else(|| "expected three octal digits, such as 660".to_owned())
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

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let overrides = arguments.edits.overrides();
    let load = |path: &PathBuf| Stack::load_for_clients(path, &overrides).map_err(Failure::input);
    let stacks = arguments
        .stacks
        .iter()
        .map(load)
        .collect::<Result<Vec<_>, _>>()?;
    let options = arguments.options()?;
    output.show_both(announcement, farewell, |ready| {
        serve(&stacks, &options, ready)
    })
}

impl Arguments {
    fn options(&self) -> Result<ServeOptions, Failure> {
        let mut listen: Vec<Listen> = self.socket.iter().cloned().map(Listen::Unix).collect();
        listen.extend(self.tcp.map(Listen::Tcp));
        listen.extend(self.inherit.then_some(Listen::Inherited));
        if listen.is_empty() {
            return Err(Failure::input(
                "say where to listen: --socket PATH, --tcp PORT, or --inherit for sockets that were passed on",
            ));
        }
        let beside = || self.socket.as_deref().map(ctl::beside);
        Ok(ServeOptions {
            listen,
            store: self.store.clone(),
            pace: if self.no_delay {
                Pace::Immediate
            } else {
                Pace::Times(self.speed)
            },
            record: self.record.clone(),
            metrics: self.metrics,
            control: self.control.clone().or_else(beside),
            socket_mode: self.socket_mode,
            allow: self.allow.clone(),
            tls: self.encryption()?,
            read_only: self.read_only,
            allow_degraded: self.allow_degraded,
        })
    }
}

impl Arguments {
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

/// What stands on the terminal when clients may come.
fn announcement(serving: &Serving) -> String {
    let mut lines = serving.notes.clone();
    lines.extend(
        serving
            .uris
            .iter()
            .map(|uri| format!("serving {} at {uri}", serving.exports.join(", "))),
    );
    lines.extend(
        serving
            .control
            .iter()
            .map(|path| format!("orders at {}", path.display())),
    );
    lines.extend(
        serving
            .metrics
            .iter()
            .map(|address| format!("metrics at {address}")),
    );
    lines.join("\n")
}

fn farewell(summary: &Summary) -> String {
    let mut lines: Vec<String> = summary
        .exports
        .iter()
        .map(|export| {
            let LatenessSummary { p50_us, p99_us, p999_us, max_us, .. } = export.lateness;
            format!(
                "{}: {} requests in {:.1} s; answered late by {p50_us:.0} us (p50), {p99_us:.0} us (p99), \
                 {p999_us:.0} us (p99.9), {max_us:.0} us at most, of the host's time",
                export.name, export.requests, summary.uptime_s
            )
        })
        .collect();
    lines.extend(
        summary
            .recorded_requests
            .map(|rows| format!("recorded {rows} requests")),
    );
    lines.join("\n")
}
