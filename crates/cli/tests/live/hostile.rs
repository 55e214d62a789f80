//! Tests that clients with invalid requests harm only themselves.

use crate::pattern;
use crate::server::{PATIENCE, Server, StackFolder};
use crate::stacks::RAID5;
use fullstroke_nbd::client::{ClientError, ClientOptions, ExportClient};
use fullstroke_nbd::{CommandFlags, ErrorCode, RequestCommand};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
// The numbers are those of the NBD protocol. Flags of the client: fixed newstyle and no zeroes.
const FLAGS: [u8; 4] = [0, 0, 0, 3];
const OPTION: &[u8] = b"IHAVEOPT";
const GO: u32 = 7;
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

fn served() -> Server {
    StackFolder::new(RAID5, 16).serve(&["--no-delay"])
}

/// Asserts that the server still serves other clients.
fn serves(server: &Server) {
    let mut client = server.client();
    let data = pattern::bytes(4096, 1, 8192);
    client
        .write(4096, &data, CommandFlags::FORCE_UNIT_ACCESS)
        .unwrap();
    let mut found = vec![0; 8192];
    client.read(4096, &mut found).unwrap();
    pattern::assert_same(&found, &data, "another client");
}

/// Returns all bytes until the connection closes.
fn rest(stream: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        // A socket that is closed with unread bytes resets the connection.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    bytes
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [
        OPTION,
        &number.to_be_bytes(),
        &(data.len() as u32).to_be_bytes(),
        data,
    ]
    .concat()
}

fn request(magic: u32, flags: u16, command: u16, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = magic.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(77u64.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

const REQUEST: u32 = 0x2560_9513;

/// Returns a negotiated connection with simple replies.
fn opened(server: &Server) -> UnixStream {
    let client = server.client_with(&ClientOptions::default());
    let mut client = client;
    client.stream().try_clone().unwrap()
}

/// Returns the error of the simple reply to the last request.
fn error_of(stream: &mut UnixStream) -> u32 {
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).unwrap();
    // The magic number of a simple reply.
    assert_eq!(reply[..4], 0x6744_6698u32.to_be_bytes());
    assert_eq!(reply[8..], 77u64.to_be_bytes());
    u32::from_be_bytes(reply[4..8].try_into().unwrap())
}

#[test]
fn handshakes_that_break_off_or_make_no_sense_end() {
    let server = served();
    let go = option(GO, &[0, 0, 0, 0, 0, 0]);
    let whole = [&FLAGS, go.as_slice()].concat();
    for length in 0..whole.len() {
        let mut stream = server.connection();
        stream.write_all(&whole[..length]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(rest(&mut stream).starts_with(b"NBDMAGICIHAVEOPT"));
    }
    let bad_flags = vec![0xff, 0xff, 0xff, 0xff];
    let bad_magic = [&FLAGS, &b"IHAVENOT"[..], &[0; 8]].concat();
    let long = [&FLAGS, OPTION, &GO.to_be_bytes(), &u32::MAX.to_be_bytes()].concat();
    for bytes in [
        bad_flags,
        bad_magic,
        long,
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ] {
        let mut stream = server.connection();
        stream.write_all(&bytes).unwrap();
        // The server closes the connection, or sees its end.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        rest(&mut stream);
    }
    serves(&server);
    server.stop_well();
}

#[test]
fn unknown_options_are_answered_with_an_error_and_the_handshake_goes_on() {
    let server = served();
    let mut stream = server.connection();
    // The greeting: two magic numbers of 8 bytes, and 2 bytes of flags.
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(&FLAGS).unwrap();
    for number in [4, 99, u32::MAX] {
        stream.write_all(&option(number, b"anything")).unwrap();
        let mut reply = [0; 20];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..8], REPLY_MAGIC.to_be_bytes());
        assert_eq!(reply[8..12], number.to_be_bytes());
        assert_eq!(
            reply[12..16],
            0x8000_0001u32.to_be_bytes(),
            "NBD_REP_ERR_UNSUP"
        );
        let length = u32::from_be_bytes(reply[16..].try_into().unwrap());
        stream.read_exact(&mut vec![0; length as usize]).unwrap();
    }
    // A missing export is an error. Then the default export opens on a new connection.
    let refused = ExportClient::connect(
        server.connection(),
        &ClientOptions {
            export: "no such".into(),
            ..ClientOptions::default()
        },
    );
    assert!(
        matches!(
            refused,
            Err(ClientError::Refused {
                // NBD_REP_ERR_UNKNOWN.
                kind: 0x8000_0006,
                ..
            })
        ),
        "{refused:?}"
    );
    stream.write_all(&option(GO, &[0, 0, 0, 0, 0, 0])).unwrap();
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[12..16], 3u32.to_be_bytes(), "NBD_REP_INFO");
    drop(stream);
    serves(&server);
    server.stop_well();
}

#[test]
fn requests_that_make_no_sense_are_invalid_and_the_connection_goes_on() {
    let server = served();
    let size = server.client().properties().size_bytes;
    let mut stream = opened(&server);
    const EINVAL: u32 = 22;
    const ENOSPC: u32 = 28;
    for (flags, command, offset, length, expected) in [
        (0, 99, 0, 512, EINVAL),
        (0x8000, 0, 0, 512, EINVAL),
        (1 << 1, 0, 0, 512, EINVAL),
        (0, 0, size, 512, EINVAL),
        (0, 0, size - 512, 1024, EINVAL),
        (0, 0, u64::MAX - 511, 512, EINVAL),
        (0, 0, 0, 32 << 20 | 512, EINVAL),
        (0, 0, 0, !511, EINVAL),
        (0, 3, 512, 512, EINVAL),
        (0, 4, size, 512, EINVAL),
        // Command 6 is "write zeroes". Writes beyond the end are told with ENOSPC, all else with
        // EINVAL.
        (0, 6, size, 512, ENOSPC),
        (0, 6, u64::MAX - 511, 512, ENOSPC),
        // Command 7 is "block status", which needs structured replies.
        (0, 7, 0, 512, EINVAL),
    ] {
        stream
            .write_all(&request(REQUEST, flags, command, offset, length))
            .unwrap();
        let found = error_of(&mut stream);
        assert_eq!(
            found, expected,
            "command {command}, flags {flags:#x}, {length} bytes at {offset}"
        );
    }
    // A refused write still has its payload.
    stream
        .write_all(&request(REQUEST, 0, 1, size, 512))
        .unwrap();
    stream.write_all(&[1; 512]).unwrap();
    assert_eq!(error_of(&mut stream), ENOSPC);
    stream.write_all(&request(REQUEST, 0, 3, 0, 0)).unwrap();
    assert_eq!(error_of(&mut stream), 0);
    drop(stream);
    serves(&server);
    server.stop_well();
}

#[test]
fn the_longest_request_is_told_and_longer_ones_are_invalid() {
    let server = served();
    let mut client = server.client();
    assert_eq!(
        client.properties().block_bytes.map(|blocks| blocks[2]),
        Some(32 << 20)
    );
    let longest = pattern::bytes(0, 5, 32 * MIB);
    client.write(0, &longest, CommandFlags::empty()).unwrap();
    let mut found = vec![0; 32 * MIB];
    client.read(0, &mut found).unwrap();
    pattern::assert_same(&found, &longest, "the longest request");
    client
        .submit(
            RequestCommand::Read,
            0,
            (32 << 20) + 512,
            CommandFlags::empty(),
            &[],
        )
        .unwrap();
    assert_eq!(
        client.receive().unwrap().result.unwrap_err().code,
        ErrorCode::Invalid
    );
    let long = vec![1; 32 * MIB + 512];
    let sent = client.submit(
        RequestCommand::Write,
        0,
        long.len() as u32,
        CommandFlags::empty(),
        &long,
    );
    // The server may close the connection instead of reading the payload.
    let answer = sent.and_then(|_| client.receive());
    assert!(
        answer
            .as_ref()
            .map_or(true, |answer| answer.result.is_err()),
        "{answer:?}"
    );
    let mut client = server.client();
    client.read(0, &mut found).unwrap();
    pattern::assert_same(&found, &longest, "after a request that was too long");
    server.stop_well();
}

#[test]
fn requests_that_break_off_or_have_a_bad_magic_end_the_connection_alone() {
    let server = served();
    for magic in [0, 0x2560_9514, u32::MAX] {
        let mut stream = opened(&server);
        stream.write_all(&request(magic, 0, 0, 0, 512)).unwrap();
        assert!(rest(&mut stream).is_empty());
    }
    let write = [request(REQUEST, 0, 1, 0, 4096), vec![1; 4096]].concat();
    // The header of a request has 28 bytes.
    for length in [1, 4, 27, 28, 29, 2000, write.len() - 1] {
        let mut stream = opened(&server);
        stream.write_all(&write[..length]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(rest(&mut stream).is_empty(), "{length} bytes");
    }
    let mut found = vec![1; 4096];
    server.client().read(0, &mut found).unwrap();
    assert!(
        found.iter().all(|&byte| byte == 0),
        "half a write was carried out"
    );
    serves(&server);
    server.stop_well();
}

#[test]
fn who_never_reads_answers_costs_little_and_holds_nobody_up() {
    let server = served();
    serves(&server);
    let before = server.peak_bytes();
    let mut hogs: Vec<UnixStream> = (0..4).map(|_| opened(&server)).collect();
    for hog in &mut hogs {
        hog.set_write_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let mut sent = 0;
        // All answers together would be 16 GiB.
        while sent < 4000 && hog.write_all(&request(REQUEST, 0, 0, 0, 4 << 20)).is_ok() {
            sent += 1;
        }
    }
    serves(&server);
    let grown = server.peak_bytes() - before;
    assert!(
        grown < 4 * 128 * MIB as u64,
        "{} MiB for four clients",
        grown >> 20
    );
    drop(hogs);
    serves(&server);
    server.stop_well();
}

#[test]
fn a_thousand_connections_opened_and_dropped_leave_nothing() {
    let server = served();
    serves(&server);
    let before = server.peak_bytes();
    for round in 0..4 {
        let streams: Vec<UnixStream> = (0..250).map(|_| server.connection()).collect();
        for (number, mut stream) in streams.into_iter().enumerate() {
            if number % 2 == 0 {
                // The server may have closed the connection already.
                let _ = stream.write_all(&FLAGS[..number % 5]);
            }
        }
        assert!(
            server.peak_bytes() - before < 256 * MIB as u64,
            "round {round}"
        );
    }
    let begun = Instant::now();
    while server.status()["clients"] != 0 {
        assert!(begun.elapsed() < PATIENCE, "{}", server.status()["clients"]);
        thread::sleep(Duration::from_millis(10));
    }
    serves(&server);
    server.stop_well();
}

#[test]
fn a_client_that_is_killed_in_the_midst_of_it_harms_nobody() {
    let server = served();
    for round in 0..10 {
        let mut client = server.client();
        for number in 0..64u64 {
            let payload = pattern::bytes(number << 16, round, 1 << 16);
            let at = 16 * MIB as u64 + (number << 16);
            client
                .submit(
                    RequestCommand::Write,
                    at,
                    1 << 16,
                    CommandFlags::empty(),
                    &payload,
                )
                .unwrap();
            client
                .submit(
                    RequestCommand::Read,
                    at,
                    1 << 16,
                    CommandFlags::empty(),
                    &[],
                )
                .unwrap();
        }
        // Unread answers make the socket close with a reset.
        drop(client);
        serves(&server);
    }
    server.scrub();
    server.stop_well();
}

#[test]
fn a_copying_program_that_is_killed_harms_nobody() {
    if !crate::programs::installed(&["nbdcopy"]) {
        return;
    }
    let server = served();
    let image = server.place().path("image");
    std::fs::write(&image, pattern::bytes(0, 3, 64 * MIB)).unwrap();
    for delay_ms in [1, 10, 30] {
        let mut copy = crate::programs::command("nbdcopy")
            .args([image.to_str().unwrap(), &server.uri()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(delay_ms));
        copy.kill().unwrap();
        copy.wait().unwrap();
        serves(&server);
    }
    server.scrub();
    server.stop_well();
}

#[test]
fn noise_on_the_socket_is_survived() {
    use fullstroke_units::Seed;
    let server = served();
    for seed in 0..100 {
        let mut random = Seed(seed).stream("noise");
        let mut stream = if seed % 2 == 0 {
            server.connection()
        } else {
            opened(&server)
        };
        let length = random.below(2000) as usize;
        let noise: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        let _ = stream.write_all(&noise);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        rest(&mut stream);
    }
    serves(&server);
    server.stop_well();
}
