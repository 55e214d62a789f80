//! `sas`: a serial point-to-point connection for each member.

use crate::LinkStatistics;
use crate::link::Link;
use crate::transfer::{DeliveredTransfer, LinkTransfer, Station};
use crate::wire::{Framing, WireTime, at_most_a_second, frame_payload};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) const SUMMARY: &str = "Serial Attached SCSI: a lane to and a lane from each member, which the host serves all at once; members reach each other through an expander";

/// Keys of `sas`.
///
/// Each member has a lane pair to a phy of the host. A sender opens a connection, sends its frames
/// (SSP), and closes the connection after the acknowledgement. Both directions to the host work at
/// the same time. A connection between members passes an expander and holds both lanes of both
/// members. Each lane serves in the order of offers (SAS lets the oldest request win).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SasConfig {
    /// Bits on a lane, in 10^9 a second; a byte takes ten bits.
    #[serde(default = "three")]
    pub rate_gbaud: f64,
    /// Latency from a phy to the other end: cable, elasticity buffer, decoding.
    #[serde(default = "hundred_ns")]
    pub latency: Duration,
    /// Additional latency of the expander between members.
    #[serde(default = "hundred_ns")]
    pub expander_latency: Duration,
    /// Largest data of a frame.
    #[serde(default = "largest_frame")]
    pub frame_payload: Bytes,
}

fn three() -> f64 {
    // Rate of SAS 1.1, first generation.
    3.0
}
fn hundred_ns() -> Duration {
    Duration::from_nanos(100)
}
fn largest_frame() -> Bytes {
    // Largest data of an SSP frame.
    Bytes(1024)
}

/// Start of frame, header of six words, CRC, end of frame.
const EXTRA_WORDS: u64 = 1 + 6 + 1 + 1;

/// An OPEN address frame of eight words with its delimiters, and the accepting word.
const OPEN_WORDS: u64 = 8 + 2 + 1;

/// The last acknowledgement, DONE from both sides, CLOSE.
const CLOSE_WORDS: u64 = 4;

struct Lanes {
    word: WireTime,
    framing: Framing,
    latency: Duration,
    expander_latency: Duration,
    /// To member 0, from member 0, to member 1, ...
    lanes: Vec<SasLane>,
    under_way: BinaryHeap<Reverse<MovingTransfer>>,
    statistics: LinkStatistics,
}

#[derive(Clone, Copy, Debug, Default)]
struct SasLane {
    /// The last transfer.
    last: Option<LinkTransfer>,
    /// Arrival of the last transfer at the receiver.
    arrives: Time,
    /// Time from which the lane is free.
    free: Time,
}

/// A transfer in flight; the smallest arrives first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MovingTransfer {
    finished: Time,
    /// Keeps the order of offers among transfers with equal arrival.
    number: u64,
    delivered: DeliveredTransfer,
    /// Busy time of the lanes, including the closing before.
    busy: Duration,
}

pub(crate) fn build(keys: &Keys, members: usize) -> Result<Box<dyn Link>, ConfigError> {
    let config: SasConfig = read(keys)?;
    let framing = Framing {
        // SSP: a COMMAND frame has 28 bytes, XFER_RDY 12, RESPONSE without sense data 24.
        payload: frame_payload("frame_payload", config.frame_payload.0, 1024)?,
        extra_words: EXTRA_WORDS,
        command: 28,
        transfer_ready: 12,
        status: 24,
    };
    at_most_a_second("latency", config.latency)?;
    at_most_a_second("expander_latency", config.expander_latency)?;
    Ok(Box::new(Lanes {
        word: WireTime::word("rate_gbaud", config.rate_gbaud)?,
        framing,
        latency: config.latency,
        expander_latency: config.expander_latency,
        lanes: vec![SasLane::default(); 2 * members],
        under_way: BinaryHeap::new(),
        statistics: LinkStatistics {
            lanes: 2 * members as u32,
            ..LinkStatistics::default()
        },
    }))
}

/// The lanes of a connection: one, or both lanes of both members.
fn lanes(from: Station, to: Station) -> ([usize; 4], usize) {
    match (from.member(), to.member()) {
        (None, Some(to)) => ([2 * to, 0, 0, 0], 1),
        (Some(from), None) => ([2 * from + 1, 0, 0, 0], 1),
        (Some(from), Some(to)) => ([2 * from, 2 * from + 1, 2 * to, 2 * to + 1], 4),
        (None, None) => unreachable!("a port does not send to itself"),
    }
}

impl Lanes {
    /// One-way latency between two ports.
    fn latency(&self, from: Station, to: Station) -> Duration {
        match from.member().and(to.member()) {
            None => self.latency,
            Some(_) => self.latency * 2 + self.expander_latency,
        }
    }

    fn words(&self, count: u64) -> Duration {
        self.word.times(count).duration()
    }
}

impl Link for Lanes {
    /// The turn on each lane is known at the offer: the transfer follows all earlier offers.
    fn offer(&mut self, now: Time, transfer: LinkTransfer) {
        let LinkTransfer {
            token,
            from,
            to,
            payload,
        } = transfer;
        assert_ne!(from, to, "a port does not send to itself");
        let (held, count) = lanes(from, to);
        let held = &held[..count];
        let latency = self.latency(from, to);
        let frames = self.words(self.framing.words(payload));
        // The connection of an exchange stays open while a transfer is in flight.
        let first = &self.lanes[held[0]];
        let goes_on =
            now < first.arrives && first.last.is_some_and(|last| transfer.continues(&last));
        let (began, finished) = if goes_on {
            (first.arrives, first.arrives + frames)
        } else {
            let free = held
                .iter()
                .fold(now, |free, &lane| free.max(self.lanes[lane].free));
            // Three ways: the OPEN frame, the accepting word, and the data.
            (free, free + self.words(OPEN_WORDS) + latency * 3 + frames)
        };
        // Two ways: the acknowledgement, and CLOSE.
        let closing = latency * 2 + self.words(CLOSE_WORDS);
        assert!(
            began >= now,
            "a connection asked for at {now:?} is open at {began:?}"
        );
        let mut busy = finished.since(began) * count as u64;
        for &lane in held {
            let lane = &mut self.lanes[lane];
            if !goes_on {
                busy += lane.free.since(lane.arrives);
            }
            *lane = SasLane {
                last: Some(transfer),
                arrives: finished,
                free: finished + closing,
            };
        }
        let statistics = &mut self.statistics;
        statistics.tenancies += u64::from(!goes_on);
        statistics.count(&transfer, self.framing.overhead(payload), began.since(now));
        let delivered = DeliveredTransfer {
            token,
            offered: now,
            began,
            finished,
        };
        // The total of transfers so far is unique and ascending, so no counter of its own is
        // needed.
        let number = statistics.transfers();
        self.under_way.push(Reverse(MovingTransfer {
            finished,
            number,
            delivered,
            busy,
        }));
    }

    fn next_wake(&self) -> Time {
        self.under_way
            .peek()
            .map_or(Time::NEVER, |Reverse(first)| first.finished)
    }

    fn advance(&mut self, now: Time, delivered: &mut Vec<DeliveredTransfer>) {
        while let Some(&Reverse(first)) = self.under_way.peek()
            && first.finished <= now
        {
            self.under_way.pop();
            self.statistics.busy += first.busy;
            delivered.push(first.delivered);
        }
    }

    /// The busy time of a lane is counted at the arrival of its transfer, the closing with the next
    /// transfer.
    fn statistics(&self) -> LinkStatistics {
        self.statistics
    }
}
