//! Tests of servers' ends and refused starts.

use crate::common::refused;
use crate::pattern;
use crate::programs::installed;
use crate::server::StackFolder;
use crate::stacks::{self, JBOD, RAID0, RAID5, RAID6, XOR};
use fullstroke_nbd::client::ExportClient;
use fullstroke_nbd::{CommandFlags, RequestCommand};
use rustix::process::Signal;
use std::fs;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

#[test]
fn the_end_is_after_what_was_begun_and_leaves_a_clean_store() {
    for volume in [RAID5, RAID6, JBOD] {
        let place = StackFolder::new(volume, 16);
        let store = place.name("store");
        let server = place.serve(&["--speed", "4", "--store", &store]);
        let mut client = server.client();
        let mut random = pattern::random("the end");
        let offsets: Vec<u64> = (0..100)
            .map(|number| (number * 100 + random.below(99)) * 4096)
            .collect();
        for &offset in &offsets {
            let data = pattern::bytes(offset, 1, 4096);
            client
                .submit(
                    RequestCommand::Write,
                    offset,
                    4096,
                    CommandFlags::empty(),
                    &data,
                )
                .unwrap();
        }
        client.receive().unwrap();
        server.signal(Signal::TERM);
        let mut answered = 1;
        while let Ok(answer) = client.receive() {
            assert_eq!(answer.result, Ok(()));
            answered += 1;
        }
        let end = server.wait();
        assert_eq!((end.status.code(), end.complaints.as_str()), (Some(0), ""));
        let summary = &end.summary.unwrap()["exports"][0];
        assert_eq!(
            (&summary["requests"], &summary["in_flight"]),
            (&answered.into(), &0.into())
        );

        let server = place.serve(&["--no-delay", "--store", &store]);
        assert_eq!(server.notes(), &[] as &[serde_json::Value]);
        let mut client = server.client();
        let mut written = 0;
        for &offset in &offsets {
            let mut found = vec![0; 4096];
            client.read(offset, &mut found).unwrap();
            written += i32::from(found == pattern::bytes(offset, 1, 4096));
        }
        assert!(written >= answered, "{written} of {answered} are there");
        server.scrub();
        server.stop_well();
    }
}

#[test]
fn a_client_that_never_reads_does_not_hold_the_end_up() {
    let place = StackFolder::new(RAID5, 8);
    let store = place.name("store");
    let server = place.serve(&["--no-delay", "--store", &store]);
    let mut client = server.client();
    client
        .stream()
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let read = |client: &mut ExportClient<UnixStream>| {
        client
            .submit(RequestCommand::Read, 0, 4 << 20, CommandFlags::empty(), &[])
            .is_ok()
    };
    // Sends requests until the socket is full in both directions.
    let sent = (0..2000).take_while(|_| read(&mut client)).count();
    assert!(sent > 0);
    server.stop_well();
    assert_eq!(place.serve_stored().notes(), &[] as &[serde_json::Value]);
}

#[test]
fn a_server_without_clients_ends_at_once_and_removes_its_sockets() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = StackFolder::new(RAID5, 8);
        let server = place.serve(&["--speed", "1"]);
        assert!(place.path("nbd").exists() && place.path("nbd.control").exists());
        server.signal(signal);
        assert_eq!(server.wait().status.code(), Some(0));
        assert!(!place.path("nbd").exists() && !place.path("nbd.control").exists());
    }
}

#[test]
fn a_socket_that_a_killed_server_left_is_taken_over() {
    let place = StackFolder::new(RAID5, 8);
    place.serve(&["--no-delay"]).kill();
    assert!(place.path("nbd").exists());
    let server = place.serve(&["--no-delay"]);
    server.client().read(0, &mut [0; 512]).unwrap();
    server.stop_well();
}

#[test]
fn a_socket_or_port_that_is_taken_is_named() {
    let place = StackFolder::new(RAID5, 8);
    let server = place.serve(&["--no-delay"]);
    let message = place.serve_refused(&[]);
    assert!(
        message.contains(&place.name("nbd")) && message.contains("another server listens"),
        "{message}"
    );
    server.client().read(0, &mut [0; 512]).unwrap();
    server.stop_well();

    fs::write(place.path("nbd"), "a file").unwrap();
    let message = place.serve_refused(&[]);
    assert!(message.contains(&place.name("nbd")), "{message}");
    assert_eq!(fs::read_to_string(place.path("nbd")).unwrap(), "a file");
    fs::remove_file(place.path("nbd")).unwrap();

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for option in ["--tcp", "--metrics"] {
        let message = place.serve_refused(&[option, &address]);
        assert!(message.contains(&address), "{option}: {message}");
    }
    let message = place.serve_refused(&["--control", "/nonexistent/control"]);
    assert!(message.contains("/nonexistent/control"), "{message}");
    let _held = UnixListener::bind(place.path("held")).unwrap();
    let message = place.serve_refused(&["--control", &place.name("held")]);
    assert!(message.contains(&place.name("held")), "{message}");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let place = StackFolder::new(RAID5, 8);
    let stack = place.stack();
    let other = stacks::write(RAID6, 8, place.stack.parent().unwrap());
    let record = place.name("record.parquet");
    let socket = place.name("nbd");
    for (arguments, part) in [
        (vec!["serve", &stack], "--socket"),
        (
            vec!["serve", &stack, "--socket", &socket, "--speed", "0"],
            "--speed",
        ),
        (
            vec![
                "serve",
                &stack,
                "--socket",
                &socket,
                "--speed",
                "2",
                "--no-delay",
            ],
            "--no-delay",
        ),
        (
            vec!["serve", &stack, "--socket", &socket, "--tcp", "nowhere"],
            "nowhere",
        ),
        (
            vec![
                "serve",
                &stack,
                other.to_str().unwrap(),
                "--socket",
                &socket,
                "--record",
                &record,
            ],
            "record",
        ),
        (vec!["serve", &stack, &stack, "--socket", &socket], "raid5"),
        (
            vec!["serve", "no-such.toml", "--socket", &socket],
            "no-such.toml",
        ),
        (
            vec![
                "serve",
                &stack,
                "--socket",
                &socket,
                "--set",
                "volume.chnk=4KiB",
            ],
            "chnk",
        ),
        (
            vec![
                "serve",
                &stack,
                "--socket",
                &socket,
                "--record",
                "/nonexistent/record.parquet",
            ],
            "/nonexistent",
        ),
        (
            vec!["serve", &stack, "--socket", &socket, "--inherit"],
            "LISTEN_FDS",
        ),
        (
            vec!["serve", &stack, "--socket", &socket, "--allow-degraded"],
            "--store",
        ),
    ] {
        let message = refused(&arguments);
        assert!(
            message.contains(part),
            "{arguments:?} should name {part}: {message}"
        );
        assert!(!place.path("nbd").exists(), "{arguments:?} left a socket");
    }
}

#[test]
fn a_folder_of_another_stack_or_in_use_is_refused() {
    let place = StackFolder::new(RAID5, 8);
    let server = place.serve_stored();
    let store = place.name("store");
    let elsewhere = place.name("elsewhere");
    let stack = place.stack();
    let message = refused(&[
        "serve",
        &stack,
        "--no-delay",
        "--socket",
        &elsewhere,
        "--store",
        &store,
    ]);
    assert!(
        message.contains(&store) && message.contains("in use"),
        "{message}"
    );
    server.stop_well();
    let message = place.serve_refused(&["--store", &store, "--set", "volume.chunk=32KiB"]);
    assert!(
        message.contains(&store) && message.contains("another stack"),
        "{message}"
    );
    let strange = place.path("strange");
    fs::create_dir(&strange).unwrap();
    fs::write(strange.join("letter.txt"), "mine").unwrap();
    let message = place.serve_refused(&["--store", strange.to_str().unwrap()]);
    assert!(message.contains("letter.txt"), "{message}");
    assert_eq!(fs::read_dir(&strange).unwrap().count(), 1);
    // The first server still works.
    place.serve_stored().stop_well();
}

/// Returns the file of a member in the folder `store`.
fn member(place: &StackFolder, number: usize) -> std::path::PathBuf {
    let mut files: Vec<_> = fs::read_dir(place.path("store"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("member-")
        })
        .collect();
    files.sort();
    files[number].clone()
}

#[test]
fn a_member_file_that_is_missing_or_short_is_named_and_survived_if_allowed() {
    let damages: [fn(&std::path::Path); 2] = [
        |file| fs::remove_file(file).unwrap(),
        |file| {
            fs::OpenOptions::new()
                .write(true)
                .open(file)
                .unwrap()
                .set_len(4096)
                .unwrap()
        },
    ];
    for damage in damages {
        let place = StackFolder::new(RAID5, 8);
        let store = place.name("store");
        let server = place.serve_stored();
        let data = pattern::bytes(0, 1, 8 << 20);
        server
            .client()
            .write(0, &data, CommandFlags::empty())
            .unwrap();
        server.stop_well();
        let file = member(&place, 2);
        damage(&file);
        let message = place.serve_refused(&["--store", &store]);
        assert!(message.contains(file.to_str().unwrap()), "{message}");
        assert!(
            message.contains("--allow-degraded") || message.contains("degraded"),
            "{message}"
        );
        let server = place.serve(&["--no-delay", "--store", &store, "--allow-degraded"]);
        assert!(
            server.notes()[0]
                .as_str()
                .unwrap()
                .contains("without members 2"),
            "{:?}",
            server.notes()
        );
        assert_eq!(server.states()[2], "failed");
        let mut found = vec![0; data.len()];
        server.client().read(0, &mut found).unwrap();
        pattern::assert_same(&found, &data, "degraded");
        server.ctl(&["restore", "2"]);
        server.wait_for_rebuild();
        server.scrub();
        server.stop_well();
        let server = place.serve_stored();
        assert_eq!(server.states(), ["alive"; 5]);
        server.stop_well();
    }
}

#[test]
fn with_a_journal_of_all_writes_a_member_may_be_lost_together_with_the_server() {
    for (journal, is_told) in [("degraded", true), ("all", false)] {
        let place = StackFolder::new(RAID5, 8);
        let store = place.name("store");
        let options = ["--no-delay", "--store", &store, "--journal", journal];
        let server = place.serve(&options);
        let data = pattern::bytes(0, 1, 1 << 20);
        server
            .client()
            .write(0, &data, CommandFlags::empty())
            .unwrap();
        server.kill();
        fs::remove_file(member(&place, 2)).unwrap();
        let server = place.serve(&[&options[..], &["--allow-degraded"]].concat());
        let notes = server.notes();
        let mut notes = notes.iter().filter_map(|note| note.as_str());
        let told = notes.any(|note| note.contains("may be wrong there"));
        assert_eq!(told, is_told, "{journal}: {:?}", server.notes());
        let mut found = vec![0; data.len()];
        server.client().read(0, &mut found).unwrap();
        pattern::assert_same(&found, &data, journal);
        server.stop_well();
    }
}

#[test]
fn more_missing_member_files_than_the_layout_survives_are_refused() {
    for (volume, missing) in [(RAID0, 1), (RAID5, 2), (RAID6, 3)] {
        let place = StackFolder::new(volume, 8);
        place.serve_stored().stop_well();
        let files: Vec<_> = (0..missing).map(|number| member(&place, number)).collect();
        files.iter().for_each(|file| fs::remove_file(file).unwrap());
        let message = place.serve_refused(&["--store", &place.name("store"), "--allow-degraded"]);
        assert!(
            files
                .iter()
                .all(|file| message.contains(file.to_str().unwrap())),
            "{message}"
        );
        assert!(
            files.iter().all(|file| !file.exists()),
            "{}: a file was made anew",
            volume.name
        );
    }
}

#[test]
fn a_socket_that_was_passed_on_is_served() {
    if !installed(&["bash", "nbdinfo"]) {
        return;
    }
    let place = StackFolder::new(RAID5, 8);
    let socket = place.path("passed");
    let listener = UnixListener::bind(&socket).unwrap();
    // The shell opens the socket as descriptor 3, which the server expects.
    let script = "exec 3<&\"$0\"; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"";
    let passed = rustix::io::dup(&listener).unwrap();
    let mut server = crate::programs::command("bash")
        .args([
            "-c",
            script,
            &passed.as_raw_fd().to_string(),
            env!("CARGO_BIN_EXE_fullstroke"),
        ])
        .args(["serve", &place.stack(), "--no-delay", "--inherit"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let told = crate::programs::run("nbdinfo", &["--size", &uri]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&told.stdout).trim(),
        (32 << 20).to_string()
    );
}

#[test]
fn only_its_owner_may_connect_to_the_socket_unless_another_mode_is_said() {
    use std::os::unix::fs::PermissionsExt as _;
    for (options, mode) in [
        (&["--no-delay"][..], 0o600),
        (&["--no-delay", "--socket-mode", "660"], 0o660),
    ] {
        let place = StackFolder::new(RAID5, 8);
        let server = place.serve(options);
        let found = fs::metadata(server.socket()).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{found:o}");
        server.stop_well();
    }
    let message = StackFolder::new(RAID5, 8).serve_refused(&["--socket-mode", "888"]);
    assert!(
        message.contains("--socket-mode") && message.contains("660"),
        "{message}"
    );
}

#[test]
fn drives_of_what_is_served_read_only_do_not_fail() {
    let server = StackFolder::new(RAID5, 8).serve(&["--no-delay", "--read-only"]);
    for order in [["fail", "1"], ["restore", "1"]] {
        let message = server.ctl_refused(&order);
        assert!(message.contains("--read-only"), "{message}");
    }
    assert_eq!(server.states(), ["alive"; 5]);
    server.stop_well();
}

#[test]
fn drives_of_an_array_that_is_modelled_whole_do_not_fail() {
    let server = StackFolder::new(XOR, 8).serve(&["--no-delay"]);
    for order in [["fail", "1"], ["restore", "1"]] {
        let message = server.ctl_refused(&order);
        assert!(
            message.contains("drive `1` is part of an array"),
            "{message}"
        );
    }
    assert_eq!(server.states(), ["alive"; 4]);
    server.stop_well();
}

#[test]
fn who_listens_to_the_world_is_warned_and_may_say_who_connects() {
    let tcp = |server: &crate::server::Server| {
        let uri = server.announcement["uris"][1].as_str().unwrap();
        let port = uri.rsplit(':').next().unwrap().to_owned();
        std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap()
    };
    let place = StackFolder::new(RAID5, 8);
    let server = place.serve(&["--no-delay", "--tcp", "0.0.0.0:0"]);
    assert!(
        server.notes()[0].as_str().unwrap().contains("--allow"),
        "{:?}",
        server.notes()
    );
    ExportClient::connect(tcp(&server), &Default::default())
        .unwrap()
        .read(0, &mut [0; 512])
        .unwrap();
    server.stop_well();
    let server = place.serve(&["--no-delay", "--tcp", "127.0.0.1:0"]);
    assert!(server.notes().is_empty());
    server.stop_well();
    for (networks, enters) in [
        ("10.0.0.0/8,fd00::/8", false),
        ("10.0.0.0/8,127.0.0.0/8", true),
    ] {
        let server = place.serve(&["--no-delay", "--tcp", "0.0.0.0:0", "--allow", networks]);
        assert!(server.notes().is_empty());
        assert_eq!(
            ExportClient::connect(tcp(&server), &Default::default()).is_ok(),
            enters,
            "{networks}"
        );
        server.client().read(0, &mut [0; 512]).unwrap();
        server.stop_well();
    }
    let message = place.serve_refused(&["--tcp", "0", "--allow", "10.0.0.0/99"]);
    assert!(message.contains("10.0.0.0/99"), "{message}");
}
