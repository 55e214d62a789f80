//! `fullstroke array`: durable arrays on real devices and files.

mod measure;
mod show;

use crate::ctl::{self, Repairs};
use crate::network::{AccessOptions, MetricsOptions, tcp_address};
use crate::notify;
use crate::output::{CommandFailure, CommandOutput, print_error};
use clap::{Args, Subcommand, ValueEnum};
use fullstroke_contract::Reason;
use fullstroke_device::DeviceIdentity;
use fullstroke_live::Admission;
use fullstroke_store::{
    Allowances, ArrayError, Copies, Design, Device, FileDevice, GearDirection, JournalPolicy,
    LatePolicy, Listen, OpenPurpose, Question, Repair, Roster, Serve, Serving, SlowMembers, Timed,
    ask, assemble_with, check_standby, check_ublk, create, destroy, examine, owners, serve, unused,
};
use fullstroke_units::{Bytes, Sectors};
use serde::Serialize;
use show::ArrayLines;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Limit of the wait for a server's end.
const STOPPING: Duration = Duration::from_secs(120);
/// Interval between two looks at a stopping server.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Create(Create),
    Assemble(Assemble),
    /// Show the state of a served array.
    Status(SocketArgument),
    /// Show the state of a served array and the superblocks of its members.
    Detail(SocketArgument),
    /// Put the disks of an array into standby now, until the next access.
    Standby(SocketArgument),
    Gear(Gear),
    /// Stop an array after all data and the superblocks are durable.
    Stop(SocketArgument),
    /// Mark a member as failed.
    Fail {
        #[command(flatten)]
        at: SocketArgument,
        /// Slot of the member, counted from 0.
        slot: usize,
    },
    Add(Add),
    /// Compare all parity and copies with the data. Status 1 if they differ.
    Scrub {
        #[command(flatten)]
        at: SocketArgument,
        /// Write sectors again that are proven to be wrong: by the majority of three and more
        /// copies, or by P and Q. With --repair=data also the others: parity, and all copies
        /// but the first, follow from the data.
        #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "proven")]
        repair: Option<Repairs>,
    },
    /// Show the superblocks of devices.
    Examine {
        /// The devices or files.
        #[arg(required = true)]
        devices: Vec<PathBuf>,
    },
    /// Erase the superblocks of devices. Their data then belongs to no array.
    Destroy {
        /// The devices or files.
        #[arg(required = true)]
        devices: Vec<PathBuf>,
        /// Also accept a device that is no member, and overwrite its signatures with zeros.
        #[arg(long)]
        force: bool,
    },
}

/// Socket of a served array.
#[derive(Debug, Args)]
pub(crate) struct SocketArgument {
    /// Control socket of the array, or its client socket.
    socket: PathBuf,
}

/// Create an array of block devices or files. All data on them is lost.
///
/// New files hold zeros. On devices, redundancy is computed from the present contents after the
/// first assembly.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Name of the array.
    name: String,

    /// Devices or files in order. Spares come last.
    #[arg(required = true)]
    devices: Vec<PathBuf>,

    /// Layout, such as raid5. The names are those of `volume.layout` in stack files.
    #[arg(long)]
    layout: String,

    /// Chunk size of a striped layout, such as 256KiB.
    #[arg(long)]
    chunk: Option<Bytes>,

    /// Set another key of the layout, as in copies=3 or layout=far (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key)]
    set: Vec<(String, serde_json::Value)>,

    /// Number of spares at the end of the list of devices. A spare waits for a member to fail.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    spares: usize,

    /// Changes that are journalled before they are made.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Journal::Partial)]
    journal: Journal,

    /// Bytes of each member to use for data. Default: all.
    #[arg(long, value_name = "BYTES")]
    member_size: Option<Bytes>,

    /// Size of a bitmap region. After a crash or the return of a member, whole regions are compared
    /// or filled. Default: by the size of the members.
    #[arg(long, value_name = "BYTES")]
    region: Option<Bytes>,

    /// Accept devices that are in other use or hold anything but zeros. Their contents are lost.
    #[arg(long)]
    force: bool,

    /// Measure the transfer rates of the members for --layout lzvs or lzvs-geo by timed reads, two
    /// to four minutes per disk. The results become keys of the layout.
    #[arg(long)]
    measure: bool,

    /// Leave files sparse. If the host's file system is full, a failed write then counts as a
    /// failed member.
    #[arg(long)]
    sparse: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Journal {
    /// Writes of parts of rows; with missing members, all writes.
    Partial,
    /// All writes.
    All,
    /// No writes. A power loss may then destroy data of a missing member.
    None,
}

/// Assemble an array and serve it over NBD or as a block device, until SIGTERM, Ctrl-C or `array
/// stop`.
///
/// Devices may be in any order. Damage from a power loss is repaired first.
#[derive(Debug, Args)]
pub(crate) struct Assemble {
    /// The devices or files.
    #[arg(required = true)]
    devices: Vec<PathBuf>,

    /// Listen on this unix socket.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Listen on this TCP address. Default host: loopback.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = tcp_address)]
    tcp: Option<SocketAddr>,

    /// Create a block device of this host through the kernel's ublk (Linux 6.5, root).
    #[arg(long)]
    ublk: bool,

    /// Accept control commands on this unix socket [default: the path of --socket with .control
    /// appended].
    #[arg(long, value_name = "PATH", required_unless_present = "socket")]
    control: Option<PathBuf>,

    #[command(flatten)]
    admitted: AccessOptions,

    #[command(flatten)]
    numbers: MetricsOptions,

    /// Assemble with missing members. Devices that cannot be opened or read, and devices that are
    /// no members of the array, count as missing.
    #[arg(long)]
    degraded: bool,

    /// Only read the array: nothing is written to the devices, which may be write-protected. The
    /// effects of a crash are mended in memory.
    #[arg(long)]
    read_only: bool,

    /// Accept this device as a member despite a changed size, damaged superblocks or an old event
    /// count (may be repeated).
    #[arg(long, value_name = "DEVICE")]
    trust: Vec<PathBuf>,

    /// Put idle members into standby after this time, such as 20min. Whole SCSI and SATA disks
    /// only.
    #[arg(long, value_name = "TIME")]
    standby_after: Option<fullstroke_units::Duration>,

    /// A member whose opening, read, write or flush takes longer counts as failed; 0 for no limit
    /// [default: 120].
    #[arg(long, value_name = "SECONDS")]
    member_timeout: Option<u64>,

    /// Policy against slow members: wait, read-around, sit-out or fail, as in [volume.late] of a
    /// stack file.
    #[arg(long, value_name = "POLICY", default_value = "wait")]
    late: String,

    /// Set a key of the policy, as in after=20ms or percentile=0.8 (may be repeated).
    #[arg(long, value_name = "KEY=VALUE", value_parser = late_key)]
    late_set: Vec<(String, serde_json::Value)>,

    /// A member whose reads take this many times as long as the median of the others counts as
    /// slow, which is reported; 0 for no reports. Three minutes in a row decide.
    #[arg(long, value_name = "FACTOR", default_value_t = SlowMembers::default().factor)]
    slow_factor: f64,

    /// Have a shell run this when a member fails or is missing or slow, a spare is used, a member
    /// is filled, a scrub finds something or the array halts; FULLSTROKE_ARRAY, _STATE,
    /// _EVENT, _SLOT, _DEVICE and _WHY say what happened.
    #[arg(long, value_name = "COMMAND")]
    on_failure: Option<String>,
}

/// Shift an array of layout paraid or e-paraid. The array stays usable during the copy; `status`
/// shows when the shift is complete.
#[derive(Debug, Args)]
pub(crate) struct Gear {
    #[command(flatten)]
    at: SocketArgument,
    /// Direction. Down puts the last members into standby, and the other members serve their data.
    #[arg(value_enum)]
    towards: ShiftDirection,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShiftDirection {
    /// To the low gear.
    Down,
    /// To the high gear.
    Up,
}

/// Add a device. A former member is filled only where it missed writes. Any other device replaces a
/// failed member or becomes a spare.
#[derive(Debug, Args)]
pub(crate) struct Add {
    #[command(flatten)]
    at: SocketArgument,
    /// The device or file.
    device: PathBuf,
    /// Accept a device that is in other use or holds anything but zeros. Its contents are lost.
    #[arg(long)]
    force: bool,
}

/// Parses `key=value`. The value is JSON if possible, else text.
fn key(text: &str) -> Result<(String, serde_json::Value), Reason> {
    let (key, value) = text
        .split_once('=')
        .ok_or("expected KEY=VALUE, such as copies=3")?;
    // `copies=3` is a number; `layout=far` is no JSON.
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((key.to_owned(), value))
}

/// Parses `key=value` of a policy against slow members.
fn late_key(text: &str) -> Result<(String, serde_json::Value), Reason> {
    if text.contains('=') {
        return key(text);
    }
    Err(Reason::from("expected KEY=VALUE, such as after=20ms"))
}

pub(crate) fn execute(command: &Command, output: &CommandOutput) -> Result<(), CommandFailure> {
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

/// Checks that no device is named twice. Without this check the second open would report the device
/// as in use.
fn check_twice(paths: &[PathBuf]) -> Result<(), CommandFailure> {
    let mut seen: BTreeMap<DeviceIdentity, &Path> = BTreeMap::new();
    for path in paths {
        // The open fails as well, and its error says why.
        let Ok(identity) = DeviceIdentity::of(path) else {
            continue;
        };
        if let Some(first) = seen.insert(identity, path) {
            let message = if first == path {
                format!("`{}` is named twice; name each device once", path.display())
            } else {
                let (first, again) = (first.display(), path.display());
                format!("`{first}` and `{again}` are the same device; name each device once")
            };
            return Err(CommandFailure::Input(message));
        }
    }
    Ok(())
}

/// The error of a device that an array cannot be made of.
fn unopened(error: ArrayError) -> CommandFailure {
    match error {
        ArrayError::Gone { .. } => CommandFailure::Input(format!(
            "{error}; expected a block device or a file that exists (`truncate -s 10G FILE` makes \
             an empty file of 10 GiB)"
        )),
        error => CommandFailure::input(error),
    }
}

fn open(paths: &[PathBuf]) -> Result<Vec<FileDevice>, CommandFailure> {
    check_twice(paths)?;
    paths
        .iter()
        .map(|path| {
            FileDevice::open_within(path, OpenPurpose::Own, MEMBER_TIMEOUT).map_err(unopened)
        })
        .collect()
}

/// Default time limit of an opening and of a request.
const MEMBER_TIMEOUT: Duration = Duration::from_secs(120);

type Devices = Vec<Arc<dyn Device>>;

/// Converts the devices for the array. The shared form supports standby of whole disks.
fn shared(devices: Vec<FileDevice>) -> Result<Devices, CommandFailure> {
    devices
        .into_iter()
        .map(|device| device.shared().map_err(CommandFailure::input))
        .collect()
}

impl Create {
    fn execute(&self, output: &CommandOutput) -> Result<(), CommandFailure> {
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
        // After the measurement, which adds the keys `ratio` and `zones` to the design.
        let assumed = measure::assumed(&design);
        let roster = create(&design, &devices).map_err(CommandFailure::input)?;
        let unused = unused(&roster).map_err(CommandFailure::input)?;
        let created = Created {
            warnings: warnings(&roster, assumed, &unused),
            roster,
        };
        output.show(
            &created,
            ArrayLines::created(&created.roster, &created.warnings),
        )
    }
}

/// The new roster, with warnings for the user.
#[derive(Serialize)]
struct Created {
    #[serde(flatten)]
    roster: Roster,
    warnings: Vec<String>,
}

/// Percentage of a member that may stay unused without a warning. Rounding to whole chunks leaves
/// as much.
const WASTED_PERCENT: u64 = 1;

fn warnings(roster: &Roster, assumed: Option<String>, unused: &[Sectors]) -> Vec<String> {
    let smallest = roster
        .slots
        .iter()
        .map(|slot| slot.sectors)
        .min()
        .unwrap_or(0);
    let wasted = roster.slots.iter().zip(unused).filter(|(slot, unused)| {
        // Both sides may exceed the range for a member of exabytes, and then compare as equal.
        let much = unused.0.saturating_mul(100) > slot.sectors.saturating_mul(WASTED_PERCENT);
        much && slot.sectors > smallest
    });
    let wasted = wasted.map(|(slot, unused)| {
        let all = Sectors(slot.sectors);
        format!(
            "{} of the {} of `{}` are not used, because other members are smaller",
            unused.bytes(),
            all.bytes(),
            slot.device
        )
    });
    assumed.into_iter().chain(wasted).collect()
}

impl Assemble {
    fn execute(&self, output: &CommandOutput) -> Result<(), CommandFailure> {
        let mut listen: Vec<Listen> = self.socket.iter().cloned().map(Listen::Unix).collect();
        listen.extend(self.tcp.map(Listen::Tcp));
        if listen.is_empty() && !self.ublk {
            let message = "no address to listen on; give --socket PATH or --tcp PORT, or --ublk for a block device";
            return Err(CommandFailure::input(message));
        }
        let beside = || self.socket.as_deref().map(ctl::default_socket);
        let Some(control) = self.control.clone().or_else(beside) else {
            return Err(CommandFailure::input(
                "no control socket; give --control PATH",
            ));
        };
        let admission = self.admitted.options(Some(&self.numbers))?;
        // The certificates are read before any device is opened, so that a refusal touches no
        // member.
        let admission = Admission::new(&admission).map_err(CommandFailure::input)?;
        let late = self.late_policy()?;
        let limit = self.member_limit(&late)?;
        let stop = Arc::new(AtomicBool::new(false));
        // The signal handlers precede the assembly, because a repair may take minutes.
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .map_err(CommandFailure::input)?;
        }
        // A missing ublk is an error before any member is opened.
        if self.ublk {
            check_ublk().map_err(CommandFailure::input)?;
        }
        let (devices, gone) = self.open(limit)?;
        if let Some(after) = self.standby_after {
            check_standby(after, &devices).map_err(CommandFailure::input)?;
        }
        let (array, mut report) =
            assemble_with(&devices, &self.allowances(late)?).map_err(CommandFailure::input)?;
        // Only the array holds its members now; a device that it does not use becomes free.
        drop(devices);
        report.gone.extend(gone);
        let options = Serve {
            listen,
            ublk: self.ublk,
            control,
            metrics: self.numbers.metrics,
            admission,
            standby_after: self.standby_after,
            member_timeout: limit,
            slow_members: self.slow_members()?,
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
            shown = output.show(&started, ArrayLines::started(&status, &report, serving));
            // systemd must not start dependent services before clients can connect.
            notify::ready();
        };
        let mut tell = |happening: &fullstroke_store::ArrayEvent| {
            print_error(&format!(
                "place {} (`{}`) {}: {}",
                happening.slot, happening.device, happening.kind, happening.why
            ));
        };
        // A failed print does not end the server. The error is returned at the end.
        serve(array, &options, &stop, &mut ready, &mut tell).map_err(CommandFailure::input)?;
        shown
    }

    /// Returns the watch over slow members.
    fn slow_members(&self) -> Result<Option<SlowMembers>, CommandFailure> {
        let factor = self.slow_factor;
        // As `--member-timeout 0`: zero switches the watch off.
        if factor == 0.0 {
            return Ok(None);
        }
        if !(factor > 1.0 && factor.is_finite()) {
            let message = format!(
                "--slow-factor: found {factor}; expected a factor above 1, such as 2, or 0 for no reports"
            );
            return Err(CommandFailure::Input(message));
        }
        Ok(Some(SlowMembers {
            factor,
            ..SlowMembers::default()
        }))
    }

    /// Returns the policy against slow members.
    fn late_policy(&self) -> Result<LatePolicy, CommandFailure> {
        let mut keys: serde_json::Map<String, serde_json::Value> =
            self.late_set.iter().cloned().collect();
        if let Some(value) = keys.get("policy") {
            let message = format!("--late-set: found policy={value}; expected --late {value}");
            return Err(CommandFailure::Input(message));
        }
        keys.insert("policy".to_owned(), self.late.clone().into());
        LatePolicy::new(keys).map_err(|error| CommandFailure::Input(format!("--late: {error}")))
    }

    /// Returns the time limit of each request to a member. The policy `fail` is such a limit.
    fn member_limit(&self, late: &LatePolicy) -> Result<Duration, CommandFailure> {
        let refused = |message| Err(CommandFailure::Input(message));
        match (late.fails_after(), self.member_timeout) {
            (Some(_), Some(seconds)) => refused(format!(
                "--member-timeout: found {seconds} beside --late fail, which is the same limit; give one of the two"
            )),
            (Some(limit), None) => Ok(limit),
            // The threads that keep the limit are the threads that requests leave late reads to.
            (None, Some(0)) if late.reads_around() => refused(format!(
                "--member-timeout: found 0 beside --late {}; expected a time limit above 0",
                late.name()
            )),
            (None, seconds) => Ok(seconds.map_or(MEMBER_TIMEOUT, Duration::from_secs)),
        }
    }

    fn allowances(&self, late: LatePolicy) -> Result<Allowances, CommandFailure> {
        if let Some(path) = self.trust.iter().find(|path| !self.devices.contains(path)) {
            let message = format!(
                "--trust: found `{}`; expected one of the devices of the array, named as it is there",
                path.display()
            );
            return Err(CommandFailure::Input(message));
        }
        Ok(Allowances {
            degraded: self.degraded,
            read_only: self.read_only,
            late: Some(late),
            trusted: self
                .trust
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
        })
    }

    /// Opens the devices. Returns the open devices, and with `degraded` a message for each missing
    /// one.
    fn open(&self, limit: Duration) -> Result<(Devices, Vec<String>), CommandFailure> {
        check_twice(&self.devices)?;
        let (mut devices, mut gone) = (Vec::new(), Vec::new());
        // A write-protected device refuses to be opened for writing.
        let purpose = if self.read_only {
            OpenPurpose::Read
        } else {
            OpenPurpose::Own
        };
        for path in &self.devices {
            match FileDevice::open_within(path, purpose, limit) {
                Ok(device) => devices.push(device),
                // Only a device that is gone counts as missing. A device that exists and is in use
                // elsewhere stays an error, because it may hold newer data.
                Err(error @ ArrayError::Gone { .. }) if self.degraded => {
                    gone.push(format!("{error}; it counts as missing"));
                }
                Err(error @ ArrayError::Gone { .. }) => {
                    let message = format!(
                        "{error}; if that device is gone, assemble the array without it: --degraded treats devices that cannot be opened as missing"
                    );
                    return Err(CommandFailure::Input(message));
                }
                Err(error) => return Err(CommandFailure::input(error)),
            }
        }
        let devices = shared(devices)?.into_iter();
        // The limit holds from the first superblock read on: a member that hangs must not hang the
        // assembly.
        let devices = devices.map(|device| Timed::limited(device, limit));
        Ok((devices.collect(), gone))
    }
}

#[derive(Serialize)]
struct Started<'a> {
    array: &'a fullstroke_store::ArrayStatus,
    report: &'a fullstroke_store::AssemblyReport,
    serving: &'a Serving,
}

impl SocketArgument {
    fn ask(&self, question: &Question) -> Result<serde_json::Value, CommandFailure> {
        ask(&ctl::control_path(&self.socket), question).map_err(CommandFailure::input)
    }

    fn show(&self, question: &Question, output: &CommandOutput) -> Result<(), CommandFailure> {
        let answer = self.ask(question)?;
        output.show(&answer, ArrayLines::answer(&answer))
    }

    /// Returns when the server has released the devices, because the next line of a script may use
    /// them.
    fn stop(&self, output: &CommandOutput) -> Result<(), CommandFailure> {
        let socket = ctl::control_path(&self.socket);
        // The server answers before it writes the last superblocks, so the answer alone does not
        // release the devices.
        let answer = self.ask(&Question::Stop)?;
        let began = Instant::now();
        while UnixStream::connect(&socket).is_ok() {
            if began.elapsed() > STOPPING {
                return Err(CommandFailure::Input(format!(
                    "`{}`: the array is still stopping",
                    socket.display()
                )));
            }
            std::thread::sleep(LOOK);
        }
        output.show(&answer, "stopped")
    }

    fn scrub(&self, repair: Repair, output: &CommandOutput) -> Result<(), CommandFailure> {
        let answer = self.ask(&Question::Scrub { repair })?;
        output.show(&answer, ArrayLines::answer(&answer))?;
        // A status of its own lets a timer or a script report the array without reading the answer.
        if answer["mismatched_sectors"].as_u64() == Some(0) {
            Ok(())
        } else {
            Err(CommandFailure::Checks)
        }
    }
}

impl Gear {
    fn execute(&self, output: &CommandOutput) -> Result<(), CommandFailure> {
        let towards = match self.towards {
            ShiftDirection::Down => GearDirection::Down,
            ShiftDirection::Up => GearDirection::Up,
        };
        self.at.show(&Question::Gear { towards }, output)
    }
}

impl Add {
    fn execute(&self, output: &CommandOutput) -> Result<(), CommandFailure> {
        // The server has another working directory, so a relative path would name another file.
        let device = std::path::absolute(&self.device).map_err(CommandFailure::input)?;
        self.at.show(
            &Question::Add {
                device,
                force: self.force,
            },
            output,
        )
    }
}

/// Superblock copies of one device.
#[derive(Serialize)]
struct Examined {
    device: String,
    #[serde(flatten)]
    copies: Option<Copies>,
    /// Other owners of the device, such as a file system.
    owners: Vec<&'static str>,
}

fn show_devices(paths: &[PathBuf], output: &CommandOutput) -> Result<(), CommandFailure> {
    let examined = paths.iter().map(|path| {
        let device = FileDevice::open_within(path, OpenPurpose::Look, MEMBER_TIMEOUT)
            .map_err(CommandFailure::input)?;
        let copies = examine(&device).map_err(CommandFailure::input)?;
        let owners = owners(&device).map_err(CommandFailure::input)?;
        Ok(Examined {
            device: device.name(),
            copies,
            owners,
        })
    });
    let examined = examined.collect::<Result<Vec<Examined>, CommandFailure>>()?;
    let shown = examined
        .iter()
        .map(|one| ArrayLines::examined(&one.device, one.copies.as_ref(), &one.owners));
    let shown: Vec<String> = shown.map(|shown| shown.to_string()).collect();
    output.show(&examined, shown.join("\n"))
}

fn destroy_all(
    paths: &[PathBuf],
    force: bool,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let devices = open(paths)?;
    // All devices are checked before the first change, so that an error changes none.
    for device in devices.iter().filter(|_| !force) {
        if examine(device).map_err(CommandFailure::input)?.is_none() {
            return Err(CommandFailure::Input(format!(
                "`{}` is no member of an array: found no superblock; nothing was changed",
                device.name()
            )));
        }
    }
    devices
        .iter()
        .try_for_each(|device| destroy(device, force).map_err(CommandFailure::input))?;
    let names: Vec<String> = devices.iter().map(FileDevice::name).collect();
    output.show(
        &names,
        format!("no longer members of an array: {}", names.join(", ")),
    )
}
