//! The keys of `cfq`.

use crate::TickClock;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Longest seek back; default 16MiB.
    #[serde(default = "back_seek_max")]
    pub(super) back_seek_max: Bytes,
    /// Factor on the distance of a seek back; default 2.
    #[serde(default = "back_seek_penalty")]
    pub(super) back_seek_penalty: u32,
    /// Expiry of asynchronous requests; default 250ms. If the oldest request of the queue has
    /// expired, a slice begins with it.
    #[serde(default = "fifo_expire_async")]
    pub(super) fifo_expire_async: Duration,
    /// Expiry of synchronous requests; default 125ms. If the oldest request of the queue has
    /// expired, a slice begins with it.
    #[serde(default = "fifo_expire_sync")]
    pub(super) fifo_expire_sync: Duration,
    /// Largest number of requests that a queue sends in one round, and has in flight while other
    /// queues wait; default 4. A queue alone may have four times as many in flight.
    #[serde(default = "quantum")]
    pub(super) quantum: u32,
    /// Slice of asynchronous requests at level 4; default 40ms. Each level above is a fifth longer,
    /// each level below a fifth shorter.
    #[serde(default = "slice_async")]
    pub(super) slice_async: Duration,
    /// Slice of synchronous requests at level 4; default 100ms. Each level above is a fifth longer,
    /// each level below a fifth shorter.
    #[serde(default = "slice_sync")]
    pub(super) slice_sync: Duration,
    /// Base of the largest number of asynchronous requests in a slice: twice the base at level 7,
    /// sixteen times the base at level 0; default 2. Checked after each `quantum`.
    #[serde(default = "slice_async_rq")]
    pub(super) slice_async_rq: u32,
    /// Time for which a slice waits for the next synchronous request of its process; default 8ms.
    /// 0s = no wait.
    #[serde(default = "slice_idle")]
    pub(super) slice_idle: Duration,
    /// True if a device counts as queueing only after more than four requests were in flight, as in
    /// Linux 2.6.24. Default false: the device counts as queueing from the beginning if it may have
    /// more than four. Before the detection, slices wait even for processes that read at random.
    /// Then more than one request may never be in flight (Carroll's thesis, "I/O scheduling on
    /// RAID", 2008, section 6.4).
    #[serde(default)]
    pub(super) queueing_detection_bug: bool,
    /// With `coordinate` of the volume above, a request carries the length of a queue at another
    /// member that serves a part of the same request. Each request of that queue counts as
    /// 2^queue_weight sectors of distance. Default: no distance.
    pub(super) queue_weight: Option<u32>,
}

// The defaults are those of `block/cfq-iosched.c` of 2.6.24, fractions of HZ
// there: `cfq_back_max`, `cfq_back_penalty`, `cfq_fifo_expire`, `cfq_quantum`,
// `cfq_slice_async`, `cfq_slice_sync`, `cfq_slice_async_rq`, `cfq_slice_idle`.
fn back_seek_max() -> Bytes {
    Bytes(16 << 20)
}

fn back_seek_penalty() -> u32 {
    2
}

fn fifo_expire_async() -> Duration {
    Duration::from_millis(250)
}

fn fifo_expire_sync() -> Duration {
    Duration::from_millis(125)
}

fn quantum() -> u32 {
    4
}

fn slice_async() -> Duration {
    Duration::from_millis(40)
}

fn slice_sync() -> Duration {
    Duration::from_millis(100)
}

fn slice_async_rq() -> u32 {
    2
}

fn slice_idle() -> Duration {
    Duration::from_millis(8)
}

impl Config {
    /// Converts the expiries to `clock`.
    pub(super) fn at(self, clock: TickClock) -> Config {
        Config {
            fifo_expire_async: clock.whole(self.fifo_expire_async),
            fifo_expire_sync: clock.whole(self.fifo_expire_sync),
            slice_async: clock.whole(self.slice_async),
            slice_sync: clock.whole(self.slice_sync),
            slice_idle: clock.whole(self.slice_idle),
            ..self
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key, found, expected: &str| {
            Err(ConfigError::new(
                key,
                format!("found {found}; expected {expected}"),
            ))
        };
        for (key, value) in [
            ("quantum", self.quantum),
            ("back_seek_penalty", self.back_seek_penalty),
            ("slice_async_rq", self.slice_async_rq),
        ] {
            if value == 0 {
                return refuse(key, "0", "at least 1");
            }
        }
        for (key, value) in [
            ("slice_sync", self.slice_sync),
            ("slice_async", self.slice_async),
        ] {
            if value < Duration::from_micros(1) {
                return refuse(
                    key,
                    &value.to_string(),
                    "a slice of at least 1us, as \"100ms\"",
                );
            }
        }
        Ok(())
    }
}
