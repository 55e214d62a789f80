//! Input in pieces, and input that is not NBD.

use crate::common::*;
use proptest::prelude::*;

/// Messages of a client, mostly valid.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    (
        handshake(),
        prop::collection::vec(transmitted(), 0..40),
        prop::option::of(prop::collection::vec(any::<u8>(), 0..64)),
    )
        .prop_map(|(handshake, requests, noise)| {
            [handshake, requests.concat(), noise.unwrap_or_default()].concat()
        })
}

fn handshake() -> impl Strategy<Value = Vec<u8>> {
    let haggling = prop_oneof![
        Just(option(3, &[])),
        Just(option(8, &[])),
        Just(option(9, &contexts("disk", &["base:"]))),
        Just(option(10, &contexts("", &["base:allocation"]))),
        Just(option(6, &information("archive", &[1, 2, 3]))),
        Just(option(7, &information("nothing", &[]))),
        (0u32..15, prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(number, data)| option(number, &data)),
        (3u32..15).prop_map(|number| option(number, &[0; 17_000])),
    ];
    let opening = prop_oneof![
        Just(option(7, &information("disk", &[3]))),
        Just(option(7, &information("archive", &[]))),
        Just(option(1, b"disk")),
    ];
    (0u32..4, prop::collection::vec(haggling, 0..6), opening).prop_map(
        |(flags, haggling, opening)| {
            [&flags.to_be_bytes()[..], &haggling.concat(), &opening].concat()
        },
    )
}

fn transmitted() -> impl Strategy<Value = Vec<u8>> {
    let commands = prop_oneof![3 => Just(1u16), 4 => 0u16..8, 1 => 0u16..40];
    let flags = prop_oneof![3 => Just(0u16), 1 => 0u16..40];
    let sectors = prop_oneof![4 => 0u64..2048, 1 => 2040u64..3000];
    let lengths = prop_oneof![6 => 0u32..32, 1 => 32u32..300];
    (commands, flags, any::<u64>(), sectors, lengths).prop_map(
        |(command, flags, cookie, sector, sectors)| {
            // A disconnect would hide the following messages.
            let command = if command == 2 { 3 } else { command };
            let length = sectors * SECTOR_BYTES as u32;
            let mut bytes = request(flags, command, cookie, sector * SECTOR_BYTES as u64, length);
            if command == 1 {
                bytes.resize(bytes.len() + length as usize, cookie as u8);
            }
            bytes
        },
    )
}

/// Passes the bytes to a server in pieces of these lengths, repeated. Returns the whole output.
fn in_pieces(bytes: &[u8], lengths: &[usize]) -> (LocalServer, Vec<u8>) {
    let mut server = LocalServer::new();
    let (mut sent, mut rest) = (server.sent(), bytes);
    for &length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at(length.min(rest.len()));
        sent.extend(server.talk(piece));
        rest = behind;
    }
    (server, sent)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_cut_of_the_stream_gives_the_same_events_and_the_same_output(
        bytes in messages(),
        lengths in prop::collection::vec(prop_oneof![1usize..40, 1usize..5000, 1usize..100_000], 1..20),
    ) {
        let (whole, whole_sent) = in_pieces(&bytes, &[usize::MAX]);
        let (cut, cut_sent) = in_pieces(&bytes, &lengths);
        prop_assert_eq!(&whole.events, &cut.events);
        prop_assert_eq!(&whole.error, &cut.error);
        prop_assert!(whole_sent == cut_sent, "the output differs");
        prop_assert!(whole.bytes == cut.bytes, "the disk differs");
    }

    #[test]
    fn arbitrary_bytes_end_in_answers_or_an_error(
        flags in 0u32..5,
        opened_first in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        lengths in prop::collection::vec(1usize..50, 1..5),
    ) {
        let mut stream = flags.to_be_bytes().to_vec();
        if opened_first {
            stream.extend(option(1, b"disk"));
            stream.extend([0x25, 0x60, 0x95, 0x13]);
        } else {
            stream.extend(b"IHAVEOPT");
        }
        stream.extend(bytes);
        let (server, _) = in_pieces(&stream, &lengths);
        prop_assert!(server.error.is_none() || server.connection.has_ended());
        prop_assert_eq!(server.connection.in_flight(), 0);
    }
}

#[test]
fn a_stream_cut_into_single_bytes_gives_the_same_as_a_whole_one() {
    let bytes = [
        &CLIENT_FLAGS[..],
        &option(8, &[]),
        &option(10, &contexts("disk", &["base:allocation"])),
        &option(7, &information("disk", &[3])),
        &write(1, 4096, &[7; 1024]),
        &write(2, DISK_BYTES, &[7; 1024]),
        &request(0, 0, 3, 3584, 2048),
        &request(8, 7, 4, 4096, 2048),
        &request(0, 2, 0, 0, 0),
    ]
    .concat();
    let (whole, whole_sent) = in_pieces(&bytes, &[usize::MAX]);
    let (cut, cut_sent) = in_pieces(&bytes, &[1]);
    assert_eq!(
        (whole.events.len(), &whole.events, whole_sent),
        (5, &cut.events, cut_sent)
    );
}

#[test]
fn a_header_that_the_end_of_the_input_cuts_is_read_whole() {
    let mut bytes = [&CLIENT_FLAGS[..], &option(1, b"disk")].concat();
    bytes.extend((0..10_000).flat_map(|cookie| request(0, 5, cookie, 0, 512)));
    let (server, sent) = in_pieces(&bytes, &[usize::MAX]);
    let answers: Vec<u8> = (0..10_000).flat_map(|cookie| simple(0, cookie)).collect();
    assert_eq!((server.error, server.events.len()), (None, 10_001));
    assert!(sent.ends_with(&answers));
}
