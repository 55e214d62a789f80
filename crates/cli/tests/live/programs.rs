//! Calls of other programs, if they are installed.

use std::process::{Command, Output, Stdio};

/// True if all programs are installed. Otherwise prints the missing one.
pub fn installed(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !is_installed(program));
    if let Some(program) = missing {
        eprintln!("skipped: no program {program} (make clients installs it)");
    }
    missing.is_none()
}

fn is_installed(program: &str) -> bool {
    let found = command("sh")
        .args(["-c", "command -v \"$0\"", program])
        .output();
    found.is_ok_and(|output| output.status.success())
}

/// Builds a command of a system program. The system's folders come first in PATH, because nbdsh
/// needs the Python of its installation.
pub fn command(program: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command
        .env("PATH", format!("/usr/sbin:/usr/bin:/sbin:/bin:{path}"))
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null());
    command
}

/// Runs a program to its end.
pub fn run(program: &str, arguments: &[&str]) -> Output {
    command(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Returns the output of a successful program.
pub fn output(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{out}\n{error}",
        output.status
    );
    out.into_owned()
}
