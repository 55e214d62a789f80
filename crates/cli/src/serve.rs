//! `fullstroke serve`: serves stacks as block devices.

use crate::ctl;
use crate::network::{AccessOptions, MetricsOptions, tcp_address};
use crate::options::Edits;
use crate::output::{CommandFailure, CommandOutput};
use crate::outputs::{self, OutputKind, Target, read_for};
use clap::{Args, ValueEnum};
use fullstroke_contract::Reason;
use fullstroke_live::{
    JournalScope, LatenessSummary, Listen, ServeOptions, ServerSummary, Serving, WorldPace, serve,
};
use fullstroke_stack::{Overrides, Stack};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Serve stacks as block devices over NBD, under the real clock.
///
/// The layers and policies are those of a simulation. Requests complete at the times of the model,
/// and the bytes are kept. SIGTERM or Ctrl-C ends the server after all requests in flight are
/// complete and durable.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Stack files. Each is an export of the file's name; the first is the default export.
    #[arg(required = true)]
    stacks: Vec<PathBuf>,

    /// Listen on this unix socket.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Listen on this TCP address. Default host: loopback.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = tcp_address)]
    tcp: Option<SocketAddr>,

    /// Permissions of the unix socket in octal, as for chmod.
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = socket_mode)]
    socket_mode: u32,

    #[command(flatten)]
    admitted: AccessOptions,

    /// Serve the sockets that the parent process has opened (LISTEN_FDS).
    #[arg(long)]
    inherit: bool,

    /// Folder for the bytes, with one sparse file per drive. Default: in memory.
    #[arg(long, value_name = "FOLDER")]
    store: Option<PathBuf>,

    /// Open a store with missing drive files, if the layout survives that.
    #[arg(long, requires = "store")]
    allow_degraded: bool,

    /// Writes of a store with parity that go to its journal first.
    #[arg(long, value_enum, default_value_t = Journal::Degraded, requires = "store")]
    journal: Journal,

    /// Refuse all requests that would change the bytes.
    #[arg(long)]
    read_only: bool,

    /// Seconds of simulated time for each real second.
    #[arg(
        long,
        value_name = "FACTOR",
        default_value_t = 1.0,
        conflicts_with = "no_delay"
    )]
    speed: f64,

    /// Answer at once. Bytes and decisions are those of the stack; times are not.
    #[arg(long)]
    no_delay: bool,

    /// Keep the priority of the server's thread. By default the thread gets niceness -20, if
    /// permitted, so that answers come on time. With --no-delay the priority never changes.
    #[arg(long)]
    keep_priority: bool,

    /// Record every request and its decisions as a trace. All commands that read traces accept the
    /// file, and run --replay-decisions repeats the decisions.
    #[arg(long, value_name = "FILE.parquet")]
    record: Option<PathBuf>,

    #[command(flatten)]
    numbers: MetricsOptions,

    /// Accept control commands of `fullstroke ctl` and `fullstroke top` on this unix socket
    /// [default: the path of --socket with .control appended].
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,

    #[command(flatten)]
    edits: Edits,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Journal {
    /// Writes while a member is missing. A member that is lost together with power may have wrong
    /// bytes in the rows that were being written.
    Degraded,
    /// All writes. Each write waits for the host's disk.
    All,
}

/// Parses permissions of three octal digits.
fn socket_mode(text: &str) -> Result<u32, Reason> {
    let mode = u32::from_str_radix(text, 8)
        .ok()
        .filter(|&mode| mode <= 0o777);
    mode.ok_or_else(|| Reason::new("expected three octal digits, such as 660"))
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let overrides = arguments.edits.overrides();
    arguments.check_record(&overrides)?;
    let load =
        |path: &PathBuf| Stack::load_for_clients(path, &overrides).map_err(CommandFailure::input);
    let stacks = arguments
        .stacks
        .iter()
        .map(load)
        .collect::<Result<Vec<_>, _>>()?;
    let options = arguments.options()?;
    output.show_both(announcement, final_summary, |ready| {
        serve(&stacks, &options, ready)
    })
}

impl Arguments {
    /// Checks that the record replaces no file that is read or served.
    fn check_record(&self, overrides: &Overrides) -> Result<(), CommandFailure> {
        let Some(record) = &self.record else {
            return Ok(());
        };
        // A symbolic link is refused, because another user with write access to the folder may have
        // put it there.
        if record.is_symlink() {
            return Err(CommandFailure::Input(format!(
                "--record {}: found a symbolic link, which is not followed; expected a record, or no file",
                record.display()
            )));
        }
        let control = self
            .control
            .clone()
            .or_else(|| self.socket.as_deref().map(ctl::default_socket));
        let targets = [
            Target::of("--socket", &self.socket, OutputKind::Socket),
            Target::of("--control", &control, OutputKind::Socket),
            Some(Target::to("--record", record, OutputKind::Record)),
        ];
        outputs::check(targets, &read_for(&self.stacks, overrides, &[]))?;
        // The parent of a bare file name is an empty path, which stands for the current folder.
        let place = |path: &Path| Path::new(".").join(path).canonicalize().ok();
        let (folder, store) = (
            record.parent().and_then(place),
            self.store.as_deref().and_then(place),
        );
        match folder.zip(store) {
            Some((folder, store)) if folder.starts_with(&store) => {
                Err(CommandFailure::Input(format!(
                    "--record {}: found the folder of --store; expected another folder",
                    record.display()
                )))
            }
            _ => Ok(()),
        }
    }

    fn options(&self) -> Result<ServeOptions, CommandFailure> {
        let mut listen: Vec<Listen> = self.socket.iter().cloned().map(Listen::Unix).collect();
        listen.extend(self.tcp.map(Listen::Tcp));
        listen.extend(self.inherit.then_some(Listen::Inherited));
        if listen.is_empty() {
            return Err(CommandFailure::input(
                "no address to listen on; give --socket PATH, --tcp PORT, or --inherit for inherited sockets",
            ));
        }
        let beside = || self.socket.as_deref().map(ctl::default_socket);
        Ok(ServeOptions {
            listen,
            store: self.store.clone(),
            pace: if self.no_delay {
                WorldPace::Immediate
            } else {
                WorldPace::Times(self.speed)
            },
            record: self.record.clone(),
            metrics: self.numbers.metrics,
            control: self.control.clone().or_else(beside),
            socket_mode: self.socket_mode,
            admission: self.admitted.options(Some(&self.numbers))?,
            raises_priority: !self.keep_priority,
            read_only: self.read_only,
            allow_degraded: self.allow_degraded,
            journal: match self.journal {
                Journal::Degraded => JournalScope::Degraded,
                Journal::All => JournalScope::All,
            },
        })
    }
}

/// Returns the text to print when the server is ready.
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
    lines.extend(serving.niceness.map(|niceness| {
        format!(
            "the server's thread has priority on this host (niceness {niceness}); --keep-priority keeps the usual priority"
        )
    }));
    lines.join("\n")
}

fn final_summary(summary: &ServerSummary) -> String {
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
