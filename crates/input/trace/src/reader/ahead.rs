//! Parsing on a thread of its own, ahead of whoever uses the rows.

use super::ROWS_AT_ONCE;
use crate::fault::Fault;
use crate::input::Input;
use crate::row::{Parser, Row};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// Batches that wait to be used: enough that neither side waits long for the
/// other, and some 2 MB.
const BATCHES_MAX: usize = 4;
/// Rows of a batch.
const BATCH_ROWS: usize = 8 * ROWS_AT_ONCE;

type Both = (Input<'static>, Box<dyn Parser>);

/// What one call of the parser gave.
struct Batch {
    rows: Vec<Row>,
    outcome: Result<bool, Fault>,
}

/// A parser at work on another thread.
struct Ahead {
    batches: Receiver<Batch>,
    /// Emptied batches go back, so that their memory is used again.
    spent: Sender<Vec<Row>>,
    thread: JoinHandle<Both>,
}

/// Where rows come from: a parser that is called when rows are wanted, or one
/// that runs ahead.
pub(super) struct Rows {
    /// `None` while it runs ahead.
    here: Option<Box<Both>>,
    ahead: Option<Ahead>,
}

impl Rows {
    pub(super) fn new(input: Input<'static>, parser: Box<dyn Parser>) -> Rows {
        Rows {
            here: Some(Box::new((input, parser))),
            ahead: None,
        }
    }

    /// Replaces `rows` by the next ones; `false` at the end.
    pub(super) fn read(&mut self, rows: &mut Vec<Row>) -> Result<bool, Fault> {
        if let Some(ahead) = &self.ahead {
            let Ok(batch) = ahead.batches.recv() else {
                // It ended, in a panic perhaps, which goes on here.
                self.stop();
                return Ok(false);
            };
            // Where the parser has ended nobody takes it.
            let _ = ahead.spent.send(std::mem::replace(rows, batch.rows));
            return batch.outcome;
        }
        rows.clear();
        match self.here.as_deref_mut() {
            Some((input, parser)) => parser.read(input, rows, ROWS_AT_ONCE),
            None => Ok(false),
        }
    }

    /// From now on the parser runs ahead, if there is a processor for it.
    pub(super) fn run_ahead(&mut self) {
        if thread::available_parallelism().is_ok_and(|processors| processors.get() > 1)
            && let Some(both) = self.here.take()
        {
            let (send, batches) = sync_channel(BATCHES_MAX);
            let (spent, emptied) = channel();
            let thread = thread::spawn(move || parse(*both, &send, &emptied));
            self.ahead = Some(Ahead {
                batches,
                spent,
                thread,
            });
        }
    }

    /// Brings the parser back. What it read ahead is lost.
    pub(super) fn stop(&mut self) {
        let Some(Ahead {
            batches,
            spent,
            thread,
        }) = self.ahead.take()
        else {
            return;
        };
        drop((batches, spent));
        match thread.join() {
            Ok(both) => self.here = Some(Box::new(both)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// The parser, unless it runs ahead.
    pub(super) fn parser(&self) -> Option<&dyn Parser> {
        self.here.as_ref().map(|both| &*both.1)
    }
}

/// Parses until the end, an error that ends all, or until nobody wants more.
fn parse(both: Both, batches: &SyncSender<Batch>, emptied: &Receiver<Vec<Row>>) -> Both {
    let (mut input, mut parser) = both;
    loop {
        let mut rows = emptied
            .try_recv()
            .unwrap_or_else(|_| Vec::with_capacity(BATCH_ROWS));
        rows.clear();
        let outcome = parser.read(&mut input, &mut rows, BATCH_ROWS);
        let last = match &outcome {
            Ok(more) => !more,
            Err(fault) => !fault.is_one_row(),
        };
        if batches.send(Batch { rows, outcome }).is_err() || last {
            return (input, parser);
        }
    }
}
