//! How a server is.

use crate::lateness::LatenessSummary;
use crate::totals::DriveTotals;
use fullstroke_contract::{MemberState, Operation};
use serde::{Deserialize, Serialize};

/// A running server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Of the server's program.
    pub version: String,
    /// Since the server began, outside of the world.
    pub uptime_s: f64,
    /// How many times as fast as outside the world's time passes; `None` if
    /// nothing is waited for.
    pub speed: Option<f64>,
    /// Clients that are connected.
    pub clients: u64,
    /// The exports, in the order of the command line.
    pub exports: Vec<ExportStatus>,
}

/// One export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportStatus {
    /// Its name.
    pub name: String,
    /// The layouts, from the top: `raid5 of 5`.
    pub layout: String,
    /// Bytes that clients can address.
    pub usable_bytes: u64,
    /// The world's time.
    pub world_ns: u64,
    /// Requests that have arrived.
    pub requests: u64,
    /// Requests that were not answered.
    pub in_flight: u64,
    /// What clients have asked for.
    pub operations: Operations,
    /// How late the host answered, in time outside of the world: a world that
    /// runs ten times as fast sees ten times as much.
    pub lateness: LatenessSummary,
    /// What of the data is safe.
    #[serde(default)]
    pub health: Health,
    /// How much of the redundancy has been compared, while `scrub` is under way.
    #[serde(default)]
    pub scrubbed_share: Option<f64>,
    /// The drives, in the order of the stack.
    pub drives: Vec<DriveStatus>,
}

/// Whether a volume has its data, and its redundancy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// The volume's.
    pub state: VolumeState,
    /// Whether data was given up, some of which was not written since or once
    /// was not.
    pub data_lost: bool,
    /// The rebuilds that go on.
    pub rebuilds: Vec<RebuildStatus>,
    /// What is still compared after the last server was killed; `None` once all
    /// is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparing: Option<ComparingStatus>,
    /// Of each volume that has gears.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gears: Vec<GearStatus>,
}

/// The gear of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GearStatus {
    /// The volume's name: empty for the outermost, or as members are called.
    pub volume: String,
    /// `high`, `falling`, `low` or `rising`.
    pub gear: String,
    /// How often it has begun to shift since the server began.
    pub shifts: u64,
}

/// Redundancy that is compared with the data behind, after the last server was
/// killed. Nothing there can be computed from the other members until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparingStatus {
    /// Bytes of addresses of which the redundancy was not compared yet.
    pub left_bytes: u64,
    /// Such bytes when the server began.
    pub of_bytes: u64,
}

/// The state of a volume, the best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeState {
    /// All members are there.
    #[default]
    Whole,
    /// Members are being filled, and none has failed.
    Rebuilding,
    /// A member has failed, no data has.
    Degraded,
    /// More members are lost than the redundancy covers.
    Failed,
}

/// The rebuild of a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebuildStatus {
    /// Its name: `3`, or `1.0` where volumes nest.
    pub member: String,
    /// How much of it is filled.
    pub share: f64,
    /// How fast it was filled lately, in 10^6 bytes a second of the world's
    /// time.
    pub mb_per_s: Option<f64>,
    /// How long the rest takes at that speed, in the world.
    pub left_s: Option<f64>,
}

impl VolumeState {
    /// All of them.
    pub const ALL: [VolumeState; 4] = [
        VolumeState::Whole,
        VolumeState::Rebuilding,
        VolumeState::Degraded,
        VolumeState::Failed,
    ];

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            VolumeState::Whole => "whole",
            VolumeState::Rebuilding => "rebuilding",
            VolumeState::Degraded => "degraded",
            VolumeState::Failed => "failed",
        }
    }
}

impl Health {
    /// For people: `degraded, data lost`.
    pub fn words(&self) -> String {
        let lost = if self.data_lost { ", data lost" } else { "" };
        format!("{}{lost}", self.state.name())
    }
}

impl GearStatus {
    /// For people: `low gear, 3 shifts`.
    pub fn words(&self) -> String {
        let volume = if self.volume.is_empty() {
            String::new()
        } else {
            format!("{}: ", self.volume)
        };
        let shifts = if self.shifts == 1 { "shift" } else { "shifts" };
        format!("{volume}{} gear, {} {shifts}", self.gear, self.shifts)
    }
}

impl ComparingStatus {
    /// For people: `comparing redundancy after a kill: 37.5 %, 40 MiB left`.
    pub fn words(&self) -> String {
        let done = self.of_bytes.saturating_sub(self.left_bytes);
        let percent = 100.0 * done as f64 / self.of_bytes.max(1) as f64;
        let left = self.left_bytes.div_ceil(1 << 20);
        format!("comparing redundancy after a kill: {percent:.1} %, {left} MiB left")
    }
}

impl RebuildStatus {
    /// For people: `2: 41.3 %, 204.100 MB/s, 19.2 h left`.
    pub fn words(&self) -> String {
        let speed = self
            .mb_per_s
            .map_or(String::new(), |speed| format!(", {speed:.1} MB/s"));
        let left = self
            .left_s
            .map_or(String::new(), |left| format!(", {} left", span(left)));
        format!("{}: {:.1} %{speed}{left}", self.member, 100.0 * self.share)
    }
}

/// A span of time in the unit that suits it.
fn span(seconds: f64) -> String {
    match seconds {
        _ if seconds < 100.0 => format!("{seconds:.0} s"),
        _ if seconds < 6000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// One kind of requests, or all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationStatus {
    /// Answered requests, failed ones included.
    pub requests: u64,
    /// Bytes of those that did not fail.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// The sum of the response times in the world of those that did not fail.
    pub response_s: f64,
    /// These requests by response time: how many took at most
    /// [`RESPONSE_BUCKETS_S`](crate::RESPONSE_BUCKETS_S), each bucket
    /// without those of the one before; the last entry counts all longer ones.
    pub buckets: Vec<u64>,
}

/// What clients have asked for, by kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operations {
    /// Reads.
    pub read: OperationStatus,
    /// Writes, of zeroes as well.
    pub write: OperationStatus,
    /// Flushes.
    pub flush: OperationStatus,
    /// Trims, and zeroes that need not be allocated.
    pub discard: OperationStatus,
}

/// The state of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveState {
    /// It answers, and holds what it should.
    Alive,
    /// What it held is lost.
    Failed,
    /// It is being filled.
    Rebuilding,
}

impl DriveState {
    /// All of them.
    pub const ALL: [DriveState; 3] = [
        DriveState::Alive,
        DriveState::Failed,
        DriveState::Rebuilding,
    ];

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            DriveState::Alive => "alive",
            DriveState::Failed => "failed",
            DriveState::Rebuilding => "rebuilding",
        }
    }
}

impl From<MemberState> for DriveState {
    fn from(state: MemberState) -> DriveState {
        match state {
            MemberState::Alive => DriveState::Alive,
            MemberState::Failed => DriveState::Failed,
            MemberState::Rebuilding { .. } => DriveState::Rebuilding,
        }
    }
}

/// One drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveStatus {
    /// Its name: `3`, or `1.0` where volumes nest.
    pub name: String,
    /// Its state.
    pub state: DriveState,
    /// How much of it is filled, while it is rebuilt.
    pub rebuilt_share: Option<f64>,
    /// Requests in it.
    pub queue_length: u32,
    /// Where the arm is, from the outside (0) to the inside (1).
    pub head_share: f64,
    /// The cylinder.
    pub head_cylinder: u32,
    /// Whether it has something to do.
    pub busy: bool,
    /// What it has counted.
    #[serde(flatten)]
    pub totals: DriveTotals,
}

/// The upper ends of the buckets of response times, in seconds.
pub const RESPONSE_BUCKETS_S: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5,
];

impl Operations {
    /// All kinds, with their names.
    pub fn by_name(&self) -> [(&'static str, &OperationStatus); 4] {
        let all = [&self.read, &self.write, &self.flush, &self.discard];
        let names = Operation::DATA.map(Operation::name);
        std::array::from_fn(|kind| (names[kind], all[kind]))
    }
}

impl OperationStatus {
    /// Answered requests that did not fail.
    pub const fn served(&self) -> u64 {
        self.requests.saturating_sub(self.errors)
    }

    /// A request was answered.
    #[inline]
    pub(crate) fn add(&mut self, bytes: u64, response_s: f64, failed: bool) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; RESPONSE_BUCKETS_S.len() + 1];
        }
        self.requests += 1;
        if failed {
            self.errors += 1;
            return;
        }
        self.bytes += bytes;
        self.response_s += response_s;
        self.buckets[RESPONSE_BUCKETS_S.partition_point(|&end| end < response_s)] += 1;
    }
}
