//! `scsi`: a parallel SCSI bus.

use crate::link::Link;
use crate::shared::{Protocol, SharedMedium};
use crate::transfer::{LinkTransfer, Payload, Station};
use crate::wire::{WireTime, at_most_a_second};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const SUMMARY: &str =
    "a parallel SCSI bus: one connection at a time, the host and up to 15 members";

/// Devices of a wide bus.
// SPI: 16 data lines, one for the id of each device.
const PORTS_MAX: usize = 16;

/// The host's id, with the highest priority.
const HOST_ID: u32 = 7;

/// Keys of `scsi`.
///
/// The host selects a member, sends a command, and disconnects. The member reselects the host for
/// data and for the status, which follows read data in the same connection (SCSI-2, SPI). Data have
/// the synchronous rate; everything else goes byte by byte. The host has id 7, the members have the
/// remaining ids in order from 0. Ids 7 to 0 have priority over 15 to 8, and no fairness limits
/// high ids.
///
/// A member that is ready for the data of a write reselects the host with its `TransferReady`; the
/// data then need no arbitration of their own. Earlier offers of the host go before the data,
/// although the connection belongs to the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScsiConfig {
    /// Data rate, in 10^6 bytes a second; 40 is Ultra-Wide.
    #[serde(default = "ultra_wide")]
    pub rate_mb_per_s: f64,
    /// A byte of a command, a message or a status, by request and acknowledge.
    #[serde(default = "fast_handshake")]
    pub asynchronous_byte: Duration,
    /// Time from a free bus to the winner: bus settle, bus free, arbitration, bus clear and bus
    /// settle delays.
    #[serde(default = "all_delays")]
    pub arbitration: Duration,
    /// Selection or reselection: two deskew delays, the answer, a bus settle delay.
    #[serde(default = "quick_answer")]
    pub selection: Duration,
}

fn ultra_wide() -> f64 {
    // Fast-20 (Ultra) on 16 lines: 20 million transfers of two bytes a second.
    40.0
}
fn fast_handshake() -> Duration {
    Duration::from_nanos(200)
}
fn all_delays() -> Duration {
    // SCSI-2, section 4.7: bus settle 400 ns, bus free 800, arbitration 2,400, bus clear 800, bus
    // settle 400.
    Duration::from_nanos(4800)
}
fn quick_answer() -> Duration {
    // SCSI-2, section 4.7: two deskew delays of 45 ns and a bus settle delay of 400 ns. The
    // selected device answers at once.
    Duration::from_nanos(490)
}

/// IDENTIFY.
const IDENTIFY: u64 = 1;
/// The kind of a queue tag, and the tag.
const TAG: u64 = 2;
/// A command of ten bytes.
const COMMAND: u64 = 10;
/// A status.
const STATUS: u64 = 1;
/// DISCONNECT, or COMMAND COMPLETE.
const LAST_MESSAGE: u64 = 1;

struct ScsiBus {
    ports: usize,
    data_byte: WireTime,
    config: ScsiConfig,
}

pub(crate) fn build(keys: &Keys, members: usize) -> Result<Box<dyn Link>, ConfigError> {
    let config: ScsiConfig = read(keys)?;
    let ports = members + 1;
    if ports > PORTS_MAX {
        let message = format!(
            "found {members} members; a bus has {} beside the host",
            PORTS_MAX - 1
        );
        return Err(ConfigError::new("kind", message));
    }
    let data_byte = WireTime::byte("rate_mb_per_s", config.rate_mb_per_s)?;
    at_most_a_second("asynchronous_byte", config.asynchronous_byte)?;
    at_most_a_second("arbitration", config.arbitration)?;
    at_most_a_second("selection", config.selection)?;
    Ok(Box::new(SharedMedium::new(ScsiBus {
        ports,
        data_byte,
        config,
    })))
}

/// The id of a port.
fn id(port: Station) -> u32 {
    match port.member() {
        None => HOST_ID,
        // Members skip the id of the host.
        Some(member) if (member as u32) < HOST_ID => member as u32,
        Some(member) => member as u32 + 1,
    }
}

/// True if the host sends data into the connection of a member's readiness.
fn is_asked_for(transfer: &LinkTransfer) -> bool {
    transfer.from == Station::HOST && matches!(transfer.payload, Payload::Data(_))
}

/// Bytes of messages at the start of a connection.
fn opening_bytes(transfer: &LinkTransfer) -> u64 {
    match transfer.payload {
        // The data go into the connection that the member's `TransferReady` has opened.
        _ if is_asked_for(transfer) => 0,
        Payload::TransferReady => IDENTIFY,
        _ => IDENTIFY + TAG,
    }
}

/// Bytes sent one by one as the contents of the transfer.
fn body(payload: Payload) -> u64 {
    match payload {
        Payload::Command => COMMAND,
        Payload::Status => STATUS,
        Payload::TransferReady | Payload::Data(_) => 0,
    }
}

/// Bytes of messages at the end.
fn closing_bytes(payload: Payload) -> u64 {
    match payload {
        Payload::TransferReady => TAG,
        _ => LAST_MESSAGE,
    }
}

impl Protocol for ScsiBus {
    fn ports(&self) -> usize {
        self.ports
    }

    fn rank(&self, port: Station) -> u32 {
        match id(port) {
            // SPI: priority falls from 7 to 0 and then from 15 to 8. Ids 8 to 15 came with the wide
            // bus, and must not go before the ids of narrow devices.
            high @ 0..8 => HOST_ID - high,
            low => 8 + (15 - low),
        }
    }

    fn is_fair(&self) -> bool {
        false
    }

    fn arbitration(&self, _: Option<Station>, transfer: &LinkTransfer) -> Duration {
        if is_asked_for(transfer) {
            Duration::ZERO
        } else {
            self.config.arbitration
        }
    }

    fn carry(&self, transfer: &LinkTransfer, goes_on: bool) -> Duration {
        let connection = match goes_on || is_asked_for(transfer) {
            true => Duration::ZERO,
            false => {
                self.config.selection + self.config.asynchronous_byte * opening_bytes(transfer)
            }
        };
        let data = self.data_byte.times(transfer.payload.data().0).duration();
        connection + self.config.asynchronous_byte * body(transfer.payload) + data
    }

    fn closing(&self, transfer: &LinkTransfer) -> Duration {
        self.config.asynchronous_byte * closing_bytes(transfer.payload)
    }

    /// A continuation takes over the last message of the previous transfer.
    fn overhead(&self, transfer: &LinkTransfer, goes_on: bool) -> u64 {
        // The messages at the end were counted with the previous transfer.
        let messages = if goes_on {
            0
        } else {
            opening_bytes(transfer) + closing_bytes(transfer.payload)
        };
        body(transfer.payload) + messages
    }
}
