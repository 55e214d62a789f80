//! `fc-al`: a Fibre Channel arbitrated loop.

use crate::link::Link;
use crate::shared::{Protocol, SharedMedium};
use crate::transfer::{LinkTransfer, Station};
use crate::wire::{Framing, WireTime, frame_payload};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const SUMMARY: &str =
    "a Fibre Channel arbitrated loop: one circuit at a time, the host and up to 125 members";

/// Ports of a loop, without the port of a fabric.
// FC-AL-2: 126 addresses (AL_PA) of NL_Ports; the 127th is kept for the port of a fabric.
const PORTS_MAX: usize = 126;

/// Keys of `fc-al`.
///
/// A port that wants the loop sends ARB around the loop. The winner sends OPN to the receiver, and
/// the receiver answers R_RDY. Frames follow. CLS goes around and frees the loop (FC-AL-2, states
/// of the loop port). The order of ports on the loop is host, member 0, member 1, and so on. The
/// priority (AL_PA) has the same order.
///
/// - A port waiting at the end of a circuit needs no turn around the loop: its ARB is on the way
///   and must only come from the closing port.
/// - The receiver's buffer credit never runs out within a circuit. After the first R_RDY the frames
///   follow each other.
/// - A circuit carries one direction, from the opening port. Loops can be used in both directions
///   at once. Initiators and drives of the time seldom did so.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FcAlConfig {
    /// Bits on the wire, in 10^9 a second; a byte takes ten bits. 1.0625 is sold as 100 MB/s.
    #[serde(default = "full_speed")]
    pub rate_gbaud: f64,
    /// Propagation time from a port to the next, ns.
    #[serde(default = "short_cable")]
    pub propagation_ns: f64,
    /// Delay of a word in a port, in words.
    #[serde(default = "six")]
    pub node_delay_words: u32,
    /// Largest data of a frame.
    #[serde(default = "largest_frame")]
    pub frame_payload: Bytes,
    /// True if a winner asks again only when no other port waits; otherwise the lowest address
    /// always wins.
    #[serde(default = "yes")]
    pub fairness: bool,
}

fn full_speed() -> f64 {
    // Full speed of FC-PH.
    1.0625
}
fn short_cable() -> f64 {
    // 3.5 ns, and six words below, are those of Chang and Du, table 3.
    3.5
}
fn six() -> u32 {
    6
}
fn largest_frame() -> Bytes {
    // Largest data field of a frame in FC-PH.
    Bytes(2112)
}
fn yes() -> bool {
    true
}

/// Start of frame, header of six words, CRC, end of frame; six words between frames.
const EXTRA_WORDS: u64 = 1 + 6 + 1 + 1 + 6;

/// No real port delays words longer.
const NODE_DELAY_MAX: u32 = 10_000;

struct FcLoop {
    ports: usize,
    word: WireTime,
    hop: WireTime,
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
    let word = WireTime::word("rate_gbaud", config.rate_gbaud)?;
    let propagation = WireTime::from_nanos("propagation_ns", config.propagation_ns)?;
    // FCP's information units: command, transfer ready, response without sense.
    let framing = Framing {
        // FCP: FCP_CMND has 32 bytes, FCP_XFER_RDY 12, FCP_RSP without sense data 24.
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
    Ok(Box::new(SharedMedium::new(FcLoop {
        ports,
        word,
        hop,
        framing,
        fairness: config.fairness,
    })))
}

impl FcLoop {
    /// Propagation along the loop; zero from a port to itself.
    fn way(&self, from: Station, to: Station) -> WireTime {
        // The number of ports is added first, because the way from a higher to a lower port goes
        // over the end of the loop.
        let hops = (to.0 as usize + self.ports - from.0 as usize) % self.ports;
        self.hop.times(hops as u64)
    }

    fn around(&self) -> WireTime {
        self.hop.times(self.ports as u64)
    }
}

impl Protocol for FcLoop {
    fn ports(&self) -> usize {
        self.ports
    }

    fn rank(&self, port: Station) -> u32 {
        port.0
    }

    fn is_fair(&self) -> bool {
        self.fairness
    }

    fn arbitration(&self, holder: Option<Station>, transfer: &LinkTransfer) -> Duration {
        holder
            .map_or_else(|| self.around(), |holder| self.way(holder, transfer.from))
            .duration()
    }

    /// OPN and R_RDY together go once around the loop and have a word each; then follow the frames
    /// and the propagation of the last word.
    fn carry(&self, transfer: &LinkTransfer, goes_on: bool) -> Duration {
        let opening = match goes_on {
            true => WireTime::ZERO,
            false => self
                .around()
                .plus(self.word.times(2))
                .plus(self.way(transfer.from, transfer.to)),
        };
        opening
            .plus(self.word.times(self.framing.words(transfer.payload)))
            .duration()
    }

    /// CLS follows the last word and returns from the receiver.
    fn closing(&self, transfer: &LinkTransfer) -> Duration {
        self.word
            .plus(self.way(transfer.to, transfer.from))
            .duration()
    }

    fn overhead(&self, transfer: &LinkTransfer, _: bool) -> u64 {
        self.framing.overhead(transfer.payload)
    }
}
