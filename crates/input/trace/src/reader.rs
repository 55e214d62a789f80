//! Reader of traces: recognises, parses, sorts and selects.

mod ahead;
mod oddities;

use crate::fault::{Problem, TraceFault};
use crate::formats::{CSV, Format, find_format, recognise};
use crate::input::{BUFFER_BYTES, Input};
use crate::options::TraceOptions;
use crate::place::{DeviceSpans, PlaceFault, Placement};
use crate::record::TraceRecord;
use crate::restart::JoinedParser;
use crate::row::{TraceRow, check};
use crate::sort::SortWindow;
use crate::unselected::Unselected;
use crate::{TraceError, processor_files, source};
use ahead::RowSource;
use fullstroke_contract::Extent;
use fullstroke_units::Time;
use oddities::{OVERSIZED_SECTORS, Oddities};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// File that can be read again.
    path: Option<PathBuf>,
    /// Places of the addresses; `None` without a volume.
    placement: Option<Placement>,
    window: SortWindow,
    /// Arrival of the trace's first request, on the format's clock.
    beginning: Option<u64>,
    /// Arrival of the latest request, on the format's clock.
    latest: u64,
    oddities: Oddities,
    counts: ReaderCounts,
    /// True if the parser has no more rows.
    ended: bool,
    /// True if no more records follow: an error was reported, or the time window is over.
    closed: bool,
    /// Requests left out by the selection; `None` as soon as a request was selected.
    unselected: Option<Unselected>,
}

/// Counts of a reader so far.
#[derive(Clone, Copy, Debug, Default)]
struct ReaderCounts {
    /// Completions that were left out, because they may belong to other requests.
    doubtful: u64,
    /// Damaged rows that were left out.
    skipped: u64,
    /// Calls of the parser.
    refills: u64,
}

/// Outcome of a released row.
enum ReleasedRow {
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
    /// With a capacity the whole trace is read once more to find the ends of its devices, if it has
    /// several devices, or if all addresses are moved.
    ///
    /// # Errors
    /// Fails if the file cannot be read or recognised, or if the options are contradictory.
    pub fn open(path: &Path, options: &TraceOptions) -> Result<TraceReader, TraceError> {
        options.check()?;
        let path = &processor_files::locate(&options.files, path)?;
        let input = source::open_in(&options.files, path, BUFFER_BYTES)?;
        let mut reader = TraceReader::over(path.display().to_string(), input, options.clone())?;
        reader.path = Some(path.clone());
        Ok(reader)
    }

    /// Reads the trace, packed or not, from `bytes`. `name` is used in messages and to recognise
    /// the format.
    ///
    /// # Errors
    /// As for [`open`](TraceReader::open). Several devices in one volume, and moved addresses without
    /// [`TraceOptions::span`], are errors here, because the bytes can be read only once.
    pub fn open_read(
        name: &str,
        bytes: Box<dyn Read + Send>,
        options: &TraceOptions,
    ) -> Result<TraceReader, TraceError> {
        options.check()?;
        let input = source::unpack(bytes, None, BUFFER_BYTES);
        let input = input.map_err(|source| TraceError::from_io(name.to_owned(), source))?;
        TraceReader::over(name.to_owned(), input, options.clone())
    }

    fn over(
        file: String,
        mut input: Input<'static>,
        options: TraceOptions,
    ) -> Result<TraceReader, TraceError> {
        let columns = options.column_map()?;
        let format = match &options.format {
            Some(name) => find_format(name)?,
            // A user who names columns has a table, and the contents of a table without a header
            // may look like another format.
            None if columns.is_some() => find_format(CSV)?,
            None => recognise(&file, &mut input)?,
        };
        if let Some(columns) = columns {
            input.set_columns(columns);
        }
        let begin = input
            .peek(1)
            .map_err(|source| TraceError::from_io(file.clone(), source))?;
        // Before the parser looks, because each format would say something else about a file
        // without a byte.
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
            source: RowSource::new(input, Box::new(JoinedParser::new(parser, format.counted))),
            lacks_addresses,
            window: SortWindow::new(options.sort_window),
            placement: Placement::of(&options),
            path: None,
            options,
            beginning: None,
            latest: 0,
            oddities: Oddities::default(),
            counts: ReaderCounts::default(),
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
        self.counts.skipped
    }

    /// Returns the number of requests so far whose completion was left out, because it may belong
    /// to another request.
    pub fn doubtful(&self) -> u64 {
        self.counts.doubtful
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
        let of_places = self.placement.as_ref().map(Placement::notes);
        of_parser
            .into_iter()
            .chain(self.oddities.notes(self.closed))
            .chain(of_places.unwrap_or_default())
            .collect()
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
        // An error closes the reader, because rows behind a damaged row may belong to a wrong
        // place.
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
            if since > 0 && self.oddities.has_gap(row.arrival.saturating_sub(latest)) {
                self.oddities
                    .add_gap(self.format.place(row.place), row.arrival - latest);
            }
            if row.sectors > OVERSIZED_SECTORS && row.operation.transfers() {
                self.oddities.add_size(self.format.place(row.place), row);
            }
            latest = row.arrival;
            self.counts.doubtful += u64::from(row.doubtful);
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
        self.oddities
            .add_rows(rows.len() as u64, latest - beginning);
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
                Ok(ReleasedRow::Record(record)) => records.push(record),
                Ok(ReleasedRow::LeftOut) => {}
                Ok(ReleasedRow::Over) => {
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
                ReleasedRow::Record(record) => return Ok(Some(record)),
                ReleasedRow::LeftOut => {}
                ReleasedRow::Over => break,
            }
        }
        self.end()
    }

    /// Returns the record of a released row.
    #[inline]
    fn select(&mut self, row: &TraceRow) -> Result<ReleasedRow, TraceError> {
        let beginning = *self.beginning.get_or_insert(row.arrival);
        // The window refuses rows that arrive before a released one, so this is never negative.
        let since = row.arrival - beginning;
        if since > 0
            && self
                .oddities
                .has_gap(row.arrival.saturating_sub(self.latest))
        {
            self.oddities
                .add_gap(self.format.place(row.place), row.arrival - self.latest);
        }
        if row.sectors > OVERSIZED_SECTORS && row.operation.transfers() {
            self.oddities.add_size(self.format.place(row.place), row);
        }
        self.latest = row.arrival;
        self.oddities.add_rows(1, since);
        // Rows come in the order of arrival, so the first row behind the window ends the trace.
        let over = self.options.to.is_some_and(|to| since >= to.as_nanos());
        if !over && self.selects(row, since) {
            if self.unselected.is_some() {
                self.unselected = None;
            }
            self.counts.doubtful += u64::from(row.doubtful);
            return self.record(row, since).map(ReleasedRow::Record);
        }
        if let Some(unselected) = &mut self.unselected {
            unselected.note(row, since);
        }
        Ok(if over {
            ReleasedRow::Over
        } else {
            ReleasedRow::LeftOut
        })
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
        self.counts.refills += 1;
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
        if self.counts.skipped < tolerated {
            self.counts.skipped += 1;
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
    fn record(&mut self, row: &TraceRow, since: u64) -> Result<TraceRecord, TraceError> {
        let arrival = since - self.options.from.as_nanos();
        let arrival = scaled(arrival, self.options.time_scale);
        let later =
            |time: u64| Time::from_nanos(arrival.saturating_add(time.saturating_sub(row.arrival)));
        let (issued, completed) = (row.issued.map(later), row.completed.map(later));
        let extent = match row.operation.is_of_all() {
            true => Extent::new(0, 0),
            false if self.placement.is_none() => Extent::new(row.start, row.sectors),
            false => self.placed(row)?,
        };
        Ok(TraceRecord {
            arrival: Time::from_nanos(arrival),
            operation: row.operation,
            extent,
            device: row.device,
            process: row.process,
            issued,
            completed,
        })
    }

    /// Returns the place of the row in the volume.
    fn placed(&mut self, row: &TraceRow) -> Result<Extent, TraceError> {
        let extent = Extent::new(row.start, row.sectors);
        let Some(placement) = &mut self.placement else {
            return Ok(extent);
        };
        let mut placed = placement.place(row.device, extent);
        if placed == Err(PlaceFault::NeedsSpans) {
            let Some(path) = &self.path else {
                return Err(TraceError::Option(format!(
                    "`{}` can be read only once, but the ends of its devices are needed: choose one device with --device \
                     and leave its addresses as they are, or name a file",
                    self.file
                )));
            };
            let spans = DeviceSpans::read(path, &self.options)?;
            placement.set_spans(Arc::new(spans));
            placed = placement.place(row.device, extent);
        }
        placed.map_err(|fault| {
            let spread = placement.spread_error(&self.file);
            match (fault, spread) {
                (PlaceFault::DevicesTooLarge, _) => placement.devices_error(&self.file),
                (_, Some(error)) => error,
                (PlaceFault::NeedsSpans | PlaceFault::Beyond, None) => TraceError::BeyondVolume {
                    file: self.file.clone(),
                    place: self.format.place(row.place),
                    operation: row.operation.name(),
                    start: row.start,
                    end: row.start + row.sectors,
                    capacity: self.options.capacity.unwrap_or_default().0,
                },
            }
        })
    }

    /// Returns a number that changes with the state behind [`skipped`](Self::skipped) and
    /// [`notes`](Self::notes).
    pub(crate) fn stamp(&self) -> [u64; 3] {
        [
            self.counts.skipped,
            self.counts.refills,
            self.oddities.count(),
        ]
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

#[cfg(test)]
mod tests;
