//! `s3fifo`: Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction"
//! (SOSP 2023, algorithm 1). New pages enter a small FIFO (S). The few pages used there move to the
//! main FIFO (M). The others leave memory, and their addresses are remembered (G). A remembered
//! page enters M when it is requested again.

use super::ghosts::Ghosts;
use super::{ListPlace, PolicySite, Replacement, home, put, renew, take_oldest};
use crate::pages::{PageTable, Stretch};
use crate::run::PageRun;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "S3-FIFO: a small FIFO before the main FIFO, and a record of evicted pages";

const SMALL: u8 = 0;
const MAIN: u8 = 1;
const GHOST: u8 = 0;
/// Largest count of uses (two bits).
const USES_MOST: u16 = 3;

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Share of the small FIFO in memory, in per cent; default 10.
    #[serde(default = "small_percent")]
    small_percent: u64,
}

// Section 4.1 of the paper.
fn small_percent() -> u64 {
    10
}

struct S3Fifo {
    small: u64,
    main: u64,
    ghosts: Ghosts,
    again: bool,
}

pub(super) fn build(keys: &Keys, site: &PolicySite) -> Result<Box<dyn Replacement>, ConfigError> {
    let Config { small_percent } = read(keys)?;
    if !(1..=99).contains(&small_percent) {
        let message = format!("found {small_percent}; expected 1 to 99");
        return Err(ConfigError::new("small_percent", message));
    }
    let small = (site.limit * small_percent / 100).max(1);
    let main = site.limit.saturating_sub(small).max(1);
    Ok(Box::new(S3Fifo {
        small,
        main,
        ghosts: Ghosts::default(),
        again: false,
    }))
}

impl S3Fifo {
    fn victim_of_main(&mut self, pages: &mut PageTable, most: u64) -> Option<u32> {
        loop {
            let slot = pages.oldest(MAIN)?;
            let stretch = *pages.get(slot);
            if stretch.note() == 0 {
                return take_oldest(pages, MAIN, most);
            }
            // All pages of the stretch would go round one after the other, so the stretch goes
            // round as a whole.
            let slot = pages.cut(slot, stretch.first, stretch.end());
            pages.set_note(slot, stretch.note() - 1);
            renew(pages, slot, MAIN);
        }
    }
}

impl Replacement for S3Fifo {
    fn wanted(&mut self, _: &PageTable, run: PageRun, free: u64) -> u64 {
        let (list, alike) = self.ghosts.of(run);
        self.again = list.is_some();
        if free == 0 { 1 } else { alike.min(free) }
    }

    fn admitted(&mut self, pages: &mut PageTable, slot: u32, place: ListPlace) {
        self.ghosts.forget(pages.get(slot).run());
        let list = if self.again || place == ListPlace::Hot {
            MAIN
        } else {
            SMALL
        };
        pages.set_note(slot, 0);
        put(pages, slot, list, place);
    }

    fn used(&mut self, pages: &mut PageTable, slot: u32, first: bool) {
        let stretch = *pages.get(slot);
        if !first {
            pages.set_note(slot, (stretch.note() + 1).min(USES_MOST));
        }
        if stretch.list == crate::pages::ASIDE {
            renew(pages, slot, home(&stretch));
        } else {
            pages.join(slot);
        }
    }

    fn ignores_use(&self, stretch: &Stretch) -> bool {
        stretch.list != crate::pages::ASIDE && stretch.note() == USES_MOST
    }

    fn victim(&mut self, pages: &mut PageTable, most: u64) -> Option<u32> {
        while pages.pages_in(SMALL) >= self.small || pages.pages_in(MAIN) == 0 {
            let slot = pages.oldest(SMALL)?;
            let stretch = *pages.get(slot);
            if stretch.note() <= 1 {
                return take_oldest(
                    pages,
                    SMALL,
                    most.min(
                        (pages.pages_in(SMALL) + 1)
                            .saturating_sub(self.small)
                            .max(1),
                    ),
                );
            }
            let slot = pages.cut(slot, stretch.first, stretch.first + 1);
            pages.set_note(slot, 0);
            renew(pages, slot, MAIN);
            if pages.pages_in(MAIN) > self.main {
                return self.victim_of_main(pages, 1);
            }
        }
        self.victim_of_main(pages, most)
    }

    fn evicted(&mut self, _: &PageTable, gone: &Stretch) {
        if gone.origin == SMALL {
            self.ghosts.remember(gone, GHOST);
            // "a ghost queue with as many entries as the main queue has".
            self.ghosts.trim(GHOST, self.main);
        }
    }

    fn forgotten(&mut self, run: PageRun) {
        self.ghosts.forget(run);
    }
}

#[cfg(test)]
pub(super) mod plain {
    use crate::replacement::conformance::PlainPolicy;
    use std::collections::VecDeque;

    /// Pages with their counts of uses, oldest first.
    #[derive(Default)]
    pub struct Model {
        pub small: VecDeque<(u64, u16)>,
        pub main: VecDeque<(u64, u16)>,
        pub ghosts: VecDeque<u64>,
        pub small_most: usize,
        pub main_most: usize,
    }

    impl Model {
        fn evict_main(&mut self) -> Option<u64> {
            loop {
                let (page, uses) = self.main.pop_front()?;
                if uses == 0 {
                    return Some(page);
                }
                self.main.push_back((page, uses - 1));
            }
        }

        fn evict(&mut self) -> Option<u64> {
            while self.small.len() >= self.small_most || self.main.is_empty() {
                let (page, uses) = self.small.pop_front()?;
                if uses <= 1 {
                    self.ghosts.push_back(page);
                    if self.ghosts.len() > self.main_most {
                        self.ghosts.pop_front();
                    }
                    return Some(page);
                }
                self.main.push_back((page, 0));
                if self.main.len() > self.main_most {
                    return self.evict_main();
                }
            }
            self.evict_main()
        }
    }

    impl PlainPolicy for Model {
        fn come(&mut self, page: u64, full: bool) -> Option<u64> {
            let again = self.ghosts.contains(&page);
            let gone = if full { self.evict() } else { None };
            self.ghosts.retain(|&other| other != page);
            if again {
                self.main.push_back((page, 0))
            } else {
                self.small.push_back((page, 0))
            }
            gone
        }

        fn used(&mut self, page: u64, first: bool) {
            let all = self.small.iter_mut().chain(&mut self.main);
            all.filter(|(other, _)| *other == page && !first)
                .for_each(|(_, uses)| *uses = (*uses + 1).min(3));
        }
    }
}
