//! Runs a record again under the virtual clock.
//!
//! The recorded arrivals and orders are the whole input of a live run. The same layers with the
//! same input at the same times must make the same decisions in the same order.
//! [`replay_decisions`] requires this.

use crate::decisions::Decisions;
use crate::record::{RecordedOrder, column, note, schema};
use fullstroke_contract::{Extent, Hints, Notice, Operation, Request};
use fullstroke_engine::{Finished, Machine, Observer};
use fullstroke_stack::Stack;
use fullstroke_table::{RowBatch, TableError, TableReader};
use fullstroke_units::Time;
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};

/// Number of rows in memory at a time, apart from the requests in flight.
const BATCH_ROWS: usize = 4096;

/// Result of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordVerdict {
    /// Number of requests in the record.
    pub requests: u64,
    /// Number of orders in the record.
    pub orders: u64,
    /// Number of requests finished as recorded, with all decisions before.
    pub alike: u64,
    /// First different request, in order of completion.
    pub first_difference: Option<Difference>,
}

/// First difference between a replay and its record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Number of the request, in order of arrival.
    pub request: u64,
    /// Number in the order of completion: recorded and replayed.
    pub completion: [u64; 2],
    /// Time of the end: recorded and replayed.
    pub finished_ns: [u64; 2],
}

/// Reason why a record cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The record was made with another stack.
    #[error(
        "{}: the record is of stack `{recorded_name}` with digest {recorded}, but {given_name} has {given}; \
         give the stack file that was served, with the same --set", path.display()
    )]
    OtherStack {
        /// Path of the record.
        path: PathBuf,
        /// Name of the served stack.
        recorded_name: String,
        /// Digest of the served stack.
        recorded: String,
        /// Name of the given stack.
        given_name: String,
        /// Digest of the given stack.
        given: String,
    },
    /// A row or note is invalid.
    #[error("{}: {place}: found {found}; expected {expected}", path.display())]
    Damaged {
        /// Path of the record.
        path: PathBuf,
        /// Place in the record.
        place: String,
        /// Value at this place.
        found: String,
        /// Expected value.
        expected: &'static str,
    },
    /// The stack cannot be built.
    #[error(transparent)]
    Stack(#[from] fullstroke_stack::StackError),
}

/// Recorded values of a request.
#[derive(Clone, Copy, Debug)]
struct RecordedRequest {
    completion: u64,
    finished_ns: u64,
    decisions: u64,
}

/// Compares events with the record.
#[derive(Debug, Default)]
struct RecordComparison {
    decisions: Decisions,
    recorded: HashMap<u64, RecordedRequest>,
    alike: u64,
    first_difference: Option<Difference>,
}

impl Observer for RecordComparison {
    fn finished(&mut self, finished: &Finished) {
        let completion = self.decisions.finished_requests();
        self.decisions.finished(finished);
        let Some(recorded) = self.recorded.remove(&finished.origin) else {
            return;
        };
        let finished_ns = finished.completion.finished.as_nanos();
        if recorded.decisions == self.decisions.digest() {
            self.alike += 1;
        } else if self.first_difference.is_none() {
            self.first_difference = Some(Difference {
                request: finished.origin,
                completion: [recorded.completion, completion],
                finished_ns: [recorded.finished_ns, finished_ns],
            });
        }
    }

    fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        self.decisions.drive_io(now, drive, request);
    }

    fn noticed(&mut self, path: &[usize], notice: &Notice) {
        self.decisions.noticed(path, notice);
    }
}

/// Feeds the record at `path` to the layers of `stack` and compares every decision.
///
/// # Errors
/// If the record cannot be read, or is not of this stack.
pub fn replay_decisions(stack: &Stack, path: &Path) -> Result<RecordVerdict, ReplayError> {
    let mut record = RecordReader::open(path)?;
    record.check_identity(stack)?;
    let mut machine = Machine::new(stack.serve()?.graph);
    let mut comparison = RecordComparison::default();
    let mut orders = record.orders()?;
    let count = orders.len() as u64;
    while let Some((arrival, request, recorded)) = record.next()? {
        // Orders come before the request behind them, because the record counts the requests before
        // each order.
        give_orders(&mut machine, &mut comparison, &mut orders);
        machine.advance(arrival, &mut comparison);
        comparison.recorded.insert(machine.submitted(), recorded);
        machine.submit(arrival, request, &mut comparison);
    }
    give_orders(&mut machine, &mut comparison, &mut orders);
    // No arrival is left. A rebuild may need hours more and has no recorded end, so the replay ends
    // with the last request.
    while machine.in_flight() > 0 {
        machine.wake(&mut comparison);
    }
    Ok(RecordVerdict {
        requests: machine.submitted(),
        orders: count,
        alike: comparison.alike,
        first_difference: comparison.first_difference,
    })
}

/// Gives the orders recorded before the next request.
fn give_orders(
    machine: &mut Machine,
    comparison: &mut RecordComparison,
    orders: &mut VecDeque<RecordedOrder>,
) {
    let given = machine.submitted();
    while orders
        .front()
        .is_some_and(|order| order.after_requests <= given)
    {
        let Some(order) = orders.pop_front() else {
            break;
        };
        let at = Time::from_nanos(order.at_ns);
        machine.advance(at, comparison);
        // A recorded order was carried out. If the layers refuse it now, the decisions differ.
        let _ = machine.order(at, &order.path, order.order(), comparison);
    }
}

/// Reads a record row by row.
struct RecordReader {
    path: PathBuf,
    table: TableReader,
    rows: VecDeque<(Time, Request, RecordedRequest)>,
    rows_read: u64,
    latest: Time,
}

impl RecordReader {
    fn open(path: &Path) -> Result<RecordReader, ReplayError> {
        let table = TableReader::open(path, &schema())?;
        Ok(RecordReader {
            path: path.to_owned(),
            table,
            rows: VecDeque::new(),
            rows_read: 0,
            latest: Time::ZERO,
        })
    }

    fn note(&self, key: &str) -> &str {
        self.table.metadata(key).unwrap_or("(none)")
    }

    fn damaged(
        &self,
        place: impl fmt::Display,
        found: impl Into<String>,
        expected: &'static str,
    ) -> ReplayError {
        let (path, place, found) = (self.path.clone(), place.to_string(), found.into());
        ReplayError::Damaged {
            path,
            place,
            found,
            expected,
        }
    }

    fn check_identity(&self, stack: &Stack) -> Result<(), ReplayError> {
        let (recorded, seed) = (self.note(note::DIGEST), self.note(note::SEED));
        if recorded == stack.digest() && seed == stack.seed().0.to_string() {
            return Ok(());
        }
        Err(ReplayError::OtherStack {
            path: self.path.clone(),
            recorded_name: self.note(note::STACK).to_owned(),
            recorded: format!("{recorded} and seed {seed}"),
            given_name: stack.name().to_owned(),
            given: format!("{} and seed {}", stack.digest(), stack.seed().0),
        })
    }

    fn orders(&self) -> Result<VecDeque<RecordedOrder>, ReplayError> {
        let text = self.table.metadata(note::ORDERS).unwrap_or("[]");
        serde_json::from_str(text).map_err(|error| {
            self.damaged(
                "note `orders`",
                error.to_string(),
                "a list of orders in JSON",
            )
        })
    }

    fn next(&mut self) -> Result<Option<(Time, Request, RecordedRequest)>, ReplayError> {
        if self.rows.is_empty() {
            self.refill()?;
        }
        Ok(self.rows.pop_front())
    }

    fn refill(&mut self) -> Result<(), ReplayError> {
        let Some(batch) = self.table.next_batch(BATCH_ROWS)? else {
            return Ok(());
        };
        let mut rows = VecDeque::with_capacity(batch.rows());
        let mut fault = None;
        for index in 0..batch.rows() {
            match row(batch, index) {
                Ok(row) if row.0 >= self.latest => {
                    self.latest = row.0;
                    rows.push_back(row);
                }
                Ok(row) => {
                    fault = Some((
                        index,
                        format!(
                            "arrival {} ns after {} ns",
                            row.0.as_nanos(),
                            self.latest.as_nanos()
                        ),
                        "rows in order of arrival",
                    ));
                    break;
                }
                Err(NoOperation(name)) => {
                    fault = Some((
                        index,
                        format!("operation `{name}`"),
                        "read, write, flush or discard",
                    ));
                    break;
                }
            }
        }
        if let Some((index, found, expected)) = fault {
            return Err(self.damaged(
                format!("row {}", self.rows_read + index as u64),
                found,
                expected,
            ));
        }
        self.rows_read += rows.len() as u64;
        self.rows = rows;
        Ok(())
    }
}

/// The name of an unknown operation, with escapes for unprintable characters.
struct NoOperation(String);

/// Parses one row.
fn row(batch: &RowBatch, index: usize) -> Result<(Time, Request, RecordedRequest), NoOperation> {
    let name = batch.text(column::OPERATION, index);
    let operation =
        Operation::named(name).ok_or_else(|| NoOperation(name.escape_debug().to_string()))?;
    let hints = Hints {
        process: batch.u32(column::PROCESS, index),
        force_unit_access: batch.bool(column::FORCE_UNIT_ACCESS, index),
        ..Hints::default()
    };
    let extent = Extent::new(
        batch.u64(column::START, index),
        batch.u64(column::SECTORS, index),
    );
    let recorded = RecordedRequest {
        completion: batch.u64(column::COMPLETION, index),
        finished_ns: batch
            .optional_u64(column::COMPLETED, index)
            .unwrap_or(u64::MAX),
        decisions: batch.u64(column::DECISIONS, index),
    };
    let arrival = Time::from_nanos(batch.u64(column::ARRIVAL, index));
    Ok((
        arrival,
        Request {
            operation,
            extent,
            hints,
            ..Request::default()
        },
        recorded,
    ))
}
