//! The client against the server, without a socket.

use crate::common::*;
use fullstroke_nbd::client::{self, ClientError, ClientOptions, ExportClient, Opening};
use fullstroke_nbd::{Allocation, CommandFlags, ErrorCode, Features, RequestCommand};
use proptest::prelude::*;

fn connect(options: &ClientOptions) -> Result<ExportClient<Loopback>, ClientError> {
    ExportClient::connect(Loopback::new(LocalServer::new()), options)
}

/// Returns all ways to open a session.
fn ways() -> Vec<ClientOptions> {
    let options = ClientOptions {
        export: "disk".into(),
        ..ClientOptions::default()
    };
    vec![
        options.clone(),
        ClientOptions {
            opening: Opening::ExportName,
            ..options.clone()
        },
        ClientOptions {
            structured: true,
            ..options.clone()
        },
        ClientOptions {
            status: true,
            opening: Opening::ExportName,
            ..options
        },
    ]
}

#[test]
fn an_export_is_opened_in_every_way_with_the_same_properties() {
    for options in ways() {
        let mut client = connect(&options).unwrap();
        let properties = *client.properties();
        assert_eq!(properties.size_bytes, DISK_BYTES);
        assert!(
            properties
                .features
                .contains(Features::FLUSH | Features::ROTATIONAL)
        );
        assert_eq!(properties.status, options.status);
        assert_eq!(
            properties.block_bytes.is_some(),
            options.opening == Opening::Go
        );
        client.flush().unwrap();
        assert!(client.disconnect().unwrap().server.connection.has_ended());
    }
}

#[test]
fn exports_are_listed() {
    let exports = client::list(Loopback::new(LocalServer::new())).unwrap();
    let names: Vec<(&str, &str)> = exports
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    assert_eq!(names, [("disk", "a disk in memory"), ("archive", "")]);
}

#[test]
fn an_export_that_does_not_exist_is_refused_with_the_servers_words() {
    match connect(&ClientOptions {
        export: "disc".into(),
        ..ClientOptions::default()
    }) {
        Err(ClientError::Refused {
            kind: 0x8000_0006,
            message,
            ..
        }) => {
            assert!(message.contains("no such export"))
        }
        other => panic!("{other:?}"),
    }
    let old = ClientOptions {
        export: "disc".into(),
        opening: Opening::ExportName,
        ..ClientOptions::default()
    };
    assert!(matches!(connect(&old), Err(ClientError::Stream(_))));
}

#[test]
fn a_refused_request_fails_and_the_next_one_is_served() {
    for options in ways() {
        let mut client = connect(&options).unwrap();
        match client.write(DISK_BYTES, &[1; 512], CommandFlags::empty()) {
            Err(ClientError::Failed {
                command: RequestCommand::Write,
                failure,
            }) => {
                assert_eq!(failure.code, ErrorCode::NoSpace);
                assert_eq!(failure.message.is_empty(), !client.properties().structured);
            }
            other => panic!("{other:?}"),
        }
        client.cache(0, 512).unwrap();
    }
}

#[test]
fn several_requests_are_in_flight_at_a_time() {
    let mut client = connect(&ClientOptions {
        structured: true,
        ..ClientOptions::default()
    })
    .unwrap();
    let write = client
        .submit(
            RequestCommand::Write,
            512,
            512,
            CommandFlags::FORCE_UNIT_ACCESS,
            &[5; 512],
        )
        .unwrap();
    let whole = client
        .submit(
            RequestCommand::Read,
            0,
            1536,
            CommandFlags::DO_NOT_FRAGMENT,
            &[],
        )
        .unwrap();
    let parts = client
        .submit(RequestCommand::Read, 0, 1536, CommandFlags::empty(), &[])
        .unwrap();
    assert_eq!(client.in_flight(), 3);
    let answers = [(); 3].map(|()| client.receive().unwrap());
    assert_eq!(
        answers.each_ref().map(|answer| answer.cookie),
        [write, whole, parts]
    );
    assert_eq!(
        answers.each_ref().map(|answer| answer.content_chunks),
        [0, 1, 3]
    );
    assert_eq!(answers[1].data, answers[2].data);
    assert_eq!(answers[1].data[512..1024], [5; 512]);
}

#[test]
fn the_status_of_a_range_tells_holes_from_data() {
    let mut client = connect(&ClientOptions {
        status: true,
        ..ClientOptions::default()
    })
    .unwrap();
    client
        .write(512, &[5; 1024], CommandFlags::empty())
        .unwrap();
    let extents = client.status(0, 2048, CommandFlags::empty()).unwrap();
    let states: Vec<bool> = extents
        .iter()
        .map(|extent| extent.state.contains(Allocation::HOLE))
        .collect();
    assert_eq!(states, [true, false, false, true]);
    assert_eq!(
        client
            .status(512, 2048, CommandFlags::ONE_EXTENT)
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_stream_that_is_not_nbd_is_told_from_one_that_ends() {
    let stream = std::io::Cursor::new(b"SSH-2.0-OpenSSH_9.2p1".to_vec());
    assert!(matches!(
        ExportClient::connect(stream, &ClientOptions::default()),
        Err(ClientError::Protocol { .. })
    ));
    let stream = std::io::Cursor::new(b"NBDMAGIC".to_vec());
    assert!(matches!(
        ExportClient::connect(stream, &ClientOptions::default()),
        Err(ClientError::Stream(_))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_disk_behind_the_protocol_is_a_disk(
        way in 0usize..4,
        steps in prop::collection::vec((0u8..4, 0u64..200, 1u32..20, any::<u8>()), 1..40),
    ) {
        let mut client = connect(&ways()[way]).unwrap();
        let mut model = vec![0u8; 220 * SECTOR_BYTES];
        for (step, sector, sectors, fill) in steps {
            let (offset, length) = (sector * SECTOR_BYTES as u64, sectors * SECTOR_BYTES as u32);
            let part = &mut model[offset as usize..][..length as usize];
            match step {
                0 => {
                    part.fill(fill);
                    client.write(offset, part, CommandFlags::empty()).unwrap();
                }
                1 => {
                    part.fill(0);
                    client.trim(offset, length).unwrap();
                }
                2 => {
                    part.fill(0);
                    client.write_zeroes(offset, length, CommandFlags::NO_HOLE).unwrap();
                }
                _ => {
                    let mut read = vec![0xee; length as usize];
                    client.read(offset, &mut read).unwrap();
                    prop_assert!(read == part, "at {}", offset);
                }
            }
        }
    }

    #[test]
    fn a_client_takes_any_bytes_for_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut stream = GREETING.to_vec();
        stream.extend(DISK_BYTES.to_be_bytes());
        stream.extend([0, 1]);
        let requests = 2 * 28 + 4 + 16;
        stream.extend(bytes);
        let options = ClientOptions { opening: Opening::ExportName, ..ClientOptions::default() };
        let mut client = ExportClient::connect(OneWay { stream: std::io::Cursor::new(stream), left: requests }, &options).unwrap();
        client.submit(RequestCommand::Read, 0, 512, CommandFlags::empty(), &[]).unwrap();
        client.submit(RequestCommand::Flush, 0, 0, CommandFlags::empty(), &[]).unwrap();
        while client.receive().is_ok() {}
    }
}

/// A stream that reads from bytes and accepts a limited number of bytes.
struct OneWay {
    stream: std::io::Cursor<Vec<u8>>,
    left: usize,
}

impl std::io::Read for OneWay {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl std::io::Write for OneWay {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .expect("the client sent more than it was asked to");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
