use super::*;
use crate::{FileSystemSite, make};
use fullstroke_contract::registry::Keys;
use fullstroke_tracks::Builder;
use fullstroke_units::{Sectors, Seed};
use proptest::prelude::*;

fn table(lengths: &[u64]) -> Boundaries {
    let mut builder = Builder::default();
    lengths
        .iter()
        .for_each(|&sectors| builder.push(Sectors(sectors)).unwrap());
    builder.finish("a test").unwrap()
}

fn file(path: &str, places: &[(u64, u64)]) -> FileFragments {
    let mut page = 0;
    let fragments = places.iter().map(|&(block, pages)| {
        page += pages;
        Fragment {
            page: page - pages,
            block,
            pages,
        }
    });
    FileFragments::new(path.into(), fragments)
}

fn plan(files: &[FileFragments], fixed: &[Range<u64>], tracks: &Boundaries) -> Moves {
    let layout = AlignerInput {
        files,
        fixed,
        pages: tracks.capacity().0 / PAGE_SECTORS,
        tracks,
    };
    let moves = layout.plan();
    carry_out(&layout, &moves);
    moves
}

/// Carries out the moves on a device in memory. Each target page must be free, and each source page
/// must hold the expected data. At the end every page of every file must be where `after` says.
fn carry_out(layout: &AlignerInput<'_>, moves: &Moves) {
    const FIXED: (usize, u64) = (usize::MAX, 0);
    let mut device: Vec<Option<(usize, u64)>> = vec![None; layout.pages as usize];
    for run in layout.fixed {
        run.clone()
            .for_each(|page| device[page as usize] = Some(FIXED));
    }
    let before = device.iter().flatten().count();
    fn pages(file: &FileFragments) -> impl Iterator<Item = (u64, u64)> + '_ {
        file.fragments
            .iter()
            .flat_map(|f| (0..f.pages).map(move |at| (f.page + at, f.block + at)))
    }
    let mut stored = 0;
    for (index, file) in layout.files.iter().enumerate() {
        for (page, block) in pages(file) {
            assert_eq!(
                device[block as usize].replace((index, page)),
                None,
                "the test's own layout"
            );
            stored += 1;
        }
    }
    for one in &moves.moves {
        let pieces = one.pieces();
        assert_eq!(
            pieces.iter().map(|piece| piece.pages).sum::<u64>(),
            one.pages()
        );
        // All pieces are copied before the old place becomes free.
        for piece in &pieces {
            for at in 0..piece.pages {
                let held = device[(piece.from + at) as usize];
                assert_eq!(
                    held,
                    Some((one.file, piece.page + at)),
                    "what is moved is there"
                );
                let target = &mut device[(piece.to + at) as usize];
                assert_eq!(
                    target.replace((one.file, piece.page + at)),
                    None,
                    "nothing is written over"
                );
            }
        }
        for piece in &pieces {
            (0..piece.pages).for_each(|at| device[(piece.from + at) as usize] = None);
        }
    }
    for (index, file) in moves.after.iter().enumerate() {
        assert_eq!(file.path, layout.files[index].path);
        for (page, block) in pages(file) {
            assert_eq!(device[block as usize], Some((index, page)));
        }
    }
    assert_eq!(
        device.iter().flatten().count(),
        before + stored,
        "all is accounted for"
    );
    assert!(moves.is.visits <= moves.was.visits && moves.is.aligned >= moves.was.aligned);
    assert_eq!(
        (moves.is.files, moves.was.files),
        (layout.files.len() as u64, layout.files.len() as u64)
    );
}

#[test]
fn a_file_that_crosses_a_boundary_comes_to_lie_on_a_track() {
    // Tracks of ten pages.
    let tracks = table(&[80; 6]);
    let moves = plan(&[file("a", &[(8, 4)]), file("b", &[(22, 5)])], &[], &tracks);
    assert_eq!(moves.moves.len(), 1, "the other lies well");
    assert_eq!((moves.was.aligned, moves.is.aligned), (1, 2));
    assert_eq!((moves.was.visits, moves.is.visits), (3, 2));
}

#[test]
fn a_long_file_begins_where_a_track_does() {
    let tracks = table(&[80; 8]);
    let moves = plan(&[file("a", &[(3, 24)])], &[], &tracks);
    assert_eq!(
        moves.after[0].fragments,
        [Fragment {
            page: 0,
            block: 30,
            pages: 24
        }]
    );
    // No run is long enough, so the file gets whole tracks of several runs.
    let fixed = [10..11, 30..31, 50..51];
    let moves = plan(&[file("a", &[(2, 8), (12, 8), (71, 8)])], &fixed, &tracks);
    assert!(moves.is.visits <= moves.was.visits);
}

#[test]
fn a_file_of_exactly_a_track_fits_one_and_of_a_page_more_does_not() {
    let tracks = table(&[80; 6]);
    let on = |pages: u64| plan(&[file("a", &[(5, pages)])], &[], &tracks);
    assert_eq!(on(10).after[0].fragments[0].block, 20);
    assert_eq!((on(10).is.visits, on(11).is.visits), (1, 2));
    assert_eq!(on(11).after[0].fragments[0].block % 10, 0);
}

#[test]
fn pages_that_two_tracks_share_are_on_neither() {
    // Tracks of nine and a half pages: the tenth page is shared with the next track.
    let tracks = table(&[76, 84, 76, 84, 76, 84]);
    let moves = plan(&[file("a", &[(6, 9)])], &[], &tracks);
    assert_eq!(moves.is.visits, 1);
    let to = moves.after[0].fragments[0];
    let track = tracks.track_at(Lbn(to.block * 8)).unwrap();
    assert!(track.start.0 <= to.block * 8 && (to.block + to.pages) * 8 <= track.end().0);
}

#[test]
fn tracks_shorter_than_a_page_leave_everything_where_it_is() {
    let tracks = table(&[5; 200]);
    plan(&[file("a", &[(3, 4)]), file("b", &[(20, 1)])], &[], &tracks);
}

#[test]
fn on_a_full_device_nothing_moves_and_a_hole_of_a_files_length_is_enough_for_it() {
    let tracks = table(&[80; 3]);
    let full = [
        file("a", &[(0, 7)]),
        file("b", &[(7, 8)]),
        file("c", &[(15, 15)]),
    ];
    let moves = plan(&full, &[], &tracks);
    assert!(moves.moves.is_empty() && moves.is == moves.was);
    let nearly = [
        file("a", &[(0, 7)]),
        file("b", &[(7, 8)]),
        file("c", &[(15, 5)]),
        file("d", &[(20, 2)]),
    ];
    assert_eq!(plan(&nearly, &[], &tracks).is.visits, 4, "each on a track");
}

#[test]
fn one_moves_where_another_was() {
    let tracks = table(&[80; 3]);
    // The second file fits only into the place that the first file leaves.
    let files = [file("a", &[(9, 4)]), file("b", &[(13, 8)])];
    let moves = plan(&files, &[22..23, 23..26], &tracks);
    assert_eq!(moves.is.aligned, 2, "{moves:?}");
    assert_eq!(moves.moves.len(), 2);
}

#[test]
fn holes_of_a_file_stay_holes() {
    let tracks = table(&[80; 6]);
    let sparse = FileFragments::new(
        "a".into(),
        [
            Fragment {
                page: 0,
                block: 8,
                pages: 3,
            },
            Fragment {
                page: 100,
                block: 18,
                pages: 3,
            },
        ],
    );
    let moves = plan(&[sparse], &[], &tracks);
    let pages: Vec<u64> = moves.after[0]
        .fragments
        .iter()
        .map(|fragment| fragment.page)
        .collect();
    assert_eq!((pages, moves.is.visits), (vec![0, 100], 2));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_written_over_and_all_is_accounted_for(
        lengths in prop::collection::vec(1u64..200, 1..40),
        cuts in prop::collection::vec((1u64..40, 0u8..12), 1..120),
    ) {
        let tracks = table(&lengths);
        let pages = tracks.capacity().0 / PAGE_SECTORS;
        let mut places: Vec<Vec<(u64, u64)>> = vec![Vec::new(); 8];
        let (mut fixed, mut at) = (Vec::new(), 0);
        for (length, owner) in cuts {
            let end = (at + length).min(pages);
            match owner {
                _ if end == at => {}
                0..8 => places[owner as usize].push((at, end - at)),
                8 => fixed.push(at..end),
                _ => {}
            }
            at = end;
        }
        let files: Vec<FileFragments> = places
            .iter()
            .enumerate()
            .filter(|(_, places)| !places.is_empty())
            .map(|(index, places)| file(&index.to_string(), places))
            .collect();
        plan(&files, &fixed, &tracks);
    }
}

#[test]
fn files_of_an_aged_file_system_lie_better_then() {
    let lengths: Vec<u64> = (0..2000)
        .map(|number| 250 - number / 100 * 3 + number % 3)
        .collect();
    let tracks = table(&lengths);
    for kind in ["ext2", "ext4", "xfs"] {
        let capacity = Sectors(tracks.capacity().0);
        let site = FileSystemSite {
            capacity,
            seed: Seed(3),
            stripe: None,
            tracks: None,
        };
        let mut system = make(kind, &Keys::new(), &site).unwrap();
        crate::age::age(
            &mut *system,
            crate::age::profile("desktop").unwrap(),
            Seed(3),
        )
        .unwrap();
        let (files, fixed) = used(&*system).unwrap();
        let layout = AlignerInput {
            files: &files,
            fixed: &fixed,
            pages: capacity.0 / PAGE_SECTORS,
            tracks: &tracks,
        };
        let moves = layout.plan();
        carry_out(&layout, &moves);
        assert!(
            moves.is.aligned > moves.was.aligned,
            "{kind}: {:?} {:?}",
            moves.was,
            moves.is
        );
    }
}
