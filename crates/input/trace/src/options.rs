//! Options of a reader.

use crate::TraceError;
use fullstroke_contract::Operation;
use fullstroke_units::{Duration, Sectors};

/// Default number of rows out of order. A row is sorted in if at most this many later rows were
/// written before it.
pub const SORT_WINDOW_ROWS: usize = 4096;

/// Treatment of a request beyond the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BeyondPolicy {
    /// The request is an error.
    #[default]
    Reject,
    /// The start is taken modulo the capacity. If the request would still cross the end of the
    /// volume, it is moved back.
    Wrap,
    /// All addresses are scaled, if any request is beyond the volume. The volume and the span of
    /// the trace are divided into regions of 1 MiB. A region of the trace maps to the region of the
    /// volume at the same proportion. The offset within the region does not change, so that
    /// sequential runs stay sequential. A request across the end of the volume is moved back. The
    /// reader finds the span by reading the whole trace once before, unless [`TraceOptions::span`]
    /// gives it.
    Scale,
}

/// Options of a [`TraceReader`](crate::TraceReader). The default returns the whole trace unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceOptions {
    /// Name of the format; `None` recognises the format.
    pub format: Option<String>,
    /// Devices to select; empty selects all.
    pub devices: Vec<u32>,
    /// Operations to select; empty selects all.
    pub operations: Vec<Operation>,
    /// Start of the selection, from the trace's first request. Arrivals are counted from this time.
    pub from: Duration,
    /// End of the selection, from the trace's first request; requests at or after this time are
    /// left out.
    pub to: Option<Duration>,
    /// Factor of the arrival times: 0.5 doubles the load. The times from arrival to issue and
    /// completion do not change.
    pub time_scale: f64,
    /// Capacity of the volume for the requests; `None` allows any address.
    pub capacity: Option<Sectors>,
    /// Treatment of requests beyond the volume.
    pub beyond: BeyondPolicy,
    /// End of the trace's address space, for [`BeyondPolicy::Scale`].
    pub span: Option<Sectors>,
    /// Number of damaged rows to skip and count before a damaged row is an error.
    pub skip_bad: u64,
    /// True if a trace without addresses is an error. Otherwise all its addresses are 0.
    pub needs_addresses: bool,
    /// Allowed number of rows out of order; see [`SORT_WINDOW_ROWS`].
    pub sort_window: usize,
}

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions {
            format: None,
            devices: Vec::new(),
            operations: Vec::new(),
            from: Duration::ZERO,
            to: None,
            time_scale: 1.0,
            capacity: None,
            beyond: BeyondPolicy::Reject,
            span: None,
            skip_bad: 0,
            needs_addresses: true,
            sort_window: SORT_WINDOW_ROWS,
        }
    }
}

impl TraceOptions {
    /// Returns the default options with the format `name`.
    pub fn for_format(name: &str) -> TraceOptions {
        TraceOptions {
            format: Some(name.to_owned()),
            ..TraceOptions::default()
        }
    }

    /// Returns true if the options select all requests and change none.
    pub(crate) fn keeps_all(&self) -> bool {
        self.devices.is_empty()
            && self.operations.is_empty()
            && self.from == Duration::ZERO
            && self.to.is_none()
            && self.time_scale == 1.0
            && self.capacity.is_none()
    }

    /// Returns the selection as options of the command line.
    pub(crate) fn selection(&self) -> String {
        let mut said: Vec<String> = Vec::new();
        let devices = self
            .devices
            .iter()
            .map(|device| format!("--device {device}"));
        let operations = self
            .operations
            .iter()
            .map(|operation| format!("--operation {}", operation.name()));
        said.extend(devices.chain(operations));
        if self.from > Duration::ZERO {
            said.push(format!("--from {}", self.from));
        }
        said.extend(self.to.map(|to| format!("--to {to}")));
        said.join(" ")
    }

    /// Returns an error if no trace can meet the options.
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        let refuse = |text: String| Err(TraceError::Option(text));
        if !(self.time_scale.is_finite() && self.time_scale > 0.0) {
            return refuse(format!(
                "a time scale of {} is not above 0",
                self.time_scale
            ));
        }
        if let Some(to) = self.to
            && to <= self.from
        {
            return refuse(format!(
                "the time window ends at {to}, not after its beginning at {}",
                self.from
            ));
        }
        if self.capacity == Some(Sectors::ZERO) {
            return refuse("a volume of 0 sectors holds no request".to_owned());
        }
        if self.sort_window > 1 << 20 {
            return refuse(format!(
                "a sort window of {} rows is above 1048576",
                self.sort_window
            ));
        }
        Ok(())
    }
}
