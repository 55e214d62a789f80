//! The log of a file system with a journal: the thread that writes to the log, and pages that wait
//! for a transaction.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// How far a transaction has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionState {
    /// The transaction collects changes.
    Running,
    /// The transaction is in the open log buffer, which nobody writes yet.
    Pushed,
    /// The transaction is being written, and the flush before its commit record is still to come.
    Committing,
    /// The commit record is being written (`T_COMMIT_JFLUSH` of jbd2).
    Recording,
    /// The transaction is in the log.
    Committed,
}

/// The log. Only one transaction at a time is written to the log.
#[derive(Debug, Default)]
pub(crate) struct MetadataLog {
    /// Thread that writes to the log.
    writer: Option<u32>,
    /// Threads that wait for the log, in order.
    waiting: VecDeque<u32>,
    /// True if the flush before the commit record has begun.
    records: bool,
    /// Number of the running transaction.
    transaction: u64,
    /// Transactions of the last write to the log.
    writing: Range<u64>,
    /// Pages of these transactions, until their copies are in the log.
    copied: BTreeSet<u64>,
    /// True while the pages are on their way into the log and must not change (`BH_Shadow`).
    shadows: bool,
    /// Threads that wait until the pages may change.
    waiting_for_copies: Vec<u32>,
    /// True while a thread of the journal is running.
    has_thread: bool,
    /// Metadata pages held back from their places, with the transaction of each.
    held: BTreeMap<u64, u64>,
}

impl MetadataLog {
    /// Returns a log whose running transaction has this number.
    pub fn beginning_with(transaction: u64) -> MetadataLog {
        MetadataLog {
            transaction,
            writing: transaction..transaction,
            ..MetadataLog::default()
        }
    }

    /// True if a thread writes to the log.
    pub fn is_busy(&self) -> bool {
        self.writer.is_some()
    }

    /// True if `thread` writes to the log.
    pub fn is_written_by(&self, thread: u32) -> bool {
        self.writer == Some(thread)
    }

    /// Lets `thread` wait for the log.
    pub fn wait(&mut self, thread: u32) {
        assert!(
            self.is_busy() && !self.is_written_by(thread),
            "thread {thread} waits for the log of thread {:?}",
            self.writer
        );
        self.waiting.push_back(thread);
    }

    /// Returns the state of a transaction.
    pub fn state(&self, transaction: Option<u64>) -> TransactionState {
        match transaction {
            Some(number) if number == self.transaction => TransactionState::Running,
            Some(number) if number >= self.writing.end => TransactionState::Pushed,
            Some(number) if self.writing.contains(&number) && self.is_busy() => {
                if self.records {
                    TransactionState::Recording
                } else {
                    TransactionState::Committing
                }
            }
            _ => TransactionState::Committed,
        }
    }

    /// Notes that the flush before the commit record begins.
    pub fn record(&mut self) {
        debug_assert!(self.is_busy(), "nobody writes to the log");
        self.records = true;
    }

    /// Notes that all transactions before `running` are closed.
    pub fn close_before(&mut self, running: u64) {
        debug_assert!(
            running >= self.transaction,
            "transaction {running} runs after transaction {}",
            self.transaction
        );
        self.transaction = running;
    }

    /// Lets `thread` write all closed transactions to the log. `running` is the number of the
    /// running transaction.
    pub fn enter(&mut self, thread: u32, running: u64) {
        assert!(
            self.writer.is_none(),
            "thread {thread} writes to the log beside thread {:?}",
            self.writer
        );
        self.close_before(running);
        // Transactions that were pushed since the last writer are written together.
        self.writing = self.writing.end..running;
        self.records = false;
        self.writer = Some(thread);
    }

    /// Notes the pages that the log write copies.
    pub fn copy(&mut self, pages: &[u64]) {
        self.copied.extend(pages);
    }

    /// Notes that the pages are on their way into the log.
    pub fn begin_copies(&mut self) {
        self.shadows = true;
    }

    /// Notes that the copies of the pages are in the log.
    pub fn end_copies(&mut self) {
        self.copied.clear();
        self.shadows = false;
    }

    /// True if the page is on its way into the log and must not change.
    pub fn shadows(&self, page: u64) -> bool {
        self.shadows && self.copied.contains(&page)
    }

    /// Lets `thread` wait for the end of the copies. Returns false if there is nothing to wait for.
    pub fn wait_for_copies(&mut self, thread: u32) -> bool {
        if self.shadows {
            self.waiting_for_copies.push(thread);
        }
        self.shadows
    }

    /// Returns a thread that waited for the end of the copies.
    pub fn next_with_copies(&mut self) -> Option<u32> {
        debug_assert!(
            !self.shadows,
            "a thread goes on before the copies are there"
        );
        if self.waiting_for_copies.is_empty() {
            return None;
        }
        Some(self.waiting_for_copies.remove(0))
    }

    /// Frees the log.
    pub fn leave(&mut self) {
        let left = self.writer.take();
        assert!(left.is_some(), "the log is left, and nobody is in it");
    }

    /// Takes all threads that wait for the free log, in order.
    pub fn all_waiting(&mut self) -> impl Iterator<Item = u32> {
        debug_assert!(!self.is_busy(), "a thread goes on before the log is free");
        self.waiting.drain(..)
    }

    /// True if the journal may begin a thread of its own.
    pub fn may_commit(&self) -> bool {
        !self.has_thread && !self.is_busy()
    }

    /// Notes that a thread of the journal has begun.
    pub fn begin_thread(&mut self) {
        assert!(!self.has_thread, "the journal has one thread at a time");
        self.has_thread = true;
    }

    /// Notes that the thread of the journal has ended.
    pub fn end_thread(&mut self) {
        assert!(self.has_thread, "a thread of the journal ends unbegun");
        self.has_thread = false;
    }

    /// Holds a page back until the running transaction is in the log.
    pub fn hold(&mut self, page: u64) {
        self.held.insert(page, self.transaction);
    }

    /// True if the page is held back.
    pub fn holds(&self, page: u64) -> bool {
        self.held.contains_key(&page)
    }

    /// Drops a page that is no longer metadata.
    pub fn forget(&mut self, page: u64) {
        self.held.remove(&page);
    }

    /// Releases a page held back until `transaction`. Returns false if the page is not held back,
    /// or has changed again and stays for a later transaction.
    pub fn release(&mut self, page: u64, transaction: u64) -> bool {
        debug_assert!(
            transaction < self.transaction,
            "page {page} is released before transaction {transaction} is closed"
        );
        // A page that a later transaction changed again stays back until that transaction is in the
        // log.
        let due = self
            .held
            .get(&page)
            .is_some_and(|&held| held <= transaction);
        if due {
            self.held.remove(&page);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_changed_again_stays_held_for_the_later_transaction() {
        let mut log = MetadataLog::default();
        let first = log.transaction;
        log.hold(7);
        log.hold(8);
        log.enter(1, first + 1);
        log.leave();
        // Page 7 changes again while its older content is on the way to its place.
        let second = log.transaction;
        log.hold(7);
        log.enter(1, second + 1);
        log.leave();
        assert!(!log.release(7, first), "the later change is not in the log");
        assert!(log.holds(7));
        assert!(log.release(8, first) && !log.holds(8));
        assert!(log.release(7, second) && !log.holds(7));
        assert!(!log.release(7, second), "a page is released once");
    }

    #[test]
    fn a_pushed_transaction_waits_for_the_next_log_write() {
        let mut log = MetadataLog::beginning_with(5);
        log.enter(1, 6);
        log.close_before(7);
        assert_eq!(log.state(Some(5)), TransactionState::Committing);
        assert_eq!(log.state(Some(6)), TransactionState::Pushed);
        assert_eq!(log.state(Some(7)), TransactionState::Running);
        log.leave();
        assert_eq!(log.state(Some(5)), TransactionState::Committed);
        assert_eq!(log.state(Some(6)), TransactionState::Pushed);
        log.enter(2, 7);
        assert_eq!(log.state(Some(6)), TransactionState::Committing);
    }

    #[test]
    fn a_page_on_its_way_into_the_log_does_not_change() {
        let mut log = MetadataLog::default();
        log.enter(1, 1);
        log.copy(&[7]);
        assert!(!log.shadows(7) && !log.wait_for_copies(2));
        log.begin_copies();
        assert!(log.shadows(7) && !log.shadows(8) && log.wait_for_copies(2));
        log.end_copies();
        assert!(!log.shadows(7));
        assert_eq!(
            (log.next_with_copies(), log.next_with_copies()),
            (Some(2), None)
        );
    }
}
