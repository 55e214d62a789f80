//! Tests of TLS with other projects' clients and with hostile clients.

use crate::pattern;
use crate::programs::{installed, output, run};
use crate::server::{PATIENCE, Server, StackFolder};
use crate::stacks::RAID5;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const GREETING_BYTES: usize = 18;
const FLAGS: [u8; 4] = [0, 0, 0, 3];
const START_TLS: &[u8] = b"IHAVEOPT\0\0\0\x05\0\0\0\0";
const LIST: &[u8] = b"IHAVEOPT\0\0\0\x03\0\0\0\0";
const ACK: u32 = 1;
const TLS_REQUIRED: u32 = 0x8000_0005;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

/// Writes a certificate of this authority with its key into a folder.
fn put_certificate(authority: &Authority, folder: &Path, whose: &str) {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = parameters.signed_by(&key, authority).unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("ca-cert.pem"), authority.as_ref().pem()).unwrap();
    fs::write(folder.join(format!("{whose}-cert.pem")), certificate.pem()).unwrap();
    fs::write(folder.join(format!("{whose}-key.pem")), key.serialize_pem()).unwrap();
}

/// Creates a place with the folders `server`, `client` (with its own certificate) and `anybody`
/// (without one).
fn certified() -> StackFolder {
    let place = StackFolder::new(RAID5, 16);
    let authority = authority();
    put_certificate(&authority, &place.path("server"), "server");
    put_certificate(&authority, &place.path("client"), "client");
    fs::create_dir(place.path("anybody")).unwrap();
    fs::write(place.path("anybody/ca-cert.pem"), authority.as_ref().pem()).unwrap();
    place
}

fn served(place: &StackFolder, options: &[&str]) -> Server {
    let folder = place.name("server");
    place.serve(
        &[
            &[
                "--no-delay",
                "--tcp",
                "127.0.0.1:0",
                "--tls-certificates",
                &folder,
            ],
            options,
        ]
        .concat(),
    )
}

fn port(server: &Server) -> String {
    let uris = server.announcement["uris"].as_array().unwrap();
    let uri = uris
        .iter()
        .filter_map(|uri| uri.as_str())
        .find(|uri| uri.contains("127.0.0.1"))
        .unwrap();
    uri.rsplit(':').next().unwrap().to_owned()
}

/// Returns the URI for a client with the certificates of a folder.
fn secret_uri(server: &Server, place: &StackFolder, folder: &str) -> String {
    format!(
        "nbds://localhost:{}/?tls-certificates={}",
        port(server),
        place.name(folder)
    )
}

/// True if libnbd's clients are installed with TLS. Otherwise prints the missing part.
fn libnbd_can_encrypt(server: &Server, place: &StackFolder) -> bool {
    if !installed(&["nbdinfo", "nbdcopy"]) {
        return false;
    }
    let told = run("nbdinfo", &["--size", &secret_uri(server, place, "client")]);
    let without = String::from_utf8_lossy(&told.stderr).contains("without TLS");
    if without {
        eprintln!("skipped: this libnbd was built without TLS");
    }
    !without
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(format!("127.0.0.1:{}", port(server))).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Returns a connection on which the server waits for TLS.
fn begun(server: &Server) -> TcpStream {
    let mut stream = connect(server);
    stream.write_all(&[&FLAGS, START_TLS].concat()).unwrap();
    assert_eq!(reply_kind(&mut stream, GREETING_BYTES), ACK);
    stream
}

/// Returns the type of the reply to an option after `ahead` bytes. The reply's text is read, too.
fn reply_kind(stream: &mut TcpStream, ahead: usize) -> u32 {
    let mut bytes = vec![0; ahead + 20];
    stream.read_exact(&mut bytes).unwrap();
    let field =
        |at: usize| u32::from_be_bytes(bytes[ahead + at..ahead + at + 4].try_into().unwrap());
    stream.read_exact(&mut vec![0; field(16) as usize]).unwrap();
    field(12)
}

#[test]
fn what_is_copied_in_under_tls_comes_out_again() {
    let place = certified();
    for tls in ["on", "require"] {
        let server = served(&place, &["--tls", tls]);
        if !libnbd_can_encrypt(&server, &place) {
            return;
        }
        let uri = secret_uri(&server, &place, "anybody");
        let size = 4 * 16 * MIB;
        assert_eq!(
            output("nbdinfo", &["--size", &uri]).trim(),
            size.to_string()
        );
        assert!(output("nbdinfo", &[&uri]).contains("with TLS"));
        let image = pattern::bytes(0, 1, size);
        fs::write(place.path("image"), &image).unwrap();
        output("nbdcopy", &["--flush", &place.name("image"), &uri]);
        output("nbdcopy", &["--connections=4", &uri, &place.name("copy")]);
        pattern::assert_same(&fs::read(place.path("copy")).unwrap(), &image, tls);
        server.stop_well();
    }
}

#[test]
fn clients_in_the_clear_are_served_with_on_and_refused_with_require() {
    let place = certified();
    for (tls, serves) in [("on", true), ("require", false)] {
        let server = served(&place, &["--tls", tls]);
        let mut stream = connect(&server);
        stream.write_all(&[&FLAGS, LIST].concat()).unwrap();
        assert_eq!(
            reply_kind(&mut stream, GREETING_BYTES) != TLS_REQUIRED,
            serves
        );
        if installed(&["nbdinfo"]) {
            let told = run(
                "nbdinfo",
                &["--size", &format!("nbd://127.0.0.1:{}", port(&server))],
            );
            assert_eq!(told.status.success(), serves, "{told:?}");
        }
        let uris = server.announcement["uris"].to_string();
        assert_eq!(uris.contains("nbds"), !serves, "{uris}");
        server.stop_well();
    }
}

#[test]
fn clients_without_a_certificate_by_the_authority_are_refused_if_one_is_asked_for() {
    let place = certified();
    let server = served(&place, &["--tls", "require", "--tls-verify-peer"]);
    if !libnbd_can_encrypt(&server, &place) {
        return;
    }
    output(
        "nbdinfo",
        &["--size", &secret_uri(&server, &place, "client")],
    );
    // The client trusts the server's authority but has a certificate of another authority.
    put_certificate(&authority(), &place.path("stranger"), "client");
    fs::copy(
        place.path("server/ca-cert.pem"),
        place.path("stranger/ca-cert.pem"),
    )
    .unwrap();
    for folder in ["anybody", "stranger"] {
        let told = run("nbdinfo", &["--size", &secret_uri(&server, &place, folder)]);
        assert!(!told.status.success(), "{folder}: {told:?}");
    }
    output(
        "nbdinfo",
        &["--size", &secret_uri(&server, &place, "client")],
    );
    server.stop_well();
}

#[test]
fn whatever_comes_instead_of_tls_ends_the_connection_and_not_the_server() {
    let place = certified();
    let server = served(&place, &["--tls", "require"]);
    let records = [22, 3, 3, 64, 0].repeat(20_000);
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        LIST,
        &[0; 100_000],
        &[255; 3000],
        &records,
    ] {
        let mut stream = begun(&server);
        // The server may close the connection before all is sent.
        let _ = stream.write_all(garbage);
        let mut alert = Vec::new();
        let _ = stream.read_to_end(&mut alert);
        assert!(alert.len() < 100, "{alert:?}");
    }
    // The request for an export follows STARTTLS at once, unencrypted.
    let mut stream = connect(&server);
    stream
        .write_all(&[&FLAGS, START_TLS, LIST].concat())
        .unwrap();
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers);
    assert!(answers.len() <= GREETING_BYTES + 20, "{answers:?}");
    begun(&server);
    server.stop_well();
}

#[test]
fn who_wants_tls_and_does_not_begin_is_sent_away() {
    let place = certified();
    let server = served(&place, &["--tls", "require"]);
    let (mut silent, mut slow) = (begun(&server), begun(&server));
    // The client sends only the head of a TLS record.
    slow.write_all(&[22, 3, 1, 2, 0]).unwrap();
    let begun = Instant::now();
    for stream in [&mut silent, &mut slow] {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let took = begun.elapsed();
    assert!(
        (Duration::from_secs(9)..Duration::from_secs(20)).contains(&took),
        "{took:?}"
    );
    server.stop_well();
}

#[test]
fn files_that_hold_no_certificate_and_key_are_refused_with_what_was_found() {
    let place = certified();
    let refused =
        |options: &[&str]| place.serve_refused(&[&["--tls", "require"], options].concat());
    let folder = place.name("bad");
    let with = ["--tls-certificates", folder.as_str()];
    let file = |name: &str, from: &str| {
        fs::create_dir_all(place.path("bad")).unwrap();
        fs::copy(place.path(from), place.path("bad").join(name)).unwrap();
    };
    assert!(refused(&[]).contains("--tls-certificates"));
    assert!(place.serve_refused(&with).contains("--tls require"));
    let expect = |options: &[&str], words: &[&str]| {
        let message = refused(&[&with, options].concat());
        assert!(
            words.iter().all(|word| message.contains(word)),
            "{words:?}: {message}"
        );
    };
    expect(
        &[],
        &["bad/server-cert.pem", "No such file", "expected a PEM file"],
    );
    file("server-cert.pem", "server/server-key.pem");
    expect(
        &[],
        &[
            "bad/server-cert.pem",
            "nothing of the kind",
            "the server's certificate",
        ],
    );
    fs::write(
        place.path("bad/server-cert.pem"),
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    expect(&[], &["bad/server-cert.pem", "no PEM"]);
    file("server-cert.pem", "server/server-cert.pem");
    expect(
        &[],
        &[
            "bad/server-key.pem",
            "No such file",
            "the key of server-cert.pem",
        ],
    );
    file("server-key.pem", "server/server-cert.pem");
    expect(&[], &["bad/server-key.pem", "nothing of the kind"]);
    file("server-key.pem", "client/client-key.pem");
    expect(
        &[],
        &["bad/server-key.pem", "the key of another certificate"],
    );
    file("server-key.pem", "server/server-key.pem");
    expect(
        &["--tls-verify-peer"],
        &["bad/ca-cert.pem", "No such file", "who certifies clients"],
    );
}

#[test]
fn tls_with_certificates_of_clients_needs_no_list_of_networks() {
    let place = certified();
    let folder = place.name("server");
    for (options, warned) in [
        (&["--tls", "on"][..], 1),
        (&["--tls", "require"], 1),
        (&["--tls", "on", "--tls-verify-peer"], 1),
        (&["--tls", "require", "--tls-verify-peer"], 0),
    ] {
        let server = place.serve(
            &[
                &["--tcp", "0.0.0.0:0", "--tls-certificates", &folder],
                options,
            ]
            .concat(),
        );
        assert_eq!(
            server.notes().len(),
            warned,
            "{options:?}: {:?}",
            server.notes()
        );
        server.stop_well();
    }
}
