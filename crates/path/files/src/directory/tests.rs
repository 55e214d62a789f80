use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const STYLES: [Style; 3] = [Style::Linear, Style::Htree, Style::Xfs { inline: 156 }];

fn name(number: u32) -> String {
    format!("file-{number:0width$}", width = 1 + (number % 17) as usize)
}

#[test]
fn each_page_is_announced_before_it_is_used() {
    for style in STYLES {
        let mut directory = Directory::new(style);
        let mut placed: BTreeSet<u64> = (0..directory.used.len() as u64).collect();
        for number in 0..60_000 {
            let name = name(number);
            let growth = directory.growth(&name);
            for page in &growth {
                assert!(
                    placed.insert(*page),
                    "{style:?}: page {page} is announced twice"
                );
            }
            let mut touched = Vec::new();
            directory.insert(&name, Object(number), &mut touched);
            directory.look_up(&name, &mut touched);
            let mut fresh = BTreeSet::new();
            for touch in &touched {
                let (PageTouch::Read(page) | PageTouch::Change(page) | PageTouch::Fresh(page)) =
                    touch;
                assert!(
                    placed.contains(page),
                    "{style:?}: page {page} was not announced"
                );
                if matches!(touch, PageTouch::Fresh(_)) {
                    fresh.insert(*page);
                }
            }
            assert!(
                fresh.is_subset(&growth.iter().copied().collect()),
                "{style:?}: {touched:?}"
            );
        }
        assert!(directory.used.iter().all(|&used| used <= PAGE), "{style:?}");
    }
}

#[test]
fn a_large_htree_has_two_levels_and_a_small_one_none() {
    let mut directory = Directory::new(Style::Htree);
    let mut touched = Vec::new();
    for number in 0..200_000 {
        directory.insert(
            &format!("a-name-of-some-length-{number}"),
            Object(number),
            &mut Vec::new(),
        );
        if number == 10 {
            directory.look_up("a-name-of-some-length-3", &mut touched);
            assert_eq!(touched, [PageTouch::Read(0)]);
        }
    }
    touched.clear();
    assert_eq!(
        directory.look_up("a-name-of-some-length-77", &mut touched),
        Some(Object(77))
    );
    assert_eq!(touched.len(), 3, "root, index page, leaf");
}

proptest! {
    #[test]
    fn names_are_kept_as_a_plain_map_keeps_them(steps in proptest::collection::vec((any::<bool>(), 0u32..400), 0..900)) {
        for style in STYLES {
            let mut directory = Directory::new(style);
            let mut plain = BTreeMap::new();
            for &(insert, number) in &steps {
                let name = name(number);
                if insert && !plain.contains_key(&name) {
                    directory.insert(&name, Object(number), &mut Vec::new());
                    plain.insert(name.clone(), Object(number));
                } else if !insert {
                    prop_assert_eq!(directory.remove(&name, &mut Vec::new()), plain.remove(&name));
                }
                prop_assert_eq!(directory.look_up(&name, &mut Vec::new()), plain.get(&name).copied());
            }
            prop_assert_eq!(directory.list(), plain.into_iter().collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_names_of_each_xfs_leaf_are_counted() {
    let mut directory = Directory::new(Style::Xfs { inline: 156 });
    for number in 0..9_000 {
        directory.insert(&name(number), Object(number), &mut Vec::new());
        if number % 3 == 0 {
            directory.remove(&name(number / 2), &mut Vec::new());
        }
    }
    let firsts: Vec<u32> = directory.leaves.keys().copied().collect();
    assert!(firsts.len() > 5);
    for (at, &first) in firsts.iter().enumerate() {
        let next = firsts.get(at + 1).copied();
        let names = directory
            .entries
            .keys()
            .filter(|(hash, _)| *hash >= first && next.is_none_or(|next| *hash < next));
        assert_eq!(directory.leaf_names[&first], names.count());
    }
}

#[test]
fn a_look_up_that_nobody_watches_ends_where_others_do() {
    for style in STYLES {
        let (mut watched, mut other) = (Directory::new(style), Directory::new(style));
        for number in 0..2_000 {
            watched.insert(&name(number), Object(number), &mut Vec::new());
            other.insert(&name(number), Object(number), &mut Vec::new());
            let sought = name(number.wrapping_mul(7919) % 2_500);
            assert_eq!(
                watched.look_up(&sought, &mut Vec::new()),
                other.look_up_unread(&sought)
            );
            assert_eq!(watched.start, other.start, "{style:?}");
        }
    }
}
