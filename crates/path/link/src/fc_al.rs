//! `fc-al`: a Fibre Channel arbitrated loop.

use crate::shared::{Protocol, Shared};
use crate::transfer::{Link, Station, Transfer};
use crate::wire::{Framing, Span, frame_payload};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const SUMMARY: &str =
    "a Fibre Channel arbitrated loop: one circuit at a time, the host and up to 125 members";

/// Ports of a loop besides the one of a fabric.
const PORTS_MAX: usize = 126;

/// Keys of `fc-al`.
///
/// A port that wants the loop sends ARB around it; the winner sends OPN to the
/// receiver, which answers R_RDY; frames follow; CLS goes around and frees the
/// loop (FC-AL-2, the states of the loop port). Ports lie on the loop in the
/// order host, member 0, member 1, ..., which is also that of their priority
/// (AL_PA).
///
/// - A port that waits when a circuit ends needs no turn of its own: its ARB is
///   under way already, and has to come from the port that closes.
/// - The receiver's buffer credit never runs out within a circuit: after the
///   first R_RDY frames follow each other.
/// - A circuit carries one direction: from whoever opened it. Loops can be used
///   both ways at once; initiators and drives of the time seldom did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FcAlConfig {
    /// Bits on the wire, in 10^9 a second; a byte takes ten. 1.0625 is what is
    /// called 100 MB/s.
    #[serde(default = "full_speed")]
    pub rate_gbaud: f64,
    /// On the way from a port to the next.
    #[serde(default = "short_cable")]
    pub propagation_ns: f64,
    /// How long a port takes to pass a word on, in words.
    #[serde(default = "six")]
    pub node_delay_words: u32,
    /// Data of a frame at most.
    #[serde(default = "largest_frame")]
    pub frame_payload: Bytes,
    /// Whether a port that has won does not ask again until no other waits;
    /// otherwise the lowest address always wins.
    #[serde(default = "yes")]
    pub fairness: bool,
}

fn full_speed() -> f64 {
    1.0625
}
fn short_cable() -> f64 {
    3.5
}
fn six() -> u32 {
    6
}
fn largest_frame() -> Bytes {
    Bytes(2112)
}
fn yes() -> bool {
    true
}

/// Start of frame, header of six words, CRC, end of frame; six words between
/// frames.
const EXTRA_WORDS: u64 = 1 + 6 + 1 + 1 + 6;

/// A port that holds words back for longer is no port.
const NODE_DELAY_MAX: u32 = 10_000;

struct Loop {
    ports: usize,
    word: Span,
    hop: Span,
    framing: Framing,
    fairness: bool,
}

pub(crate) fn build(keys: &Keys, members: usize) -> Result<Box<dyn Link>, ConfigError> {
    let config: FcAlConfig = read(keys)?;
    let ports = members + 1;
    if ports > PORTS_MAX {
        let message = format!(
            "found {members} members; a loop has {} beside the host",
            PORTS_MAX - 1
        );
        return Err(ConfigError::new("kind", message));
    }
    let word = Span::word("rate_gbaud", config.rate_gbaud)?;
    let propagation = Span::from_nanos("propagation_ns", config.propagation_ns)?;
    // FCP's information units: command, transfer ready, response without sense.
    let framing = Framing {
        payload: frame_payload("frame_payload", config.frame_payload.0, 2112)?,
        extra_words: EXTRA_WORDS,
        command: 32,
        transfer_ready: 12,
        status: 24,
    };
    if config.node_delay_words > NODE_DELAY_MAX {
        let message = format!(
            "found {}; expected {NODE_DELAY_MAX} words at most",
            config.node_delay_words
        );
        return Err(ConfigError::new("node_delay_words", message));
    }
    let hop = word
        .times(u64::from(config.node_delay_words))
        .plus(propagation);
    Ok(Box::new(Shared::new(Loop {
        ports,
        word,
        hop,
        framing,
        fairness: config.fairness,
    })))
}

impl Loop {
    /// The way along the loop; none from a port to itself.
    fn way(&self, from: Station, to: Station) -> Span {
        let hops = (to.0 as usize + self.ports - from.0 as usize) % self.ports;
        self.hop.times(hops as u64)
    }

    fn around(&self) -> Span {
        self.hop.times(self.ports as u64)
    }
}

impl Protocol for Loop {
    fn ports(&self) -> usize {
        self.ports
    }

    fn rank(&self, port: Station) -> u32 {
        port.0
    }

    fn is_fair(&self) -> bool {
        self.fairness
    }

    fn arbitration(&self, holder: Option<Station>, transfer: &Transfer) -> Duration {
        holder
            .map_or_else(|| self.around(), |holder| self.way(holder, transfer.from))
            .duration()
    }

    /// OPN there and R_RDY back are once around the loop, and a word each; then
    /// the frames, and the way of the last word.
    fn carry(&self, transfer: &Transfer, goes_on: bool) -> Duration {
        let opening = match goes_on {
            true => Span::ZERO,
            false => self
                .around()
                .plus(self.word.times(2))
                .plus(self.way(transfer.from, transfer.to)),
        };
        opening
            .plus(self.word.times(self.framing.words(transfer.payload)))
            .duration()
    }

    /// CLS follows the last word, and comes back from the receiver.
    fn closing(&self, transfer: &Transfer) -> Duration {
        self.word
            .plus(self.way(transfer.to, transfer.from))
            .duration()
    }

    fn overhead(&self, transfer: &Transfer, _: bool) -> u64 {
        self.framing.overhead(transfer.payload)
    }
}
