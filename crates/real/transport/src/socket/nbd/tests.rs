use super::*;
use crate::socket::sockets::{Listen, OWNER};
use crate::socket::{AdmissionOptions, TlsOptions};
use fullstroke_nbd::client::{ClientOptions, ExportClient};
use fullstroke_nbd::{CommandFlags, Export, RequestCommand};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

const SIZE: u64 = 64 << 20;
const MIB: usize = 1 << 20;

/// Passes requests to a channel. `answer` answers them.
struct Passed(Sender<(Arc<NbdClient>, NbdRequest)>);

impl Serves for Passed {
    fn asked(&self, client: &Arc<NbdClient>, request: NbdRequest, _: Vec<u8>) -> bool {
        self.0.send((Arc::clone(client), request)).is_ok()
    }
}

type Asked = Receiver<(Arc<NbdClient>, NbdRequest)>;

struct ServedExport {
    _folder: tempfile::TempDir,
    path: PathBuf,
    server: Option<NbdServer>,
    asked: Asked,
}

fn served() -> ServedExport {
    served_to(&AdmissionOptions::default())
}

fn served_to(admission: &AdmissionOptions) -> ServedExport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listeners = Listener::open(&Listen::Unix(path.clone()), OWNER).unwrap();
    let exports = Arc::new(Exports::new(vec![Export::new("", SIZE)]).unwrap());
    let (passed, asked) = channel();
    let server = NbdServer::open(
        listeners,
        exports,
        Arc::new(Passed(passed)),
        Admission::new(admission).unwrap(),
    )
    .unwrap();
    ServedExport {
        _folder: folder,
        path,
        server: Some(server),
        asked,
    }
}

fn connect(path: &Path) -> ExportClient<UnixStream> {
    ExportClient::connect(
        UnixStream::connect(path).unwrap(),
        &ClientOptions::default(),
    )
    .unwrap()
}

/// Answers a read with bytes that are all the number of the read's MiB.
fn answer(client: &Arc<NbdClient>, request: &NbdRequest) {
    client.answer(|connection| {
        connection.reply_read(request, |into| {
            into.fill((request.offset_bytes / MIB as u64) as u8);
            Ok(())
        });
    });
}

#[test]
fn who_takes_no_answers_holds_nobody_up() {
    let served = served();
    let mut slow = connect(&served.path);
    for number in 0..7 {
        let length = MIB as u32;
        slow.submit(
            RequestCommand::Read,
            number * MIB as u64,
            length,
            CommandFlags::empty(),
            &[],
        )
        .unwrap();
    }
    let began = Instant::now();
    for _ in 0..7 {
        let (client, request) = served.asked.recv().unwrap();
        answer(&client, &request);
    }
    let mut other = connect(&served.path);
    let (path, mut read) = (served.path.clone(), vec![0; 4096]);
    let reading = thread::spawn(move || {
        other.read(9 * MIB as u64, &mut read).unwrap();
        read
    });
    let (client, request) = served.asked.recv().unwrap();
    answer(&client, &request);
    assert!(reading.join().unwrap().iter().all(|byte| *byte == 9));
    assert!(began.elapsed() < Duration::from_secs(20), "{path:?}");
    for _ in 0..7 {
        let answer = slow.receive().unwrap();
        assert!(answer.result.is_ok() && answer.data.len() == MIB);
        assert!(answer.data.iter().all(|byte| *byte == answer.data[0]));
    }
}

/// Short answers are sent while others are added; long answers are sent from their place. A client
/// that reads only now and then fills the socket in between.
#[test]
fn answers_of_many_threads_at_a_time_arrive_whole_and_once() {
    const THREADS: usize = 6;
    const REQUESTS: u64 = 3000;
    let served = served();
    let mut client = connect(&served.path);
    let (asked, ended) = (Mutex::new(served.asked), AtomicBool::new(false));
    let length = |number: u64| [512, 4096, 20 << 10, 100 << 10][number as usize % 4];
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let next = asked
                        .lock()
                        .unwrap()
                        .recv_timeout(Duration::from_millis(20));
                    if let Ok((client, request)) = next {
                        answer(&client, &request);
                    }
                }
            });
        }
        let mut sizes = std::collections::BTreeMap::new();
        let (mut submitted, mut received) = (0, 0);
        while received < REQUESTS {
            while submitted < REQUESTS && client.in_flight() < 100 {
                let at = submitted % 60 * MIB as u64;
                let cookie = client
                    .submit(
                        RequestCommand::Read,
                        at,
                        length(submitted),
                        CommandFlags::empty(),
                        &[],
                    )
                    .unwrap();
                sizes.insert(cookie, (length(submitted), at / MIB as u64));
                submitted += 1;
            }
            if received % 500 == 0 {
                thread::sleep(Duration::from_millis(20));
            }
            let answer = client.receive().unwrap();
            let (length, number) = sizes
                .remove(&answer.cookie)
                .expect("it was asked for, and once");
            assert_eq!(answer.data.len(), length as usize);
            assert!(answer.data.iter().all(|&byte| u64::from(byte) == number));
            received += 1;
        }
        ended.store(true, Ordering::Relaxed);
        assert!(sizes.is_empty());
    });
}

#[test]
fn what_was_asked_for_is_answered_after_the_input_ends() {
    let mut served = served();
    let mut client = connect(&served.path);
    client
        .submit(
            RequestCommand::Read,
            3 * MIB as u64,
            512,
            CommandFlags::empty(),
            &[],
        )
        .unwrap();
    let (asker, request) = served.asked.recv().unwrap();
    served.server.as_ref().unwrap().end_input();
    answer(&asker, &request);
    assert_eq!(client.receive().unwrap().data, [3; 512]);
    assert!(client.receive().is_err(), "then it hears the end");
    served.server = None;
    assert!(!served.path.exists() && UnixStream::connect(&served.path).is_err());
}

#[test]
fn as_much_as_a_client_may_have_under_way_and_no_more_is_taken() {
    let served = served();
    let mut client = connect(&served.path);
    for _ in 0..LIMITS.requests + 40 {
        client
            .submit(RequestCommand::Read, 0, 512, CommandFlags::empty(), &[])
            .unwrap();
    }
    let mut taken: Vec<_> = (0..LIMITS.requests)
        .map(|_| served.asked.recv().unwrap())
        .collect();
    assert!(
        served
            .asked
            .recv_timeout(Duration::from_millis(30))
            .is_err()
    );
    for _ in 0..LIMITS.requests + 40 {
        let (asker, request) = taken.pop().unwrap_or_else(|| served.asked.recv().unwrap());
        answer(&asker, &request);
        assert_eq!(client.receive().unwrap().data.len(), 512);
    }
}

#[test]
fn who_hangs_up_is_forgotten() {
    let served = served();
    let mut client = connect(&served.path);
    client
        .submit(RequestCommand::Read, 0, 512, CommandFlags::empty(), &[])
        .unwrap();
    let (asker, request) = served.asked.recv().unwrap();
    drop(client);
    answer(&asker, &request);
    let began = Instant::now();
    while !asker.lock().gone {
        assert!(began.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns a folder with a server's certificate, and the authority that certifies it.
fn certified() -> (tempfile::TempDir, RootCertStore) {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let of_server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = of_server.signed_by(&key, &authority).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("server-cert.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.path().join("server-key.pem"), key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    let pem = authority.as_ref().pem();
    roots
        .add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
        .unwrap();
    (folder, roots)
}

const OPTION: &[u8] = b"IHAVEOPT";
const START_TLS: u32 = 5;
const GO: u32 = 7;
const ACK: u32 = 1;
const TLS_REQUIRED: u32 = 0x8000_0005;

fn ask(stream: &mut impl Write, option: u32, data: &[u8]) {
    let length = (data.len() as u32).to_be_bytes();
    stream
        .write_all(&[OPTION, &option.to_be_bytes(), &length, data].concat())
        .unwrap();
    stream.flush().unwrap();
}

/// Reads the next reply to an option and returns its kind.
fn kind(stream: &mut impl Read) -> u32 {
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).unwrap();
    let word = |at: usize| u32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
    let mut data = vec![0; word(16) as usize];
    stream.read_exact(&mut data).unwrap();
    word(12)
}

/// Returns a connection after the greeting.
fn greeted(path: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(&[0, 0, 0, 3]).unwrap();
    stream
}

#[test]
fn clients_that_are_to_use_tls_do_or_get_nothing() {
    let (folder, roots) = certified();
    let served = served_to(&AdmissionOptions {
        tls: Some(TlsOptions {
            required: true,
            certificates: folder.path().to_owned(),
            verify_peer: false,
        }),
        ..AdmissionOptions::default()
    });
    assert!(served.server.as_ref().unwrap().uris()[0].starts_with("nbds+unix:"));
    let go = [&[0; 4][..], &[0; 2]].concat();
    // In the clear.
    let mut plain = greeted(&served.path);
    ask(&mut plain, GO, &go);
    assert_eq!(kind(&mut plain), TLS_REQUIRED);
    // Under TLS, with more to read than the socket and TLS take at once.
    let mut stream = greeted(&served.path);
    ask(&mut stream, START_TLS, &[]);
    assert_eq!(kind(&mut stream), ACK);
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut secret = StreamOwned::new(tls, stream);
    ask(&mut secret, GO, &go);
    while kind(&mut secret) != ACK {}
    let asked = served.asked;
    let answering = thread::spawn(move || {
        for (client, request) in asked.iter().take(4) {
            answer(&client, &request);
        }
    });
    for number in 0..4u64 {
        let request = [
            &0x2560_9513u32.to_be_bytes()[..],
            &[0; 4],
            &number.to_be_bytes(),
            &(number * MIB as u64).to_be_bytes(),
            &(MIB as u32).to_be_bytes(),
        ];
        secret.write_all(&request.concat()).unwrap();
    }
    secret.flush().unwrap();
    let mut heads: Vec<u64> = Vec::new();
    for _ in 0..4 {
        let mut head = [0; 16];
        secret.read_exact(&mut head).unwrap();
        assert_eq!(head[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
        let number = u64::from_be_bytes(head[8..].try_into().unwrap());
        let mut data = vec![0; MIB];
        secret.read_exact(&mut data).unwrap();
        assert!(data.iter().all(|&byte| u64::from(byte) == number));
        heads.push(number);
    }
    heads.sort_unstable();
    assert_eq!(heads, [0, 1, 2, 3]);
    answering.join().unwrap();
}

#[test]
fn who_has_gone_holds_no_descriptor() {
    let served = served();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let path = served.path.to_string_lossy().into_owned();
    let sockets = || {
        let list = std::fs::read_to_string("/proc/net/unix").unwrap();
        list.lines().filter(|line| line.ends_with(&path)).count()
    };
    let before = sockets();
    let client = connect(&served.path);
    assert!(sockets() > before && open() > 0);
    drop(client);
    let began = Instant::now();
    while sockets() > before {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the socket stays until the next client comes"
        );
        thread::sleep(Duration::from_millis(5));
    }
}
