//! Allocations of a connection. One test only, because there is one allocator.

mod common;

use cap::Cap;
use common::*;
use fullstroke_nbd::{Connection, ConnectionEvent, RequestCommand};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Carries out requests without keeping data, and drops the output.
fn serve(connection: &mut Connection, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let space = connection.space();
        let count = space.len().min(rest.len());
        space[..count].copy_from_slice(&rest[..count]);
        connection.filled(count);
        rest = &rest[count..];
        while let Ok(Some(event)) = connection.next_event() {
            let ConnectionEvent::Request { request, payload } = event else {
                continue;
            };
            match request.command {
                RequestCommand::Read => connection.reply_read(&request, |data| {
                    data.fill(1);
                    Ok(())
                }),
                RequestCommand::BlockStatus => connection.reply_status(&request, []),
                _ => connection.reply_done(&request),
            }
            connection.recycle(payload);
        }
        connection.consumed(connection.output().len());
    }
}

/// Lets a client send without ever reading, until the server reads no more.
fn flood(opening: &[u8], message: &[u8]) -> usize {
    let mut connection = Connection::new(exports());
    let before = ALLOCATOR.allocated();
    let mut peak = 0;
    let mut bytes = opening.iter().chain(message.iter().cycle()).copied();
    for _ in 0..2000 {
        if connection.is_paused() || connection.has_ended() {
            break;
        }
        let space = connection.space();
        let count = space.len();
        space
            .iter_mut()
            .zip(&mut bytes)
            .for_each(|(place, byte)| *place = byte);
        connection.filled(count);
        // No request is answered, and no output is sent.
        while let Ok(Some(event)) = connection.next_event() {
            if let ConnectionEvent::Request { payload, .. } = event {
                std::mem::forget(payload);
            }
        }
        peak = peak.max(ALLOCATOR.allocated().saturating_sub(before));
    }
    assert!(
        connection.is_paused() || connection.has_ended(),
        "{:?}",
        &message[..message.len().min(28)]
    );
    peak
}

#[test]
fn a_request_costs_no_allocation_and_a_hostile_client_no_more_than_the_bound() {
    let opened = [
        &CLIENT_FLAGS[..],
        &option(8, &[]),
        &option(7, &information("disk", &[])),
    ]
    .concat();

    let requests: Vec<u8> = (0..200)
        .flat_map(|cookie| {
            let refused = request(0, 9, cookie, 0, 512);
            [
                write(cookie, 4096, &[7; 4096]),
                request(0, 0, cookie, 0, 4096),
                refused,
            ]
            .concat()
        })
        .collect();
    let mut connection = Connection::new(exports());
    serve(&mut connection, &opened);
    serve(&mut connection, &requests);
    let before = ALLOCATOR.total_allocated();
    for _ in 0..20 {
        serve(&mut connection, &requests);
    }
    // The thread of the test harness allocates a little.
    let grown = ALLOCATOR.total_allocated() - before;
    assert!(grown < 12_000, "{grown} bytes allocated by 12000 requests");
    assert!(!connection.has_ended());

    const MIB: usize = 1 << 20;
    let bounds = [
        // Lists and refusals are paused by their output: 8 MiB, with up to four times the storage.
        (CLIENT_FLAGS.to_vec(), option(3, &[]), MIB),
        (opened.clone(), request(0, 99, 0, 0, 512), 33 * MIB),
        (opened.clone(), write(0, DISK_BYTES, &[0; 512]), 33 * MIB),
        // Writes are paused by their payloads: 64 MiB, and one request more.
        (opened.clone(), write(0, 0, &[0; MIB]), 66 * MIB),
        (opened.clone(), write(0, 0, &[0; 512]), MIB),
        (opened, request(0, 0, 0, 0, 512), MIB),
    ];
    for (opening, message, bound) in bounds {
        let peak = flood(&opening, &message);
        assert!(
            peak <= bound,
            "{peak} bytes for {:?}; expected at most {bound}",
            &message[..16]
        );
    }
}
