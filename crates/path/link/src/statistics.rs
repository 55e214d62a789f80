//! Counters of a link.

use crate::transfer::{LinkTransfer, Station};
use fullstroke_contract::LayerReadings;
use fullstroke_units::{Bytes, Duration};

/// Totals of a link since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Number of lanes that can be busy at once: 1 on a shared medium, both lanes of each member on
    /// separate connections.
    pub lanes: u32,
    /// Time in which a lane was not free for others, summed over lanes: arbitration, opening,
    /// sending, closing.
    pub busy: Duration,
    /// Number of tenancies: wins of the link by a port.
    pub tenancies: u64,
    /// From the host to members.
    pub to_members: Traffic,
    /// From members to the host.
    pub to_host: Traffic,
    /// From member to member.
    pub between_members: Traffic,
    /// Sum over transfers of the time between offer and start.
    pub waiting: Duration,
    /// Longest time between offer and start.
    pub waiting_max: Duration,
}

/// Traffic in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Transfers.
    pub transfers: u64,
    /// Data.
    pub payload: Bytes,
    /// All other bytes: headers, delimiters, words between frames, commands, messages, status.
    pub overhead: Bytes,
}

impl LinkStatistics {
    /// Transfers in all directions.
    pub fn transfers(&self) -> u64 {
        self.directions()
            .iter()
            .map(|traffic| traffic.transfers)
            .sum()
    }

    /// Data in all directions.
    pub fn payload(&self) -> Bytes {
        Bytes(
            self.directions()
                .iter()
                .map(|traffic| traffic.payload.0)
                .sum(),
        )
    }

    /// All other bytes in all directions.
    pub fn overhead(&self) -> Bytes {
        Bytes(
            self.directions()
                .iter()
                .map(|traffic| traffic.overhead.0)
                .sum(),
        )
    }

    /// Mean time between offer and start; zero without transfers.
    pub fn waiting_mean(&self) -> Duration {
        self.waiting / self.transfers().max(1)
    }

    /// Share of `elapsed` in which a lane was busy, mean over lanes, 0 to 1.
    pub fn utilisation(&self, elapsed: Duration) -> f64 {
        // No time has passed at the beginning of a run.
        match elapsed.as_secs_f64() * f64::from(self.lanes) {
            whole if whole > 0.0 => self.busy.as_secs_f64() / whole,
            _ => 0.0,
        }
    }

    /// Readings of a layer with this link after `elapsed`; `kind` is the link's name.
    pub fn readings(&self, kind: &str, elapsed: Duration) -> LayerReadings {
        let megabytes = |bytes: Bytes| bytes.0 as f64 / 1e6;
        let readings = [
            ("link_utilisation", self.utilisation(elapsed)),
            ("link_wait_ms_mean", self.waiting_mean().as_millis_f64()),
            ("link_wait_ms_max", self.waiting_max.as_millis_f64()),
            ("link_transfers", self.transfers() as f64),
            ("link_tenancies", self.tenancies as f64),
            ("link_payload_mb", megabytes(self.payload())),
            ("link_overhead_mb", megabytes(self.overhead())),
            ("link_to_members_mb", megabytes(self.to_members.payload)),
            ("link_to_host_mb", megabytes(self.to_host.payload)),
            (
                "link_between_members_mb",
                megabytes(self.between_members.payload),
            ),
        ];
        LayerReadings::new(format!("link {kind}"), &readings)
    }

    /// Counts a transfer with `overhead` bytes besides the data, and with the waiting time
    /// `waited`.
    pub(crate) fn count(&mut self, transfer: &LinkTransfer, overhead: u64, waited: Duration) {
        let traffic = match (transfer.from, transfer.to) {
            (Station::HOST, _) => &mut self.to_members,
            (_, Station::HOST) => &mut self.to_host,
            _ => &mut self.between_members,
        };
        traffic.transfers += 1;
        traffic.payload.0 += transfer.payload.data().0;
        traffic.overhead.0 += overhead;
        // Many transfers wait at a time, so the sum of the waits may exceed the range of the
        // counter.
        self.waiting = self.waiting.saturating_add(waited);
        self.waiting_max = self.waiting_max.max(waited);
    }

    fn directions(&self) -> [Traffic; 3] {
        [self.to_members, self.to_host, self.between_members]
    }
}
