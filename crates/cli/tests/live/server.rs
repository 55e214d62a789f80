//! Start and end of the program.

use crate::common::{refused, success};
use crate::stacks::{self, TestedVolume};
use fullstroke_nbd::client::{ClientOptions, ExportClient};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Limit of any wait for a server.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A stack in a temporary folder. Several servers may use it in turn.
#[derive(Clone, Debug)]
pub struct StackFolder {
    folder: Rc<tempfile::TempDir>,
    pub stack: PathBuf,
}

impl StackFolder {
    pub fn new(volume: TestedVolume, disk_mib: u64) -> StackFolder {
        let folder = Rc::new(tempfile::tempdir().unwrap());
        let stack = stacks::write(volume, disk_mib, folder.path());
        StackFolder { folder, stack }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the path of a file in the folder as text.
    pub fn name(&self, name: &str) -> String {
        text(&self.path(name))
    }

    pub fn stack(&self) -> String {
        text(&self.stack)
    }

    /// Serves the stack on a socket in the folder.
    pub fn serve(&self, options: &[&str]) -> Server {
        self.serve_stacks(&[&self.stack()], options)
    }

    /// Serves the stack without delay, with the store in the folder `store`.
    pub fn serve_stored(&self) -> Server {
        self.serve(&["--no-delay", "--store", &self.name("store")])
    }

    pub fn serve_stacks(&self, stacks: &[&str], options: &[&str]) -> Server {
        let program = Command::new(env!("CARGO_BIN_EXE_fullstroke"));
        self.serve_by(program, stacks, options)
    }

    /// Serves the stack with a limit of open descriptors.
    pub fn serve_with_descriptors(&self, limit: u32, options: &[&str]) -> Server {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -n {limit} && exec \"$0\" \"$@\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_fullstroke")]);
        self.serve_by(shell, &[&self.stack()], options)
    }

    /// Serves the stack with a limit of `kib` KiB per file, as if the disk were full.
    pub fn serve_with_short_files(&self, kib: u64, options: &[&str]) -> Server {
        let mut shell = Command::new("bash");
        // A program that ignores SIGXFSZ gets an error instead.
        let script = format!("trap '' XFSZ; ulimit -f {kib} && exec \"$0\" \"$@\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_fullstroke")]);
        self.serve_by(shell, &[&self.stack()], options)
    }

    /// Serves the stack with the store in the folder `store`, mounted read-only for this server
    /// alone. Returns `None` if the host forbids such a mount.
    pub fn serve_from_read_only_mount(&self, options: &[&str]) -> Option<Server> {
        let store = self.name("store");
        let mount = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"";
        let unshare = |script: &str| {
            let mut shell = Command::new("unshare");
            shell.args([
                "--mount",
                "--map-root-user",
                "sh",
                "-c",
                script,
                "sh",
                &store,
            ]);
            shell
        };
        let allowed = unshare(&format!("{mount} && ! touch \"$1/probe\""))
            .stderr(Stdio::null())
            .status();
        if !allowed.is_ok_and(|status| status.success()) {
            eprintln!("skipped: the host allows no read-only mount for one process");
            return None;
        }
        let mut shell = unshare(&format!("{mount} && shift && exec \"$@\""));
        shell.arg(env!("CARGO_BIN_EXE_fullstroke"));
        let options = [&["--no-delay", "--store", store.as_str()], options].concat();
        Some(self.serve_by(shell, &[&self.stack()], &options))
    }

    fn serve_by(&self, program: Command, stacks: &[&str], options: &[&str]) -> Server {
        let socket = self.name("nbd");
        let mut arguments = vec!["serve", "--json", "--socket", &socket];
        arguments.extend(stacks);
        arguments.extend(options);
        Server::begin(self.clone(), "nbd", program, &arguments)
    }

    /// Returns the reason of a refused start.
    pub fn serve_refused(&self, options: &[&str]) -> String {
        let (stack, socket) = (self.stack(), self.name("nbd"));
        let mut arguments = vec!["serve", stack.as_str(), "--no-delay", "--socket", &socket];
        arguments.extend(options);
        refused(&arguments)
    }
}

/// A running server. Dropping the value kills the server.
pub struct Server {
    place: StackFolder,
    /// Name of the socket's file in the place.
    name: &'static str,
    child: Child,
    output: serde_json::StreamDeserializer<'static, serde_json::de::IoRead<ChildStdout>, Value>,
    /// Announcement of the server when it was ready.
    pub announcement: Value,
}

/// End of a server.
#[derive(Debug)]
pub struct ServerEnd {
    pub status: ExitStatus,
    /// Summary that the server printed at its end.
    pub summary: Option<Value>,
    /// Standard error of the server.
    pub complaints: String,
}

impl Server {
    fn begin(
        place: StackFolder,
        name: &'static str,
        mut program: Command,
        arguments: &[&str],
    ) -> Server {
        let complaints = File::create(complaints_of(&place, name)).unwrap();
        let mut child = program
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(complaints)
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut output = serde_json::Deserializer::from_reader(stdout).into_iter();
        let Some(Ok(announcement)) = output.next() else {
            let status = child.wait().unwrap();
            let said = fs::read_to_string(complaints_of(&place, name)).unwrap();
            panic!("{arguments:?} ended with {status}: {said}");
        };
        Server {
            place,
            name,
            child,
            output,
            announcement,
        }
    }

    pub fn place(&self) -> &StackFolder {
        &self.place
    }

    pub fn socket(&self) -> PathBuf {
        self.place.path(self.name)
    }

    /// Starts `fullstroke cache` in front of this server.
    pub fn cached(&self, options: &[&str]) -> Server {
        let (below, socket) = (text(&self.socket()), self.place.name("cached"));
        let mut arguments = vec!["cache", "--json", &below, "--socket", &socket];
        arguments.extend(options);
        let program = Command::new(env!("CARGO_BIN_EXE_fullstroke"));
        Server::begin(self.place.clone(), "cached", program, &arguments)
    }

    /// Starts `fullstroke heed` for the page cache of `file`. Returns `None` if the kernel lacks
    /// cachestat.
    pub fn heeded(&self, file: &Path) -> Option<Server> {
        let (below, on) = (text(&self.socket()), text(file));
        let arguments = ["heed", "--json", &below, "--on", &on];
        let program = || Command::new(env!("CARGO_BIN_EXE_fullstroke"));
        let tried = program()
            .args(["heed", &below, "--control", "/nowhere", "--on", &on])
            .output()
            .unwrap();
        if String::from_utf8_lossy(&tried.stderr).contains("cachestat") {
            return None;
        }
        Some(Server::begin(
            self.place.clone(),
            "heeded",
            program(),
            &arguments,
        ))
    }

    /// Returns the URI of the default export.
    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket().display())
    }

    /// Returns the notes of the server about its store.
    pub fn notes(&self) -> &[Value] {
        self.announcement["notes"].as_array().unwrap()
    }

    pub fn connection(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub fn client(&self) -> ExportClient<UnixStream> {
        self.client_with(&ClientOptions {
            structured: true,
            status: true,
            ..ClientOptions::default()
        })
    }

    pub fn client_with(&self, options: &ClientOptions) -> ExportClient<UnixStream> {
        ExportClient::connect(self.connection(), options).unwrap()
    }

    /// Returns the answer to `ctl`.
    pub fn ctl(&self, order: &[&str]) -> String {
        let socket = text(&self.socket());
        success(&[&["ctl", socket.as_str()], order].concat())
    }

    pub fn ctl_refused(&self, order: &[&str]) -> String {
        let socket = text(&self.socket());
        refused(&[&["ctl", socket.as_str()], order].concat())
    }

    pub fn status(&self) -> Value {
        serde_json::from_str(&self.ctl(&["status", "--json"])).unwrap()
    }

    /// Returns the states of all drives of the first export.
    pub fn states(&self) -> Vec<String> {
        let status = self.status();
        let drives = status["exports"][0]["drives"].as_array().unwrap();
        drives
            .iter()
            .map(|drive| drive["state"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits until no drive is being rebuilt.
    pub fn wait_for_rebuild(&self) {
        let begun = Instant::now();
        while self.states().iter().any(|state| state == "rebuilding") {
            assert!(begun.elapsed() < PATIENCE, "{:?}", self.status());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asserts that all redundancy is right, because a scrub's status is otherwise not 0.
    pub fn scrub(&self) {
        let message = self.ctl(&["scrub"]);
        assert!(message.contains("sectors compared"), "{message}");
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.id(), signal).unwrap();
    }

    pub fn id(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32).unwrap()
    }

    /// Asks the server to end, and waits for the end.
    pub fn stop(self) -> ServerEnd {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Asks the server to end, asserts success, and returns the summary.
    pub fn stop_well(self) -> Value {
        let end = self.stop();
        assert_eq!((end.status.code(), end.complaints.as_str()), (Some(0), ""));
        end.summary.unwrap()
    }

    /// Kills the server.
    pub fn kill(self) {
        drop(self);
    }

    /// Waits until the server ends by itself.
    pub fn wait(mut self) -> ServerEnd {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(2));
        };
        let summary = self.output.next().and_then(Result::ok);
        let complaints = fs::read_to_string(complaints_of(&self.place, self.name)).unwrap();
        ServerEnd {
            status,
            summary,
            complaints,
        }
    }

    /// Returns the peak memory of the server in bytes.
    pub fn peak_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        // `VmHWM` is in KiB (proc(5)).
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the file with the standard error of a server.
fn complaints_of(place: &StackFolder, name: &str) -> PathBuf {
    place.path(&format!("{name}.complaints"))
}

pub fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
