use super::*;

const EXT2: Mke2fsOptions = Mke2fsOptions {
    blocks: 0,
    bytes_per_inode: 16_384,
    inode_bytes: 256,
    flex: 1,
    descriptor_bytes: 32,
};
const EXT4: Mke2fsOptions = Mke2fsOptions {
    flex: 16,
    descriptor_bytes: 64,
    ..EXT2
};
const GIB: u64 = 1 << 18;

fn layout(make: Mke2fsOptions, gibibytes: u64) -> GroupLayout {
    GroupLayout::new(Mke2fsOptions {
        blocks: gibibytes * GIB,
        ..make
    })
    .unwrap()
}

/// Figures of `mke2fs -t ext2` (1.47.0) on 1 GiB and 3 GiB, as printed by `dumpe2fs`.
#[test]
fn ext2_lies_as_mke2fs_has_it() {
    let one = layout(EXT2, 1);
    assert_eq!((one.groups, one.inodes_per_group), (8, 8192));
    assert_eq!(
        (one.block_bitmap(0), one.inode_bitmap(0), one.inode_block(1)),
        (65, 66, 67)
    );
    assert_eq!((one.block_bitmap(1), one.inode_bitmap(2)), (32_833, 65_537));
    assert_eq!(one.free_runs(0), DisjointRuns::of(579..32_768));
    assert_eq!(one.free_blocks(3), 32_189);
    let three = layout(EXT2, 3);
    assert_eq!(
        (three.block_bitmap(3), three.inode_block(3 * 8192 + 1)),
        (98_497, 98_499)
    );
}

/// Figures of `mke2fs -t ext4` on 3 GiB.
#[test]
fn ext4_lies_as_mke2fs_has_it() {
    let three = layout(EXT4, 3);
    assert_eq!((three.block_bitmap(0), three.block_bitmap(3)), (385, 388));
    assert_eq!(
        (three.inode_bitmap(1), three.inode_block(3 * 8192 + 1)),
        (402, 1953)
    );
    assert_eq!(
        (three.free_runs(0), three.free_blocks(2)),
        (DisjointRuns::of(8609..32_768), 32_768)
    );
}

#[test]
fn four_tebibytes_are_made_without_building_a_group() {
    let groups = Groups::new(layout(EXT4, 4096), false);
    assert_eq!(
        (groups.count(), groups.built.iter().flatten().count()),
        (32_768, 0)
    );
}

#[test]
fn a_device_whose_descriptors_fill_a_group_is_refused() {
    const TIB: u64 = 1 << 28;
    for (make, most) in [(EXT4, 256), (EXT2, 512)] {
        let sized = |blocks| GroupLayout::new(Mke2fsOptions { blocks, ..make });
        let refused = Err(MakeRefusal::TooLarge { most: most * TIB });
        assert_eq!(sized(most * TIB).map(|layout| layout.groups), refused);
        assert_eq!(sized(1 << 44).map(|layout| layout.groups), refused);
        let layout = sized(most * TIB * 3 / 4).unwrap();
        assert!((0..100).all(|group| layout.free_blocks(group) <= layout.size(group)));
    }
}

#[test]
fn a_device_that_holds_no_more_than_metadata_is_refused() {
    for blocks in [0, 1, 2047] {
        assert!(GroupLayout::new(Mke2fsOptions { blocks, ..EXT2 }).is_err());
    }
    assert!(
        GroupLayout::new(Mke2fsOptions {
            blocks: 2048,
            bytes_per_inode: 1024,
            inode_bytes: 4096,
            ..EXT2
        })
        .is_err()
    );
}

/// Linux 6.18 reads the block bitmaps after the mount. An untar into ten new directories, each in
/// another flex group, reads one block.
#[test]
fn prefetched_block_bitmaps_are_not_read_before_the_first_change() {
    let reads = |prefetched| {
        let mut groups = Groups::new(layout(EXT4, 4096), false).made_lazily(prefetched);
        let mut touches = MetaAccesses::new();
        groups.blocks(16, &mut touches);
        groups.blocks(17, &mut touches);
        touches.list().len()
    };
    assert_eq!((reads(false), reads(true)), (1, 0));
}
