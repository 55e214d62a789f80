//! Parser on its own thread, ahead of the consumer of its rows.

use crate::fault::TraceFault;
use crate::input::Input;
use crate::row::{Parser, TraceRow};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// Number of rows requested from a parser at a time.
pub(super) const ROWS_AT_ONCE: usize = 512;
/// Number of batches that wait for the consumer: enough that neither side waits long for the other,
/// and about 1 MB.
const BATCHES_MAX: usize = 4;
/// Number of rows in a batch.
const BATCH_ROWS: usize = 4 * ROWS_AT_ONCE;

type InputAndParser = (Input<'static>, Box<dyn Parser>);

/// Result of one call of the parser.
struct ParsedBatch {
    rows: Vec<TraceRow>,
    outcome: Result<bool, TraceFault>,
}

/// A parser that runs on another thread.
struct ParserAhead {
    batches: Receiver<ParsedBatch>,
    /// Returns emptied batches to the parser, so that it can reuse their memory.
    spent: Sender<Vec<TraceRow>>,
    thread: JoinHandle<InputAndParser>,
}

/// Source of rows: a parser called on demand, or a parser running ahead.
pub(super) struct RowSource {
    /// The parser; `None` while it runs ahead.
    here: Option<Box<InputAndParser>>,
    ahead: Option<ParserAhead>,
}

impl RowSource {
    pub(super) fn new(input: Input<'static>, parser: Box<dyn Parser>) -> RowSource {
        RowSource {
            here: Some(Box::new((input, parser))),
            ahead: None,
        }
    }

    /// Appends the next rows to `rows`. Returns `false` at the end.
    pub(super) fn read(&mut self, rows: &mut Vec<TraceRow>) -> Result<bool, TraceFault> {
        if let Some(ahead) = &self.ahead {
            let Ok(batch) = ahead.batches.recv() else {
                // The thread has ended, perhaps in a panic. `stop` continues the panic here.
                self.stop();
                return Ok(false);
            };
            rows.extend_from_slice(&batch.rows);
            // If the parser has ended, nobody receives the batch; this is no error.
            let _ = ahead.spent.send(batch.rows);
            return batch.outcome;
        }
        match self.here.as_deref_mut() {
            Some((input, parser)) => parser.read(input, rows, ROWS_AT_ONCE),
            None => Ok(false),
        }
    }

    /// Starts the thread, if the machine has more than one processor.
    pub(super) fn run_ahead(&mut self) {
        if thread::available_parallelism().is_ok_and(|processors| processors.get() > 1)
            && let Some(both) = self.here.take()
        {
            let (send, batches) = sync_channel(BATCHES_MAX);
            let (spent, emptied) = channel();
            let thread = thread::spawn(move || parse(*both, &send, &emptied));
            self.ahead = Some(ParserAhead {
                batches,
                spent,
                thread,
            });
        }
    }

    /// Ends the thread and takes the parser back. Rows read ahead are lost.
    pub(super) fn stop(&mut self) {
        let Some(ParserAhead {
            batches,
            spent,
            thread,
        }) = self.ahead.take()
        else {
            return;
        };
        // The thread ends when its channels are closed; the join would wait for ever otherwise.
        drop((batches, spent));
        match thread.join() {
            Ok(both) => self.here = Some(Box::new(both)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Returns the parser, unless it runs ahead.
    pub(super) fn parser(&self) -> Option<&dyn Parser> {
        self.here.as_ref().map(|both| &*both.1)
    }
}

/// Parses until the end, until a fatal error, or until the consumer is gone.
fn parse(
    both: InputAndParser,
    batches: &SyncSender<ParsedBatch>,
    emptied: &Receiver<Vec<TraceRow>>,
) -> InputAndParser {
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
        if batches.send(ParsedBatch { rows, outcome }).is_err() || last {
            return (input, parser);
        }
    }
}
