//! The status of a server.

use crate::lateness::LatenessSummary;
use crate::totals::DriveTotals;
use fullstroke_contract::{MemberState, Operation};
use serde::{Deserialize, Serialize};

/// Status of a running server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Version of the server's program.
    pub version: String,
    /// Real time since the server began, in s.
    pub uptime_s: f64,
    /// Speed of the world's time relative to real time; `None` if nothing is waited for.
    pub speed: Option<f64>,
    /// Number of connected clients.
    pub clients: u64,
    /// Exports, in the order of the command line.
    pub exports: Vec<ExportStatus>,
}

/// Status of one export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportStatus {
    /// Name of the export.
    pub name: String,
    /// Layouts, from the top: `raid5 of 5`.
    pub layout: String,
    /// Size for clients in bytes.
    pub usable_bytes: u64,
    /// World's time in ns.
    pub world_ns: u64,
    /// Number of arrived requests.
    pub requests: u64,
    /// Number of unanswered requests.
    pub in_flight: u64,
    /// Requests of clients by kind.
    pub operations: Operations,
    /// Lateness of the host's answers, in real time. A world at ten times the speed sees ten times
    /// as much.
    pub lateness: LatenessSummary,
    /// Safety of the data.
    #[serde(default)]
    pub health: Health,
    /// Compared share of the redundancy, while `scrub` is running.
    #[serde(default)]
    pub scrubbed_share: Option<f64>,
    /// Drives, in the order of the stack.
    pub drives: Vec<DriveStatus>,
}

/// State of a volume's data and redundancy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// State of the volume.
    pub state: VolumeState,
    /// True if data were given up, of which some was not written since, or was not at some time.
    pub data_lost: bool,
    /// Running rebuilds.
    pub rebuilds: Vec<RebuildStatus>,
    /// Comparison after the last server was killed; `None` at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparing: Option<ComparingStatus>,
    /// Gears of the volumes with gears.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gears: Vec<GearStatus>,
}

/// The gear of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GearStatus {
    /// Name of the volume: empty for the outermost, or the name as a member.
    pub volume: String,
    /// `high`, `falling`, `low` or `rising`.
    pub gear: String,
    /// Number of shifts begun since the server started.
    pub shifts: u64,
}

/// Redundancy being compared with the data in the background, after the last server was killed.
/// Until then, data there cannot be computed from the other members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparingStatus {
    /// Bytes of addresses whose redundancy was not compared yet.
    pub left_bytes: u64,
    /// Bytes to compare when the server began.
    pub of_bytes: u64,
}

/// State of a volume, the best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeState {
    /// All members are present.
    #[default]
    Whole,
    /// Members are being filled, and none has failed.
    Rebuilding,
    /// A member has failed, but no data are lost.
    Degraded,
    /// More members are lost than the redundancy covers.
    Failed,
}

/// Rebuild of a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebuildStatus {
    /// Name of the member: `3`, or `1.0` in nested volumes.
    pub member: String,
    /// Filled share.
    pub share: f64,
    /// Recent speed, in 10^6 bytes per second of the world's time.
    pub mb_per_s: Option<f64>,
    /// Remaining time at this speed, in s of the world's time.
    pub left_s: Option<f64>,
}

impl VolumeState {
    /// All states.
    pub const ALL: [VolumeState; 4] = [
        VolumeState::Whole,
        VolumeState::Rebuilding,
        VolumeState::Degraded,
        VolumeState::Failed,
    ];

    /// Returns the name of the state in messages.
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
    /// Returns the text for people: `degraded, data lost`.
    pub fn words(&self) -> String {
        let lost = if self.data_lost { ", data lost" } else { "" };
        format!("{}{lost}", self.state.name())
    }
}

impl GearStatus {
    /// Returns the text for people: `low gear, 3 shifts`.
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
    /// Returns the text for people: `comparing redundancy after a kill: 37.5 %, 40 MiB left`.
    pub fn words(&self) -> String {
        let done = self.of_bytes.saturating_sub(self.left_bytes);
        let percent = 100.0 * done as f64 / self.of_bytes.max(1) as f64;
        let left = self.left_bytes.div_ceil(1 << 20);
        format!("comparing redundancy after a kill: {percent:.1} %, {left} MiB left")
    }
}

impl RebuildStatus {
    /// Returns the text for people: `2: 41.3 %, 204.100 MB/s, 19.2 h left`.
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

/// Returns a span of time in a suitable unit.
fn span(seconds: f64) -> String {
    match seconds {
        _ if seconds < 100.0 => format!("{seconds:.0} s"),
        _ if seconds < 6000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Counters of one kind of requests, or of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationStatus {
    /// Number of answered requests, including failed ones.
    pub requests: u64,
    /// Bytes of the successful requests.
    pub bytes: u64,
    /// Number of failed requests.
    pub errors: u64,
    /// Sum of the response times of the successful requests, in s of the world's time.
    pub response_s: f64,
    /// Number of these requests by response time. Each bucket counts the requests up to its entry
    /// in [`RESPONSE_BUCKETS_S`](crate::RESPONSE_BUCKETS_S), without those of the bucket before.
    /// The last entry counts all longer ones.
    pub buckets: Vec<u64>,
}

/// Requests of clients, by kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operations {
    /// Reads.
    pub read: OperationStatus,
    /// Writes, including zeroes.
    pub write: OperationStatus,
    /// Flushes.
    pub flush: OperationStatus,
    /// Trims, and zeroes that need not be allocated.
    pub discard: OperationStatus,
}

/// State of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveState {
    /// The drive answers, and holds correct data.
    Alive,
    /// The drive's data are lost.
    Failed,
    /// The drive is being filled.
    Rebuilding,
}

impl DriveState {
    /// All states.
    pub const ALL: [DriveState; 3] = [
        DriveState::Alive,
        DriveState::Failed,
        DriveState::Rebuilding,
    ];

    /// Returns the name of the state in messages.
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

/// Status of one drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveStatus {
    /// Name of the drive: `3`, or `1.0` in nested volumes.
    pub name: String,
    /// State of the drive.
    pub state: DriveState,
    /// Filled share, during a rebuild.
    pub rebuilt_share: Option<f64>,
    /// Mean time of an I/O as a multiple of the median of the other drives, if the drive is slow;
    /// `None` for other drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowness: Option<f64>,
    /// Number of requests in the drive.
    pub queue_length: u32,
    /// Position of the arm, from the outside (0) to the inside (1).
    pub head_share: f64,
    /// Cylinder of the arm.
    pub head_cylinder: u32,
    /// True if the drive is working.
    pub busy: bool,
    /// Counters of the drive.
    #[serde(flatten)]
    pub totals: DriveTotals,
}

/// Upper ends of the buckets of response times, in seconds.
pub const RESPONSE_BUCKETS_S: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5,
];

impl Operations {
    /// Returns all kinds, with their names.
    pub fn by_name(&self) -> [(&'static str, &OperationStatus); 4] {
        let all = [&self.read, &self.write, &self.flush, &self.discard];
        let names = Operation::DATA.map(Operation::name);
        std::array::from_fn(|kind| (names[kind], all[kind]))
    }
}

impl OperationStatus {
    /// Returns the number of successful requests.
    pub const fn served(&self) -> u64 {
        self.requests.saturating_sub(self.errors)
    }

    /// Adds an answered request.
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
        // `end < response` puts a time at the end of a bucket into that bucket, as Prometheus's
        // `le` does.
        self.buckets[RESPONSE_BUCKETS_S.partition_point(|&end| end < response_s)] += 1;
    }
}
