//! `fullstroke cache`: a page cache between clients and a served array.

use crate::ctl;
use crate::network::{AccessOptions, tcp_address};
use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_live::Listen;
use fullstroke_live::cache::{CacheCounters, CacheOptions, CacheReady, serve};
use fullstroke_memory::{CachePolicy, MemoryKeys};
use fullstroke_units::Bytes;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Run a page cache between clients and a served array that receives the array's signals.
///
/// The cache is an NBD server above another NBD server. Replacement, read-ahead and write-back are
/// the policies of `[host.memory]` in a simulation. Flushes and FUA are honoured; unflushed writes
/// are in memory only. The cache writes back on PULL and fetches on PUSH from the opportunities of
/// the served stack. No other client may write to the array meanwhile.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Socket of the server below.
    server: PathBuf,

    /// Listen on this unix socket.
    #[arg(long, value_name = "PATH", required_unless_present = "tcp")]
    socket: Option<PathBuf>,

    /// Listen on this TCP address. Default host: loopback.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = tcp_address)]
    tcp: Option<SocketAddr>,

    #[command(flatten)]
    admitted: AccessOptions,

    /// Size of the page memory.
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    size: Bytes,

    /// Policy that chooses the page to evict [default: lru2].
    #[arg(long, value_name = "POLICY")]
    replacement: Option<String>,

    /// Policy that chooses the pages to prefetch with a read [default: today].
    #[arg(long, value_name = "POLICY")]
    read_ahead: Option<String>,

    /// Policy that chooses when to write back dirty pages [default: today].
    #[arg(long, value_name = "POLICY")]
    write_back: Option<String>,

    /// Export of the server below. Needed if the server has several.
    #[arg(long, value_name = "NAME")]
    export: Option<String>,

    /// Name of this host for the server below. The server asks named hosts one at a time, in turn.
    /// A host without a name follows all signals.
    #[arg(long, value_name = "HOST", conflicts_with = "deaf")]
    name: Option<String>,

    /// Control socket of the server below, for its signals [default: the path of its socket with
    /// .control appended].
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,

    /// Ignore signals.
    #[arg(long, conflicts_with = "control")]
    deaf: bool,
}

const EXAMPLES: &str = "\
Examples:
  fullstroke serve stacks/signals/served.toml --socket /run/array.sock
  fullstroke cache /run/array.sock --socket /run/cached.sock --size 256MiB
  nbdfuse mnt nbd+unix:///?socket=/run/cached.sock";

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let policy = |name: &Option<String>| name.clone().map(CachePolicy::Name);
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
            .unwrap_or_else(|| ctl::default_socket(&arguments.server))
    };
    let unix = arguments.socket.iter().cloned().map(Listen::Unix);
    let tcp = arguments.tcp.map(Listen::Tcp);
    let options = CacheOptions {
        server: arguments.server.clone(),
        export: arguments.export.clone(),
        // Without a control socket the cache follows no signals; `--deaf` makes the run for
        // comparison.
        control: (!arguments.deaf).then(control),
        name: arguments.name.clone(),
        listen: unix.chain(tcp).collect(),
        admission: arguments.admitted.options(None)?,
        memory,
    };
    output.show_both(announcement, final_summary, |ready| serve(&options, ready))
}

fn announcement(ready: &CacheReady) -> String {
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

fn final_summary(summary: &CacheCounters) -> String {
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
