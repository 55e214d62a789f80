use super::*;

/// Blocks of 8 sectors.
fn memory(read_blocks: usize, write_blocks: usize) -> ControllerMemory {
    ControllerMemory::new(8, read_blocks, write_blocks)
}

fn fetch(memory: &mut ControllerMemory, block: u64) {
    let extent = Extent::new(block * 8, 8);
    memory.begin_fetch(extent, 1);
    memory.end_fetch(extent, 1, true);
}

fn holds(memory: &ControllerMemory, block: u64) -> bool {
    memory.missing(Extent::new(block * 8, 8)).is_none()
}

fn write(memory: &mut ControllerMemory, start: u64, sectors: u64) -> u64 {
    memory.write(Extent::new(start, sectors), 0)
}

#[test]
fn the_least_recently_used_block_goes_first() {
    let mut memory = memory(2, 0);
    fetch(&mut memory, 10);
    fetch(&mut memory, 20);
    memory.touch(Extent::new(80, 8));
    fetch(&mut memory, 30);
    assert_eq!(
        [10, 20, 30].map(|block| holds(&memory, block)),
        [true, false, true]
    );
}

#[test]
fn a_block_that_is_being_fetched_keeps_its_place() {
    let mut memory = memory(1, 0);
    memory.begin_fetch(Extent::new(0, 8), 7);
    fetch(&mut memory, 5);
    assert!(!holds(&memory, 5));
    memory.end_fetch(Extent::new(0, 8), 7, true);
    assert!(holds(&memory, 0));
}

#[test]
fn a_write_is_taken_as_far_as_there_is_room() {
    let mut memory = memory(0, 2);
    assert_eq!(write(&mut memory, 4, 20), 12);
    assert_eq!((memory.buffered(), memory.room()), (2, 0));
    assert_eq!(memory.take_dirty(64), Some(Extent::new(4, 12)));
    // Data on the way to the array still occupy the buffer.
    assert_eq!(memory.write(Extent::new(4, 20), 12), 12);
    memory.written(Extent::new(4, 12), true);
    assert_eq!(memory.write(Extent::new(4, 20), 12), 20);
}

#[test]
fn neighbours_are_written_together_within_their_unit() {
    let mut memory = memory(0, 16);
    for block in [5, 3, 4, 6, 9, 2] {
        write(&mut memory, block * 8, 8);
    }
    assert_eq!(memory.take_dirty(4), Some(Extent::new(32, 24)));
    assert_eq!(memory.take_dirty(4), Some(Extent::new(16, 16)));
    assert_eq!(memory.take_dirty(4), Some(Extent::new(72, 8)));
    assert_eq!(memory.take_dirty(4), None);
}

#[test]
fn a_block_is_not_written_twice_at_once() {
    let mut memory = memory(4, 4);
    write(&mut memory, 0, 8);
    let first = memory.take_dirty(4).unwrap();
    write(&mut memory, 2, 3);
    assert_eq!(memory.take_dirty(4), None);
    memory.written(first, true);
    assert_eq!(memory.take_dirty(4), Some(Extent::new(2, 3)));
    memory.written(Extent::new(2, 3), true);
    assert_eq!((memory.buffered(), holds(&memory, 0)), (0, true));
}

#[test]
fn the_parts_of_a_block_with_gaps_go_one_by_one() {
    let mut memory = memory(0, 4);
    write(&mut memory, 1, 2);
    write(&mut memory, 5, 2);
    let epoch = memory.end_epoch();
    let first = memory.take_dirty(4).unwrap();
    assert_eq!(first, Extent::new(1, 2));
    memory.written(first, true);
    assert!(!memory.epoch_over(epoch));
    let second = memory.take_dirty(4).unwrap();
    assert_eq!(second, Extent::new(5, 2));
    memory.written(second, true);
    assert!(memory.epoch_over(epoch));
}

#[test]
fn what_is_forgotten_while_it_is_fetched_is_not_kept() {
    let mut memory = memory(4, 0);
    memory.begin_fetch(Extent::new(0, 8), 3);
    memory.forget(Extent::new(2, 1));
    memory.end_fetch(Extent::new(0, 8), 3, true);
    assert!(!holds(&memory, 0));
    fetch(&mut memory, 0);
    memory.forget(Extent::new(2, 1));
    assert_eq!(memory.missing(Extent::new(0, 8)), Some(Extent::new(2, 1)));
    memory.forget(Extent::new(0, 1 << 40));
    assert_eq!(memory.missing(Extent::new(0, 8)), Some(Extent::new(0, 8)));
}

#[test]
fn lost_data_are_here_no_longer() {
    let mut memory = memory(4, 4);
    write(&mut memory, 0, 8);
    let extent = memory.take_dirty(4).unwrap();
    write(&mut memory, 0, 2);
    memory.written(extent, false);
    assert_eq!(memory.missing(Extent::new(0, 8)), Some(Extent::new(2, 6)));
}
