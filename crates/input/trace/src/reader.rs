//! Reader of traces: recognises, parses, sorts and selects.

mod ahead;

use crate::fault::{Problem, TraceFault};
use crate::formats::{Format, find_format, recognise};
use crate::input::{BUFFER_BYTES, Input};
use crate::options::{BeyondPolicy, TraceOptions};
use crate::record::TraceRecord;
use crate::row::{TraceRow, check};
use crate::sort::SortWindow;
use crate::unselected::Unselected;
use crate::{TraceError, TracePlace, processor_files, source};
use ahead::RowSource;
use fullstroke_contract::Extent;
use fullstroke_units::{SECTOR_BYTES, Sectors, Time};
use std::fmt;
use std::io::Read;
use std::path::Path;

/// Number of rows requested from a parser at a time.
const ROWS_AT_ONCE: usize = 512;
/// Unit in which [`BeyondPolicy::Scale`] moves addresses: 1 MiB.
const REGION_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

/// Shortest reported gap between requests: 7 days. No system worth tracing is idle for so long, so
/// its clock was set, or a time is damaged.
const JUMP_NS: u64 = 7 * 86_400 * 1_000_000_000;

/// Reader of a trace as a stream of [`TraceRecord`]s in order of arrival.
///
/// - Getters: [`file`](Self::file), [`format`](Self::format), [`skipped`](Self::skipped),
///   [`doubtful`](Self::doubtful), [`notes`](Self::notes),
///   [`lacks_addresses`](Self::lacks_addresses), [`beginning_ns`](Self::beginning_ns).
/// - Records out: [`next`](Self::next), [`next_batch`](Self::next_batch). After an error there are
///   no more records.
///
/// Memory does not grow with the trace. There is one buffer of bytes, one batch of rows, and up to
/// [`TraceOptions::sort_window`] rows held back for sorting.
pub struct TraceReader {
    file: String,
    format: &'static Format,
    source: RowSource,
    lacks_addresses: Option<&'static str>,
    options: TraceOptions,
    window: SortWindow,
    /// Arrival of the trace's first request, on the format's clock.
    beginning: Option<u64>,
    /// Arrival of the latest request, on the format's clock.
    latest: u64,
    jumps: Jumps,
    doubtful: u64,
    skipped: u64,
    /// Number of calls of the parser.
    refills: u64,
    /// True if the parser has no more rows.
    ended: bool,
    /// True if no more records follow: an error was reported, or the time window is over.
    closed: bool,
    /// Requests left out by the selection; `None` as soon as a request was selected.
    unselected: Option<Unselected>,
}

/// Outcome of a released row.
enum Taken {
    Record(TraceRecord),
    /// The options do not select the row.
    LeftOut,
    /// The time window has ended.
    Over,
}

impl TraceReader {
    /// Opens the trace at `path`, packed or not. A blktrace may also be named by its folder, or
    /// without the processor's number.
    ///
    /// With [`BeyondPolicy::Scale`], a capacity and no [`TraceOptions::span`], the whole trace is
    /// read once here to find its span.
    ///
    /// # Errors
    /// Fails if the file cannot be read or recognised, or if the options are contradictory.
    pub fn open(path: &Path, options: &TraceOptions) -> Result<TraceReader, TraceError> {
        options.check()?;
        let path = &processor_files::locate(path)?;
        let mut options = options.clone();
        if needs_span(&options) {
            options.span = Some(span_of(path, &options)?);
        }
        let input = source::open(path, BUFFER_BYTES)?;
        TraceReader::over(path.display().to_string(), input, options)
    }

    /// Reads the trace, packed or not, from `bytes`. `name` is used in messages and to recognise
    /// the format.
    ///
    /// # Errors
    /// As for [`open`](TraceReader::open). [`BeyondPolicy::Scale`] needs [`TraceOptions::span`]
    /// here, because the bytes can be read only once.
    pub fn open_read(
        name: &str,
        bytes: Box<dyn Read + Send>,
        options: &TraceOptions,
    ) -> Result<TraceReader, TraceError> {
        options.check()?;
        if needs_span(options) {
            let text = format!(
                "`{name}` can be read only once; scaled addresses need the span of the trace"
            );
            return Err(TraceError::Option(text));
        }
        let input = source::unpack(bytes, None, BUFFER_BYTES);
        let input = input.map_err(|source| TraceError::from_io(name.to_owned(), source))?;
        TraceReader::over(name.to_owned(), input, options.clone())
    }

    fn over(
        file: String,
        mut input: Input<'static>,
        options: TraceOptions,
    ) -> Result<TraceReader, TraceError> {
        let format = match &options.format {
            Some(name) => find_format(name)?,
            None => recognise(&file, &mut input)?,
        };
        let begin = input
            .peek(1)
            .map_err(|source| TraceError::from_io(file.clone(), source))?;
        if begin.is_empty() {
            return Err(TraceError::Empty { file });
        }
        let parser =
            (format.open)(&mut input).map_err(|fault| TraceError::from_fault(&file, fault))?;
        let lacks_addresses = parser.lacks_addresses();
        if let Some(remedy) = lacks_addresses.filter(|_| options.needs_addresses) {
            return Err(TraceError::WithoutAddresses { file, remedy });
        }
        Ok(TraceReader {
            file,
            format,
            source: RowSource::new(input, parser),
            lacks_addresses,
            window: SortWindow::new(options.sort_window),
            options,
            beginning: None,
            latest: 0,
            jumps: Jumps::default(),
            doubtful: 0,
            skipped: 0,
            refills: 0,
            ended: false,
            closed: false,
            unselected: Some(Unselected::default()),
        })
    }

    /// Returns the name of the file, as in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the format of the trace.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// Returns the number of damaged rows skipped so far; see [`TraceOptions::skip_bad`].
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of requests so far whose completion was left out, because it may belong
    /// to another request.
    pub fn doubtful(&self) -> u64 {
        self.doubtful
    }

    /// Returns a remedy if the trace lacks addresses; all addresses are 0 then.
    pub fn lacks_addresses(&self) -> Option<&'static str> {
        self.lacks_addresses
    }

    /// Returns problems of the trace so far, invisible in the requests: missing events, a clock
    /// that jumped. One sentence each.
    pub fn notes(&self) -> Vec<String> {
        let of_parser = self
            .source
            .parser()
            .map(|parser| parser.notes())
            .unwrap_or_default();
        of_parser.into_iter().chain(self.jumps.note()).collect()
    }

    /// Moves the parser to another thread, for callers that read the whole trace at once. Until
    /// [`stop_ahead`](Self::stop_ahead) the parser's notes are not available.
    pub(crate) fn run_ahead(&mut self) {
        self.source.run_ahead();
    }

    /// Ends the thread of [`run_ahead`](Self::run_ahead) at the end of the trace.
    pub(crate) fn stop_ahead(&mut self) {
        self.source.stop();
    }

    /// Returns the arrival of the trace's first request, in nanoseconds on the format's own clock.
    /// This is time 0 of the records. Returns `None` before the first request was read.
    pub fn beginning_ns(&self) -> Option<u64> {
        self.beginning
    }

    /// Returns the next record; `None` at the end of the trace or of the time window.
    ///
    /// # Errors
    /// Fails if the trace cannot be read or parsed. Also fails if a row is out of order by more
    /// than the sort window, or if a request does not fit the volume.
    #[expect(
        clippy::should_implement_trait,
        reason = "an error ends the trace, so it stands outside the option"
    )]
    pub fn next(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        if self.closed {
            return Ok(None);
        }
        let outcome = self.advance();
        self.closed = !matches!(outcome, Ok(Some(_)));
        outcome
    }

    /// Appends up to `limit` records to `records` and returns their number. The number is smaller
    /// than `limit` only at the end.
    ///
    /// # Errors
    /// As for [`next`](TraceReader::next); the records before the error have been appended.
    pub fn next_batch(
        &mut self,
        records: &mut Vec<TraceRecord>,
        limit: usize,
    ) -> Result<usize, TraceError> {
        let begin = records.len();
        // The limit may be `usize::MAX` for "all".
        let end = begin.saturating_add(limit);
        while records.len() < end {
            if self.closed {
                break;
            }
            if self.next_ready(records, end)? {
                continue;
            }
            match self.next()? {
                Some(record) => records.push(record),
                None => break,
            }
        }
        Ok(records.len() - begin)
    }

    /// Appends the records of rows that the window releases at once, until `records` has the length
    /// `end`. Returns `false` if there is no such row.
    fn next_ready(
        &mut self,
        records: &mut Vec<TraceRecord>,
        end: usize,
    ) -> Result<bool, TraceError> {
        let wanted = end - records.len();
        self.window.admit_sound(wanted);
        // The window stands apart while its rows are read and the other fields change.
        let mut window = std::mem::take(&mut self.window);
        let ready = window.ready(self.ended);
        let ready = &ready[..ready.len().min(wanted)];
        let count = ready.len();
        records.reserve(count);
        let outcome = if self.options.keeps_all() {
            self.append_all(ready, records);
            Ok(())
        } else {
            self.append_selected(ready, records)
        };
        window.release(count);
        self.window = window;
        outcome.map(|()| count > 0)
    }

    /// Appends the records of all `rows`, for options that select and change nothing.
    fn append_all(&mut self, rows: &[TraceRow], records: &mut Vec<TraceRecord>) {
        let Some(first) = rows.first() else {
            return;
        };
        self.unselected = None;
        let beginning = *self.beginning.get_or_insert(first.arrival);
        let mut latest = self.latest;
        for row in rows {
            let since = row.arrival - beginning;
            // Rows sorted in late come before the latest arrival, and are no jump.
            if row.arrival.saturating_sub(latest) > JUMP_NS && since > 0 {
                self.jumps
                    .add(self.format.place(row.place), row.arrival - latest);
            }
            latest = row.arrival;
            self.doubtful += u64::from(row.doubtful);
            let later = |time: u64| {
                // A completion before the arrival is damage; its response counts as 0.
                Time::from_nanos(since.saturating_add(time.saturating_sub(row.arrival)))
            };
            records.push(TraceRecord {
                arrival: Time::from_nanos(since),
                operation: row.operation,
                extent: if row.operation.is_of_all() {
                    Extent::new(0, 0)
                } else {
                    Extent::new(row.start, row.sectors)
                },
                device: row.device,
                process: row.process,
                issued: row.issued.map(later),
                completed: row.completed.map(later),
            });
        }
        self.latest = latest;
    }

    /// Appends the records of the selected `rows`. Closes the reader at an error, and at the end of
    /// the time window.
    fn append_selected(
        &mut self,
        rows: &[TraceRow],
        records: &mut Vec<TraceRecord>,
    ) -> Result<(), TraceError> {
        for row in rows {
            match self.select(row) {
                Ok(Taken::Record(record)) => records.push(record),
                Ok(Taken::LeftOut) => {}
                Ok(Taken::Over) => {
                    self.closed = true;
                    return self.end().map(|_| ());
                }
                Err(error) => {
                    self.closed = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn advance(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        while let Some(row) = self.next_row()? {
            match self.select(&row)? {
                Taken::Record(record) => return Ok(Some(record)),
                Taken::LeftOut => {}
                Taken::Over => break,
            }
        }
        self.end()
    }

    /// Returns the record of a released row.
    #[inline]
    fn select(&mut self, row: &TraceRow) -> Result<Taken, TraceError> {
        let beginning = *self.beginning.get_or_insert(row.arrival);
        let since = row.arrival - beginning;
        if row.arrival.saturating_sub(self.latest) > JUMP_NS && since > 0 {
            self.jumps
                .add(self.format.place(row.place), row.arrival - self.latest);
        }
        self.latest = row.arrival;
        let over = self.options.to.is_some_and(|to| since >= to.as_nanos());
        if !over && self.selects(row, since) {
            if self.unselected.is_some() {
                self.unselected = None;
            }
            self.doubtful += u64::from(row.doubtful);
            return self.record(row, since).map(Taken::Record);
        }
        if let Some(unselected) = &mut self.unselected {
            unselected.note(row, since);
        }
        Ok(if over { Taken::Over } else { Taken::LeftOut })
    }

    /// Ends the records. A selection without any request is an error, because the caller probably
    /// mistyped a device.
    #[cold]
    fn end(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        match self.unselected.take() {
            None => Ok(None),
            Some(found) => Err(TraceError::NothingSelected {
                file: self.file.clone(),
                selection: self.options.selection(),
                found,
            }),
        }
    }

    /// Returns the next row in order of arrival.
    #[inline]
    fn next_row(&mut self) -> Result<Option<TraceRow>, TraceError> {
        loop {
            if let Some(row) = self.window.pop_excess() {
                return Ok(Some(row));
            }
            if let Some(row) = self.window.next_parsed() {
                self.admit(row)?;
            } else if self.ended {
                return Ok(self.window.pop());
            } else {
                self.refill()?;
            }
        }
    }

    /// Adds a parsed row to the sort window.
    #[inline]
    fn admit(&mut self, row: TraceRow) -> Result<(), TraceError> {
        if let Err(problem) = check(&row) {
            let place = self.format.place(row.place);
            return self.skip(TraceFault::Row(Box::new(Problem { place, ..*problem })));
        }
        match self.window.push(row) {
            Ok(()) => Ok(()),
            Err(row) => self.skip(TraceFault::Row(Box::new(self.too_late(&row)))),
        }
    }

    #[cold]
    fn too_late(&self, row: &TraceRow) -> Problem {
        let beginning = self.beginning.unwrap_or(row.arrival);
        let found = if row.arrival < beginning {
            format!(
                "a request that arrives {} ns before the trace's first",
                beginning - row.arrival
            )
        } else {
            format!(
                "a request that arrives {} ns after the trace's first",
                row.arrival - beginning
            )
        };
        Problem {
            place: self.format.place(row.place),
            found,
            expected: format!(
                "requests in order of arrival, or at most {} rows late; sort the trace by time",
                self.options.sort_window
            ),
        }
    }

    /// Reads more rows.
    fn refill(&mut self) -> Result<(), TraceError> {
        self.refills += 1;
        match self.source.read(self.window.space()) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.ended = true;
                let nothing = self.window.is_parsed_empty()
                    && self.beginning.is_none()
                    && self.window.is_empty();
                if nothing {
                    Err(TraceError::Empty {
                        file: self.file.clone(),
                    })
                } else {
                    Ok(())
                }
            }
            Err(fault) if fault.is_one_row() => self.skip(fault),
            Err(fault) => Err(TraceError::from_fault(&self.file, fault)),
        }
    }

    /// Skips a damaged row, if the limit allows.
    #[cold]
    fn skip(&mut self, fault: TraceFault) -> Result<(), TraceError> {
        let error = TraceError::from_fault(&self.file, fault);
        let tolerated = self.options.skip_bad;
        if self.skipped < tolerated {
            self.skipped += 1;
            return Ok(());
        }
        if tolerated == 0 {
            return Err(error);
        }
        Err(TraceError::TooManyDamaged {
            tolerated,
            last: Box::new(error),
        })
    }

    /// Returns true if the options select a row that arrives `since` nanoseconds after the first.
    #[inline]
    fn selects(&self, row: &TraceRow, since: u64) -> bool {
        let options = &self.options;
        since >= options.from.as_nanos()
            && (options.devices.is_empty() || options.devices.contains(&row.device))
            && (options.operations.is_empty() || options.operations.contains(&row.operation))
    }

    #[inline]
    fn record(&self, row: &TraceRow, since: u64) -> Result<TraceRecord, TraceError> {
        let arrival = since - self.options.from.as_nanos();
        let arrival = scaled(arrival, self.options.time_scale);
        let later =
            |time: u64| Time::from_nanos(arrival.saturating_add(time.saturating_sub(row.arrival)));
        let extent = match (row.operation, self.options.capacity) {
            (operation, _) if operation.is_of_all() => Extent::new(0, 0),
            (_, None) => Extent::new(row.start, row.sectors),
            (_, Some(capacity)) => self.fitted(row, capacity)?,
        };
        Ok(TraceRecord {
            arrival: Time::from_nanos(arrival),
            operation: row.operation,
            extent,
            device: row.device,
            process: row.process,
            issued: row.issued.map(later),
            completed: row.completed.map(later),
        })
    }

    /// Returns the row's extent, moved into a volume of `capacity`.
    fn fitted(&self, row: &TraceRow, capacity: Sectors) -> Result<Extent, TraceError> {
        let extent = Extent::new(row.start, row.sectors);
        fit(&self.options, extent, capacity).ok_or_else(|| TraceError::BeyondVolume {
            file: self.file.clone(),
            place: self.place(row),
            operation: row.operation.name(),
            start: row.start,
            end: row.start + row.sectors,
            capacity: capacity.0,
        })
    }

    /// Returns a number that changes with the state behind [`skipped`](Self::skipped) and
    /// [`notes`](Self::notes).
    pub(crate) fn stamp(&self) -> [u64; 3] {
        [self.skipped, self.refills, self.jumps.count]
    }

    fn place(&self, row: &TraceRow) -> TracePlace {
        self.format.place(row.place)
    }
}

impl fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceReader")
            .field("file", &self.file)
            .field("format", &self.format)
            .finish()
    }
}

/// Returns an extent of the trace, moved into a volume of `capacity`; `None` if the extent does not
/// fit.
pub(crate) fn fit(options: &TraceOptions, extent: Extent, capacity: Sectors) -> Option<Extent> {
    let (start, sectors) = (extent.start.0, extent.sectors.0);
    let (capacity, span) = (capacity.0, options.span.map(|span| span.0));
    let moved = match options.beyond {
        BeyondPolicy::Reject => start,
        BeyondPolicy::Wrap => moved_back(start % capacity, sectors, capacity),
        BeyondPolicy::Scale => match span {
            Some(span) if span > capacity && start + sectors <= span => {
                moved_back(scaled_start(start, span, capacity), sectors, capacity)
            }
            _ => start,
        },
    };
    let extent = Extent::new(moved, sectors);
    extent.within(Sectors(capacity)).then_some(extent)
}

/// Gaps between requests longer than [`JUMP_NS`].
#[derive(Default)]
struct Jumps {
    count: u64,
    longest_ns: u64,
    /// Place of the request behind the longest gap.
    place: Option<TracePlace>,
}

impl Jumps {
    #[cold]
    fn add(&mut self, place: TracePlace, gap_ns: u64) {
        self.count += 1;
        if gap_ns > self.longest_ns {
            self.longest_ns = gap_ns;
            self.place = Some(place);
        }
    }

    fn note(&self) -> Option<String> {
        const DAY_NS: f64 = 86_400e9;
        const YEAR_DAYS: f64 = 365.25;
        let place = self.place?;
        let days = self.longest_ns as f64 / DAY_NS;
        let gap = if days < YEAR_DAYS {
            format!("{days:.1} days")
        } else {
            format!("{:.1} years", days / YEAR_DAYS)
        };
        let others = match self.count - 1 {
            0 => String::new(),
            1 => ", and one more of over 7 days".to_owned(),
            others => format!(", and {others} more of over 7 days"),
        };
        Some(format!(
            "{place}: {gap} without a request before this one{others}: the clock was set or a time is damaged; \
             durations and rates count the gap unless --from or --to leaves it out"
        ))
    }
}

pub(crate) fn needs_span(options: &TraceOptions) -> bool {
    options.beyond == BeyondPolicy::Scale && options.capacity.is_some() && options.span.is_none()
}

/// Returns the end of the address space used by the selected devices. The other selections are
/// ignored, so that a sector maps to the same place whatever part of the trace is read.
pub(crate) fn span_of(path: &Path, options: &TraceOptions) -> Result<Sectors, TraceError> {
    let whole = TraceOptions {
        format: options.format.clone(),
        devices: options.devices.clone(),
        skip_bad: options.skip_bad,
        sort_window: options.sort_window,
        ..TraceOptions::default()
    };
    let mut reader = TraceReader::open(path, &whole)?;
    let mut span = Sectors::ZERO;
    while let Some(record) = reader.next()? {
        span = span.max(Sectors(record.extent.end().0));
    }
    Ok(span)
}

/// Returns `nanoseconds` times `factor`.
#[inline]
fn scaled(nanoseconds: u64, factor: f64) -> u64 {
    // Times of a whole trace may exceed a float's 53 bits; unscaled times must stay exact.
    if factor == 1.0 {
        nanoseconds
    } else {
        (nanoseconds as f64 * factor).round() as u64
    }
}

/// Returns `start`, or the last address below `capacity` where `sectors` fit. A request larger than
/// the volume keeps its start.
fn moved_back(start: u64, sectors: u64, capacity: u64) -> u64 {
    // A request larger than the volume fits nowhere.
    start.min(capacity.checked_sub(sectors).unwrap_or(start))
}

/// Returns the address to which [`BeyondPolicy::Scale`] moves `start`, in a trace that spans `span`
/// sectors.
fn scaled_start(start: u64, span: u64, capacity: u64) -> u64 {
    assert!(
        start <= span && capacity > 0,
        "sector {start} of {span} is moved into {capacity}"
    );
    let regions = u128::from(span.div_ceil(REGION_SECTORS));
    let room = u128::from(capacity / REGION_SECTORS);
    let region = u128::from(start / REGION_SECTORS) * room / regions;
    // The product is smaller than the number of regions of the volume, so it fits.
    let region = u64::try_from(region).unwrap_or(u64::MAX / REGION_SECTORS);
    (region * REGION_SECTORS + start % REGION_SECTORS) % capacity
}

#[cfg(test)]
mod tests;
