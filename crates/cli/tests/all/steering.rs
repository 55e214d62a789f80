//! Tests of `ctl` and `top` against a server with scripted answers.

use crate::common::{refused, success};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Server with a scripted answer. It stores the questions.
struct ScriptedServer {
    folder: tempfile::TempDir,
    questions: Arc<Mutex<Vec<Value>>>,
}

impl ScriptedServer {
    /// Starts a server at the path `name` that answers every question with `answer`.
    fn at(name: &str, answer: Value) -> ScriptedServer {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(name)).unwrap();
        let questions = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&questions);
        thread::spawn(move || {
            for stream in listener.incoming() {
                talk(stream.unwrap(), &answer, &heard);
            }
        });
        ScriptedServer { folder, questions }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn question(&self) -> Value {
        self.questions.lock().unwrap().pop().expect("a question")
    }
}

fn talk(mut stream: UnixStream, answer: &Value, heard: &Mutex<Vec<Value>>) {
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        heard
            .lock()
            .unwrap()
            .push(serde_json::from_str(&line.unwrap()).unwrap());
        writeln!(stream, "{answer}").unwrap();
    }
}

fn status() -> Value {
    let operation = |requests: u64| json!({ "requests": requests, "bytes": 4096 * requests, "errors": 0, "response_s": 0.5, "buckets": [] });
    let drive = |name: &str, state: &str, share: Value| {
        json!({
            "name": name, "state": state, "rebuilt_share": share, "queue_length": 3, "head_share": 0.5,
            "head_cylinder": 4711, "busy": true, "busy_s": 10.5, "ios": 1234, "reads": 617, "bytes": 5_054_464,
            "buffer_hits": 42
        })
    };
    json!({
        "answer": "status", "version": "1.2.3", "uptime_s": 61.5, "speed": 1.0, "clients": 2,
        "exports": [{
            "name": "demo", "layout": "raid5 of 2", "usable_bytes": 9_100_000_000u64, "world_ns": 61_000_000_000u64,
            "requests": 100, "in_flight": 5,
            "operations": {
                "read": operation(100), "write": operation(0), "flush": operation(0), "discard": operation(0)
            },
            "lateness": {
                "count": 100, "mean_us": 11.0, "p50_us": 10.0, "p99_us": 50.0, "p999_us": 60.0, "max_us": 70.0
            },
            "drives": [drive("0", "alive", Value::Null), drive("1", "rebuilding", json!(0.25))]
        }]
    })
}

#[test]
fn status_is_shown_as_tables_and_as_json() {
    let server = ScriptedServer::at("control", status());
    let text = success(&["ctl", &server.path("control"), "status"]);
    for word in [
        "demo: raid5 of 2",
        "9.10 GB",
        "61.0 s",
        "5 in flight",
        "4711",
        "rebuilding 25.0 %",
        "1234",
    ] {
        assert!(text.contains(word), "no {word} in\n{text}");
    }
    let read = text.lines().find(|line| line.starts_with("read")).unwrap();
    assert_eq!(
        read.split_whitespace().collect::<Vec<_>>(),
        ["read", "100", "0.410", "0", "5.00"]
    );
    let json: Value = serde_json::from_str(&success(&[
        "ctl",
        &server.path("control"),
        "status",
        "--json",
    ]))
    .unwrap();
    assert_eq!(json["exports"][0]["drives"][1]["rebuilt_share"], 0.25);
    assert_eq!(json["clients"], 2);
}

#[test]
fn orders_reach_the_server_as_they_are_said() {
    let server = ScriptedServer::at(
        "control",
        json!({ "answer": "done", "message": "so be it" }),
    );
    let socket = server.path("control");
    let cases: [(&[&str], Value); 7] = [
        (
            &["fail", "3"],
            json!({ "ask": "fail", "export": null, "drive": "3" }),
        ),
        (
            &["fail", "1.0", "--export", "b"],
            json!({ "ask": "fail", "export": "b", "drive": "1.0" }),
        ),
        (
            &["restore", "3"],
            json!({ "ask": "restore", "export": null, "drive": "3", "rate": null, "accept_data_loss": false }),
        ),
        (
            &["restore", "3", "--rate", "100MiB", "--export", "b"],
            json!({ "ask": "restore", "export": "b", "drive": "3", "rate": "100MiB", "accept_data_loss": false }),
        ),
        (
            &["scrub"],
            json!({ "ask": "scrub", "export": null, "repair": false }),
        ),
        (
            &["scrub", "--repair"],
            json!({ "ask": "scrub", "export": null, "repair": true }),
        ),
        (
            &["scrub", "--repair=data"],
            json!({ "ask": "scrub", "export": null, "repair": "data" }),
        ),
    ];
    for (order, question) in cases {
        let arguments = [&["ctl", socket.as_str()], order].concat();
        assert_eq!(success(&arguments), "so be it\n");
        assert_eq!(server.question(), question);
    }
    let json: Value = serde_json::from_str(&success(&["ctl", &socket, "scrub", "--json"])).unwrap();
    assert_eq!(json, json!({ "answer": "done", "message": "so be it" }));
}

#[test]
fn a_refusal_is_an_error_with_the_servers_words() {
    let message = "there is no drive `9`; there are: 0, 1";
    let server = ScriptedServer::at(
        "control",
        json!({ "answer": "refused", "message": message }),
    );
    assert_eq!(
        refused(&["ctl", &server.path("control"), "fail", "9"]),
        format!("fullstroke: {message}\n")
    );
    let error = refused(&[
        "ctl",
        &server.path("control"),
        "restore",
        "9",
        "--rate",
        "fast",
    ]);
    assert!(
        error.contains("fast") && error.contains("--rate"),
        "{error}"
    );
}

#[test]
fn the_socket_of_clients_leads_to_the_control_socket_beside_it() {
    let server = ScriptedServer::at("array.sock.control", status());
    let _clients = UnixListener::bind(server.path("array.sock")).unwrap();
    assert!(success(&["ctl", &server.path("array.sock"), "status"]).contains("raid5 of 2"));
}

#[test]
fn a_socket_that_nobody_serves_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    drop(UnixListener::bind(path("stale")).unwrap());
    fs::write(path("file"), "").unwrap();
    for name in ["missing", "stale", "file"] {
        for arguments in [
            &["ctl", &path(name), "status"][..],
            &["ctl", &path(name), "scrub"],
        ] {
            let error = refused(arguments);
            assert!(
                error.contains(&path(name)) && error.contains("control socket"),
                "{error}"
            );
        }
    }
}

#[test]
fn top_needs_a_terminal_and_says_what_does_not() {
    let server = ScriptedServer::at("control", status());
    let error = refused(&["top", &server.path("control")]);
    assert!(
        error.contains("terminal") && error.contains("status --json"),
        "{error}"
    );
}

/// Runs `top` on a pseudo-terminal of util-linux's `script` and types q. Returns the exit status
/// and the output, or `None` without `script`.
fn on_terminal(socket: &str) -> Option<(Option<i32>, String)> {
    let program = env!("CARGO_BIN_EXE_fullstroke");
    let command = format!("stty rows 24 cols 80; exec '{program}' top '{socket}'");
    let script = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut script = match script {
        Ok(script) => script,
        Err(error) => {
            eprintln!("skipped: no terminal without the program script: {error}");
            return None;
        }
    };
    let mut keyboard = script.stdin.take().unwrap();
    // The key is sent repeatedly, because `top` may not be reading yet.
    let typing = thread::spawn(move || {
        while keyboard.write_all(b"q").is_ok() {
            thread::sleep(Duration::from_millis(200));
        }
    });
    let output = script.wait_with_output().unwrap();
    typing.join().unwrap();
    Some((
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    ))
}

#[test]
fn top_draws_and_gives_the_terminal_back() {
    let server = ScriptedServer::at("control", status());
    let Some((status, drawn)) = on_terminal(&server.path("control")) else {
        return;
    };
    assert_eq!(status, Some(0), "{drawn}");
    let (entered, left) = (
        drawn.find("\u{1b}[?1049h").unwrap(),
        drawn.rfind("\u{1b}[?1049l").unwrap(),
    );
    assert!(
        entered < left && drawn[entered..left].contains("raid5 of 2"),
        "{drawn}"
    );
    assert!(drawn[entered..left].contains('●'), "{drawn}");
}

#[test]
fn top_on_a_socket_that_nobody_serves_draws_nothing() {
    let Some((status, drawn)) = on_terminal("/nonexistent/socket") else {
        return;
    };
    assert_eq!(status, Some(2), "{drawn}");
    assert!(
        drawn.contains("/nonexistent/socket") && !drawn.contains("\u{1b}[?1049h"),
        "{drawn}"
    );
}
