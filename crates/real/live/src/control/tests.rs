//! Behaviour of the control socket, over real sockets.

use super::*;
use crate::answering::{Answering, status};
use fullstroke_transport::socket::PEERS_MAX;
use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;

struct ServedSocket {
    folder: tempfile::TempDir,
    // Field order: ends before the server that it asks.
    socket: Option<ControlSocket>,
    _server: Answering,
}

impl ServedSocket {
    fn new() -> ServedSocket {
        let (folder, server) = (tempfile::tempdir().unwrap(), Answering::repeating());
        let socket =
            ControlSocket::open(&folder.path().join("control"), server.handle.clone()).unwrap();
        ServedSocket {
            folder,
            socket: Some(socket),
            _server: server,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("control")
    }

    fn call(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }
}

fn line(stream: &mut impl io::BufRead) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line
}

fn message(answer: &str) -> String {
    match serde_json::from_str(answer).unwrap() {
        ControlResponse::Refused { message }
        | ControlResponse::Wrong { message }
        | ControlResponse::Done { message } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_question_over_the_socket_reaches_the_server_and_its_answer_comes_back() {
    let served = ServedSocket::new();
    assert_eq!(
        ask(&served.path(), &ControlRequest::Status).unwrap(),
        ControlResponse::Status(Box::new(status()))
    );
    let restore = ControlRequest::Restore {
        export: Some("b".into()),
        drive: "1.0".into(),
        rate: Some(fullstroke_units::Bytes(100 << 20)),
        accept_data_loss: false,
    };
    for question in [
        restore,
        ControlRequest::Fail {
            export: None,
            drive: "3".into(),
        },
        ControlRequest::Scrub {
            export: None,
            repair: fullstroke_store::Repair::Nothing,
        },
    ] {
        let answer = ask(&served.path(), &question).unwrap();
        assert_eq!(
            answer,
            ControlResponse::Done {
                message: format!("{question:?}")
            }
        );
    }
}

#[test]
fn one_caller_may_ask_many_questions_at_once() {
    let served = ServedSocket::new();
    let mut stream = served.call();
    stream
        .write_all(
            "{\"ask\":\"scrub\"}\n\n  \r\n{\"ask\":\"status\"}\n"
                .repeat(50)
                .as_bytes(),
        )
        .unwrap();
    let mut answers = BufReader::new(stream);
    for _ in 0..50 {
        assert!(line(&mut answers).contains(r#""answer":"done""#));
        assert!(line(&mut answers).contains(r#""answer":"status""#));
    }
}

#[test]
fn what_is_no_question_is_refused_with_what_was_expected_and_the_next_is_answered() {
    let served = ServedSocket::new();
    let mut stream = served.call();
    let wrong: [&[u8]; 6] = [
        b"status",
        b"{}",
        br#"{"ask":"fail"}"#,
        br#"{"ask":"fail","drive":"3","now":true}"#,
        b"\xff\xfe\x00",
        br#"{"ask":"restore","drive":"3","rate":"fast"}"#,
    ];
    for bytes in wrong {
        stream.write_all(bytes).unwrap();
        stream.write_all(b"\n").unwrap();
    }
    stream.write_all(b"{\"ask\":\"status\"}\n").unwrap();
    let mut answers = BufReader::new(stream);
    for _ in wrong {
        let refused = message(&line(&mut answers));
        assert!(
            refused.contains("not a question") && refused.contains(r#"{"ask":"status"}"#),
            "{refused}"
        );
    }
    assert!(line(&mut answers).contains(r#""answer":"status""#));
}

#[test]
fn a_line_without_end_is_refused_and_cut_off() {
    let served = ServedSocket::new();
    let mut stream = served.call();
    let mut sender = stream.try_clone().unwrap();
    let writing = thread::spawn(move || while sender.write_all(&[b'x'; 4096]).is_ok() {});
    let mut answer = Vec::new();
    // The connection ends with a reset, because the server did not read all bytes.
    let _ = stream.read_to_end(&mut answer);
    writing.join().unwrap();
    assert!(message(&String::from_utf8(answer).unwrap()).contains("65536 bytes"));
    assert!(ask(&served.path(), &ControlRequest::Status).is_ok());
}

#[test]
fn a_question_that_comes_byte_by_byte_is_answered() {
    let served = ServedSocket::new();
    let mut stream = served.call();
    for byte in b"{\"ask\":\"status\"}\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    assert!(line(&mut BufReader::new(stream)).contains(r#""answer":"status""#));
}

#[test]
fn whoever_is_silent_longest_makes_room_for_who_asks() {
    let served = ServedSocket::new();
    let mut silent: Vec<UnixStream> = (0..PEERS_MAX).map(|_| served.call()).collect();
    // An answered peer has a place, so all peers are connected.
    for stream in &mut silent {
        stream.write_all(b"{\"ask\":\"status\"}\n").unwrap();
        line(&mut BufReader::new(stream));
    }
    for _ in 0..3 {
        assert!(matches!(
            ask(&served.path(), &ControlRequest::Status),
            Ok(ControlResponse::Status(_))
        ));
    }
    // The first to be disconnected depends on the scheduling of each thread after its answer.
    let ended = |stream: &mut UnixStream| {
        stream.set_nonblocking(true).unwrap();
        let ended = matches!(stream.read(&mut [0; 16]), Ok(0));
        stream.set_nonblocking(false).unwrap();
        ended
    };
    assert!(
        silent[..PEERS_MAX / 2].iter_mut().any(ended),
        "one of the first of them hears the end"
    );
    let last = silent.last_mut().unwrap();
    last.write_all(b"{\"ask\":\"status\"}\n").unwrap();
    assert!(
        line(&mut BufReader::new(last)).contains(r#""answer":"status""#),
        "the last is still there"
    );
}

#[test]
fn who_is_being_answered_is_not_cut_off_and_the_next_is_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let server = Answering::with(|_| {
        thread::sleep(Duration::from_millis(300));
        ControlResponse::Done {
            message: "slow".into(),
        }
    });
    let path = folder.path().join("control");
    let _socket = ControlSocket::open(&path, server.handle.clone()).unwrap();
    let busy: Vec<_> = (0..PEERS_MAX)
        .map(|_| {
            let path = path.clone();
            thread::spawn(move || {
                ask_within(&path, &ControlRequest::Status, Duration::from_secs(60))
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(150));
    let answer = ask_within(&path, &ControlRequest::Status, Duration::from_secs(60)).unwrap();
    assert!(
        matches!(&answer, ControlResponse::Refused { message } if message.contains("16 callers")),
        "{answer:?}"
    );
    for thread in busy {
        assert!(matches!(
            thread.join().unwrap(),
            Ok(ControlResponse::Done { .. })
        ));
    }
}

#[test]
fn dropping_the_socket_cuts_callers_off_and_removes_the_file() {
    let mut served = ServedSocket::new();
    let mut silent = served.call();
    silent.write_all(b"{\"ask\":").unwrap();
    served.socket = None;
    assert_eq!(
        silent.read(&mut [0; 16]).unwrap_or(0),
        0,
        "the caller hears the end"
    );
    assert!(!served.path().exists());
    let error = ask(&served.path(), &ControlRequest::Status).unwrap_err();
    assert!(matches!(error, ControlError::Unreachable { .. }));
    assert!(error.to_string().contains("control"), "{error}");
}

#[test]
fn only_the_owner_may_open_the_socket() {
    let served = ServedSocket::new();
    assert_eq!(fs::metadata(served.path()).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_stale_socket_file_is_taken_over_and_a_live_one_is_not() {
    let served = ServedSocket::new();
    let other = Answering::repeating();
    let taken = ControlSocket::open(&served.path(), other.handle.clone());
    assert_eq!(
        taken.err().map(|error| error.kind()),
        Some(io::ErrorKind::AddrInUse)
    );
    let stale = served.folder.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    let _socket = ControlSocket::open(&stale, other.handle.clone()).unwrap();
    assert!(matches!(
        ask(&stale, &ControlRequest::Status),
        Ok(ControlResponse::Status(_))
    ));
    let file = served.folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    assert!(ControlSocket::open(&file, other.handle.clone()).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

/// Starts a peer. It sends `words` to each caller, and then listens or disconnects.
fn somebody(folder: &Path, words: &'static [u8], hangs_up: bool) -> PathBuf {
    let path = folder.join("other");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(words).unwrap();
        if !hangs_up {
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    path
}

#[test]
fn a_server_that_is_no_control_socket_is_told_from_one() {
    let short = Duration::from_millis(50);
    for hangs_up in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = somebody(folder.path(), b"NBDMAGICIHAVEOPT\x00\x03", hangs_up);
        let error = ask_within(&path, &ControlRequest::Status, short)
            .unwrap_err()
            .to_string();
        assert!(error.contains("NBD") && error.contains("other"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = somebody(folder.path(), b"220 mail.example ESMTP\r\n", true);
    let error = ask_within(&path, &ControlRequest::Status, short)
        .unwrap_err()
        .to_string();
    assert!(error.contains("`220 mail.example ESMTP`"), "{error}");
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = somebody(folder.path(), b"{\"answer\":", false);
    let error = ask_within(&path, &ControlRequest::Status, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, ControlError::Silent { .. }), "{error}");
}
