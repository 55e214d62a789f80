//! What a stack file says about media streams.

use fullstroke_contract::ConfigError;
use fullstroke_units::{BitRate, Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Streams that one load may have.
pub(crate) const STREAMS_MAX: u32 = 1 << 20;

/// Reads that a server may keep for one stream: those that have come out of
/// order are the bits of one word.
const READ_AHEAD_MAX: u32 = 64;

/// The least time that one read may play.
const READ_PLAYS_MIN: Duration = Duration::from_micros(1);

/// The shortest segment of a variable rate: each is drawn.
const SEGMENT_MIN: Duration = Duration::from_millis(1);

/// The keys of a load of media streams. A server reads a file for each stream,
/// one read after the other, as far ahead as its buffer for the stream allows.
/// Between server and client, which no network holds up, what the client's
/// buffer has room for is passed on at once. The client begins to play when it
/// has its start-up buffer, and plays at its bit rate; if a byte is not there
/// when it is needed, it waits for it: an underrun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamsConfig {
    /// How many streams are started.
    pub streams: u32,
    /// The rate at which each is played; or give `bit_rates`.
    pub bit_rate: Option<BitRate>,
    /// Rates of which each stream draws one, a list of `{ bit_rate, weight }`;
    /// or give `bit_rate`.
    #[serde(default)]
    pub bit_rates: Vec<WeightedBitRate>,
    /// How the rate varies within a stream, `{ distribution, share, segment }`;
    /// constant unless said.
    pub variation: Option<VariationConfig>,
    /// How long the load goes on after the last stream was started.
    pub duration: Duration,
    /// End after this many reads.
    pub requests: Option<u64>,
    /// From the start of one stream to the start of the next.
    #[serde(default = "one_second")]
    pub start_interval: Duration,
    /// Draw start intervals from an exponential distribution with that mean.
    #[serde(default)]
    pub exponential: bool,
    /// Start no further stream once a stream has waited longer than this from
    /// its start until it plays.
    pub until_start_up_latency: Option<Duration>,
    /// Start no further stream once a client has had to wait for a byte.
    #[serde(default)]
    pub until_underrun: bool,
    /// The size of the server's reads.
    #[serde(default = "read_size")]
    pub read_size: Bytes,
    /// Reads for which the server has room in its buffer for a stream, under way
    /// or not yet passed on to the client; all that it has room for are under
    /// way.
    #[serde(default = "one")]
    pub read_ahead: u32,
    /// How much the client has before it begins to play; one read unless said.
    pub start_up_buffer: Option<Bytes>,
    /// How much the client can have; the start-up buffer and one read unless
    /// said.
    pub client_buffer: Option<Bytes>,
    /// How many files there are; as many as streams unless said. They are dealt
    /// out to the streams in an order drawn at random.
    pub files: Option<u32>,
    /// The size of each, whole reads; what the region has room for unless said.
    pub file_size: Option<Bytes>,
    /// Where they lie.
    #[serde(default)]
    pub placement: Placement,
    /// Files start at multiples of this in the region.
    #[serde(default = "page")]
    pub alignment: Bytes,
    /// Where the part of the volume begins that holds the files.
    #[serde(default)]
    pub region_start: Bytes,
    /// How large it is; everything behind its start unless said.
    pub region_size: Option<Bytes>,
    /// Where in its file a stream starts.
    #[serde(default)]
    pub start_position: StartPosition,
    /// What a stream plays after the end of its file.
    #[serde(default)]
    pub at_end: AtEnd,
    /// Server processes to which streams are dealt out in turn, as the host's
    /// elevator is told; one for each stream unless said.
    pub servers: Option<u32>,
}

/// One of several rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedBitRate {
    /// The rate.
    pub bit_rate: BitRate,
    /// Its share, relative to the sum of all weights.
    pub weight: f64,
}

/// A rate that varies within a stream: each segment has one of its own, and
/// the mean over all of them is the stream's bit rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariationConfig {
    /// From what the rates are drawn.
    pub distribution: Variability,
    /// uniform: how far rates lie from the mean at most, as a share of it, up to
    /// 1. log-normal: their standard deviation as a share of the mean, up to 4.
    pub share: f64,
    /// How long a segment plays.
    #[serde(default = "one_second")]
    pub segment: Duration,
}

/// A distribution of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variability {
    /// All rates within bounds alike.
    Uniform,
    /// Few high ones, many low ones.
    LogNormal,
}

/// Where files lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// At equal distances, the first at the beginning of the region, the last at
    /// its end.
    #[default]
    Even,
    /// Anywhere, without overlap.
    Random,
}

/// Where in its file a stream starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartPosition {
    /// At its first byte.
    #[default]
    Beginning,
    /// At any of its reads.
    Random,
}

/// What a stream plays after the end of its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtEnd {
    /// The same file from its beginning.
    #[default]
    Repeat,
    /// A file drawn at random, from its beginning.
    Another,
}

fn one_second() -> Duration {
    Duration::from_secs(1)
}

fn read_size() -> Bytes {
    Bytes(64 << 10)
}

fn page() -> Bytes {
    Bytes(4096)
}

fn one() -> u32 {
    1
}

impl StreamsConfig {
    /// How much a client has before it plays.
    pub(crate) fn start_up_bytes(&self) -> Bytes {
        self.start_up_buffer.unwrap_or(self.read_size)
    }

    /// How much a client can have.
    pub(crate) fn client_bytes(&self) -> Bytes {
        let unless_said = self.start_up_bytes().0.saturating_add(self.read_size.0);
        self.client_buffer.unwrap_or(Bytes(unless_said))
    }

    /// Every rate that a stream may have, with its weight.
    pub(crate) fn rates(&self) -> Vec<WeightedBitRate> {
        let only = self.bit_rate.map(|bit_rate| WeightedBitRate {
            bit_rate,
            weight: 1.0,
        });
        only.map_or_else(|| self.bit_rates.clone(), |only| vec![only])
    }

    /// Whether these keys go together.
    ///
    /// # Errors
    /// Names the key that cannot be.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        if !(1..=STREAMS_MAX).contains(&self.streams) {
            return refuse(
                "streams",
                format!("found {}; expected 1 to {STREAMS_MAX}", self.streams),
            );
        }
        if self.read_size == Bytes(0) || self.read_size.sectors().is_none() {
            let message = format!(
                "found {}; expected a positive multiple of the sector, 512B",
                self.read_size
            );
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
                "found {}, more than the client's buffer of {}; it would never begin to play",
                self.start_up_bytes(),
                self.client_bytes()
            );
            return refuse("start_up_buffer", message);
        }
        if self.requests == Some(0) {
            return refuse(
                "requests",
                "found 0; expected at least 1, or leave it out".into(),
            );
        }
        if self.servers == Some(0) {
            return refuse(
                "servers",
                "found 0; expected at least 1, or leave it out".into(),
            );
        }
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
                "found 0; expected a time, or leave it out",
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
                return refuse(key, "found 0bit/s; nothing would ever be played".into());
            }
            let plays = bit_rate.span(self.read_size);
            if plays < READ_PLAYS_MIN {
                let message = format!(
                    "found {bit_rate}, at which a read of {} plays for {plays}; \
                     expected {READ_PLAYS_MIN} at least: lower the rate, or raise read_size",
                    self.read_size
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
