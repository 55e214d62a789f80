//! PUSH and PULL for clients.

use fullstroke_contract::{Extent, Signal};
use fullstroke_units::{Lbn, Sectors};
use serde::{Deserialize, Serialize};

/// PUSH or PULL, in sectors of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "signal", deny_unknown_fields)]
pub enum SignalExtent {
    /// Write back dirty data: of these addresses, or of any addresses.
    Pull {
        /// First sector; `None` for any addresses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<u64>,
        /// Number of sectors.
        sectors: u64,
    },
    /// Fetch this range, which is worth having now.
    Push {
        /// First sector.
        start: u64,
        /// Number of sectors.
        sectors: u64,
    },
}

impl SignalExtent {
    /// Returns the sectors of a PULL without an address; otherwise 0.
    pub fn of_any(&self) -> u64 {
        match self {
            SignalExtent::Pull {
                start: None,
                sectors,
            } => *sectors,
            SignalExtent::Pull { .. } | SignalExtent::Push { .. } => 0,
        }
    }

    /// Returns a signal for clients; `None` for other signals.
    pub(crate) fn of(signal: Signal) -> Option<SignalExtent> {
        match signal {
            Signal::Pull {
                extent: Some(extent),
                ..
            } => Some(SignalExtent::Pull {
                start: Some(extent.start.0),
                sectors: extent.sectors.0,
            }),
            Signal::Pull {
                extent: None,
                sectors,
            } => Some(SignalExtent::Pull {
                start: None,
                sectors: sectors.0,
            }),
            Signal::Push(Extent {
                start: Lbn(start),
                sectors: Sectors(sectors),
            }) => Some(SignalExtent::Push { start, sectors }),
            _ => None,
        }
    }
}
