//! A reader for tables of expected windows. Each requested page is there at once. The reader
//! records the answers of a read-ahead policy in the form of the tables.

use super::{PagePresence, REGISTRY, ReadAhead, ReadAheadPlan, ReadAheadQuery, WindowCuts};
use crate::pages::PageTable;
use crate::run::{PAGE_BYTES, PageRun};
use fullstroke_contract::Object;
use fullstroke_contract::registry::{Keys, find};
use serde_json::Value;

/// An opened window: page of the read at the opening, first page, number of pages, and marked page
/// (0: none).
pub type Opened = (u64, u64, u64, u64);

/// A file and its reader.
pub struct TableReader {
    policy: Box<dyn ReadAhead>,
    pages: PageTable,
    size: u64,
    /// Distance of the cuts: all multiples are cuts.
    every: Option<u64>,
    opened: Vec<Opened>,
}

const OBJECT: Object = Object(5);
const LIST: u8 = 0;

impl TableReader {
    pub fn new(name: &str, size: u64) -> TableReader {
        TableReader::with(name, &[], size)
    }

    pub fn with(name: &str, keys: &[(&str, Value)], size: u64) -> TableReader {
        let keys: Keys = keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect();
        let mut policy = (find("read_ahead", REGISTRY, "read_ahead", name)
            .unwrap()
            .build)(&keys)
        .unwrap();
        policy.opened(0);
        TableReader {
            policy,
            pages: PageTable::default(),
            size,
            every: None,
            opened: Vec::new(),
        }
    }

    pub fn clipped_at(mut self, multiples: u64) -> TableReader {
        self.every = Some(multiples);
        self
    }

    pub fn holding(mut self, first: u64, pages: u64) -> TableReader {
        self.hold(first, pages, None);
        self
    }

    fn hold(&mut self, first: u64, pages: u64, mark: Option<u64>) {
        for page in first..(first + pages).min(self.size) {
            if self.pages.look(OBJECT, page).is_none() {
                let slot = self.pages.add(PageRun::new(OBJECT, page, 1), 0);
                self.pages.push_newest(LIST, slot);
                self.pages.set_mark(slot, mark.filter(|&mark| mark == page));
            }
        }
    }

    /// Reads pages; each item is the first page and the number of pages.
    pub fn reads(&mut self, reads: impl IntoIterator<Item = (u64, u64)>) {
        for (first, count) in reads {
            self.policy
                .begins(0, first * PAGE_BYTES, count * PAGE_BYTES);
            let mut again = first;
            for index in first..first + count {
                // A page that was absent is there after the first question, and may be the marked
                // page.
                while self.ask(index, first + count - index, &mut again) {}
            }
            self.policy.ended(0, first * PAGE_BYTES, count * PAGE_BYTES);
        }
    }

    /// Asks at a page. Returns true if there may be another question at this page.
    fn ask(&mut self, index: u64, wanted: u64, again: &mut u64) -> bool {
        let slot = self.pages.look(OBJECT, index);
        let found = match slot {
            None => PagePresence::Absent,
            Some(slot) if self.pages.get(slot).marked() == Some(index) => PagePresence::Marked,
            Some(_) => PagePresence::Held,
        };
        let due = index >= *again;
        if found == PagePresence::Held && !due {
            return false;
        }
        if let (PagePresence::Marked, Some(slot)) = (found, slot) {
            self.pages.set_mark(slot, None);
        }
        let mut plan = ReadAheadPlan::default();
        plan.clear();
        let cuts = self.every.map_or(WindowCuts::NONE, |every| {
            WindowCuts::of((index / every + 1..).map(|at| at * every))
        });
        let ask = ReadAheadQuery {
            file: 0,
            object: OBJECT,
            index,
            wanted,
            found,
            due,
            size: self.size,
            pages: &self.pages,
            cuts,
        };
        self.policy.ask(&ask, &mut plan);
        if due || plan.again != ReadAheadPlan::NEVER {
            *again = plan.again;
        }
        for window in plan.windows() {
            self.opened
                .push((index, window.first, window.pages, window.mark.unwrap_or(0)));
            self.hold(window.first, window.pages, window.mark);
        }
        self.hold(index, 1, None);
        found == PagePresence::Absent
    }

    pub fn seen(&self) -> &[Opened] {
        &self.opened
    }

    /// Compares the windows with the table, in order.
    #[track_caller]
    pub fn expect(&self, table: &[Opened]) {
        assert_eq!(
            self.opened, table,
            "(at, first, pages, mark): obtained, expected"
        );
    }
}
