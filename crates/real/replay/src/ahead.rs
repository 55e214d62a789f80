//! Reads the trace in another thread during the replay.

use crate::ReplayError;
use crate::issued::IssuedCommand;
use crate::prepared::Commands;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::Scope;

/// Number of commands in one portion.
const AT_ONCE: usize = 512;
/// Largest number of portions read ahead.
const PORTIONS: usize = 128;

type Portion = Result<Vec<IssuedCommand>, ReplayError>;

/// Commands read by another thread.
pub(crate) struct CommandsAhead {
    portions: Receiver<Portion>,
    commands: std::vec::IntoIter<IssuedCommand>,
    /// Number of late reads of the trace.
    pub(crate) waits: u64,
}

impl CommandsAhead {
    /// Starts the reader thread.
    pub(crate) fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        commands: Commands<'env>,
    ) -> Result<CommandsAhead, ReplayError>
    where
        'env: 'scope,
    {
        let (sender, portions) = sync_channel(PORTIONS);
        scope.spawn(move || read(commands, &sender));
        let mut ahead = CommandsAhead {
            portions,
            commands: Vec::new().into_iter(),
            waits: 0,
        };
        // Wait for the first portion before the clock begins.
        ahead.take(true)?;
        Ok(ahead)
    }

    /// Returns the next command; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<IssuedCommand>, ReplayError> {
        if self.commands.as_slice().is_empty() {
            self.take(false)?;
        }
        Ok(self.commands.next())
    }

    fn take(&mut self, is_first: bool) -> Result<(), ReplayError> {
        let portion = match self.portions.try_recv() {
            Ok(portion) => Some(portion),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                self.waits += u64::from(!is_first);
                self.portions.recv().ok()
            }
        };
        if let Some(portion) = portion {
            self.commands = portion?.into_iter();
        }
        Ok(())
    }
}

/// Reads until the end of the trace, or until the receiver is gone.
fn read(mut commands: Commands<'_>, sender: &SyncSender<Portion>) {
    loop {
        let portion = portion(&mut commands);
        let is_last = portion
            .as_ref()
            .map_or(true, |portion| portion.len() < AT_ONCE);
        if sender.send(portion).is_err() || is_last {
            return;
        }
    }
}

/// Returns the next portion of commands; fewer than usual at the end.
fn portion(commands: &mut Commands<'_>) -> Portion {
    let mut portion = Vec::with_capacity(AT_ONCE);
    while portion.len() < AT_ONCE {
        let Some(command) = commands.next()? else {
            break;
        };
        portion.push(command);
    }
    Ok(portion)
}
