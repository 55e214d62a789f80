//! The keys of `anticipatory`.

use crate::TickClock;
use fullstroke_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Expiry of synchronous requests; default 125ms. Also the time between two searches for
    /// expired requests.
    #[serde(default = "read_expire")]
    pub(super) read_expire: Duration,
    /// Expiry of asynchronous requests; default 250ms. Also the time between two searches for
    /// expired requests.
    #[serde(default = "write_expire")]
    pub(super) write_expire: Duration,
    /// Time for which synchronous requests go before waiting asynchronous requests; default 500ms.
    #[serde(default = "read_batch_expire")]
    pub(super) read_batch_expire: Duration,
    /// Time for which asynchronous requests go before waiting synchronous requests; default 125ms.
    /// The number of requests in such a batch adapts to this time.
    #[serde(default = "write_batch_expire")]
    pub(super) write_batch_expire: Duration,
    /// The longest pause; default 6.7ms. 0s = no anticipation.
    #[serde(default = "antic_expire")]
    pub(super) antic_expire: Duration,
    /// Longest seek back; default 1MiB. A seek back counts as twice its length. (Carroll's thesis
    /// of 2008 says 1 MiB; the kernel's own limit, 1 048 576, is in sectors of 512 bytes:
    /// "512MiB".)
    #[serde(default = "back_seek_max")]
    pub(super) back_seek_max: Bytes,
    /// True if an asynchronous batch has its full time even if synchronous requests were in flight
    /// at its beginning; default true. With false, as in Linux before 2.6.30, such a batch ends
    /// before it has begun. Then asynchronous requests may starve with a deep queue.
    #[serde(default = "yes")]
    pub(super) batch_switch_fix: bool,
}

// The defaults are those of `block/as-iosched.c` of 2.6.24: `default_read_expire`,
// `default_write_expire`, `default_read_batch_expire`, `default_write_batch_expire`
// and `default_antic_expire`, fractions of HZ there.
fn read_expire() -> Duration {
    Duration::from_millis(125)
}

fn write_expire() -> Duration {
    Duration::from_millis(250)
}

fn read_batch_expire() -> Duration {
    Duration::from_millis(500)
}

fn write_batch_expire() -> Duration {
    Duration::from_millis(125)
}

/// `HZ / 150`, about the time of an access: a longer pause would cost more than the saved seek.
fn antic_expire() -> Duration {
    Duration::from_micros(6_700)
}

fn back_seek_max() -> Bytes {
    Bytes(1 << 20)
}

fn yes() -> bool {
    true
}

impl Config {
    /// Converts the expiries to `clock`.
    pub(super) fn at(self, clock: TickClock) -> Config {
        Config {
            read_expire: clock.whole(self.read_expire),
            write_expire: clock.whole(self.write_expire),
            read_batch_expire: clock.whole(self.read_batch_expire),
            write_batch_expire: clock.whole(self.write_batch_expire),
            antic_expire: clock.whole(self.antic_expire),
            ..self
        }
    }
}
