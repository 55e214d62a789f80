//! What a reader gives of a trace.

use crate::TraceError;
use fullstroke_contract::Operation;
use fullstroke_units::{Duration, Sectors};

/// Rows that may be out of order by default: a row is put in its place if at
/// most this many later ones were written before it.
pub const SORT_WINDOW_ROWS: usize = 4096;

/// What to do with a request that reaches beyond the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Beyond {
    /// It is an error.
    #[default]
    Reject,
    /// Its start is taken modulo the capacity, and moved back if the request
    /// would still cross the volume's end.
    Wrap,
    /// All addresses are moved in proportion, if any lies beyond: the volume
    /// and the trace's span are cut into regions of 1 MiB, a region of the
    /// trace goes to the region of the volume at the same proportion, and the
    /// place within the region is kept, so that runs stay runs. A request that
    /// would cross the volume's end is moved back. The span is found by reading
    /// the trace once more, before all else, unless [`Options::span`] gives it.
    Scale,
}

/// What a [`TraceReader`](crate::TraceReader) gives of a trace. The default
/// gives all of it, unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The format's name; `None` = recognise it.
    pub format: Option<String>,
    /// Only these devices; empty = all.
    pub devices: Vec<u32>,
    /// Only these operations; empty = all.
    pub operations: Vec<Operation>,
    /// Only requests from this time after the trace's first request on. The
    /// arrivals of the others are counted from here.
    pub from: Duration,
    /// Only requests before this time after the trace's first request.
    pub to: Option<Duration>,
    /// Arrivals are multiplied by this: 0.5 = twice the load. The times from
    /// arrival to issue and completion keep their length.
    pub time_scale: f64,
    /// The volume that the requests must fit in; `None` = any address is good.
    pub capacity: Option<Sectors>,
    /// What to do with those that do not.
    pub beyond: Beyond,
    /// The end of the trace's address space, for [`Beyond::Scale`].
    pub span: Option<Sectors>,
    /// This many damaged rows are left out, and counted, before it is an error.
    pub skip_bad: u64,
    /// Whether a trace without addresses is an error; they would all be 0.
    pub needs_addresses: bool,
    /// Rows that may be out of order; see [`SORT_WINDOW_ROWS`].
    pub sort_window: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            format: None,
            devices: Vec::new(),
            operations: Vec::new(),
            from: Duration::ZERO,
            to: None,
            time_scale: 1.0,
            capacity: None,
            beyond: Beyond::Reject,
            span: None,
            skip_bad: 0,
            needs_addresses: true,
            sort_window: SORT_WINDOW_ROWS,
        }
    }
}

impl Options {
    /// The default, for a format that is said by name.
    pub fn for_format(name: &str) -> Options {
        Options {
            format: Some(name.to_owned()),
            ..Options::default()
        }
    }

    /// What is selected, as the options of the command line that say so.
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

    /// An error if the options cannot be met by any trace.
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
