//! `lru`: evicts the least recently used page.

use super::{ListPlace, NoPolicyKeys, PolicySite, Replacement, put, renew, take_oldest};
use crate::pages::PageTable;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};

pub(super) const SUMMARY: &str = "evicts the least recently used page";

const LIST: u8 = 0;

struct Lru;

pub(super) fn build(keys: &Keys, _: &PolicySite) -> Result<Box<dyn Replacement>, ConfigError> {
    let NoPolicyKeys {} = read(keys)?;
    Ok(Box::new(Lru))
}

impl Replacement for Lru {
    fn admitted(&mut self, pages: &mut PageTable, slot: u32, place: ListPlace) {
        put(pages, slot, LIST, place);
    }

    fn used(&mut self, pages: &mut PageTable, slot: u32, _first: bool) {
        renew(pages, slot, LIST);
    }

    fn victim(&mut self, pages: &mut PageTable, most: u64) -> Option<u32> {
        take_oldest(pages, LIST, most)
    }
}

#[cfg(test)]
pub(super) mod plain {
    use crate::replacement::conformance::PlainPolicy;
    use std::collections::VecDeque;

    /// Pages, oldest first.
    #[derive(Default)]
    pub struct Model(VecDeque<u64>);

    impl PlainPolicy for Model {
        fn come(&mut self, page: u64, full: bool) -> Option<u64> {
            let gone = if full { self.0.pop_front() } else { None };
            self.0.push_back(page);
            gone
        }

        fn used(&mut self, page: u64, _first: bool) {
            self.0.retain(|&other| other != page);
            self.0.push_back(page);
        }
    }
}
