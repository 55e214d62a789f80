//! The keys of Bonnie, and the checked configuration.

use crate::call::Fd;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The only descriptor of the parent and of each seeker.
pub(super) const FD: Fd = Fd(0);

const SIZE_MAX: u64 = 1 << 44;

const CHUNK_MAX: u64 = 1 << 30;

const SEEKERS_MAX: u32 = 1000;

/// Keys of Bonnie. Defaults depend on the flavour.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `bonnie` (Bray, 1996) or `bonnie++` (2.00). Default `bonnie`.
    #[serde(default)]
    pub flavour: Flavour,
    /// Path of the file. Default `Bonnie`.
    #[serde(default = "path")]
    pub path: String,
    /// Length of the file, rounded down to whole chunks. Default 100MiB, as in Bray's program.
    #[serde(default = "size")]
    pub size: Bytes,
    /// Length of a block. Default 16KiB with Bonnie, 8KiB with bonnie++.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Bytes>,
    /// Phases to run, in the order of the flavour. Default: all phases. If the first phase does not
    /// write the file, the file exists before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<Phase>>,
    /// Number of seeking processes. Default 3 with Bonnie, 5 with bonnie++.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seekers: Option<u32>,
    /// Number of seeks of all processes together. Default 4000 with Bonnie, 8192 with bonnie++.
    /// Each process writes back every tenth chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeks: Option<u64>,
    /// Buffer of a stream of the C library, for characters. Default 4KiB.
    #[serde(default = "buffer")]
    pub stdio: Bytes,
    /// CPU time of `putc` or `getc` for each character. Default 20ns (assumed; 50 MB/s).
    #[serde(default = "character")]
    pub cpu_character: Duration,
    /// CPU time for each chunk outside the character phases. Default 0 (assumed).
    #[serde(default)]
    pub cpu_chunk: Duration,
}

/// Version of Bonnie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Flavour {
    /// Tim Bray's version of 1996.
    #[default]
    #[serde(rename = "bonnie")]
    Bonnie,
    /// Russell Coker's version 2.00, with `fsync` before each close.
    #[serde(rename = "bonnie++")]
    PlusPlus,
}

/// A phase of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Writes a new file by characters.
    Putc,
    /// Writes a new file in chunks.
    Write,
    /// Reads each chunk and writes it back.
    Rewrite,
    /// Reads by characters.
    Getc,
    /// Reads in chunks.
    Read,
    /// Reads chunks at random places.
    Seek,
}

impl Phase {
    /// All phases, in the order of reports.
    pub(super) const ALL: [Phase; 6] = [
        Phase::Putc,
        Phase::Write,
        Phase::Rewrite,
        Phase::Getc,
        Phase::Read,
        Phase::Seek,
    ];

    /// True if the phase begins with a new file.
    pub(super) fn makes(self) -> bool {
        matches!(self, Phase::Putc | Phase::Write)
    }
}

fn path() -> String {
    "Bonnie".into()
}

fn size() -> Bytes {
    // The default of Bray's `-s`.
    Bytes(100 << 20)
}

fn buffer() -> Bytes {
    Bytes(4096)
}

fn character() -> Duration {
    Duration::from_nanos(20)
}

/// The checked configuration.
#[derive(Clone, Debug)]
pub(super) struct BonniePlan {
    pub(super) flavour: Flavour,
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) chunk: u64,
    pub(super) phases: Vec<Phase>,
    pub(super) seekers: u32,
    pub(super) seeks: u64,
    pub(super) stdio: u64,
    pub(super) cpu_character: Duration,
    pub(super) cpu_chunk: Duration,
}

/// Returns `found` if it is from `low` to `high`, otherwise an error.
fn bounded(key: &str, found: u64, low: u64, high: u64) -> Result<u64, ConfigError> {
    if (low..=high).contains(&found) {
        return Ok(found);
    }
    Err(ConfigError::new(
        key,
        format!("found {found}; expected {low} to {high}"),
    ))
}

impl BonniePlan {
    pub(super) fn of(config: Config) -> Result<BonniePlan, ConfigError> {
        let (order, chunk, seekers, seeks) = match config.flavour {
            Flavour::Bonnie => {
                let order = [
                    Phase::Putc,
                    Phase::Rewrite,
                    Phase::Write,
                    Phase::Getc,
                    Phase::Read,
                    Phase::Seek,
                ];
                // Bray's constants: `Chunk` 16384, `SeekProcCount` 3, `Seeks` 4000 (Bonnie.c,
                // 1996).
                (order, 16 << 10, 3, 4000)
            }
            // Constants of bonnie++ 2.00: chunks of 8 KiB, 5 seekers, 8192 seeks.
            Flavour::PlusPlus => (Phase::ALL, 8 << 10, 5, 8192),
        };
        let chunk = bounded(
            "chunk",
            config.chunk.map_or(chunk, |chunk| chunk.0),
            1,
            CHUNK_MAX,
        )?;
        let size = bounded("size", config.size.0, chunk, SIZE_MAX)?;
        let wanted = config.phases.unwrap_or_else(|| order.to_vec());
        let phases: Vec<Phase> = order
            .into_iter()
            .filter(|phase| wanted.contains(phase))
            .collect();
        if phases.is_empty() {
            return Err(ConfigError::new(
                "phases",
                "found none; expected at least one",
            ));
        }
        let seekers = config.seekers.unwrap_or(seekers);
        Ok(BonniePlan {
            flavour: config.flavour,
            path: config.path,
            // A part of a chunk at the end would be a write of another size. Bonnie writes whole
            // chunks only.
            size: size - size % chunk,
            chunk,
            phases,
            seekers: bounded("seekers", seekers.into(), 1, SEEKERS_MAX.into())? as u32,
            seeks: bounded("seeks", config.seeks.unwrap_or(seeks), 1, 1_000_000_000)?,
            stdio: bounded("stdio", config.stdio.0, 1, 1 << 20)?,
            cpu_character: config.cpu_character,
            cpu_chunk: config.cpu_chunk,
        })
    }
}

/// Result of a phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseResult {
    pub(super) phase: Phase,
    /// Number of bytes, or of seeks.
    pub(super) done: u64,
    pub(super) took: Duration,
    pub(super) computed: Duration,
}
