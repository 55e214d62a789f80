//! Words on a wire: frames and their duration.

use crate::transfer::Payload;
use fullstroke_contract::ConfigError;
use fullstroke_units::Duration;

/// Femtoseconds of a nanosecond.
const FEMTOSECONDS: u64 = 1_000_000;

/// Bits of a word of four bytes in 8b/10b.
const WORD_BITS: f64 = 40.0;

/// Bytes of a word.
pub(crate) const WORD: u64 = 4;

/// A time span in femtoseconds, of which words and bytes are whole multiples. The span saturates at
/// 5 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireTime(u64);

impl WireTime {
    pub(crate) const ZERO: WireTime = WireTime(0);

    /// # Errors
    /// At `key`: not a span of time, from 0 to a second.
    pub(crate) fn from_nanos(key: &str, nanoseconds: f64) -> Result<WireTime, ConfigError> {
        if !(0.0..=1e9).contains(&nanoseconds) {
            let message = format!("found {nanoseconds}; expected nanoseconds, from 0 to 10^9");
            return Err(ConfigError::new(key, message));
        }
        Ok(WireTime((nanoseconds * FEMTOSECONDS as f64).round() as u64))
    }

    /// The duration of a word at `gigabits` 10^9 bits a second.
    ///
    /// # Errors
    /// At `key`: not a rate, from 0.001 to 1000.
    pub(crate) fn word(key: &str, gigabits: f64) -> Result<WireTime, ConfigError> {
        rate(key, gigabits, 0.001, 1000.0, "10^9 bits a second")?;
        WireTime::from_nanos(key, WORD_BITS / gigabits)
    }

    /// The duration of a byte at `megabytes` 10^6 bytes a second.
    ///
    /// # Errors
    /// At `key`: not a rate, from 0.1 to 10000.
    pub(crate) fn byte(key: &str, megabytes: f64) -> Result<WireTime, ConfigError> {
        rate(key, megabytes, 0.1, 10_000.0, "10^6 bytes a second")?;
        WireTime::from_nanos(key, 1000.0 / megabytes)
    }

    pub(crate) fn times(self, count: u64) -> WireTime {
        WireTime(self.0.saturating_mul(count))
    }

    pub(crate) fn plus(self, other: WireTime) -> WireTime {
        WireTime(self.0.saturating_add(other.0))
    }

    /// The span in whole nanoseconds, rounded up.
    pub(crate) fn duration(self) -> Duration {
        // Rounding up keeps a transfer from ending before its last bit has arrived.
        Duration::from_nanos(self.0.div_ceil(FEMTOSECONDS))
    }
}

/// # Errors
/// At `key`: more than a second.
pub(crate) fn at_most_a_second(key: &str, found: Duration) -> Result<(), ConfigError> {
    if found <= Duration::from_millis(1000) {
        return Ok(());
    }
    Err(ConfigError::new(
        key,
        format!("found {} s; expected a second at most", found.as_secs_f64()),
    ))
}

fn rate(key: &str, found: f64, least: f64, most: f64, unit: &str) -> Result<(), ConfigError> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(ConfigError::new(
        key,
        format!("found {found}; expected {unit}, from {least} to {most}"),
    ))
}

/// A protocol's way to pack information units into frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framing {
    /// Bytes of an information unit per frame, a multiple of a word.
    pub(crate) payload: u64,
    /// Words of a frame besides the data, including the words before the next frame.
    pub(crate) extra_words: u64,
    /// Bytes of a command, of the readiness for data, of a status.
    pub(crate) command: u64,
    pub(crate) transfer_ready: u64,
    pub(crate) status: u64,
}

impl Framing {
    /// Words of a payload on the wire.
    pub(crate) fn words(&self, payload: Payload) -> u64 {
        let bytes = match payload {
            Payload::Command => self.command,
            Payload::TransferReady => self.transfer_ready,
            Payload::Status => self.status,
            Payload::Data(bytes) => bytes.0,
        };
        // A command without data still needs one frame.
        let frames = bytes.div_ceil(self.payload).max(1);
        bytes.div_ceil(WORD) + frames * self.extra_words
    }

    /// Bytes on the wire besides the data.
    pub(crate) fn overhead(&self, payload: Payload) -> u64 {
        self.words(payload) * WORD - payload.data().0
    }
}

/// # Errors
/// At `key`: not a size of a frame's data.
pub(crate) fn frame_payload(key: &str, found: u64, most: u64) -> Result<u64, ConfigError> {
    if (WORD..=most).contains(&found) && found.is_multiple_of(WORD) {
        return Ok(found);
    }
    Err(ConfigError::new(
        key,
        format!("found {found} bytes; expected a multiple of {WORD}, up to {most}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Bytes;

    #[test]
    fn data_fill_frames_and_the_last_holds_the_rest() {
        let framing = Framing {
            payload: 2112,
            extra_words: 15,
            command: 32,
            transfer_ready: 12,
            status: 24,
        };
        for (payload, words) in [
            (Payload::Command, 8 + 15),
            (Payload::TransferReady, 3 + 15),
            (Payload::Status, 6 + 15),
            (Payload::Data(Bytes(0)), 15),
            (Payload::Data(Bytes(2112)), 528 + 15),
            (Payload::Data(Bytes(2113)), 529 + 30),
            (Payload::Data(Bytes(4096)), 1024 + 30),
        ] {
            assert_eq!(framing.words(payload), words, "{payload:?}");
        }
        assert_eq!(framing.overhead(Payload::Data(Bytes(4096))), 120);
        assert_eq!(framing.overhead(Payload::Data(Bytes(2113))), 123);
        assert_eq!(framing.overhead(Payload::Status), 84);
    }

    #[test]
    fn spans_are_rounded_up_once() {
        let word = WireTime::word("rate", 1.0625).unwrap();
        assert_eq!(word.duration(), Duration::from_nanos(38));
        assert_eq!(word.times(1000).duration(), Duration::from_nanos(37_648));
        assert_eq!(
            WireTime::byte("rate", 40.0).unwrap().times(4096).duration(),
            Duration::from_micros(102) + Duration::from_nanos(400)
        );
        assert_eq!(
            word.times(u64::MAX).duration().as_nanos(),
            u64::MAX.div_ceil(FEMTOSECONDS)
        );
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(
                WireTime::word("rate", wrong)
                    .unwrap_err()
                    .message
                    .contains("expected 10^9 bits"),
                "{wrong}"
            );
        }
    }
}
