//! Comparison of stretches with plain lists of pages.

use super::*;
use fullstroke_units::Seed;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Each list as a list of pages, oldest first, with flags and marks.
#[derive(Clone, Debug, Default, PartialEq)]
struct PlainPages {
    lists: [Vec<(u64, u16)>; 2],
}

fn listed(pages: &PageTable, list: u8) -> Vec<(u64, u16)> {
    std::iter::successors(pages.oldest(list), |&slot| pages.newer(slot))
        .flat_map(|slot| {
            let stretch = *pages.get(slot);
            (stretch.first..stretch.end()).map(move |page| (page, stretch.flags))
        })
        .collect()
}

fn plain(pages: &PageTable) -> PlainPages {
    PlainPages {
        lists: [listed(pages, 0), listed(pages, 1)],
    }
}

const OBJECT: Object = Object(7);

/// Compares the look-ups by address with the plain lists.
fn addresses_agree(pages: &PageTable, model: &PlainPages, at: u64) -> Result<(), TestCaseError> {
    let mut held: Vec<(u64, u16)> = model.lists.concat();
    held.sort_unstable();
    let is_held = |page: u64| held.iter().any(|&(other, _)| other == page);
    prop_assert_eq!(pages.look(OBJECT, at).is_some(), is_held(at));
    prop_assert_eq!(
        pages.absent(PageRun::new(OBJECT, at, 9)),
        (at..at + 9).filter(|&page| !is_held(page)).count() as u64
    );
    let hole = (at..at + 9).find(|&page| !is_held(page)).unwrap_or(at + 9);
    prop_assert_eq!(pages.next_hole(OBJECT, at, 9), hole);
    // Further look-ups around the same gap.
    for page in at.saturating_sub(3)..at + 3 {
        let next = held
            .iter()
            .map(|&(other, _)| other)
            .find(|&other| other >= page);
        prop_assert_eq!(pages.next_held(OBJECT, page), next.unwrap_or(u64::MAX));
        prop_assert_eq!(pages.look(OBJECT, page).is_some(), is_held(page));
    }
    prop_assert_eq!(pages.next_held(Object(OBJECT.0 + 1), at), u64::MAX);
    let before = (0..at)
        .rev()
        .take(9)
        .take_while(|&page| is_held(page))
        .count() as u64;
    prop_assert_eq!(pages.held_before(OBJECT, at, 9), before);
    let dirty = held
        .iter()
        .find(|&&(page, flags)| page >= at && flags & flag::DIRTY != 0);
    let found = pages
        .dirty_from(OBJECT, at)
        .map(|slot| pages.get(slot).first.max(at));
    prop_assert_eq!(found, dirty.map(|&(page, _)| page));
    let count = |flag: u16| held.iter().filter(|&&(_, flags)| flags & flag != 0).count() as u64;
    let expected = ResidentPages {
        pages: held.len() as u64,
        dirty: count(flag::DIRTY),
        writing: count(flag::WRITING),
        reading: count(flag::READING),
    };
    prop_assert_eq!(pages.held(), expected);
    Ok(())
}

/// Changes the held pages among `first..first + count`; the model changes each page separately.
fn change(
    pages: &mut PageTable,
    model: &mut PlainPages,
    first: u64,
    count: u64,
    flags: (u16, u16),
    to: Option<u8>,
) {
    let mut at = first;
    while at < first + count {
        let Some(slot) = pages.from(OBJECT, at) else {
            break;
        };
        let stretch = *pages.get(slot);
        let (from, end) = (stretch.first.max(at), stretch.end().min(first + count));
        if from >= end {
            break;
        }
        let slot = pages.cut(slot, from, end);
        pages.change(slot, flags.0, flags.1);
        if let Some(list) = to {
            pages.unlink(slot);
            pages.push_newest(list, slot);
        }
        pages.join(slot);
        at = end;
    }
    for page in first..first + count {
        for list in 0..2 {
            let Some(place) = model.lists[list]
                .iter()
                .position(|&(other, _)| other == page)
            else {
                continue;
            };
            let entry = &mut model.lists[list][place];
            entry.1 = (entry.1 & !flags.1) | flags.0;
            if let Some(to) = to {
                let entry = model.lists[list].remove(place);
                model.lists[usize::from(to)].push(entry);
            }
            break;
        }
    }
}

proptest! {
    #[test]
    fn stretches_are_lists_of_pages(
        steps in prop::collection::vec((0u8..7, 0u64..60, 1u64..12, 0u8..2), 1..120),
    ) {
        let (mut pages, mut model) = (PageTable::default(), PlainPages::default());
        for (step, first, count, list) in steps {
            match step {
                0 | 1 => {
                    let mut at = first;
                    while at < first + count {
                        let hole = at + u64::from(pages.look(OBJECT, at).is_some());
                        if hole == at {
                            let slot = pages.add(PageRun::new(OBJECT, at, 1), 0);
                            pages.push_newest(list, slot);
                            pages.join(slot);
                            model.lists[usize::from(list)].push((at, 0));
                        }
                        at += 1;
                    }
                }
                2 => change(&mut pages, &mut model, first, count, (flag::DIRTY, 0), None),
                3 => change(&mut pages, &mut model, first, count, (flag::WRITING, flag::DIRTY), None),
                4 => change(&mut pages, &mut model, first, count, (0, flag::WRITING | flag::DIRTY), None),
                5 => change(&mut pages, &mut model, first, count, (0, 0), Some(list)),
                _ => {
                    // Evicts the oldest pages of a list.
                    let Some(slot) = pages.oldest(list) else { continue };
                    let stretch = *pages.get(slot);
                    let slot = pages.cut(slot, stretch.first, stretch.end().min(stretch.first + count));
                    pages.unlink(slot);
                    let gone = pages.remove(slot);
                    model.lists[usize::from(list)].drain(..gone.pages as usize);
                }
            }
            prop_assert_eq!(&plain(&pages), &model);
            addresses_agree(&pages, &model, first)?;
        }
    }
}

#[test]
fn a_file_read_from_end_to_end_is_one_stretch() {
    let mut pages = PageTable::default();
    for page in 0..100_000 {
        let slot = pages.add(PageRun::new(OBJECT, page, 1), 0);
        pages.push_newest(0, slot);
        pages.join(slot);
    }
    assert_eq!((pages.stretches(), pages.pages_in(0)), (1, 100_000));
}

#[test]
fn a_mark_stays_on_its_page() {
    let mut pages = PageTable::default();
    let slot = pages.add(PageRun::new(OBJECT, 10, 32), 0);
    pages.push_newest(0, slot);
    pages.set_mark(slot, Some(20));
    let middle = pages.cut(slot, 15, 25);
    assert_eq!(
        (pages.get(slot).marked(), pages.get(middle).marked()),
        (None, Some(20))
    );
    let whole = pages.join(middle);
    assert_eq!(
        (pages.get(whole).pages, pages.get(whole).marked()),
        (32, Some(20))
    );
}

/// Pages of two objects, some of them a multiple of 2^32 apart, come and go in a table of thousands
/// of stretches.
#[test]
fn a_large_table_finds_what_is_held_and_nothing_else() {
    let (mut pages, mut held) = (PageTable::default(), BTreeSet::new());
    let mut random = Seed(3).stream("pages");
    let mut most = 0;
    for step in 0..60_000u64 {
        let object = Object(1 + random.below(2) as u32);
        let page = random.below(8000) + (random.below(2) << 32);
        let is_held = held.contains(&(object.0, page));
        assert_eq!(pages.look(object, page).is_some(), is_held, "page {page}");
        match pages.find(object, page) {
            Some(slot) => {
                assert!(is_held && pages.get(slot).run().holds(object, page));
                // The first half of the steps fills the table, the second empties it again.
                if step > 30_000 || random.below(4) == 0 {
                    let slot = pages.cut(slot, page, page + 1);
                    pages.unlink(slot);
                    pages.remove(slot);
                    held.remove(&(object.0, page));
                }
            }
            None if step < 45_000 => {
                assert!(!is_held, "page {page} is lost");
                let slot = pages.add(PageRun::new(object, page, 1), 0);
                pages.push_newest(0, slot);
                pages.join(slot);
                held.insert((object.0, page));
            }
            None => assert!(!is_held, "page {page} is lost"),
        }
        let behind = held.range((object.0, page)..(object.0 + 1, 0)).next();
        let next = behind.map_or(u64::MAX, |&(_, page)| page);
        assert_eq!(pages.next_held(object, page), next, "from page {page}");
        most = most.max(pages.stretches());
    }
    assert!(most > 5000, "{most} stretches are no large table");
    assert_eq!(pages.held().pages, held.len() as u64);
}
