//! The steps of a stripe through the log of the array.

use super::WriteLog;
use crate::md::core::{Core, EventContext};
use crate::md::journal::Journal;
use crate::md::ppl::PartialParityLog;
use crate::md::stripes::{page, state};

impl Core {
    /// Returns the partial parity log, if the array has one.
    pub(in crate::md) fn partial_parity(&mut self) -> Option<&mut PartialParityLog> {
        match &mut self.log {
            Some(WriteLog::PartialParity(log)) => Some(log),
            _ => None,
        }
    }

    /// Returns the journal, if the array has one.
    pub(in crate::md) fn journal(&mut self) -> Option<&mut Journal> {
        match &mut self.log {
            Some(WriteLog::Journal(journal)) => Some(journal),
            _ => None,
        }
    }

    /// True if the array has a journal.
    pub(in crate::md) fn has_journal(&self) -> bool {
        matches!(&self.log, Some(WriteLog::Journal(_)))
    }

    /// True if the journal device has failed.
    pub(in crate::md) fn lacks_journal(&self) -> bool {
        matches!(&self.log, Some(WriteLog::Journal(journal)) if journal.has_failed())
    }

    /// True if the thread has I/O of the log to send.
    pub(in crate::md) fn has_log_io(&self) -> bool {
        match &self.log {
            None => false,
            Some(WriteLog::PartialParity(_)) => true,
            Some(WriteLog::Journal(journal)) => journal.has_io(),
        }
    }

    /// Holds a stripe back until the log has its pages (`log_stripe`, `drivers/md/raid5-log.h`).
    /// Returns false if the stripe may write.
    pub(in crate::md) fn log_first(&mut self, at: u32, event: &EventContext<'_>) -> bool {
        let takes = match &self.log {
            None => return false,
            Some(WriteLog::PartialParity(_)) => {
                let parity = self.shape(at).p() as usize;
                self.in_sync(at, parity, event)
            }
            Some(WriteLog::Journal(_)) => true,
        };
        let parity = self.shape(at).p() as usize;
        let writes = self.stripes.page(at, parity).is(page::WANT_WRITE);
        if self.stripes.has(at, state::LOGGED) || !writes || !takes {
            self.stripes.clear(at, state::TRAPPED);
            return false;
        }
        self.stripes.set(at, state::TRAPPED);
        self.stripes.clear(at, state::DELAYED);
        // The log is a holder until its unit is durable.
        self.stripes.stripe_mut(at).count += 1;
        match self.log {
            Some(WriteLog::Journal(_)) => self.add_to_journal(at),
            _ => self.add_to_partial_parity(at, parity),
        }
        true
    }

    /// Sends the I/O of the log that a batch of stripes has caused (`log_write_stripe_run`).
    pub(in crate::md) fn send_logs(&mut self, event: &mut EventContext<'_>) {
        match &self.log {
            None => {}
            Some(WriteLog::PartialParity(_)) => self.send_units(event),
            Some(WriteLog::Journal(_)) => self.send_unit(),
        }
    }

    /// Takes note that the writes of a stripe have ended (`log_stripe_write_finished`).
    pub(in crate::md) fn logged_stripe_ended(&mut self, at: u32, event: &mut EventContext<'_>) {
        if !self.stripes.clear(at, state::LOGGED) {
            return;
        }
        match &mut self.log {
            None => {}
            Some(WriteLog::PartialParity(_)) => self.partial_parity_ended(at, event),
            Some(WriteLog::Journal(journal)) => self.due |= journal.stripe_ended(at),
        }
    }
}
