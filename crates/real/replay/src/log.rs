//! The replay as a trace in the native format, written by another thread.

use crate::ReplayError;
use crate::issued::IssuedCommand;
use fullstroke_contract::Extent;
use fullstroke_trace::{OUTPUTS, TraceError, TraceRecord, TraceWriter};
use fullstroke_units::{SECTOR_BYTES, Time};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Number of records in one portion. Large portions wake the other thread seldom.
const AT_ONCE: usize = 256;

type Numbered = (u64, TraceRecord);

/// Keeps issued requests with their completion times.
pub(crate) struct CompletionLog<'scope> {
    sender: Sender<Vec<Numbered>>,
    portion: Vec<Numbered>,
    writer: ScopedJoinHandle<'scope, Result<(), TraceError>>,
}

impl<'scope> CompletionLog<'scope> {
    pub(crate) fn start(
        scope: &'scope Scope<'scope, '_>,
        path: &Path,
    ) -> Result<CompletionLog<'scope>, ReplayError> {
        let Some(native) = OUTPUTS.iter().find(|output| output.name == "native") else {
            unreachable!("the native format can be written")
        };
        let writer = TraceWriter::create(native, path)?;
        let (sender, portions) = channel();
        let writer = scope.spawn(move || write(writer, &portions));
        Ok(CompletionLog {
            sender,
            portion: Vec::with_capacity(AT_ONCE),
            writer,
        })
    }

    /// Adds the completed request `number`.
    pub(crate) fn add(
        &mut self,
        number: u64,
        command: &IssuedCommand,
        issued: Time,
        completed: Time,
    ) {
        let extent = Extent::new(command.start / SECTOR_BYTES, command.bytes / SECTOR_BYTES);
        let record = TraceRecord {
            arrival: issued,
            operation: command.action.operation(),
            extent,
            issued: None,
            completed: Some(completed),
            ..command.record
        };
        self.portion.push((number, record));
        if self.portion.len() == AT_ONCE {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        // A writer that has failed reports this at the end.
        let _ = self.sender.send(std::mem::replace(
            &mut self.portion,
            Vec::with_capacity(AT_ONCE),
        ));
    }

    /// Writes the rest and moves the file to its place.
    pub(crate) fn finish(mut self) -> Result<(), ReplayError> {
        self.hand_over();
        let CompletionLog { sender, writer, .. } = self;
        // The writer thread ends when its channel is closed, and the join would wait for ever
        // otherwise.
        drop(sender);
        writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(())
    }
}

/// Writes records in the order of their numbers, although requests complete in another order.
fn write(mut writer: TraceWriter, portions: &Receiver<Vec<Numbered>>) -> Result<(), TraceError> {
    let (mut early, mut next) = (BTreeMap::new(), 1);
    for portion in portions {
        early.extend(portion);
        while let Some(record) = early.remove(&next) {
            writer.write(&record)?;
            next += 1;
        }
    }
    // Records behind a request that failed.
    early
        .values()
        .try_for_each(|record| writer.write(record).map(drop))?;
    writer.finish()
}
