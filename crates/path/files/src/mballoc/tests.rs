use super::*;
use crate::groups::{GroupLayout, Mke2fsOptions};

fn groups() -> Groups {
    let make = Mke2fsOptions {
        blocks: 3 << 18,
        bytes_per_inode: 16_384,
        inode_bytes: 256,
        flex: 16,
        descriptor_bytes: 64,
    };
    Groups::new(GroupLayout::new(make).unwrap(), false)
}

fn request(inode: u32, page: u64, pages: u64, length: u64) -> BlockRequest {
    BlockRequest {
        inode,
        data: true,
        open: true,
        page,
        pages,
        length,
        goal: 32_768,
        left: None,
        right: None,
    }
}

#[test]
fn small_files_follow_each_other_in_the_locality_group() {
    let (mut groups, mut allocator) = (groups(), Mballoc::default());
    let mut place = |inode, pages| {
        allocator
            .allocate(
                &mut groups,
                &request(inode, 0, pages, pages),
                &mut MetaAccesses::new(),
            )
            .unwrap()
    };
    // Group 1 begins with a copy of the superblock, so its first buddy of 512 blocks is block 512
    // of the group.
    assert_eq!(
        [place(11, 3), place(12, 5)],
        [33_280..33_283, 33_283..33_288]
    );
    assert_eq!(allocator.aside(), 504);
}

#[test]
fn a_file_that_is_written_on_gets_what_was_set_aside_for_it() {
    let (mut groups, mut allocator) = (groups(), Mballoc::default());
    let before = groups.free_blocks;
    let first = allocator
        .allocate(
            &mut groups,
            &request(11, 0, 20, 20),
            &mut MetaAccesses::new(),
        )
        .unwrap();
    // A request of 20 pages is rounded up to 32.
    assert_eq!((first.end - first.start, allocator.aside_for(11)), (20, 12));
    let other = allocator
        .allocate(
            &mut groups,
            &request(12, 0, 20, 20),
            &mut MetaAccesses::new(),
        )
        .unwrap();
    let left = Some((19, first.end - 1));
    let next = BlockRequest {
        left,
        ..request(11, 20, 4, 24)
    };
    let next = allocator
        .allocate(&mut groups, &next, &mut MetaAccesses::new())
        .unwrap();
    assert_eq!(next, first.end..first.end + 4);
    assert!(other.start >= first.start + 32);
    allocator.discard(&mut groups, 11);
    allocator.discard(&mut groups, 12);
    assert_eq!((allocator.aside(), before - groups.free_blocks), (0, 44));
}
