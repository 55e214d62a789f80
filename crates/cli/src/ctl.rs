//! `fullstroke ctl`: status and control of a running server.

mod status;

use crate::output::{CommandFailure, CommandOutput};
use clap::{Args, Subcommand, ValueEnum};
use fullstroke_live::{ControlRequest, ControlResponse, Repair, SignalExtent, ask};
use fullstroke_units::Bytes;
use std::path::{Path, PathBuf};

/// Show the status of a running server, or control it.
///
/// A drive is named by its number in the stack, counted from 0. In nested volumes, 1.0 is the first
/// drive of the second volume. `status` shows the names.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Control socket of the server, or its client socket if the control socket is beside it
    /// (SOCKET.control).
    socket: PathBuf,

    #[command(subcommand)]
    order: ControlOrder,
}

const EXAMPLES: &str = "\
Examples:
  fullstroke ctl /run/array.sock status
  fullstroke ctl /run/array.sock fail 3
  fullstroke ctl /run/array.sock restore 3 --rate 100MiB
  fullstroke ctl /run/array.sock slow 3 --factor 10
  fullstroke ctl /run/array.sock speed --max 200MiB";

#[derive(Debug, Subcommand)]
enum ControlOrder {
    /// Show exports, requests and drives.
    Status,
    /// Mark a drive as failed.
    Fail {
        /// Name of the drive, such as 3.
        drive: String,
        #[command(flatten)]
        at: ChosenExport,
    },
    /// Replace a failed drive by an empty one, and rebuild it.
    Restore {
        /// Name of the drive, such as 3.
        drive: String,
        #[command(flatten)]
        at: ChosenExport,
        /// Limit of the rebuild in bytes per second of simulated time, such as 100MiB. Default:
        /// no limit.
        #[arg(long, value_name = "BYTES")]
        rate: Option<Bytes>,
        /// Give up the lost data of a failed volume. The drive is filled as far as possible; reads
        /// of lost data are errors until a new write.
        #[arg(long)]
        accept_data_loss: bool,
        /// Bring back the same drive with its bytes, without a rebuild. Refused after any write
        /// since the failure. A failed volume then has all its data again.
        #[arg(long, conflicts_with_all = ["rate", "accept_data_loss"])]
        re_add: bool,
    },
    /// Make a drive slow without failing it, until the server ends. Each part of a request takes
    /// longer: overhead, seek, rotation and transfer.
    Slow {
        /// Name of the drive, such as 3.
        drive: String,
        /// Factor by which the drive takes longer, such as 10. 1 ends the slowness.
        #[arg(long, value_name = "FACTOR")]
        factor: f64,
        #[command(flatten)]
        at: ChosenExport,
    },
    /// Limit the speed of rebuilds. The limits hold for current and later rebuilds, also after a
    /// restart.
    Speed {
        /// Upper limit in bytes per second of simulated time, such as 200MiB. Default: no limit.
        #[arg(long, value_name = "BYTES")]
        max: Option<Bytes>,
        /// Rate in bytes per second below which a rebuild does not yield to requests. Default
        /// 1000KiB.
        #[arg(long, value_name = "BYTES")]
        min: Option<Bytes>,
        #[command(flatten)]
        at: ChosenExport,
    },
    /// Wait up to ten seconds for the next signals of opportunities to clients.
    Signals {
        /// Number of the first kept signal to show. Default: the next signal.
        #[arg(long, value_name = "NUMBER")]
        after: Option<u64>,
        #[command(flatten)]
        at: ChosenExport,
    },
    /// Compare all redundancy with the data. Changes nothing without --repair.
    Scrub {
        /// Write sectors again that are proven to be wrong: by the majority of three and more
        /// copies, or by P and Q. With --repair=data also the others: parity, and all copies
        /// but the first, follow from the data.
        #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "proven")]
        repair: Option<Repairs>,
        #[command(flatten)]
        at: ChosenExport,
    },
}

/// What a scrub writes again.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Repairs {
    /// Sectors that are proven to be wrong.
    Proven,
    /// Also the others: parity and copies follow from the data.
    Data,
}

impl Repairs {
    pub(crate) fn of(said: Option<Repairs>) -> Repair {
        match said {
            None => Repair::Nothing,
            Some(Repairs::Proven) => Repair::Proven,
            Some(Repairs::Data) => Repair::Data,
        }
    }
}

/// Which export is meant.
#[derive(Debug, Args)]
struct ChosenExport {
    /// Name of the export. Needed if the server has several.
    #[arg(long, value_name = "NAME")]
    export: Option<String>,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let answer = ask(
        &control_path(&arguments.socket),
        &arguments.order.question(),
    )
    .map_err(CommandFailure::input)?;
    match &answer {
        ControlResponse::Status(status) => output.show(status, status::text(status)),
        ControlResponse::Done { message } => output.show(&answer, message),
        ControlResponse::Signals { signals, .. } => output.show(&answer, signals_in_words(signals)),
        ControlResponse::Wrong { message } => {
            // Printed as a result and not as an error, because the order was carried out. The
            // status 1 says that the server found a fault.
            output.show(&answer, message)?;
            Err(CommandFailure::Checks)
        }
        ControlResponse::Refused { message } => Err(CommandFailure::input(message)),
    }
}

fn signals_in_words(signals: &[SignalExtent]) -> String {
    let line = |said: &SignalExtent| match said {
        SignalExtent::Pull {
            start: Some(start),
            sectors,
        } => format!("PULL {sectors} sectors from {start}"),
        SignalExtent::Pull {
            start: None,
            sectors,
        } => format!("PULL any {sectors} sectors"),
        SignalExtent::Push { start, sectors } => format!("PUSH {sectors} sectors from {start}"),
    };
    if signals.is_empty() {
        return "no signals".to_owned();
    }
    signals.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the control socket for the given socket: the file beside it if that exists, else the
/// socket itself.
pub(crate) fn control_path(socket: &Path) -> PathBuf {
    let beside = default_socket(socket);
    // People give the socket that the client uses. The control socket lies beside it, unless
    // `--control` moved it, and then they give the control socket itself.
    if beside.exists() {
        beside
    } else {
        socket.to_owned()
    }
}

/// Returns the default control socket of a server: a file beside the clients' socket.
pub(crate) fn default_socket(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".control");
    path.into()
}

impl ControlOrder {
    fn question(&self) -> ControlRequest {
        match self {
            ControlOrder::Status => ControlRequest::Status,
            ControlOrder::Fail { drive, at } => ControlRequest::Fail {
                export: at.export.clone(),
                drive: drive.clone(),
            },
            ControlOrder::Restore {
                drive,
                at,
                // `--re-add` keeps the bytes of the member and fills only the missed regions, so it
                // is a request of its own.
                re_add: true,
                ..
            } => ControlRequest::ReAdd {
                export: at.export.clone(),
                drive: drive.clone(),
            },
            ControlOrder::Restore {
                drive,
                at,
                rate,
                accept_data_loss,
                ..
            } => ControlRequest::Restore {
                export: at.export.clone(),
                drive: drive.clone(),
                rate: *rate,
                accept_data_loss: *accept_data_loss,
            },
            ControlOrder::Slow { drive, factor, at } => ControlRequest::Slow {
                export: at.export.clone(),
                drive: drive.clone(),
                factor: *factor,
            },
            ControlOrder::Speed { max, min, at } => ControlRequest::Speed {
                export: at.export.clone(),
                least: *min,
                most: *max,
            },
            ControlOrder::Scrub { repair, at } => ControlRequest::Scrub {
                export: at.export.clone(),
                repair: Repairs::of(*repair),
            },
            ControlOrder::Signals { after, at } => ControlRequest::Signals {
                export: at.export.clone(),
                after: *after,
                host: None,
                wrote: None,
            },
        }
    }
}
