//! `fullstroke heed`: the kernel's page cache does what a served array asks for.

use crate::ctl;
use crate::output::{Failure, Output, complain};
use clap::Args;
use fullstroke_live::cache::{HeedOptions, Heeded, Heeding, heed};
use std::path::PathBuf;

/// Have the kernel's own page cache do what a served array asks for.
///
/// On PULL dirty pages are written: of a device or file those asked for (needs Linux 6.5),
/// of a file system all of them. On PUSH a device's or file's pages are read ahead. It
/// needs the right to open what it is on, and no other. Ends on SIGTERM or Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The socket of the server.
    server: PathBuf,

    /// The block device or file that the server's bytes are seen as, or a directory of the
    /// file system that is mounted from it.
    #[arg(long, value_name = "PATH")]
    on: PathBuf,

    /// The export of the server, if it has several.
    #[arg(long, value_name = "NAME")]
    export: Option<String>,

    /// The name of this host for the server: of several with names one is asked at a
    /// time, in turn; without one it heeds all that is said.
    #[arg(long, value_name = "HOST")]
    name: Option<String>,

    /// Where the server tells its signals [default: the path of its socket with .control
    /// behind it].
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  fullstroke serve stacks/signals/served.toml --socket /run/array.sock
  nbdfuse /run/array.img nbd+unix:///?socket=/run/array.sock
  mount -o loop /run/array.img /mnt
  fullstroke heed /run/array.sock --on /mnt";

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let options = HeedOptions {
        control: arguments
            .control
            .clone()
            .unwrap_or_else(|| ctl::beside(&arguments.server)),
        export: arguments.export.clone(),
        name: arguments.name.clone(),
        on: arguments.on.clone(),
    };
    output.show_both(announcement, told, |ready| {
        heed(&options, ready, &mut |said| complain(said))
    })
}

fn announcement(heeding: &Heeding) -> String {
    format!(
        "{} heeds {}",
        heeding.on.display(),
        heeding.control.display()
    )
}

fn told(heeded: &Heeded) -> String {
    let Heeded {
        uptime_s,
        pulls,
        pulled_mb,
        written_mb,
        pushes,
        fetched_mb,
        ..
    } = heeded;
    let written = written_mb.map_or_else(
        || "all that was dirty".to_owned(),
        |written| format!("{written:.1} MB"),
    );
    format!(
        "{uptime_s:.1} s: {pulls} PULLs of {pulled_mb:.1} MB, {written} written; {pushes} PUSHes, {fetched_mb:.1} MB \
         read ahead"
    )
}
