//! Options of a reader.

use crate::columns::ColumnMap;
use crate::formats::CSV;
use crate::{FileSource, TraceError};
use fullstroke_contract::Operation;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors};

/// Default number of rows out of order. A row is sorted in if at most this many later rows were
/// written before it.
pub const SORT_WINDOW_ROWS: usize = 4096;

/// Unit in which addresses are moved apart: 128 MiB, the longest extent of ext4 (32,768 blocks of
/// 4 KiB; `EXT_INIT_MAX_LEN`, fs/ext4/ext4_extents.h, Linux 6.6).
pub(crate) const EXTENT_SECTORS: u64 = (128 << 20) / SECTOR_BYTES;

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

/// Places of a trace's addresses in a volume that is larger than the traced device.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum FootprintPolicy {
    /// The addresses stay as they were captured.
    #[default]
    Captured,
    /// The addresses are scaled to this share of the volume, above 0 and at most 1. Regions of up to
    /// 128 MiB stay together.
    Share(f64),
    /// Extents of this length lie at random places of the volume.
    Spread {
        /// Length of an extent.
        extent: Sectors,
    },
}

impl FootprintPolicy {
    /// Parses `captured`, a share such as `60%`, `spread`, or `spread:SIZE` with a size in MiB or GiB.
    ///
    /// # Errors
    /// Fails with the expected forms.
    pub fn parse(text: &str) -> Result<FootprintPolicy, String> {
        let expected = || {
            format!(
                "found `{text}`; expected captured, a share of the volume such as 60%, spread, or spread:SIZE such as spread:16MiB"
            )
        };
        match text {
            "captured" => return Ok(FootprintPolicy::Captured),
            "spread" => {
                let extent = Sectors(EXTENT_SECTORS);
                return Ok(FootprintPolicy::Spread { extent });
            }
            _ => {}
        }
        if let Some(size) = text.strip_prefix("spread:") {
            let bytes: Bytes = size.trim().parse().map_err(|_| expected())?;
            let extent = Sectors(bytes.0 / SECTOR_BYTES);
            // Smaller extents than a block of a file system, or larger than a disk, help nobody.
            return match extent.0 {
                8..=0x8000_0000 => Ok(FootprintPolicy::Spread { extent }),
                _ => Err(expected()),
            };
        }
        let share = text
            .strip_suffix('%')
            .and_then(|share| share.trim().parse::<f64>().ok())
            .map(|percent| percent / 100.0)
            .filter(|share| *share > 0.0 && *share <= 1.0);
        share.map(FootprintPolicy::Share).ok_or_else(expected)
    }
}

/// Options of a [`TraceReader`](crate::TraceReader). The default returns the whole trace unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceOptions {
    /// Name of the format; `None` recognises the format.
    pub format: Option<String>,
    /// Columns of a table, such as `time=ts:us,op=rw,offset=off:bytes,size=len:bytes`. The format is
    /// `csv` then. `None` takes the columns by their names.
    pub columns: Option<String>,
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
    /// End of the trace's address space, for [`BeyondPolicy::Scale`] of a trace of one device.
    pub span: Option<Sectors>,
    /// Places of the addresses in the volume.
    pub footprint: FootprintPolicy,
    /// Seed of random places.
    pub seed: u64,
    /// Number of damaged rows to skip and count before a damaged row is an error.
    pub skip_bad: u64,
    /// True if a trace without addresses is an error. Otherwise all its addresses are 0.
    pub needs_addresses: bool,
    /// Allowed number of rows out of order; see [`SORT_WINDOW_ROWS`].
    pub sort_window: usize,
    /// Source of the files. Default: the file system.
    pub files: FileSource,
}

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions {
            format: None,
            columns: None,
            devices: Vec::new(),
            operations: Vec::new(),
            from: Duration::ZERO,
            to: None,
            time_scale: 1.0,
            capacity: None,
            beyond: BeyondPolicy::Reject,
            span: None,
            footprint: FootprintPolicy::Captured,
            seed: 0,
            skip_bad: 0,
            needs_addresses: true,
            sort_window: SORT_WINDOW_ROWS,
            files: FileSource::default(),
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

    /// Returns the columns of a table, as the user names them.
    ///
    /// # Errors
    /// Fails if the text of [`columns`](Self::columns) has a mistake.
    pub(crate) fn column_map(&self) -> Result<Option<ColumnMap>, TraceError> {
        let parsed = self.columns.as_deref().map(str::parse).transpose();
        parsed.map_err(|message: String| TraceError::Option(format!("--columns: {message}")))
    }

    /// Returns an error if no trace can meet the options.
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        let refuse = |text: String| Err(TraceError::Option(text));
        self.column_map()?;
        if let (Some(format), Some(_)) = (&self.format, &self.columns)
            && format != CSV
        {
            return refuse(format!(
                "--columns names the columns of a table (--format {CSV}), but the format is {format}"
            ));
        }
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
        if self.footprint != FootprintPolicy::Captured && self.beyond != BeyondPolicy::Reject {
            return refuse(
                "the footprint moves all addresses into the volume, so `beyond` has no use; leave one of the two out".to_owned(),
            );
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
