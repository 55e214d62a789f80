//! Handshakes, byte by byte.

use crate::common::*;
use fullstroke_nbd::{Connection, ConnectionEvent, Encryption, ProtocolError};

const ACK: u32 = 1;
const UNSUPPORTED: u32 = 0x8000_0001;
const INVALID: u32 = 0x8000_0003;
const TLS_REQUIRED: u32 = 0x8000_0005;
const UNKNOWN: u32 = 0x8000_0006;
const TOO_BIG: u32 = 0x8000_0009;

/// Transmission flags of `disk`: all but read-only, resize and, first, DF.
const DISK_FLAGS: u16 = 0b1101_0111_1101;
const DISK_FLAGS_STRUCTURED: u16 = DISK_FLAGS | 1 << 7;

/// Returns a server after the greeting.
fn greeted() -> LocalServer {
    let mut server = LocalServer::new();
    assert_eq!(server.talk(&CLIENT_FLAGS), GREETING);
    server
}

fn export_info(size: u64, flags: u16) -> Vec<u8> {
    [&[0, 0][..], &size.to_be_bytes(), &flags.to_be_bytes()].concat()
}

/// Returns the type of the first reply in the bytes.
fn kind(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[12..16].try_into().unwrap())
}

#[test]
fn the_greeting_is_sent_before_anything_arrives() {
    assert_eq!(LocalServer::new().sent(), GREETING);
}

#[test]
fn an_export_name_is_answered_with_size_flags_and_padding_unless_that_was_declined() {
    for (flags, padding) in [(3u32, 0), (1, 124), (0, 124)] {
        let mut server = LocalServer::new();
        server.talk(&flags.to_be_bytes());
        let sent = server.talk(&option(1, b"disk"));
        assert_eq!(
            sent,
            [
                &DISK_BYTES.to_be_bytes()[..],
                &DISK_FLAGS.to_be_bytes(),
                &vec![0; padding]
            ]
            .concat()
        );
        assert_eq!(server.events, [ConnectionEvent::Opened { export: 0 }]);
    }
}

#[test]
fn an_export_name_that_is_not_offered_closes_the_connection() {
    for name in [&b"disc"[..], b"\xff", &[b'a'; 20_000]] {
        let mut server = greeted();
        assert_eq!(server.talk(&option(1, name)), []);
        assert!(
            matches!(server.error, Some(ProtocolError::UnknownExport { .. })),
            "{:?}",
            server.error
        );
        assert!(server.connection.has_ended());
        assert!(server.connection.space().is_empty());
    }
}

#[test]
fn go_tells_what_was_asked_for_and_opens() {
    let mut server = greeted();
    let sent = server.talk(&option(7, &information("", &[3, 1, 2, 3, 77])));
    let block_size = [
        &[0, 3][..],
        &512u32.to_be_bytes(),
        &4096u32.to_be_bytes(),
        &(32u32 << 20).to_be_bytes(),
    ];
    let wanted = [
        option_reply(7, 3, &export_info(DISK_BYTES, DISK_FLAGS)),
        option_reply(7, 3, b"\0\x01disk"),
        option_reply(7, 3, b"\0\x02a disk in memory"),
        option_reply(7, 3, &block_size.concat()),
        option_reply(7, ACK, &[]),
    ];
    assert_eq!(sent, wanted.concat());
    assert_eq!(server.events, [ConnectionEvent::Opened { export: 0 }]);
}

#[test]
fn info_tells_the_same_and_opens_nothing() {
    let mut server = greeted();
    let sent = server.talk(&option(6, &information("archive", &[])));
    let wanted = [
        option_reply(6, 3, &export_info(DISK_BYTES / 2, 0b11)),
        option_reply(6, ACK, &[]),
    ];
    assert_eq!(sent, wanted.concat());
    assert_eq!(server.events, []);
    assert_eq!(
        kind(&server.talk(&option(7, &information("nothing", &[])))),
        UNKNOWN
    );
    assert_eq!(server.events, []);
}

#[test]
fn unfragmented_reads_are_offered_once_replies_are_structured() {
    let mut server = greeted();
    assert_eq!(server.talk(&option(8, &[])), option_reply(8, ACK, &[]));
    let sent = server.talk(&option(7, &information("disk", &[])));
    assert!(sent.starts_with(&option_reply(
        7,
        3,
        &export_info(DISK_BYTES, DISK_FLAGS_STRUCTURED)
    )));
}

#[test]
fn a_list_names_all_exports_in_order() {
    let sent = greeted().talk(&option(3, &[]));
    let wanted = [
        option_reply(3, 2, b"\0\0\0\x04diska disk in memory"),
        option_reply(3, 2, b"\0\0\0\x07archive"),
        option_reply(3, ACK, &[]),
    ];
    assert_eq!(sent, wanted.concat());
}

#[test]
fn an_abort_is_acknowledged_and_is_the_last_event() {
    for data in [&b""[..], b"why", &[0; 20_000]] {
        let mut server = greeted();
        assert_eq!(server.talk(&option(2, data)), option_reply(2, ACK, &[]));
        assert_eq!(server.events, [ConnectionEvent::Disconnect]);
        assert_eq!(server.talk(&option(3, &[])), []);
        assert!(server.connection.has_ended());
    }
}

#[test]
fn options_that_are_not_known_here_are_refused_and_haggling_goes_on() {
    let mut server = greeted();
    // STARTTLS, extended headers, and unknown options; long ones as well.
    for (number, data) in [
        (5, 0),
        (11, 0),
        (4, 9),
        (12_345, 100),
        (0, 20_000),
        (5, 20_000),
    ] {
        assert_eq!(
            kind(&server.talk(&option(number, &vec![7; data]))),
            UNSUPPORTED,
            "option {number}"
        );
    }
    server.talk(&option(7, &information("disk", &[])));
    assert_eq!(server.events, [ConnectionEvent::Opened { export: 0 }]);
}

#[test]
fn malformed_options_are_refused_as_invalid() {
    let mut long_name = string(&"n".repeat(5000));
    long_name.extend([0, 0]);
    let cases: [(u32, Vec<u8>); 13] = [
        (3, vec![0]),
        (8, vec![0]),
        (7, vec![]),
        (7, vec![0, 0, 0, 9, b'd']),
        (7, string("disk")),
        (7, [string("disk"), vec![0, 2, 0, 3]].concat()),
        (6, [information("disk", &[]), vec![0]].concat()),
        (6, b"\0\0\0\x01\xff\0\0".to_vec()),
        (6, long_name),
        (9, vec![1]),
        (10, contexts("disk", &["no colon"])),
        (10, [contexts("disk", &["base:"]), vec![0]].concat()),
        (10, [string("disk"), vec![0xff; 4]].concat()),
    ];
    for structured in [false, true] {
        let mut server = greeted();
        if structured {
            server.talk(&option(8, &[]));
        }
        for (number, data) in &cases {
            assert_eq!(
                kind(&server.talk(&option(*number, data))),
                INVALID,
                "option {number} of {data:?}"
            );
        }
        assert_eq!((server.events, server.error), (vec![], None));
    }
}

#[test]
fn known_options_beyond_the_limit_are_too_big_and_are_skipped() {
    let mut server = greeted();
    for number in [3, 6, 7, 8, 9, 10] {
        let sent = server.talk(&option(number, &[0; 16_385]));
        assert_eq!(kind(&sent), TOO_BIG);
        assert_eq!(u32::from_be_bytes(sent[8..12].try_into().unwrap()), number);
    }
    assert_eq!(kind(&server.talk(&option(3, &[]))), 2);
}

#[test]
fn contexts_are_listed_by_name_and_by_namespace() {
    let mut server = greeted();
    server.talk(&option(8, &[]));
    let listed = [
        option_reply(9, 4, b"\0\0\0\0base:allocation"),
        option_reply(9, ACK, &[]),
    ]
    .concat();
    for queries in [
        &[][..],
        &["base:"],
        &["base:allocation"],
        &["x-y:z", "base:"],
    ] {
        assert_eq!(
            server.talk(&option(9, &contexts("disk", queries))),
            listed,
            "{queries:?}"
        );
    }
    for queries in [&["base:other"][..], &["qemu:"]] {
        assert_eq!(
            server.talk(&option(9, &contexts("disk", queries))),
            option_reply(9, ACK, &[])
        );
    }
    assert_eq!(
        kind(&server.talk(&option(9, &contexts("disc", &[])))),
        UNKNOWN
    );
}

#[test]
fn the_last_selection_of_contexts_counts_if_it_was_for_the_export_that_is_opened() {
    let select = |name, queries: &[&str]| option(10, &contexts(name, queries));
    let cases = [
        (vec![select("disk", &["base:allocation"])], true),
        (vec![select("", &["base:allocation"])], true),
        (vec![select("disk", &["base:"])], false),
        (vec![select("disk", &[])], false),
        (vec![select("archive", &["base:allocation"])], false),
        (
            vec![select("disk", &["base:allocation"]), select("disk", &[])],
            false,
        ),
        (
            vec![
                select("disk", &["base:allocation"]),
                select("disc", &["base:allocation"]),
            ],
            false,
        ),
        (
            vec![
                select("disk", &["base:allocation"]),
                option(10, &[0; 20_000]),
            ],
            false,
        ),
    ];
    for (options, selected) in cases {
        let mut server = greeted();
        server.talk(
            &[
                &option(8, &[])[..],
                &options.concat(),
                &option(7, &information("disk", &[])),
            ]
            .concat(),
        );
        let sent = server.talk(&request(0, 7, 1, 0, 512));
        let kind = u16::from_be_bytes([sent[6], sent[7]]);
        assert_eq!(kind == 5, selected, "{options:?}");
    }
}

#[test]
fn client_flags_that_were_not_offered_close_the_connection() {
    let mut server = LocalServer::new();
    server.talk(&[0, 0, 0, 7]);
    assert_eq!(
        server.error,
        Some(ProtocolError::ClientFlags {
            found: 7,
            offered: 3
        })
    );
}

#[test]
fn what_is_no_option_closes_the_connection_and_the_error_says_where() {
    let mut server = greeted();
    server.talk(&option(3, &[]));
    server.talk(&[0x25; 16]);
    assert_eq!(
        server.error,
        Some(ProtocolError::OptionMagic {
            position: 20,
            found: 0x2525_2525_2525_2525
        })
    );
    assert_eq!(
        server.connection.next_event(),
        Err(server.error.clone().unwrap())
    );
}

#[test]
fn haggling_without_end_closes_the_connection() {
    let mut server = greeted();
    server.take(&option(8, &[]).repeat(1025));
    assert_eq!(
        server.error,
        Some(ProtocolError::TooManyOptions { limit: 1024 })
    );
    assert_eq!(server.sent(), option_reply(8, ACK, &[]).repeat(1024));

    let mut server = greeted();
    server.take(&option(4711, &[0; 300_000]).repeat(4));
    assert!(matches!(
        server.error,
        Some(ProtocolError::HandshakeTooLong {
            limit: 1_048_576,
            ..
        })
    ));
}

#[test]
fn an_option_longer_than_the_whole_handshake_may_be_is_not_waited_for() {
    let mut server = greeted();
    server.take(b"IHAVEOPT\0\0\0\x03\xff\xff\xff\xff");
    assert!(matches!(
        server.error,
        Some(ProtocolError::HandshakeTooLong { .. })
    ));
}

/// Returns a server after the greeting, with TLS. The encryption itself is not part of the server.
fn encrypting(encryption: Encryption) -> LocalServer {
    let mut connection = Connection::new(exports());
    connection.set_encryption(encryption);
    let mut server = LocalServer::over(connection);
    assert_eq!(server.talk(&CLIENT_FLAGS), GREETING);
    server
}

#[test]
fn where_tls_is_required_every_option_before_it_is_refused_but_an_abort() {
    let mut server = encrypting(Encryption::Required);
    for (number, data) in [
        (3, vec![]),
        (6, information("disk", &[])),
        (7, information("disk", &[])),
        (8, vec![]),
        (9, contexts("disk", &[])),
        (10, contexts("disk", &["base:allocation"])),
        (11, vec![]),
        (12_345, vec![1]),
        (7, vec![0; 20_000]),
    ] {
        assert_eq!(
            kind(&server.talk(&option(number, &data))),
            TLS_REQUIRED,
            "option {number}"
        );
    }
    assert_eq!(kind(&server.talk(&option(5, &[]))), ACK);
    server.talk(&option(7, &information("disk", &[])));
    assert_eq!(
        server.events,
        [
            ConnectionEvent::StartTls,
            ConnectionEvent::Opened { export: 0 }
        ]
    );

    let mut server = encrypting(Encryption::Required);
    assert_eq!(server.talk(&option(2, &[])), option_reply(2, ACK, &[]));
    assert_eq!(server.events, [ConnectionEvent::Disconnect]);
    // `NBD_OPT_EXPORT_NAME` has no room for an error in its answer.
    for name in [&b"disk"[..], &[b'a'; 20_000]] {
        let mut server = encrypting(Encryption::Required);
        assert_eq!(server.talk(&option(1, name)), []);
        assert_eq!(
            (server.events, server.error),
            (vec![], Some(ProtocolError::TlsRequired))
        );
    }
}

#[test]
fn tls_begins_once_and_without_data() {
    for encryption in [Encryption::Offered, Encryption::Required] {
        let mut server = encrypting(encryption);
        for data in [vec![0], vec![0; 20_000]] {
            assert_eq!(kind(&server.talk(&option(5, &data))), INVALID);
        }
        assert_eq!(server.talk(&option(5, &[])), option_reply(5, ACK, &[]));
        assert_eq!(kind(&server.talk(&option(5, &[]))), INVALID);
        assert_eq!(
            (server.events, server.error),
            (vec![ConnectionEvent::StartTls], None)
        );
    }
}

#[test]
fn what_was_agreed_on_in_the_clear_does_not_hold_under_tls() {
    let mut server = encrypting(Encryption::Offered);
    assert_eq!(kind(&server.talk(&option(8, &[]))), ACK);
    server.talk(&option(10, &contexts("disk", &["base:allocation"])));
    server.talk(&option(5, &[]));
    // Contexts need structured replies, for which the client has not asked under TLS.
    assert_eq!(
        kind(&server.talk(&option(10, &contexts("disk", &["base:allocation"])))),
        INVALID
    );
    let sent = server.talk(&option(7, &information("disk", &[])));
    assert_eq!(
        sent[..32],
        option_reply(7, 3, &export_info(DISK_BYTES, DISK_FLAGS))[..]
    );
}

#[test]
fn what_comes_in_the_clear_behind_the_beginning_of_tls_closes_the_connection() {
    let mut server = encrypting(Encryption::Offered);
    server.talk(&[option(5, &[]), option(8, &[])].concat());
    assert_eq!(
        (server.events, server.error),
        (vec![], Some(ProtocolError::AheadOfTls { position: 20 }))
    );
}
