//! The keys: names and defaults are the kernel's.

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::Deserialize;

/// The keys.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::elevator) struct Config {
    /// Time for which the device is left idle for the next request of a process; default 8ms; 0s =
    /// never.
    #[serde(default = "slice_idle")]
    pub(super) slice_idle: Duration,
    /// True if the device has one request at a time and always waits for the next one. Then shares
    /// are exact. Default false.
    #[serde(default)]
    pub(super) strict_guarantees: bool,
    /// Largest budget in sectors; default 0 = the measured throughput over `timeout_sync`.
    #[serde(default)]
    pub(super) max_budget: u64,
    /// Longest turn of a queue without favour, in whole ticks of 4 ms; default 124ms.
    #[serde(default = "timeout_sync")]
    pub(super) timeout_sync: Duration,
    /// Age at which a synchronous request goes before others of its queue, once a turn; default
    /// 125ms.
    #[serde(default = "fifo_expire_sync")]
    pub(super) fifo_expire_sync: Duration,
    /// Age at which an asynchronous request goes before others of its queue, once a turn; default
    /// 250ms.
    #[serde(default = "fifo_expire_async")]
    pub(super) fifo_expire_async: Duration,
    /// Longest seek back before all requests ahead are done; default "16 MiB".
    #[serde(default = "back_seek_max")]
    pub(super) back_seek_max: Bytes,
    /// Factor on the distance of a seek back; default 2.
    #[serde(default = "back_seek_penalty")]
    pub(super) back_seek_penalty: u32,
    /// True to favour interactive and soft real-time processes; default true.
    #[serde(default = "low_latency")]
    pub(super) low_latency: bool,
    /// Factor on the weight of interactive processes; soft real-time processes have a hundred times
    /// this factor. Default 30. The kernel has fixed values in place of this key and all others
    /// that begin with `wr_`; these values are the defaults.
    #[serde(default = "wr_coeff")]
    pub(super) wr_coeff: u32,
    /// Duration of an interactive favour; default 0s = 3 to 25 seconds, longer on a slower device.
    #[serde(default)]
    pub(super) wr_max_time: Duration,
    /// Smallest idle time before a process counts as interactive; default 2s.
    #[serde(default = "wr_min_idle_time")]
    pub(super) wr_min_idle_time: Duration,
    /// Duration of a soft real-time favour; default 300ms.
    #[serde(default = "wr_rt_max_time")]
    pub(super) wr_rt_max_time: Duration,
    /// Largest need of a soft real-time process, in sectors a second; default 7000; 0 = no process
    /// counts as soft real-time.
    #[serde(default = "wr_max_softrt_rate")]
    pub(super) wr_max_softrt_rate: u64,
}

fn slice_idle() -> Duration {
    // `bfq_slice_idle` of `block/bfq-iosched.c`, Linux 6.12: NSEC_PER_SEC / 125.
    Duration::from_millis(8)
}

fn timeout_sync() -> Duration {
    // `bfq_timeout`: HZ / 8 ticks, which are 31 ticks of 4 ms.
    Duration::from_millis(124)
}

fn fifo_expire_sync() -> Duration {
    // `bfq_fifo_expire[1]`: NSEC_PER_SEC / 8.
    Duration::from_millis(125)
}

fn fifo_expire_async() -> Duration {
    // `bfq_fifo_expire[0]`: NSEC_PER_SEC / 4.
    Duration::from_millis(250)
}

fn back_seek_max() -> Bytes {
    // `bfq_back_max`: 16 * 1024 KiB.
    Bytes(16 << 20)
}

fn back_seek_penalty() -> u32 {
    2
}

fn low_latency() -> bool {
    true
}

fn wr_coeff() -> u32 {
    // `bfq_init_queue` sets the keys `wr_...` below.
    30
}

fn wr_min_idle_time() -> Duration {
    Duration::from_secs(2)
}

fn wr_rt_max_time() -> Duration {
    Duration::from_millis(300)
}

fn wr_max_softrt_rate() -> u64 {
    7000
}

impl Config {
    /// Refuses contradictions, and values without meaning.
    pub(super) fn check(&self, keys: &Keys) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: &str| Err(ConfigError::new(key, message));
        if self.timeout_sync == Duration::ZERO {
            return refuse(
                "timeout_sync",
                "found 0s; expected a time above it, as \"124ms\"",
            );
        }
        if self.back_seek_penalty == 0 {
            return refuse("back_seek_penalty", "found 0; expected at least 1");
        }
        if !(2..=1000).contains(&self.wr_coeff) {
            let message = format!("found {}; expected 2 to 1000", self.wr_coeff);
            return Err(ConfigError::new("wr_coeff", message));
        }
        if self.strict_guarantees && self.slice_idle == Duration::ZERO {
            return refuse(
                "strict_guarantees",
                "needs `slice_idle` above 0s, because the device waits for each process",
            );
        }
        let raising = keys.keys().find(|key| key.starts_with("wr_"));
        match raising.filter(|_| !self.low_latency) {
            Some(key) => refuse(
                key,
                "has no effect with `low_latency = false`; remove one of the two keys",
            ),
            None => Ok(()),
        }
    }
}
