//! Compares the table with a sorted list of the tracks' first addresses.

use fullstroke_contract::Extent;
use fullstroke_drive::{DriveConfig, Geometry};
use fullstroke_tracks::{Boundaries, Builder, MisfitError, TRACK_SECTORS_MAX, TrackError};
use fullstroke_units::{Lbn, Sectors};
use proptest::prelude::*;

/// Lengths of tracks: regular parts, patterns and random parts, one after another.
fn lengths() -> impl Strategy<Value = Vec<u64>> {
    let stretch = prop_oneof![
        (1u64..2000, 1usize..3000).prop_map(|(sectors, tracks)| vec![sectors; tracks]),
        (prop::collection::vec(1u64..40, 1..12), 1usize..40)
            .prop_map(|(pattern, times)| pattern.repeat(times)),
        prop::collection::vec(900u64..1100, 1..200),
        (
            prop::collection::vec((1u64..9, 1usize..40), 1..5),
            1usize..20
        )
            .prop_map(|(runs, times)| {
                let once: Vec<u64> = runs
                    .iter()
                    .flat_map(|&(sectors, tracks)| vec![sectors; tracks])
                    .collect();
                once.repeat(times)
            }),
    ];
    prop::collection::vec(stretch, 1..6).prop_map(|stretches| stretches.concat())
}

fn table(lengths: &[u64]) -> Boundaries {
    let mut builder = Builder::default();
    for &sectors in lengths {
        builder.push(Sectors(sectors)).unwrap();
    }
    builder.finish("a test").unwrap()
}

/// Returns the first address of each track and, at the end, the capacity.
fn begins(lengths: &[u64]) -> Vec<u64> {
    let mut begins = vec![0];
    for sectors in lengths {
        begins.push(begins.last().unwrap() + sectors);
    }
    begins
}

proptest! {
    #[test]
    fn answers_are_those_of_a_sorted_list(lengths in lengths(), seed: u64, sectors in 0u64..3000) {
        let (table, begins) = (table(&lengths), begins(&lengths));
        let capacity = *begins.last().unwrap();
        prop_assert_eq!((table.capacity().0, table.len()), (capacity, lengths.len() as u64));
        for step in 0..200u64 {
            let lbn = seed.wrapping_add(step.wrapping_mul(0x9E37_79B9_7F4A_7C15)) % (capacity + 2);
            let next = begins.partition_point(|&begin| begin < lbn);
            prop_assert_eq!(table.boundary_from(Lbn(lbn)), begins.get(next).map(|&begin| Lbn(begin)));
            prop_assert_eq!(table.is_boundary(Lbn(lbn)), begins.get(next) == Some(&lbn));
            let number = begins.partition_point(|&begin| begin <= lbn) - 1;
            let track = lengths.get(number).map(|&sectors| Extent { start: Lbn(begins[number]), sectors: Sectors(sectors) });
            prop_assert_eq!(table.track_at(Lbn(lbn)), track);
            prop_assert_eq!(table.number_of(Lbn(lbn)), track.map(|_| number as u64));
            prop_assert_eq!(table.nth(number as u64), track);
            let end = lbn.saturating_add(sectors);
            let inside = &begins[1..begins.len() - 1];
            let straddles = inside.iter().any(|&begin| lbn < begin && begin < end);
            prop_assert_eq!(table.straddles(Extent { start: Lbn(lbn), sectors: Sectors(sectors) }), straddles);
        }
    }

    #[test]
    fn the_iterator_gives_every_track(lengths in lengths()) {
        let all: Vec<u64> = table(&lengths).tracks_from(Lbn(0)).map(|track| track.sectors.0).collect();
        prop_assert_eq!(all, lengths);
    }

    #[test]
    fn the_file_holds_the_table(lengths in lengths(), source in "\\PC{0,40}") {
        let mut builder = Builder::default();
        lengths.iter().for_each(|&sectors| builder.push(Sectors(sectors)).unwrap());
        let table = builder.finish(source.replace('#', "").trim()).unwrap();
        let text = table.to_text();
        let read = Boundaries::parse(&text).unwrap();
        prop_assert_eq!(&read, &table);
        prop_assert_eq!(read.source(), table.source());
        prop_assert_eq!(read.len(), table.len());
    }

    #[test]
    fn runs_are_the_same_as_their_tracks(runs in prop::collection::vec((1u64..2000, 0u64..9000), 1..8)) {
        let mut builder = Builder::default();
        for &(sectors, tracks) in &runs {
            builder.push_run(Sectors(sectors), tracks).unwrap();
        }
        let lengths: Vec<u64> = runs.iter().flat_map(|&(sectors, tracks)| vec![sectors; tracks as usize]).collect();
        prop_assume!(!lengths.is_empty());
        let built = builder.finish("").unwrap();
        prop_assert_eq!(&built, &table(&lengths));
        prop_assert_eq!(built.len(), lengths.len() as u64);
    }

    #[test]
    fn the_first_difference_is_found(lengths in lengths(), seed: usize, longer in 1u64..5) {
        let one = table(&lengths);
        let mut changed = lengths.clone();
        let index = seed % changed.len();
        changed[index] += longer;
        let begins = begins(&lengths);
        let error = table(&changed).check_equal(&one).unwrap_err();
        prop_assert_eq!(error.first_difference(), Lbn(begins[index + 1]));
        // If a later boundary moves back by the same amount, the capacity is unchanged.
        if index + 1 < changed.len() && changed[index + 1] > longer {
            changed[index + 1] -= longer;
            let error = table(&changed).check_equal(&one).unwrap_err();
            prop_assert_eq!(error, MisfitError::Boundary { at: Lbn(begins[index + 1]) });
        }
    }

    #[test]
    fn any_text_is_read_or_refused_with_its_line(
        lines in prop::collection::vec(prop_oneof![
            Just("fullstroke-tracks 1".to_owned()),
            Just("capacity 1000".to_owned()),
            "source \\PC{0,9}",
            "[0-9]{1,20} of [0-9]{1,8}(, [0-9]{1,3} of [0-9]{1,4}){0,3}",
            "[0-9]{1,20} times [0-9]{1,9} of [0-9]{1,8}(, [0-9]{1,9} of [0-9]{1,4}){0,3}",
            "\\PC{0,30}",
        ], 0..12),
        huge: bool,
    ) {
        let capacity = if huge { u64::MAX } else { 1000 };
        let text = format!("fullstroke-tracks 1\ncapacity {capacity}\n{}", lines.join("\n"));
        for text in [lines.join("\n"), text] {
            match Boundaries::parse(&text) {
                Ok(table) => prop_assert_eq!(Boundaries::parse(&table.to_text()).unwrap(), table),
                Err(error) => prop_assert!((1..=text.lines().count().max(1)).contains(&error.line)),
            }
        }
    }
}

fn library() -> Vec<(String, DriveConfig)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../drives");
    let mut drives: Vec<(String, DriveConfig)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .map(|path| {
            let text = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                toml::from_str(&text).unwrap(),
            )
        })
        .collect();
    drives.sort_by(|a, b| a.0.cmp(&b.0));
    drives
}

#[test]
fn every_drive_of_the_library_has_a_small_table() {
    for (name, config) in library() {
        let geometry = Geometry::new(&config).unwrap();
        let table = Boundaries::of(&geometry, &name).unwrap();
        assert_eq!(
            table.capacity(),
            fullstroke_contract::TrackTable::capacity(&geometry),
            "{name}"
        );
        // Defects cost about a hundred bytes each.
        let defects: usize = config
            .zones
            .iter()
            .map(|zone| zone.slips.len() + zone.exceptions.len() + zone.remaps.len())
            .sum();
        let bytes_max = 1000 * config.zones.len() + 200 * defects;
        assert!(
            table.bytes() <= bytes_max,
            "{name}: {} bytes, {defects} defects",
            table.bytes()
        );
        assert_eq!(
            Boundaries::parse(&table.to_text()).unwrap(),
            table,
            "{name}"
        );
    }
}

#[test]
fn a_table_of_another_device_is_refused_with_the_first_difference() {
    let (one, longer) = (table(&[100; 50]), table(&[100; 51]));
    let error = one.check_capacity(Sectors(5100)).unwrap_err();
    assert_eq!(error.first_difference(), Lbn(5000));
    assert!(error.to_string().contains("LBN 5000"), "{error}");
    assert_eq!(
        one.check_equal(&longer).unwrap_err().first_difference(),
        Lbn(5000)
    );
    assert!(one.check_capacity(Sectors(5000)).is_ok());
}

#[test]
fn tracks_that_cannot_be_are_refused() {
    let mut builder = Builder::default();
    assert_eq!(
        builder.push(Sectors(0)),
        Err(TrackError::Length { found: 0 })
    );
    assert!(builder.push(Sectors(TRACK_SECTORS_MAX)).is_ok());
    assert!(builder.push(Sectors(TRACK_SECTORS_MAX + 1)).is_err());
    assert_eq!(
        builder.push_run(Sectors(1), 1 << 32),
        Err(TrackError::TooMany)
    );
    assert_eq!(builder.sectors(), Sectors(TRACK_SECTORS_MAX));
    assert_eq!(
        Builder::default().finish("").unwrap_err(),
        TrackError::Empty
    );
}

#[test]
fn errors_of_a_file_say_line_found_and_expected() {
    for (text, line, found, expected) in [
        ("", 1, "no such beginning", "`fullstroke-tracks 1`"),
        ("\n\nfullstroke-tracks 2\n", 3, "2", "version 1"),
        (
            "fullstroke-tracks 1\n32 of 5",
            2,
            "no capacity",
            "`capacity` and the device's sectors",
        ),
        (
            "fullstroke-tracks 1\ncapacity many",
            2,
            "`many`",
            "a whole number",
        ),
        (
            "fullstroke-tracks 1\ncapacity 10\n\n# so\n2 by 5",
            5,
            "`2 by 5`",
            "tracks `of` sectors, as in `32 of 1144`",
        ),
        (
            "fullstroke-tracks 1\ncapacity 10\n3 of 5",
            3,
            "tracks beyond the capacity",
            "no more than 10, the capacity",
        ),
        (
            "fullstroke-tracks 1\ncapacity 10\n1 of 5",
            3,
            "the end, after tracks of 5 sectors",
            "10, the capacity",
        ),
    ] {
        let error = Boundaries::parse(text).unwrap_err();
        assert_eq!(
            (error.line, error.found.as_str(), error.expected.as_str()),
            (line, found, expected),
            "{text}"
        );
    }
}
