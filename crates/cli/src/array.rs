//! `fullstroke array`: durable arrays on real devices and files.

mod measure;
mod show;

use crate::ctl::{self, Repairs};
use crate::network::{Admitted, Numbers, tcp_address};
use crate::notify;
use crate::output::{Failure, Output, complain};
use clap::{Args, Subcommand, ValueEnum};
use fullstroke_contract::Reason;
use fullstroke_device::Identity;
use fullstroke_live::Admission;
use fullstroke_store::{
    Access, Allowances, ArrayError, Copies, Design, Device, FileDevice, JournalPolicy, Listen,
    Question, Repair, Roster, Serve, Serving, Timed, Towards, ask, assemble_with, check_standby,
    check_ublk, create, destroy, examine, owners, serve, unused,
};
use fullstroke_units::{Bytes, Sectors};
use serde::Serialize;
use show::Shown;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// For a server to end.
const STOPPING: Duration = Duration::from_secs(120);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Create(Create),
    Assemble(Assemble),
    /// Show how an array that is served is.
    Status(At),
    /// Show that, and what its members have written down.
    Detail(At),
    /// Put the disks of an array to standby now, until they are needed again.
    Standby(At),
    Gear(Gear),
    /// Stop an array: everything is durable, and its members say so.
    Stop(At),
    /// Let a member fail.
    Fail {
        #[command(flatten)]
        at: At,
        /// Its place, counted from 0.
        slot: usize,
    },
    Add(Add),
    /// Compare all parity and copies with the data; status 1 if they differ.
    Scrub {
        #[command(flatten)]
        at: At,
        /// Write sectors again that are proven to be wrong: by the majority of three and more
        /// copies, or by P and Q. With --repair=data also the others: parity, and all copies
        /// but the first, follow from the data.
        #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "proven")]
        repair: Option<Repairs>,
    },
    /// Show what devices say of themselves.
    Examine {
        /// The devices or files.
        #[arg(required = true)]
        devices: Vec<PathBuf>,
    },
    /// Take what devices say of an array away; their data belongs to nobody then.
    Destroy {
        /// The devices or files.
        #[arg(required = true)]
        devices: Vec<PathBuf>,
        /// Also what is no member: its signatures are made zeros.
        #[arg(long)]
        force: bool,
    },
}

/// The socket of an array that is served.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// The socket that it takes orders on, or the one of its clients.
    socket: PathBuf,
}

/// Make an array of block devices or files. What they hold is lost.
///
/// The data of new files are zeros. On devices, redundancy is filled in from
/// what stands there as soon as the array is assembled.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The array's name.
    name: String,

    /// The devices or files, in order; spares last.
    #[arg(required = true)]
    devices: Vec<PathBuf>,

    /// The layout, such as raid5; `volume.layout` of stack files.
    #[arg(long)]
    layout: String,

    /// A chunk of a striped layout, such as 256KiB.
    #[arg(long)]
    chunk: Option<Bytes>,

    /// Another key of the layout, as in copies=3 or layout=far (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key)]
    set: Vec<(String, serde_json::Value)>,

    /// How many of the devices, the last ones, wait for a member to fail.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    spares: usize,

    /// Which changes are written down before they are made: of rows in part, all,
    /// or none.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Journal::Partial)]
    journal: Journal,

    /// Use so much of each member for data; as much as there is unless given.
    #[arg(long, value_name = "BYTES")]
    member_size: Option<Bytes>,

    /// How much of a member is compared or filled again for a write within it.
    #[arg(long, value_name = "BYTES")]
    region: Option<Bytes>,

    /// Take devices that belong to somebody or hold anything but zeros: what they hold is
    /// lost.
    #[arg(long)]
    force: bool,

    /// Measure the members' rates for --layout lzvs or lzvs-geo, by timed reads: two to
    /// four minutes a disk. What is found becomes the layout's keys.
    #[arg(long)]
    measure: bool,

    /// Leave files sparse. A host's disk that is full counts as failed members then.
    #[arg(long)]
    sparse: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Journal {
    /// Rows in part, and all while members are missing.
    Partial,
    /// Everything.
    All,
    /// Nothing: a loss of power may cost what a missing member held.
    None,
}

/// Assemble an array and serve it over NBD or as a block device, until SIGTERM, Ctrl-C or
/// `array stop`.
///
/// Devices come in any order. What a loss of power has left is mended first.
#[derive(Debug, Args)]
pub(crate) struct Assemble {
    /// The devices or files.
    #[arg(required = true)]
    devices: Vec<PathBuf>,

    /// Listen on this unix socket.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Listen on this TCP address; without a host, on loopback.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = tcp_address)]
    tcp: Option<SocketAddr>,

    /// Make it a block device of this host, by the kernel's ublk (Linux 6.5, root).
    #[arg(long)]
    ublk: bool,

    /// Take orders on this unix socket [default: the path of --socket with
    /// .control behind it].
    #[arg(long, value_name = "PATH", required_unless_present = "socket")]
    control: Option<PathBuf>,

    #[command(flatten)]
    admitted: Admitted,

    #[command(flatten)]
    numbers: Numbers,

    /// Also without members that it had when it was last assembled. Devices that cannot be
    /// opened or read, or that are no members of the array, count as missing.
    #[arg(long)]
    degraded: bool,

    /// Take this device for the member that it was, although its size, its superblocks or
    /// its count of events say that it was cut, written over or left behind (may be repeated).
    #[arg(long, value_name = "DEVICE")]
    trust: Vec<PathBuf>,

    /// Put members to standby that nothing was asked of for so long, such as 20min.
    /// Whole SCSI and SATA disks only.
    #[arg(long, value_name = "TIME")]
    standby_after: Option<fullstroke_units::Duration>,

    /// A member whose read, write or flush takes longer counts as failed; 0 for no limit.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    member_timeout: u64,

    /// Have a shell run this when a member fails or is missing, a spare is used, a member
    /// is filled, a scrub finds something or the array halts; FULLSTROKE_ARRAY, _STATE,
    /// _EVENT, _SLOT, _DEVICE and _WHY say what happened.
    #[arg(long, value_name = "COMMAND")]
    on_failure: Option<String>,
}

/// Shift an array of layout paraid or e-paraid. What is to be copied is, while the array is used; `status`
/// says when it is in the other gear.
#[derive(Debug, Args)]
pub(crate) struct Gear {
    #[command(flatten)]
    at: At,
    /// Down, where the last members stand and the others serve what they hold; or up.
    #[arg(value_enum)]
    towards: Direction,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Direction {
    /// Into the low gear.
    Down,
    /// Into the high one.
    Up,
}

/// Take a device in: a member that has failed comes back and is filled where it
/// has missed something, any other takes a failed one's place or waits for one.
#[derive(Debug, Args)]
pub(crate) struct Add {
    #[command(flatten)]
    at: At,
    /// The device or file.
    device: PathBuf,
    /// Take it even if it belongs to somebody or holds anything but zeros: what it holds is
    /// lost.
    #[arg(long)]
    force: bool,
}

/// `key=value`; the value is JSON if it can be, else text.
fn key(text: &str) -> Result<(String, serde_json::Value), Reason> {
    let (key, value) = text
        .split_once('=')
        .ok_or("expected KEY=VALUE, such as copies=3")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((key.to_owned(), value))
}

pub(crate) fn execute(command: &Command, output: &Output) -> Result<(), Failure> {
    match command {
        Command::Create(arguments) => arguments.execute(output),
        Command::Assemble(arguments) => arguments.execute(output),
        Command::Status(at) => at.show(&Question::Status, output),
        Command::Detail(at) => at.show(&Question::Detail, output),
        Command::Standby(at) => at.show(&Question::Standby, output),
        Command::Gear(arguments) => arguments.execute(output),
        Command::Stop(at) => at.stop(output),
        Command::Fail { at, slot } => at.show(&Question::Fail { slot: *slot }, output),
        Command::Add(arguments) => arguments.execute(output),
        Command::Scrub { at, repair } => at.scrub(Repairs::of(*repair), output),
        Command::Examine { devices } => show_devices(devices, output),
        Command::Destroy { devices, force } => destroy_all(devices, *force, output),
    }
}

/// One that is named twice would find itself in use.
fn check_twice(paths: &[PathBuf]) -> Result<(), Failure> {
    let mut seen: BTreeMap<Identity, &Path> = BTreeMap::new();
    for path in paths {
        let Ok(identity) = Identity::of(path) else {
            continue;
        };
        if let Some(first) = seen.insert(identity, path) {
            let message = if first == path {
                format!("`{}` is named twice; name each device once", path.display())
            } else {
                let (first, again) = (first.display(), path.display());
                format!(
                    "`{first}` and `{again}` are one device, named twice; name each device once"
                )
            };
            return Err(Failure::Input(message));
        }
    }
    Ok(())
}

fn open(paths: &[PathBuf]) -> Result<Vec<FileDevice>, Failure> {
    check_twice(paths)?;
    paths
        .iter()
        .map(|path| FileDevice::open(path, Access::Own).map_err(Failure::input))
        .collect()
}

type Devices = Vec<Arc<dyn Device>>;

/// Whole disks can be put to standby then.
fn shared(devices: Vec<FileDevice>) -> Result<Devices, Failure> {
    devices
        .into_iter()
        .map(|device| device.shared().map_err(Failure::input))
        .collect()
}

impl Create {
    fn execute(&self, output: &Output) -> Result<(), Failure> {
        let mut keys: serde_json::Map<String, serde_json::Value> =
            self.set.iter().cloned().collect();
        if let Some(chunk) = self.chunk {
            keys.insert("chunk".to_owned(), chunk.0.into());
        }
        let devices = open(&self.devices)?;
        let mut design = Design {
            name: self.name.clone(),
            layout: self.layout.clone(),
            keys,
            journal: match self.journal {
                Journal::Partial => JournalPolicy::Partial,
                Journal::All => JournalPolicy::All,
                Journal::None => JournalPolicy::None,
            },
            spares: self.spares,
            force: self.force,
            sparse: self.sparse,
            member_bytes: self.member_size.map(|bytes| bytes.0),
            region_bytes: self.region.map(|bytes| bytes.0),
            measured: Vec::new(),
        };
        let devices = shared(devices)?;
        if self.measure {
            measure::members(&mut design, &self.devices, &devices, output)?;
        }
        let assumed = measure::assumed(&design);
        let roster = create(&design, &devices).map_err(Failure::input)?;
        let unused = unused(&roster).map_err(Failure::input)?;
        let created = Created {
            warnings: warnings(&roster, assumed, &unused),
            roster,
        };
        output.show(&created, Shown::created(&created.roster, &created.warnings))
    }
}

/// What was made, and what its maker may not want.
#[derive(Serialize)]
struct Created {
    #[serde(flatten)]
    roster: Roster,
    warnings: Vec<String>,
}

/// Up to so many per cent of a member that are left over are chunks that are not whole.
const WASTED_PERCENT: u64 = 1;

fn warnings(roster: &Roster, assumed: Option<String>, unused: &[Sectors]) -> Vec<String> {
    let smallest = roster
        .slots
        .iter()
        .map(|slot| slot.sectors)
        .min()
        .unwrap_or(0);
    let wasted = roster.slots.iter().zip(unused).filter(|(slot, unused)| {
        let much = unused.0.saturating_mul(100) > slot.sectors.saturating_mul(WASTED_PERCENT);
        much && slot.sectors > smallest
    });
    let wasted = wasted.map(|(slot, unused)| {
        let all = Sectors(slot.sectors);
        format!(
            "{} of the {} of `{}` are not used: others are smaller",
            unused.bytes(),
            all.bytes(),
            slot.device
        )
    });
    assumed.into_iter().chain(wasted).collect()
}

impl Assemble {
    fn execute(&self, output: &Output) -> Result<(), Failure> {
        let mut listen: Vec<Listen> = self.socket.iter().cloned().map(Listen::Unix).collect();
        listen.extend(self.tcp.map(Listen::Tcp));
        if listen.is_empty() && !self.ublk {
            let message =
                "say where to listen: --socket PATH or --tcp PORT, or have a block device: --ublk";
            return Err(Failure::input(message));
        }
        let beside = || self.socket.as_deref().map(ctl::beside);
        let Some(control) = self.control.clone().or_else(beside) else {
            return Err(Failure::input("say where orders come from: --control PATH"));
        };
        let admission = self.admitted.options(Some(&self.numbers))?;
        let admission = Admission::new(&admission).map_err(Failure::input)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::input)?;
        }
        if self.ublk {
            check_ublk().map_err(Failure::input)?;
        }
        let (devices, gone) = self.open()?;
        if let Some(after) = self.standby_after {
            check_standby(after, &devices).map_err(Failure::input)?;
        }
        let (array, mut report) =
            assemble_with(&devices, &self.allowances()?).map_err(Failure::input)?;
        drop(devices);
        report.gone.extend(gone);
        let options = Serve {
            listen,
            ublk: self.ublk,
            control,
            metrics: self.numbers.metrics,
            admission,
            standby_after: self.standby_after,
            member_timeout: Duration::from_secs(self.member_timeout),
            on_failure: self.on_failure.clone(),
        };
        let mut shown = Ok(());
        let status = array.status();
        let mut ready = |serving: &Serving| {
            let started = Started {
                array: &status,
                report: &report,
                serving,
            };
            shown = output.show(&started, Shown::started(&status, &report, serving));
            notify::ready();
        };
        let mut tell = |happening: &fullstroke_store::Happening| {
            complain(&format!(
                "place {} (`{}`) {}: {}",
                happening.slot, happening.device, happening.kind, happening.why
            ));
        };
        serve(array, &options, &stop, &mut ready, &mut tell).map_err(Failure::input)?;
        shown
    }

    fn allowances(&self) -> Result<Allowances, Failure> {
        if let Some(path) = self.trust.iter().find(|path| !self.devices.contains(path)) {
            let message = format!(
                "--trust: found `{}`; expected one of the devices of the array, named as it is there",
                path.display()
            );
            return Err(Failure::Input(message));
        }
        Ok(Allowances {
            degraded: self.degraded,
            trusted: self
                .trust
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
        })
    }

    /// The devices that can be opened, and of the others why not.
    fn open(&self) -> Result<(Devices, Vec<String>), Failure> {
        check_twice(&self.devices)?;
        let (mut devices, mut gone) = (Vec::new(), Vec::new());
        for path in &self.devices {
            match FileDevice::open(path, Access::Own) {
                Ok(device) => devices.push(device),
                Err(error @ ArrayError::Gone { .. }) if self.degraded => {
                    gone.push(format!("{error}; it counts as missing"));
                }
                Err(error @ ArrayError::Gone { .. }) => {
                    let message = format!(
                        "{error}; if that device is gone, assemble the array without it: --degraded takes what \
                         cannot be opened for missing"
                    );
                    return Err(Failure::Input(message));
                }
                Err(error) => return Err(Failure::input(error)),
            }
        }
        let limit = Duration::from_secs(self.member_timeout);
        let devices = shared(devices)?.into_iter();
        let devices = devices.map(|device| Timed::limited(device, limit));
        Ok((devices.collect(), gone))
    }
}

#[derive(Serialize)]
struct Started<'a> {
    array: &'a fullstroke_store::Status,
    report: &'a fullstroke_store::Report,
    serving: &'a Serving,
}

impl At {
    fn ask(&self, question: &Question) -> Result<serde_json::Value, Failure> {
        ask(&ctl::control_path(&self.socket), question).map_err(Failure::input)
    }

    fn show(&self, question: &Question, output: &Output) -> Result<(), Failure> {
        let answer = self.ask(question)?;
        output.show(&answer, Shown::answer(&answer))
    }

    /// Returns when the devices are free: what they are to be used for next may
    /// stand in the next line.
    fn stop(&self, output: &Output) -> Result<(), Failure> {
        let socket = ctl::control_path(&self.socket);
        let answer = self.ask(&Question::Stop)?;
        let began = Instant::now();
        while UnixStream::connect(&socket).is_ok() {
            if began.elapsed() > STOPPING {
                return Err(Failure::Input(format!(
                    "`{}`: the array is still stopping",
                    socket.display()
                )));
            }
            std::thread::sleep(LOOK);
        }
        output.show(&answer, "stopped")
    }

    fn scrub(&self, repair: Repair, output: &Output) -> Result<(), Failure> {
        let answer = self.ask(&Question::Scrub { repair })?;
        output.show(&answer, Shown::answer(&answer))?;
        if answer["mismatched_sectors"].as_u64() == Some(0) {
            Ok(())
        } else {
            Err(Failure::Checks)
        }
    }
}

impl Gear {
    fn execute(&self, output: &Output) -> Result<(), Failure> {
        let towards = match self.towards {
            Direction::Down => Towards::Down,
            Direction::Up => Towards::Up,
        };
        self.at.show(&Question::Gear { towards }, output)
    }
}

impl Add {
    fn execute(&self, output: &Output) -> Result<(), Failure> {
        // The server has a working directory of its own.
        let device = std::path::absolute(&self.device).map_err(Failure::input)?;
        self.at.show(
            &Question::Add {
                device,
                force: self.force,
            },
            output,
        )
    }
}

/// What one device says.
#[derive(Serialize)]
struct Examined {
    device: String,
    #[serde(flatten)]
    copies: Option<Copies>,
    /// Whose else it is.
    owners: Vec<&'static str>,
}

fn show_devices(paths: &[PathBuf], output: &Output) -> Result<(), Failure> {
    let examined = paths.iter().map(|path| {
        let device = FileDevice::open(path, Access::Look).map_err(Failure::input)?;
        let copies = examine(&device).map_err(Failure::input)?;
        let owners = owners(&device).map_err(Failure::input)?;
        Ok(Examined {
            device: device.name(),
            copies,
            owners,
        })
    });
    let examined = examined.collect::<Result<Vec<Examined>, Failure>>()?;
    let shown = examined
        .iter()
        .map(|one| Shown::examined(&one.device, one.copies.as_ref(), &one.owners));
    let shown: Vec<String> = shown.map(|shown| shown.to_string()).collect();
    output.show(&examined, shown.join("\n"))
}

fn destroy_all(paths: &[PathBuf], force: bool, output: &Output) -> Result<(), Failure> {
    let devices = open(paths)?;
    // None is changed unless all can be.
    for device in devices.iter().filter(|_| !force) {
        if examine(device).map_err(Failure::input)?.is_none() {
            return Err(Failure::Input(format!(
                "`{}` is no member of an array: found no superblock; nothing was changed",
                device.name()
            )));
        }
    }
    devices
        .iter()
        .try_for_each(|device| destroy(device, force).map_err(Failure::input))?;
    let names: Vec<String> = devices.iter().map(FileDevice::name).collect();
    output.show(
        &names,
        format!("of no array any more: {}", names.join(", ")),
    )
}
