//! Requests and answers, byte by byte.

use crate::common::*;
use fullstroke_nbd::{
    Allocation, CommandFlags, Connection, ConnectionEvent, ErrorCode, Limits, NbdRequest,
    ProtocolError, ReplyPiece, RequestCommand, StatusExtent,
};

const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const CACHE: u16 = 5;
const WRITE_ZEROES: u16 = 6;
const BLOCK_STATUS: u16 = 7;

const FUA: u16 = 1;
const NO_HOLE: u16 = 2;
const DF: u16 = 4;
const REQ_ONE: u16 = 8;
const FAST_ZERO: u16 = 16;

const EPERM: u32 = 1;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

const DONE: u16 = 1;

/// A chunk of data at an offset.
fn data(flags: u16, cookie: u64, offset: u64, bytes: &[u8]) -> Vec<u8> {
    chunk(
        flags,
        1,
        cookie,
        &[&offset.to_be_bytes()[..], bytes].concat(),
    )
}

fn hole(flags: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    chunk(
        flags,
        2,
        cookie,
        &[&offset.to_be_bytes()[..], &length.to_be_bytes()].concat(),
    )
}

/// Returns the request of the only event.
fn only_request(connection: &mut Connection) -> NbdRequest {
    match connection.next_event() {
        Ok(Some(ConnectionEvent::Request { request, .. })) => request,
        other => panic!("{other:?}"),
    }
}

/// Returns a connection that was given bytes, and does not answer by itself.
fn waiting(structured: bool, bytes: &[u8]) -> Connection {
    let mut connection = opened("disk", structured).connection;
    connection.space()[..bytes.len()].copy_from_slice(bytes);
    connection.filled(bytes.len());
    connection
}

#[test]
fn what_is_written_is_read_in_simple_replies() {
    let mut server = opened("disk", false);
    assert_eq!(server.talk(&write(7, 512, &[0xab; 512])), simple(0, 7));
    let read = [simple(0, 8), vec![0; 512], vec![0xab; 512]].concat();
    assert_eq!(server.talk(&request(0, READ, 8, 0, 1024)), read);
}

#[test]
fn every_command_without_data_is_answered_in_the_negotiated_form() {
    let commands = [
        (0, FLUSH, 0, 0),
        (FUA, TRIM, 512, 1024),
        (0, CACHE, 0, 4096),
        (
            NO_HOLE | FAST_ZERO | FUA,
            WRITE_ZEROES,
            0,
            DISK_BYTES as u32,
        ),
        (FUA, FLUSH, 0, 0),
    ];
    for (flags, command, offset, length) in commands {
        let bytes = request(flags, command, 1 << 63, offset, length);
        assert_eq!(opened("disk", false).talk(&bytes), simple(0, 1 << 63));
        assert_eq!(
            opened("disk", true).talk(&bytes),
            chunk(DONE, 0, 1 << 63, &[])
        );
    }
}

#[test]
fn flags_are_told_with_the_request() {
    let mut server = opened("disk", false);
    server.talk(&[request(FUA, WRITE, 3, 1024, 512), vec![9; 512]].concat());
    let request = NbdRequest {
        cookie: 3,
        command: RequestCommand::Write,
        offset_bytes: 1024,
        length_bytes: 512,
        flags: CommandFlags::FORCE_UNIT_ACCESS,
    };
    assert_eq!(
        server.events,
        [ConnectionEvent::Request {
            request,
            payload: vec![9; 512]
        }]
    );
}

#[test]
fn holes_travel_as_holes_where_replies_are_structured() {
    let mut server = opened("disk", true);
    server.talk(&write(1, 512, &[0xab; 512]));
    let sent = server.talk(&request(0, READ, 2, 0, 1536));
    let wanted = [
        hole(0, 2, 0, 512),
        data(0, 2, 512, &[0xab; 512]),
        hole(DONE, 2, 1024, 512),
    ]
    .concat();
    assert_eq!(sent, wanted);
}

#[test]
fn a_read_that_must_not_be_fragmented_comes_in_one_chunk_with_its_zeroes() {
    let mut server = opened("disk", true);
    server.talk(&write(1, 512, &[0xab; 512]));
    let sent = server.talk(&request(DF, READ, 2, 0, 1536));
    let bytes = [vec![0; 512], vec![0xab; 512], vec![0; 512]].concat();
    assert_eq!(sent, data(DONE, 2, 0, &bytes));
}

#[test]
fn status_is_cut_to_the_range_and_to_one_extent_where_that_is_wanted() {
    let extents = |extents: &[(u32, u32)]| {
        let fields = extents
            .iter()
            .flat_map(|&(length, state)| [length, state])
            .flat_map(u32::to_be_bytes);
        chunk(
            DONE,
            5,
            4,
            &[0, 0, 0, 1].into_iter().chain(fields).collect::<Vec<u8>>(),
        )
    };
    let told = [
        (512, Allocation::empty()),
        (0, Allocation::HOLE),
        (9999, Allocation::HOLE | Allocation::ZERO),
    ];
    let told = told.map(|(length_bytes, state)| StatusExtent {
        length_bytes,
        state,
    });
    for (flags, wanted) in [(0, &[(512, 0), (1536, 3)][..]), (REQ_ONE, &[(512, 0)])] {
        let mut connection = waiting(true, &request(flags, BLOCK_STATUS, 4, 0, 2048));
        let request = only_request(&mut connection);
        connection.reply_status(&request, told);
        assert_eq!(connection.output(), extents(wanted));
    }
    let mut connection = waiting(true, &request(0, BLOCK_STATUS, 4, 0, 2048));
    let request = only_request(&mut connection);
    connection.reply_status(&request, []);
    assert_eq!(connection.output(), extents(&[(2048, 0)]));
}

#[test]
fn errors_carry_code_message_and_place() {
    let bytes = request(0, READ, 5, 512, 1024);
    let mut connection = waiting(true, &bytes);
    let failed = only_request(&mut connection);
    connection.reply_error(&failed, ErrorCode::InputOutput, "sector 1");
    assert_eq!(
        connection.output(),
        chunk(DONE, 0x8001, 5, b"\0\0\0\x05\0\x08sector 1")
    );

    let mut connection = waiting(true, &bytes);
    let failed = only_request(&mut connection);
    connection.reply_error_at(&failed, ErrorCode::InputOutput, 1024, "worn");
    assert_eq!(
        connection.output(),
        chunk(DONE, 0x8002, 5, b"\0\0\0\x05\0\x04worn\0\0\0\0\0\0\x04\0")
    );

    let mut connection = waiting(false, &bytes);
    let failed = only_request(&mut connection);
    connection.reply_error_at(&failed, ErrorCode::ShuttingDown, 1024, "unseen");
    assert_eq!(connection.output(), simple(108, 5));
}

#[test]
fn data_read_in_place_is_sent_and_a_failure_takes_it_back() {
    for structured in [false, true] {
        let mut connection = waiting(structured, &request(0, READ, 5, 512, 512).repeat(2));
        let first = only_request(&mut connection);
        connection.reply_read(&first, |bytes| {
            bytes.fill(1);
            Ok(())
        });
        let second = only_request(&mut connection);
        connection.reply_read(&second, |_| Err(ErrorCode::InputOutput));
        let (good, bad) = match structured {
            false => ([simple(0, 5), vec![1; 512]].concat(), simple(5, 5)),
            true => (
                data(DONE, 5, 512, &[1; 512]),
                chunk(
                    DONE,
                    0x8001,
                    5,
                    b"\0\0\0\x05\0\x1athe data could not be read",
                ),
            ),
        };
        assert_eq!(connection.output(), [good, bad].concat());
        assert_eq!(connection.in_flight(), 0);
    }
}

#[test]
fn invalid_requests_are_answered_with_the_error_of_the_protocol_and_are_no_events() {
    let end = DISK_BYTES;
    let cases = [
        (request(0, 8, 1, 0, 512), EINVAL),
        (request(0, 99, 1, 0, 0), EINVAL),
        (request(0, BLOCK_STATUS, 1, 0, 512), EINVAL),
        (request(0, FLUSH, 1, 512, 0), EINVAL),
        (request(0, FLUSH, 1, 0, 512), EINVAL),
        (request(DF, READ, 1, 0, 512), EINVAL),
        (request(REQ_ONE, READ, 1, 0, 512), EINVAL),
        (request(NO_HOLE, TRIM, 1, 0, 512), EINVAL),
        (request(FAST_ZERO, TRIM, 1, 0, 512), EINVAL),
        (request(1 << 15, CACHE, 1, 0, 512), EINVAL),
        (request(0, READ, 1, 1, 512), EINVAL),
        (request(0, READ, 1, 512, 513), EINVAL),
        (request(0, READ, 1, end, 512), EINVAL),
        (request(0, READ, 1, u64::MAX - 511, 512), EINVAL),
        (request(0, READ, 1, 0, (32 << 20) + 512), EINVAL),
        (request(0, TRIM, 1, end - 512, 1024), EINVAL),
        (request(0, WRITE_ZEROES, 1, end - 512, 1024), ENOSPC),
        (write(1, end - 512, &[1; 1024]), ENOSPC),
        (write(1, 100, &[1; 512]), EINVAL),
        (
            [request(NO_HOLE, WRITE, 1, 0, 512), vec![1; 512]].concat(),
            EINVAL,
        ),
        (write(1, 0, &vec![1; (32 << 20) + 512]), EINVAL),
    ];
    for (bytes, code) in cases {
        let mut server = opened("disk", false);
        let sent = server.talk(&bytes);
        assert_eq!(sent, simple(code, 1), "{:?}", &bytes[..28]);
        assert_eq!((server.events.len(), &server.error), (0, &None));
        // The next request is parsed from its right beginning.
        assert_eq!(server.talk(&request(0, FLUSH, 2, 0, 0)), simple(0, 2));
    }
}

#[test]
fn a_refusal_says_what_was_found_and_what_was_expected() {
    let sent = opened("disk", true).talk(&request(0, READ, 1, 1, 512));
    let text = String::from_utf8_lossy(&sent[26..]).into_owned();
    assert_eq!(
        text,
        "offset: found 512 bytes at 1; expected multiples of 512"
    );
}

#[test]
fn what_would_change_a_read_only_export_is_not_permitted() {
    for bytes in [
        write(1, 0, &[1; 512]),
        request(0, TRIM, 1, 0, 512),
        request(0, WRITE_ZEROES, 1, 0, 512),
    ] {
        assert_eq!(opened("archive", false).talk(&bytes), simple(EPERM, 1));
    }
    // Nor does the export accept flags and commands outside its offer.
    for bytes in [
        request(FUA, READ, 1, 0, 512),
        request(0, FLUSH, 1, 0, 0),
        request(0, CACHE, 1, 0, 512),
    ] {
        assert_eq!(opened("archive", false).talk(&bytes), simple(EINVAL, 1));
    }
}

#[test]
fn requests_of_no_bytes_are_answered_at_once() {
    for command in [READ, WRITE, TRIM, CACHE, WRITE_ZEROES] {
        let mut server = opened("disk", false);
        assert_eq!(
            server.talk(&request(0, command, 6, DISK_BYTES, 0)),
            simple(0, 6)
        );
        assert_eq!(server.events, []);
        assert_eq!(
            opened("disk", true).talk(&request(0, command, 6, 0, 0)),
            chunk(DONE, 0, 6, &[])
        );
    }
    let sent = opened("disk", true).talk(&request(0, BLOCK_STATUS, 6, 0, 0));
    assert_eq!(sent[6..8], [0x80, 1], "extents of no bytes do not exist");
}

#[test]
fn answers_may_come_in_any_order() {
    let mut connection = waiting(
        false,
        &[request(0, READ, 1, 0, 512), request(0, FLUSH, 2, 0, 0)].concat(),
    );
    let (read, flush) = (only_request(&mut connection), only_request(&mut connection));
    assert_eq!(connection.in_flight(), 2);
    connection.reply_done(&flush);
    connection.reply_read_pieces(
        &read,
        [
            ReplyPiece::Data(&[7; 500]),
            ReplyPiece::Hole { length_bytes: 12 },
        ],
    );
    assert_eq!(
        connection.output(),
        [simple(0, 2), simple(0, 1), vec![7; 500], vec![0; 12]].concat()
    );
}

#[test]
fn a_disconnect_is_the_last_event_and_has_no_answer() {
    let mut server = opened("disk", false);
    let bytes = [request(0, DISCONNECT, 0, 0, 0), request(0, FLUSH, 2, 0, 0)].concat();
    assert_eq!(server.talk(&bytes), []);
    assert_eq!(server.events, [ConnectionEvent::Disconnect]);
    assert!(server.connection.has_ended());
}

#[test]
fn what_is_no_request_closes_the_connection_and_the_error_says_where() {
    let mut server = LocalServer::new();
    server.talk(&CLIENT_FLAGS);
    server.talk(&option(1, b"disk"));
    server.talk(&write(1, 0, &[5; 65_536]));
    server.talk(&[1; 28]);
    let position = 4 + 20 + 28 + 65_536;
    assert_eq!(
        server.error,
        Some(ProtocolError::RequestMagic {
            position,
            found: 0x0101_0101
        })
    );
}

#[test]
fn a_payload_beyond_all_measure_closes_the_connection() {
    let mut server = opened("disk", false);
    server.talk(&request(0, WRITE, 1, 0, (64 << 20) + 512));
    assert!(matches!(
        server.error,
        Some(ProtocolError::PayloadTooLong {
            limit: 67_108_864,
            ..
        })
    ));
}

#[test]
fn a_long_payload_is_read_to_its_place() {
    let mut connection = waiting(false, &request(0, WRITE, 1, 0, 1 << 20));
    assert_eq!(connection.next_event(), Ok(None));
    let space = connection.space();
    assert_eq!(space.len(), 1 << 20);
    space.fill(3);
    connection.filled(1 << 20);
    match connection.next_event() {
        Ok(Some(ConnectionEvent::Request { payload, .. })) => assert_eq!(payload, vec![3; 1 << 20]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_connection_pauses_at_each_of_its_limits_and_goes_on_below() {
    let limits = Limits {
        requests: 2,
        payload_bytes: 8192,
        output_bytes: 4096,
    };
    let open = || {
        let mut server = LocalServer::over(Connection::with_limits(exports(), limits));
        server.talk(&[&CLIENT_FLAGS[..], &option(1, b"disk")].concat());
        server.connection
    };
    let feed = |connection: &mut Connection, bytes: &[u8]| {
        connection.space()[..bytes.len()].copy_from_slice(bytes);
        connection.filled(bytes.len());
    };
    let pause = |connection: &mut Connection| {
        assert_eq!(connection.next_event(), Ok(None));
        assert!(connection.is_paused());
    };

    let mut connection = open();
    feed(&mut connection, &request(0, CACHE, 1, 0, 512).repeat(3));
    let requests = [only_request(&mut connection), only_request(&mut connection)];
    pause(&mut connection);
    connection.reply_done(&requests[1]);
    assert_eq!(only_request(&mut connection).cookie, 1);

    let mut connection = open();
    feed(&mut connection, &request(0, READ, 1, 0, 16_384).repeat(2));
    let long = only_request(&mut connection);
    pause(&mut connection);
    connection.reply_read(&long, |bytes| {
        bytes.fill(0);
        Ok(())
    });
    // The answer now fills the output.
    pause(&mut connection);
    connection.consumed(16_384);
    assert_eq!(only_request(&mut connection).length_bytes, 16_384);
}

#[test]
#[should_panic(expected = "answered twice")]
fn a_second_answer_to_a_request_is_a_mistake_of_the_driver() {
    let mut connection = waiting(false, &request(0, FLUSH, 1, 0, 0));
    let request = only_request(&mut connection);
    connection.reply_done(&request);
    connection.reply_done(&request);
}

#[test]
fn a_request_for_which_there_is_no_room_waits_where_it_is() {
    for (message, bytes) in [
        (request(0, READ, 1, 0, 4096), 4096),
        (write(1, 0, &[3; 4096]), 4096),
    ] {
        let mut connection = waiting(false, &[]);
        connection.set_room(4095);
        let space = connection.space();
        space[..message.len()].copy_from_slice(&message);
        connection.filled(message.len());
        assert_eq!(connection.next_event(), Ok(None));
        assert!(connection.lacks_room() && connection.is_paused());
        assert_eq!((connection.in_flight(), connection.held_bytes()), (0, 0));
        connection.set_room(4096);
        assert!(!connection.lacks_room() && !connection.is_paused());
        let Ok(Some(ConnectionEvent::Request { request, .. })) = connection.next_event() else {
            panic!("no request")
        };
        assert_eq!(
            (request.payload_bytes(), connection.held_bytes()),
            (bytes, bytes)
        );
    }
}
