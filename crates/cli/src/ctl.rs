//! `fullstroke ctl`: questions and orders to a server that is running.

mod status;

use crate::output::{Failure, Output};
use clap::{Args, Subcommand, ValueEnum};
use fullstroke_live::{ControlRequest, ControlResponse, Repair, Said, ask};
use fullstroke_units::Bytes;
use std::path::{Path, PathBuf};

/// Ask a running server how it is, or give it an order.
///
/// Drives are named by their number in the stack, from 0; where volumes nest,
/// 1.0 is the first drive of the second volume. `status` shows the names.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The server's socket: the one that it takes orders on, or the one of its
    /// clients if the other is beside it (SOCKET.control).
    socket: PathBuf,

    #[command(subcommand)]
    order: Order,
}

const EXAMPLES: &str = "\
Examples:
  fullstroke ctl /run/array.sock status
  fullstroke ctl /run/array.sock fail 3
  fullstroke ctl /run/array.sock restore 3 --rate 100MiB
  fullstroke ctl /run/array.sock speed --max 200MiB";

#[derive(Debug, Subcommand)]
enum Order {
    /// Show exports, requests and drives.
    Status,
    /// Let a drive fail.
    Fail {
        /// The drive's name, such as 3.
        drive: String,
        #[command(flatten)]
        at: At,
    },
    /// Put an empty drive in a failed one's place, and rebuild it.
    Restore {
        /// The drive's name, such as 3.
        drive: String,
        #[command(flatten)]
        at: At,
        /// Rebuild at most so many bytes a second of the world's time, such as
        /// 100MiB; as fast as it goes unless given.
        #[arg(long, value_name = "BYTES")]
        rate: Option<Bytes>,
        /// Give up what a volume that has failed has lost: it is filled as far
        /// as that goes, and lost data is an error until it is written.
        #[arg(long)]
        accept_data_loss: bool,
        /// It is the same drive with its bytes, and nothing was written since it
        /// failed: nothing is rebuilt. A volume that has failed has its data again.
        #[arg(long, conflicts_with_all = ["rate", "accept_data_loss"])]
        re_add: bool,
    },
    /// Bound how fast drives are rebuilt, now and from now on, also after a
    /// restart.
    Speed {
        /// At most so many bytes a second of the world's time, such as 200MiB;
        /// as fast as it goes unless given.
        #[arg(long, value_name = "BYTES")]
        max: Option<Bytes>,
        /// Below so many bytes a second a rebuild does not make way for
        /// requests; 1000KiB unless given.
        #[arg(long, value_name = "BYTES")]
        min: Option<Bytes>,
        #[command(flatten)]
        at: At,
    },
    /// Wait for what opportunities say to clients next, for ten seconds at most.
    Signals {
        /// From this number on, of those that are kept; from now on unless given.
        #[arg(long, value_name = "NUMBER")]
        after: Option<u64>,
        #[command(flatten)]
        at: At,
    },
    /// Compare all redundancy with what it should be, and change nothing unless
    /// --repair is given.
    Scrub {
        /// Write sectors again that are proven to be wrong: by the majority of three and more
        /// copies, or by P and Q. With --repair=data also the others: parity, and all copies
        /// but the first, follow from the data.
        #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "proven")]
        repair: Option<Repairs>,
        #[command(flatten)]
        at: At,
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
struct At {
    /// The export, if the server has several.
    #[arg(long, value_name = "NAME")]
    export: Option<String>,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let answer = ask(
        &control_path(&arguments.socket),
        &arguments.order.question(),
    )
    .map_err(Failure::input)?;
    match &answer {
        ControlResponse::Status(status) => output.show(status, status::text(status)),
        ControlResponse::Done { message } => output.show(&answer, message),
        ControlResponse::Signals { signals, .. } => output.show(&answer, signals_in_words(signals)),
        ControlResponse::Wrong { message } => {
            output.show(&answer, message)?;
            Err(Failure::Checks)
        }
        ControlResponse::Refused { message } => Err(Failure::input(message)),
    }
}

fn signals_in_words(signals: &[Said]) -> String {
    let line = |said: &Said| match said {
        Said::Pull {
            start: Some(start),
            sectors,
        } => format!("PULL {sectors} sectors from {start}"),
        Said::Pull {
            start: None,
            sectors,
        } => format!("PULL any {sectors} sectors"),
        Said::Push { start, sectors } => format!("PUSH {sectors} sectors from {start}"),
    };
    if signals.is_empty() {
        return "nothing was said".to_owned();
    }
    signals.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The socket on which the server takes orders, whichever of the two is said.
pub(crate) fn control_path(socket: &Path) -> PathBuf {
    let beside = beside(socket);
    if beside.exists() {
        beside
    } else {
        socket.to_owned()
    }
}

/// Where a server takes orders unless it is told: beside its clients' socket.
pub(crate) fn beside(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".control");
    path.into()
}

impl Order {
    fn question(&self) -> ControlRequest {
        match self {
            Order::Status => ControlRequest::Status,
            Order::Fail { drive, at } => ControlRequest::Fail {
                export: at.export.clone(),
                drive: drive.clone(),
            },
            Order::Restore {
                drive,
                at,
                re_add: true,
                ..
            } => ControlRequest::ReAdd {
                export: at.export.clone(),
                drive: drive.clone(),
            },
            Order::Restore {
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
            Order::Speed { max, min, at } => ControlRequest::Speed {
                export: at.export.clone(),
                least: *min,
                most: *max,
            },
            Order::Scrub { repair, at } => ControlRequest::Scrub {
                export: at.export.clone(),
                repair: Repairs::of(*repair),
            },
            Order::Signals { after, at } => ControlRequest::Signals {
                export: at.export.clone(),
                after: *after,
                host: None,
                wrote: None,
            },
        }
    }
}
