//! A headless browser, driven by the DevTools protocol over two pipes.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Script that returns the faults of a page as sentences.
const CHECKS: &str = include_str!("page_checks.js");
/// Limit of the wait for an answer of the browser.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ways of showing a page: name, width in pixels, medium and colour scheme.
pub const LOOKS: [(&str, u32, &str, &str); 4] = [
    ("light", 1100, "screen", "light"),
    ("dark", 1100, "screen", "dark"),
    ("narrow", 420, "screen", "light"),
    // 718 pixels are A4's width less two margins of a centimetre. The system is in dark mode.
    ("print", 718, "print", "dark"),
];

pub struct Browser {
    program: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    /// DevTools session of the browser's only page.
    session: String,
    calls: u64,
    /// Events since the last wait.
    events: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser with an empty page. Prints a note and returns `None` if no browser is
    /// installed.
    pub fn open() -> Option<Browser> {
        let profile = tempfile::tempdir().unwrap();
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let found = names.into_iter().find(|name| {
            let found = Command::new("sh")
                .args(["-c", "command -v \"$0\"", name])
                .output();
            found.is_ok_and(|found| found.status.success())
        });
        let Some(found) = found else {
            eprintln!("skipped: no program chromium (make clients installs it)");
            return None;
        };
        // The browser reads the protocol from descriptor 3 and writes it to descriptor 4.
        let mut program = Command::new("sh")
            .args([
                "-c",
                "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null",
                found,
            ])
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, out) = (
            program.stdin.take().unwrap(),
            program.stdout.take().unwrap(),
        );
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0).map_while(Result::ok) {
                if sender
                    .send(serde_json::from_slice(&message).unwrap())
                    .is_err()
                {
                    return;
                }
            }
        });
        let mut browser = Browser {
            program,
            to,
            from,
            session: String::new(),
            calls: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let targets = browser.call("Target.getTargets", json!({}));
        let page = targets["targetInfos"]
            .as_array()
            .unwrap()
            .iter()
            .find(|target| target["type"] == "page");
        let attach = json!({ "targetId": page.unwrap()["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"]
            .as_str()
            .unwrap()
            .to_owned();
        browser.call("Page.enable", json!({}));
        Some(browser)
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let answer = self.next();
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    fn next(&mut self) -> Value {
        let message = self
            .from
            .recv_timeout(PATIENCE)
            .expect("the browser does not answer");
        self.events
            .extend(message["method"].as_str().map(str::to_owned));
        message
    }

    /// Opens a page and waits until all its resources are loaded.
    pub fn show(&mut self, address: &str) {
        self.events.clear();
        let shown = self.call("Page.navigate", json!({ "url": address }));
        assert!(shown["errorText"].is_null(), "{address}: {shown}");
        while !self
            .events
            .iter()
            .any(|event| event == "Page.loadEventFired")
        {
            self.next();
        }
    }

    pub fn look(&mut self, (_, width, media, colours): (&str, u32, &str, &str)) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let features = [json!({ "name": "prefers-color-scheme", "value": colours })];
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "media": media, "features": features }),
        );
    }

    /// Runs a script and returns its value.
    pub fn evaluate(&mut self, script: &str) -> Value {
        let asked = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let found = self.call("Runtime.evaluate", asked);
        assert!(
            found["exceptionDetails"].is_null(),
            "{}",
            found["exceptionDetails"]
        );
        found["result"]["value"].clone()
    }

    /// Returns the faults of the open page in these looks. `keep` is the beginning of the pictures'
    /// names.
    pub fn faults(&mut self, keep: &str, looks: &[(&str, u32, &str, &str)]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut pictures = Vec::new();
        for &look in looks {
            self.look(look);
            let found = self.evaluate(&format!("({CHECKS})({:?})", look.0));
            let found = found
                .as_array()
                .unwrap()
                .iter()
                .map(|fault| fault.as_str().unwrap().to_owned());
            faults.extend(found.map(|fault| format!("{}: {fault}", look.0)));
            let picture = self.picture();
            keep_picture(&format!("{keep}-{}", look.0), &picture);
            pictures.push(picture);
        }
        for (at, picture) in pictures.iter().enumerate() {
            // A page of a single colour would give a much shorter file.
            if picture.len() < 4000 {
                faults.push(format!("{}: nothing is to be seen", looks[at].0));
            }
            if pictures[..at].contains(picture) {
                faults.push(format!("{}: looks as another one does", looks[at].0));
            }
        }
        self.look(LOOKS[0]);
        faults
    }

    /// Returns a picture of the whole page as PNG, in base 64.
    fn picture(&mut self) -> String {
        let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].clone();
        let height = size["height"].as_f64().unwrap().min(3000.0);
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1 });
        let asked = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        self.call("Page.captureScreenshot", asked)["data"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Prints the page as PDF. Returns the length of the file in base 64.
    pub fn printed(&mut self) -> usize {
        let printed = self.call("Page.printToPDF", json!({ "printBackground": true }));
        let data = printed["data"].as_str().unwrap();
        assert!(data.starts_with("JVBERi0"), "no PDF");
        data.len()
    }

    /// Presses and releases a key: `Tab`, `Enter`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = if key == "Enter" { (13, "\r") } else { (9, "") };
        let event = |kind: &str| json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
        let down = if text.is_empty() {
            "rawKeyDown"
        } else {
            "keyDown"
        };
        self.call("Input.dispatchKeyEvent", event(down));
        self.call("Input.dispatchKeyEvent", event("keyUp"));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self
            .to
            .write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        // The browser normally ends its own processes. After five seconds it is killed.
        for _ in 0..100 {
            if !matches!(self.program.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Stores a picture for people in the folder of `FULLSTROKE_PICTURES`.
fn keep_picture(name: &str, base64: &str) {
    if let Some(folder) = std::env::var_os("FULLSTROKE_PICTURES") {
        let path = std::path::Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(path, decoded(base64)).unwrap();
    }
}

fn decoded(base64: &str) -> Vec<u8> {
    let six = |letter: u8| match letter {
        b'A'..=b'Z' => u32::from(letter - b'A'),
        b'a'..=b'z' => u32::from(letter - b'a') + 26,
        b'0'..=b'9' => u32::from(letter - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = base64.bytes().filter(|letter| *letter != b'=').collect();
    let group = |four: &[u8]| {
        let bits = four
            .iter()
            .enumerate()
            .map(|(at, letter)| six(*letter) << (18 - 6 * at))
            .sum::<u32>();
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    letters.chunks(4).flat_map(group).collect()
}
