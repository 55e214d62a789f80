//! `fullstroke heed`: makes the kernel's page cache follow the signals of a served array.

use crate::ctl;
use crate::output::{CommandFailure, CommandOutput, print_error};
use clap::Args;
use fullstroke_live::cache::{HeedOptions, SignalCounts, SignalSession, heed};
use std::path::PathBuf;

/// Make the kernel's page cache follow the signals of a served array.
///
/// On PULL, dirty pages are written: the requested pages of a device or file (needs Linux 6.5), or
/// all pages of a file system. On PUSH, pages of a device or file are read ahead. The command needs
/// only the right to open the path of --on. Ends on SIGTERM or Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Socket of the server.
    server: PathBuf,

    /// Block device or file that shows the server's bytes, or a directory of the file system
    /// mounted from it.
    #[arg(long, value_name = "PATH")]
    on: PathBuf,

    /// Export of the server. Needed if the server has several.
    #[arg(long, value_name = "NAME")]
    export: Option<String>,

    /// Name of this host for the server. The server asks named hosts one at a time, in turn. A host
    /// without a name follows all signals.
    #[arg(long, value_name = "HOST")]
    name: Option<String>,

    /// Control socket of the server, for its signals [default: the path of its socket with .control
    /// appended].
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  fullstroke serve stacks/signals/served.toml --socket /run/array.sock
  nbdfuse /run/array.img nbd+unix:///?socket=/run/array.sock
  mount -o loop /run/array.img /mnt
  fullstroke heed /run/array.sock --on /mnt";

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let options = HeedOptions {
        control: arguments
            .control
            .clone()
            .unwrap_or_else(|| ctl::default_socket(&arguments.server)),
        export: arguments.export.clone(),
        name: arguments.name.clone(),
        on: arguments.on.clone(),
    };
    output.show_both(announcement, summary, |ready| {
        heed(&options, ready, &mut |said| print_error(said))
    })
}

fn announcement(heeding: &SignalSession) -> String {
    format!(
        "{} heeds {}",
        heeding.on.display(),
        heeding.control.display()
    )
}

fn summary(heeded: &SignalCounts) -> String {
    let SignalCounts {
        uptime_s,
        pulls,
        pulled_mb,
        written_mb,
        pushes,
        fetched_mb,
        ..
    } = heeded;
    let written = written_mb.map_or_else(
        // `syncfs` of a file system does not say how much was written.
        || "all that was dirty".to_owned(),
        |written| format!("{written:.1} MB"),
    );
    format!(
        "{uptime_s:.1} s: {pulls} PULLs of {pulled_mb:.1} MB, {written} written; {pushes} PUSHes, {fetched_mb:.1} MB \
         read ahead"
    )
}
