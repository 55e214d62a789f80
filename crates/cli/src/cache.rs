//! `fullstroke cache`: memory between clients and a served array.

use crate::ctl;
use crate::network::{Admitted, tcp_address};
use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_live::Listen;
use fullstroke_live::cache::{CacheOptions, Ready, Summary, serve};
use fullstroke_memory::{MemoryKeys, Policy};
use fullstroke_units::Bytes;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Put memory between clients and a served array that hears what the array says.
///
/// An NBD server above another one: replacement, read-ahead and write-back are those of
/// `[host.memory]` in a simulation. Flushes and FUA are honoured; what was written and
/// not flushed is in memory only. It writes back on PULL and fetches on PUSH, which the
/// opportunities of the served stack say. Nobody else may write to the array meanwhile.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The socket of the server below.
    server: PathBuf,

    /// Listen on this unix socket.
    #[arg(long, value_name = "PATH", required_unless_present = "tcp")]
    socket: Option<PathBuf>,

    /// Listen on this TCP address; without a host, on loopback.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = tcp_address)]
    tcp: Option<SocketAddr>,

    #[command(flatten)]
    admitted: Admitted,

    /// Memory for pages.
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    size: Bytes,

    /// Which page goes when another needs its place [default: lru2].
    #[arg(long, value_name = "POLICY")]
    replacement: Option<String>,

    /// What a read brings beside what it asks for [default: today].
    #[arg(long, value_name = "POLICY")]
    read_ahead: Option<String>,

    /// When dirty pages are written back [default: today].
    #[arg(long, value_name = "POLICY")]
    write_back: Option<String>,

    /// The export of the server below, if it has several.
    #[arg(long, value_name = "NAME")]
    export: Option<String>,

    /// The name of this host for the server below: of several with names one is asked at a
    /// time, in turn; without one it heeds all that is said.
    #[arg(long, value_name = "HOST", conflicts_with = "deaf")]
    name: Option<String>,

    /// Where the server below tells its signals [default: the path of its socket with
    /// .control behind it].
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,

    /// Do not listen to signals.
    #[arg(long, conflicts_with = "control")]
    deaf: bool,
}

const EXAMPLES: &str = "\
Examples:
  fullstroke serve stacks/signals/served.toml --socket /run/array.sock
  fullstroke cache /run/array.sock --socket /run/cached.sock --size 256MiB
  nbdfuse mnt nbd+unix:///?socket=/run/cached.sock";

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let policy = |name: &Option<String>| name.clone().map(Policy::Name);
    let memory = MemoryKeys {
        size: arguments.size,
        replacement: policy(&arguments.replacement),
        read_ahead: policy(&arguments.read_ahead),
        write_back: policy(&arguments.write_back),
    };
    let control = || {
        arguments
            .control
            .clone()
            .unwrap_or_else(|| ctl::beside(&arguments.server))
    };
    let unix = arguments.socket.iter().cloned().map(Listen::Unix);
    let tcp = arguments.tcp.map(Listen::Tcp);
    let options = CacheOptions {
        server: arguments.server.clone(),
        export: arguments.export.clone(),
        control: (!arguments.deaf).then(control),
        name: arguments.name.clone(),
        listen: unix.chain(tcp).collect(),
        admission: arguments.admitted.options(None)?,
        memory,
    };
    output.show_both(announcement, farewell, |ready| serve(&options, ready))
}

fn announcement(ready: &Ready) -> String {
    let mut lines = ready.notes.clone();
    lines.push(format!(
        "caching {} bytes at {}",
        ready.size_bytes, ready.uri
    ));
    lines.extend(
        ready
            .control
            .iter()
            .map(|path| format!("signals from {}", path.display())),
    );
    lines.join("\n")
}

fn farewell(summary: &Summary) -> String {
    let hits = summary.hit_share.map_or_else(String::new, |share| {
        format!(", {:.1} % of reads in memory", share * 100.0)
    });
    let mut lines = vec![
        format!(
            "{} requests in {:.1} s{hits}",
            summary.requests, summary.uptime_s
        ),
        format!(
            "{:.1} MB read and {:.1} MB written below, {:.1} MB of these for {} PULLs",
            summary.fetched_mb, summary.written_mb, summary.written_pulled_mb, summary.pulls
        ),
    ];
    if summary.pushes > 0 {
        lines.push(format!(
            "{:.1} MB fetched for {} PUSHes, {:.1} MB of them read",
            summary.pushed_mb, summary.pushes, summary.pushed_used_mb
        ));
    }
    lines.join("\n")
}
