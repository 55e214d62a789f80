//! Places of blocks that come and go.

use super::*;
use crate::keys::Kind;
use fullstroke_units::{Sectors, Seed};
use serde_json::json;

fn space(kind: Kind, keys: serde_json::Value, drives: usize) -> (PoolSpace, u64) {
    let drives = vec![Sectors(200_000_000); drives];
    let settings = PoolSettings::read(kind, keys.as_object().unwrap(), &drives).unwrap();
    let places = FirstPlaces::new(&settings);
    let asize = settings.vdevs[0].0.asize(settings.psize);
    (PoolSpace::new(&settings, &places, asize), asize)
}

#[test]
fn new_blocks_follow_each_other_behind_the_old_ones() {
    let (mut space, asize) = space(Kind::Raidz(2), json!({}), 8);
    let places: Vec<u64> = (0..1000)
        .map(|_| space.take(|_| asize, |_| true).unwrap().offset)
        .collect();
    let follow = places.windows(2).filter(|pair| pair[1] == pair[0] + asize);
    assert!(follow.count() > 990);
}

#[test]
fn vdevs_have_turns_of_a_mib_for_each_data_drive() {
    let (mut space, asize) = space(Kind::Mirror, json!({ "width": 2 }), 8);
    let turns: Vec<u32> = (0..64)
        .map(|_| space.take(|_| asize, |_| true).unwrap().vdev)
        .collect();
    assert_eq!(turns[..8], [0; 8]);
    assert_eq!(turns[8..16], [1; 8]);
    let only = space.take(|_| asize, |vdev| vdev == 3).unwrap();
    assert_eq!(only.vdev, 3, "a busy vdev loses its turn");
    assert_eq!(space.take(|_| asize, |_| false), Err(NoPlace::Busy));
}

#[test]
fn places_never_overlap_while_blocks_come_and_go() {
    let (mut space, asize) = space(Kind::Raidz(1), json!({ "volsize": "20GB" }), 3);
    let mut random = Seed(5).stream("frees");
    let mut held: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    for round in 0..30_000u64 {
        let size = asize / (1 + random.below(4)) / 8192 * 8192;
        let place = space.take(|_| size, |_| true).unwrap();
        let key = (place.vdev, place.offset);
        if let Some((before, length)) = held.range(..=key).next_back() {
            assert!(
                before.0 != key.0 || before.1 + length <= key.1,
                "{before:?} {key:?}"
            );
        }
        if let Some((after, _)) = held.range(key..).next() {
            assert!(
                after.0 != key.0 || key.1 + size <= after.1,
                "{key:?} {after:?}"
            );
        }
        held.insert(key, size);
        if random.below(10) < 9 {
            let (&(vdev, offset), &size) = held
                .iter()
                .nth(random.below(held.len() as u64) as usize)
                .unwrap();
            held.remove(&(vdev, offset));
            space.free(Dva { vdev, offset }, size);
        }
        if round % 100 == 0 {
            space.group_ended();
        }
    }
}

#[test]
fn freed_space_returns_after_two_groups() {
    let (mut space, asize) = space(Kind::Mirror, json!({ "volsize": "80GB" }), 2);
    let (_, before) = space.fragments();
    let place = space.take(|_| asize, |_| true).unwrap();
    space.free(place, asize);
    for _ in 0..2 {
        space.group_ended();
        assert_eq!(space.fragments().1, before - asize);
    }
    space.group_ended();
    assert_eq!(space.fragments().1, before);
}
