//! Runs on a Dask cluster, through Dask's Python client. This process stores the results.

use super::work::StudyRunOutcome;
use fullstroke_study::{StoreWriter, StudyError, Task, VERSION};
use serde_json::json;
use std::env;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

/// Program that distributes the runs in batches. The Python module contains the same file.
const COORDINATOR: &str = include_str!("../../../../python/fullstroke/cluster.py");

/// Runs `tasks` on the workers of `scheduler`, and stores each batch when it arrives. `progress`
/// receives the number of finished tasks.
///
/// # Errors
/// Python with Dask or the cluster is missing. Or some runs failed, as in
/// [`run_tasks`](fullstroke_study::run_tasks).
pub(super) fn run_tasks(
    tasks: &[Task],
    scheduler: &str,
    mut writer: StoreWriter,
    progress: &dyn Fn(usize),
) -> Result<(), StudyError> {
    let mut child = start()?;
    let mut failures = Vec::new();
    let mut done = 0;
    let said = thread::scope(|scope| -> Result<String, StudyError> {
        let (stdin, stdout, mut stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        scope.spawn(move || ask(stdin, tasks, scheduler));
        // A thread of its own reads standard error. Otherwise a full pipe would block the child.
        let said = scope.spawn(move || {
            let mut said = String::new();
            let _ = stderr
                .as_mut()
                .map(|stderr| stderr.read_to_string(&mut said));
            said
        });
        let mut lines = stdout
            .map(BufReader::new)
            .into_iter()
            .flat_map(BufReader::lines);
        let heard = lines.try_for_each(|line| {
            let (task, outcome) = read(&line.map_err(of_python)?, tasks)?;
            match outcome {
                StudyRunOutcome::Kept(kept) => writer.add(task, &kept)?,
                StudyRunOutcome::Failed(problem) => {
                    failures.push(StudyError::Elsewhere {
                        name: task.name.clone(),
                        problem,
                    });
                }
            }
            done += 1;
            progress(done);
            Ok(())
        });
        if heard.is_err() {
            // The results are no longer read. The child may have ended already, so an error is
            // ignored.
            let _ = child.kill();
        }
        heard.map(|()| said.join().unwrap_or_default())
    });
    // Waited for after an error, too: otherwise the child would stay behind as a zombie.
    let status = child.wait().map_err(of_python);
    // Merged after an error, too, so that finished runs are kept.
    let merged = writer.merge();
    let (said, status) = (said?, status?);
    if done < tasks.len() {
        let last = said
            .lines()
            .last()
            .map_or_else(|| status.to_string(), str::to_owned);
        let problem = format!(
            "{done} of {} runs returned and are kept: {last}",
            tasks.len()
        );
        return Err(StudyError::Elsewhere {
            name: "--dask".into(),
            problem,
        });
    }
    StudyError::of_runs(failures, tasks.len()).and(merged)
}

fn start() -> Result<Child, StudyError> {
    let python = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    Command::new(&python)
        .args(["-c", COORDINATOR])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| StudyError::Host {
            what: "run",
            path: PathBuf::from(python),
            source,
        })
}

/// Writes the tasks to the child. An error is ignored by the caller, because the child's standard
/// error tells the reason.
fn ask(to: Option<ChildStdin>, tasks: &[Task], scheduler: &str) -> io::Result<()> {
    let Some(mut to) = to.map(io::BufWriter::new) else {
        return Ok(());
    };
    let (program, folder) = (env::current_exe()?, env::current_dir()?);
    let order =
        json!({ "scheduler": scheduler, "program": program, "build": VERSION, "folder": folder });
    writeln!(to, "{order}")?;
    for task in tasks {
        writeln!(to, "{}", serde_json::to_string(task)?)?;
    }
    to.flush()
}

/// Parses a line: the number of a task and its outcome.
fn read<'a>(line: &str, tasks: &'a [Task]) -> Result<(&'a Task, StudyRunOutcome), StudyError> {
    let parsed = line.split_once(' ').and_then(|(number, outcome)| {
        Some((
            tasks.get(number.parse::<usize>().ok()?)?,
            serde_json::from_str(outcome).ok()?,
        ))
    });
    parsed.ok_or_else(|| StudyError::Elsewhere {
        name: "--dask".into(),
        problem: format!("found {line:?}; expected the number of a run and its result"),
    })
}

fn of_python(source: io::Error) -> StudyError {
    StudyError::Host {
        what: "hear from",
        path: "python3".into(),
        source,
    }
}
