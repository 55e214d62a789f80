//! The keys of media streams in a stack file.

use fullstroke_contract::ConfigError;
use fullstroke_units::{BitRate, Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most streams of one load.
pub(crate) const STREAMS_MAX: u32 = 1 << 20;

/// Most reads that a server keeps for one stream: out-of-order reads are bits of one word.
const READ_AHEAD_MAX: u32 = 64;

/// Shortest playing time of one read.
// Below, one stream would issue more than a million reads a second.
const READ_PLAYS_MIN: Duration = Duration::from_micros(1);

/// Playing times of a read, of the start-up buffer and of the client's buffer, unless their sizes
/// are given. Players hold seconds: mpv reads one second ahead by default
/// (`demuxer-readahead-secs`).
const READ_PLAYS: Duration = Duration::from_micros(333_333);
const START_UP_PLAYS: Duration = Duration::from_secs(1);
const CLIENT_PLAYS: Duration = Duration::from_secs(5);

/// Bounds of the default size of a read, in bytes.
const READ_SIZE_MIN: u64 = 64 << 10;
const READ_SIZE_MAX: u64 = 4 << 20;

/// Shortest segment of a variable rate, because every segment is drawn.
const SEGMENT_MIN: Duration = Duration::from_millis(1);

/// The keys of a load of media streams. A server reads a file for each stream, one read after the
/// other, as far ahead as its buffer for the stream allows. The network takes no time: data move to
/// the client as soon as the client's buffer has room. The client starts to play when the start-up
/// buffer is full, and plays at its bit rate. A byte that is missing at its playing time makes the
/// client wait: an underrun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamsConfig {
    /// Number of started streams.
    pub streams: u32,
    /// Bit rate of each stream; or give `bit_rates`.
    pub bit_rate: Option<BitRate>,
    /// Bit rates of which each stream draws one, a list of `{ bit_rate, weight }`; or give
    /// `bit_rate`.
    #[serde(default)]
    pub bit_rates: Vec<WeightedBitRate>,
    /// Variation of the rate within a stream, `{ distribution, share, segment }`. Default:
    /// constant.
    pub variation: Option<VariationConfig>,
    /// Time after the start of the last stream.
    pub duration: Duration,
    /// End after this number of reads.
    pub requests: Option<u64>,
    /// Time from the start of a stream to the start of the next.
    #[serde(default = "one_second")]
    pub start_interval: Duration,
    /// Draw start intervals from an exponential distribution with this mean.
    #[serde(default)]
    pub exponential: bool,
    /// Start no further stream after a stream has waited longer than this between start and
    /// playback.
    pub until_start_up_latency: Option<Duration>,
    /// Start no further stream after an underrun.
    #[serde(default)]
    pub until_underrun: bool,
    /// Size of the server's reads. Default: a third of a second of play at the highest bit rate, as
    /// a power of two from 64 KiB to 4 MiB.
    pub read_size: Option<Bytes>,
    /// Number of reads that the server's buffer for a stream holds, in flight or not yet passed to
    /// the client. The server keeps as many in flight as fit.
    #[serde(default = "one")]
    pub read_ahead: u32,
    /// Data that the client needs before playback starts. Default: one second of play at the highest
    /// bit rate, at least one read, and at most the client's buffer.
    pub start_up_buffer: Option<Bytes>,
    /// Size of the client's buffer. Default: five seconds of play at the highest bit rate, at least
    /// the start-up buffer and one read.
    pub client_buffer: Option<Bytes>,
    /// Number of files. Default: the number of streams. Files are assigned to streams in a random
    /// order.
    pub files: Option<u32>,
    /// Size of each file, in whole reads. Default: as large as the region permits.
    pub file_size: Option<Bytes>,
    /// Placement of the files.
    #[serde(default)]
    pub placement: Placement,
    /// Files start at multiples of this size in the region.
    #[serde(default = "page")]
    pub alignment: Bytes,
    /// Start of the region with the files.
    #[serde(default)]
    pub region_start: Bytes,
    /// Size of the region. Default: everything after the start.
    pub region_size: Option<Bytes>,
    /// Start position of a stream in its file.
    #[serde(default)]
    pub start_position: StartPosition,
    /// Continuation after the end of a file.
    #[serde(default)]
    pub at_end: AtEnd,
    /// Number of further streams that are written, such as cameras: each writes its data to a file of
    /// its own, from the beginning of the run to its end. Writes have the size `read_size`.
    #[serde(default)]
    pub recordings: u32,
    /// Bit rate of each recording. Default: the highest bit rate of the other streams.
    pub recording_rate: Option<BitRate>,
    /// Data that a recorder holds until they are written. Data beyond are lost. Default: five seconds
    /// of the recording, at least two writes.
    pub recording_buffer: Option<Bytes>,
    /// Number of server processes that serve the streams in turn, as the elevator is told. Default:
    /// one per stream.
    pub servers: Option<u32>,
}

/// One of several rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedBitRate {
    /// The bit rate.
    pub bit_rate: BitRate,
    /// Share of the rate, relative to the sum of all weights.
    pub weight: f64,
}

/// A rate that varies within a stream. Each segment has its own rate, and the mean over all
/// segments is the stream's bit rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariationConfig {
    /// Distribution of the rates.
    pub distribution: Variability,
    /// uniform: largest distance from the mean as a share of the mean, up to 1. log-normal:
    /// standard deviation as a share of the mean, up to 4.
    pub share: f64,
    /// Playing time of a segment.
    #[serde(default = "one_second")]
    pub segment: Duration,
}

/// A distribution of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variability {
    /// All rates within the bounds are equally likely.
    Uniform,
    /// Few high rates, many low rates.
    LogNormal,
}

/// Placement of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// At equal distances: the first at the start of the region, the last at its end.
    #[default]
    Even,
    /// At random, without overlap.
    Random,
}

/// Start position of a stream in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartPosition {
    /// The first byte.
    #[default]
    Beginning,
    /// A random read.
    Random,
}

/// Continuation after the end of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtEnd {
    /// The same file from its start.
    #[default]
    Repeat,
    /// A random file from its start.
    Another,
}

fn one_second() -> Duration {
    Duration::from_secs(1)
}

fn page() -> Bytes {
    Bytes(4096)
}

fn one() -> u32 {
    1
}

impl StreamsConfig {
    /// Size of a read: the given one, or the default.
    pub fn read_bytes(&self) -> Bytes {
        self.read_size.unwrap_or_else(|| {
            // The nearest power of two by ratio: a third of a second of 25 Mbit/s is 1.04 MB, and
            // gives 1 MiB.
            let third = self.plays(READ_PLAYS).0.max(1);
            let below = 1u64 << third.ilog2();
            let nearest = if u128::from(third) * u128::from(third)
                < 2 * u128::from(below) * u128::from(below)
            {
                below
            } else {
                below.saturating_mul(2)
            };
            Bytes(nearest.clamp(READ_SIZE_MIN, READ_SIZE_MAX))
        })
    }

    /// Data that a client needs before playback.
    pub(crate) fn start_up_bytes(&self) -> Bytes {
        self.start_up_buffer.unwrap_or_else(|| {
            let wanted = self.plays(START_UP_PLAYS).max(self.read_bytes());
            self.client_buffer
                .map_or(wanted, |client| client.min(wanted))
        })
    }

    /// Size of the client's buffer.
    pub(crate) fn client_bytes(&self) -> Bytes {
        self.client_buffer.unwrap_or_else(|| {
            let least = self.start_up_bytes().0.saturating_add(self.read_bytes().0);
            self.plays(CLIENT_PLAYS).max(Bytes(least))
        })
    }

    /// Number of streams and recordings.
    pub(crate) fn with_recordings(&self) -> u32 {
        self.streams.saturating_add(self.recordings)
    }

    /// Bit rate of a recording.
    pub(crate) fn recording_rate(&self) -> BitRate {
        self.recording_rate.unwrap_or_else(|| {
            let rates = self.rates();
            let highest = rates.iter().map(|rate| rate.bit_rate.0).max();
            BitRate(highest.unwrap_or(1))
        })
    }

    /// Buffer of a recorder.
    pub(crate) fn recording_bytes(&self) -> Bytes {
        self.recording_buffer.unwrap_or_else(|| {
            let rate = u128::from(self.recording_rate().0);
            let bits = rate * u128::from(CLIENT_PLAYS.as_nanos()) / 1_000_000_000;
            let held = u64::try_from(bits / 8).unwrap_or(u64::MAX);
            Bytes(held.max(self.read_bytes().0.saturating_mul(2)))
        })
    }

    /// Checks the keys of recordings.
    fn check_recordings(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        if self.recordings == 0 {
            for (key, given) in [
                ("recording_rate", self.recording_rate.is_some()),
                ("recording_buffer", self.recording_buffer.is_some()),
            ] {
                if given {
                    return refuse(
                        key,
                        "there are no recordings; set recordings, or leave the key out".into(),
                    );
                }
            }
            return Ok(());
        }
        if self.with_recordings() > STREAMS_MAX {
            return refuse(
                "recordings",
                format!(
                    "found {}; expected at most {STREAMS_MAX} streams and recordings together",
                    self.recordings
                ),
            );
        }
        let read = self.read_bytes();
        let rate = self.recording_rate();
        if rate == BitRate(0) || rate.span(read) < READ_PLAYS_MIN {
            return refuse(
                "recording_rate",
                format!(
                    "found {rate}; expected a rate at which a write of {read} takes {READ_PLAYS_MIN} at least"
                ),
            );
        }
        if self.recording_bytes() < read {
            return refuse(
                "recording_buffer",
                format!(
                    "found {}, less than one write of {read}: each write would lose data",
                    self.recording_bytes()
                ),
            );
        }
        Ok(())
    }

    /// Data of this playing time at the highest bit rate.
    fn plays(&self, time: Duration) -> Bytes {
        let highest = self.rates().iter().map(|rate| rate.bit_rate.0).max();
        let bits = u128::from(highest.unwrap_or(0)) * u128::from(time.as_nanos()) / 1_000_000_000;
        Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }

    /// Every possible rate with its weight.
    pub(crate) fn rates(&self) -> Vec<WeightedBitRate> {
        let only = self.bit_rate.map(|bit_rate| WeightedBitRate {
            bit_rate,
            weight: 1.0,
        });
        only.map_or_else(|| self.bit_rates.clone(), |only| vec![only])
    }

    /// Checks the keys together.
    ///
    /// # Errors
    /// Names the impossible key.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        if !(1..=STREAMS_MAX).contains(&self.streams) {
            return refuse(
                "streams",
                format!("found {}; expected 1 to {STREAMS_MAX}", self.streams),
            );
        }
        let read = self.read_bytes();
        if read == Bytes(0) || read.sectors().is_none() {
            let message = format!("found {read}; expected a positive multiple of the sector, 512B");
            return refuse("read_size", message);
        }
        if !(1..=READ_AHEAD_MAX).contains(&self.read_ahead) {
            return refuse(
                "read_ahead",
                format!("found {}; expected 1 to {READ_AHEAD_MAX}", self.read_ahead),
            );
        }
        self.check_rates()?;
        self.check_variation()
            .map_err(|error| error.below("variation"))?;
        if self.client_bytes() == Bytes(0) {
            return refuse(
                "client_buffer",
                "found 0; expected at least one byte".into(),
            );
        }
        if self.start_up_bytes() > self.client_bytes() {
            let message = format!(
                "found {}, more than the client's buffer of {}; playback would never start",
                self.start_up_bytes(),
                self.client_bytes()
            );
            return refuse("start_up_buffer", message);
        }
        if self.requests == Some(0) {
            return refuse("requests", "found 0; expected at least 1, or no key".into());
        }
        if self.servers == Some(0) {
            return refuse("servers", "found 0; expected at least 1, or no key".into());
        }
        self.check_recordings()?;
        self.check_times()
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: &str| Err(ConfigError::new(key, message));
        match self.until_start_up_latency {
            _ if self.duration == Duration::ZERO => refuse(
                "duration",
                "found 0; the load would end with the last start",
            ),
            Some(Duration::ZERO) => refuse(
                "until_start_up_latency",
                "found 0; expected a time, or no key",
            ),
            limit
                if self.start_interval == Duration::ZERO
                    && (limit.is_some() || self.until_underrun) =>
            {
                let key = if limit.is_some() {
                    "until_start_up_latency"
                } else {
                    "until_underrun"
                };
                refuse(
                    "start_interval",
                    &format!("found 0; with {key} streams start one by one"),
                )
            }
            _ => Ok(()),
        }
    }

    fn check_rates(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        if self.bit_rate.is_some() != self.bit_rates.is_empty() {
            let found = if self.bit_rate.is_some() {
                "both"
            } else {
                "neither"
            };
            return refuse(
                "bit_rate",
                format!("found {found}; give either bit_rate or bit_rates"),
            );
        }
        let (key, rates) = (
            if self.bit_rate.is_some() {
                "bit_rate"
            } else {
                "bit_rates"
            },
            self.rates(),
        );
        let total: f64 = rates.iter().map(|rate| rate.weight).sum();
        let weights = rates
            .iter()
            .all(|rate| rate.weight.is_finite() && rate.weight >= 0.0);
        if !weights || total <= 0.0 || total.is_nan() {
            return refuse(key, "expected weights of 0 or more, not all 0".into());
        }
        for WeightedBitRate { bit_rate, .. } in rates {
            if bit_rate == BitRate(0) {
                return refuse(key, "found 0bit/s; playback would never start".into());
            }
            let read = self.read_bytes();
            let plays = bit_rate.span(read);
            if plays < READ_PLAYS_MIN {
                let message = format!(
                    "found {bit_rate}, at which a read of {read} plays for {plays}; \
                     expected {READ_PLAYS_MIN} at least: lower the rate, or raise read_size"
                );
                return refuse(key, message);
            }
        }
        Ok(())
    }

    fn check_variation(&self) -> Result<(), ConfigError> {
        let Some(variation) = &self.variation else {
            return Ok(());
        };
        let largest = match variation.distribution {
            Variability::Uniform => 1.0,
            Variability::LogNormal => 4.0,
        };
        if !(variation.share > 0.0 && variation.share <= largest) {
            let message = format!(
                "found {}; expected more than 0, up to {largest}",
                variation.share
            );
            return Err(ConfigError::new("share", message));
        }
        if variation.segment < SEGMENT_MIN {
            let message = format!(
                "found {}; expected {SEGMENT_MIN} at least",
                variation.segment
            );
            return Err(ConfigError::new("segment", message));
        }
        Ok(())
    }
}
