//! `2q`, the full version of Johnson and Shasha (VLDB 1994, section 3, figure "2Q"). New pages
//! enter a FIFO (A1in). After the FIFO a page is remembered for a while (A1out). A request during
//! this time moves the page to the LRU list (Am).

use super::ghosts::Ghosts;
use super::{ListPlace, PolicySite, Replacement, home, put, renew, take_oldest};
use crate::pages::{PageTable, Stretch};
use crate::run::PageRun;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "2Q: a page is kept if it is requested again after it left a FIFO";

const A1_IN: u8 = 0;
const A_M: u8 = 1;
const A1_OUT: u8 = 0;

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Largest share of the FIFO of new pages (A1in) in memory while the list of pages used again
    /// (Am) has pages, in per cent (Kin of the paper); default 25.
    #[serde(default = "in_percent")]
    in_percent: u64,
    /// Number of evicted pages to remember (A1out), in per cent of the pages in memory (Kout of the
    /// paper); default 50.
    #[serde(default = "out_percent")]
    out_percent: u64,
}

// The paper's recommendation, end of section 3.
fn in_percent() -> u64 {
    25
}

fn out_percent() -> u64 {
    50
}

struct TwoQ {
    in_most: u64,
    out_most: u64,
    out: Ghosts,
    /// True if the pages about to come are in A1out.
    again: bool,
}

pub(super) fn build(keys: &Keys, site: &PolicySite) -> Result<Box<dyn Replacement>, ConfigError> {
    let Config {
        in_percent,
        out_percent,
    } = read(keys)?;
    if in_percent > 100 {
        let message = format!("found {in_percent}; expected a percentage, 0 to 100");
        return Err(ConfigError::new("in_percent", message));
    }
    if out_percent > 1000 {
        let message = format!("found {out_percent}; expected 0 to 1000");
        return Err(ConfigError::new("out_percent", message));
    }
    Ok(Box::new(TwoQ {
        in_most: site.limit * in_percent / 100,
        out_most: site.limit * out_percent / 100,
        out: Ghosts::default(),
        again: false,
    }))
}

impl Replacement for TwoQ {
    fn wanted(&mut self, _: &PageTable, run: PageRun, free: u64) -> u64 {
        let (list, alike) = self.out.of(run);
        self.again = list.is_some();
        // The victim depends on the page that has just come, so full memory takes pages one by one.
        if free == 0 { 1 } else { alike.min(free) }
    }

    fn admitted(&mut self, pages: &mut PageTable, slot: u32, place: ListPlace) {
        let run = pages.get(slot).run();
        let list = if self.again || place == ListPlace::Hot {
            A_M
        } else {
            A1_IN
        };
        self.out.forget(run);
        put(pages, slot, list, place);
    }

    fn used(&mut self, pages: &mut PageTable, slot: u32, first: bool) {
        let stretch = *pages.get(slot);
        // "if X is on A1in: do nothing". A page at its first use keeps its place, where it came a
        // moment ago.
        match home(&stretch) {
            A_M if !first => renew(pages, slot, A_M),
            list if stretch.list != list => renew(pages, slot, list),
            _ => {}
        }
    }

    fn ignores_use(&self, stretch: &Stretch) -> bool {
        stretch.list == A1_IN
    }

    fn victim(&mut self, pages: &mut PageTable, most: u64) -> Option<u32> {
        let surplus = pages.pages_in(A1_IN).saturating_sub(self.in_most);
        if surplus > 0 || pages.pages_in(A_M) == 0 {
            take_oldest(pages, A1_IN, most.min(surplus.max(1)))
        } else {
            take_oldest(pages, A_M, most)
        }
    }

    fn evicted(&mut self, _: &PageTable, gone: &Stretch) {
        if gone.origin == A1_IN {
            self.out.remember(gone, A1_OUT);
            self.out.trim(A1_OUT, self.out_most);
        }
    }

    fn forgotten(&mut self, run: PageRun) {
        self.out.forget(run);
    }
}

#[cfg(test)]
pub(super) mod plain {
    use crate::replacement::conformance::PlainPolicy;
    use std::collections::VecDeque;

    pub struct Model {
        pub a1_in: VecDeque<u64>,
        pub a1_out: VecDeque<u64>,
        pub a_m: VecDeque<u64>,
        pub in_most: usize,
        pub out_most: usize,
    }

    impl Model {
        pub fn new(limit: usize) -> Model {
            let empty = VecDeque::new;
            Model {
                a1_in: empty(),
                a1_out: empty(),
                a_m: empty(),
                in_most: limit / 4,
                out_most: limit / 2,
            }
        }

        fn reclaim(&mut self) -> Option<u64> {
            if self.a1_in.len() > self.in_most || self.a_m.is_empty() {
                let gone = self.a1_in.pop_front();
                self.a1_out.extend(gone);
                if self.a1_out.len() > self.out_most {
                    self.a1_out.pop_front();
                }
                gone
            } else {
                self.a_m.pop_front()
            }
        }
    }

    impl PlainPolicy for Model {
        fn come(&mut self, page: u64, full: bool) -> Option<u64> {
            let again = self.a1_out.contains(&page);
            let gone = if full { self.reclaim() } else { None };
            self.a1_out.retain(|&other| other != page);
            if again {
                self.a_m.push_back(page)
            } else {
                self.a1_in.push_back(page)
            }
            gone
        }

        fn used(&mut self, page: u64, first: bool) {
            if !first && self.a_m.contains(&page) {
                self.a_m.retain(|&other| other != page);
                self.a_m.push_back(page);
            }
        }
    }
}
