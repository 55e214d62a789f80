//! `fullstroke` without arguments on a terminal: four questions, and the answer of `advise`.

use crate::advise;
use crate::output::{CommandFailure, CommandOutput};
use fullstroke_advise::DriveCounts;
use fullstroke_stack::{READY_LOADS, READY_PREFIX, drives};
use fullstroke_units::Bytes;
use std::io::{self, BufRead, IsTerminal as _, Write};

/// Drives and their number for an empty answer.
const DEFAULT_DRIVES: (&str, &str) = ("4", "seagate-ironwolf-8tb");

/// Budget of requests: an answer within a minute or two.
const BUDGET: &str = "500000";

/// The four answers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answers {
    count: String,
    drive: String,
    /// A ready load or a stack file, and a trace or job file in the place of its load.
    load: Vec<String>,
    failures: String,
    usable: Option<String>,
}

/// True if the program has no arguments and talks to a person.
pub(crate) fn wanted() -> bool {
    std::env::args_os().len() == 1 && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Asks the four questions and prints one sentence, one table and the command that asks the same.
pub(crate) fn execute(output: &CommandOutput) -> Result<(), CommandFailure> {
    let mut input = io::stdin().lock();
    let answers = Answers::ask(&mut input, &mut io::stdout())?;
    // The answers become a command line that is then parsed as usual, so that the printed command
    // gives the same answer.
    let arguments = answers.arguments();
    let quoted: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
    let command = format!("fullstroke {}", quoted.join(" "));
    output.print_text("\nRuns are simulated; this takes up to two minutes.")?;
    let asked = advise::Arguments::of(&arguments)?;
    let advice = advise::answer(&asked, output)?;
    let sentence = advice.recommendation.first().cloned().unwrap_or_default();
    let table = advise::times_of(&advice.finalists, advice.wishes.streams.is_some());
    output.print_text(&format!(
        "\n{sentence}\n\n{table}\n\nThe same, with reasons: {command}"
    ))
}

impl Answers {
    /// Asks until each answer can be used. An empty answer takes the default.
    fn ask(input: &mut impl BufRead, screen: &mut impl Write) -> Result<Answers, CommandFailure> {
        let (count, drive) = DEFAULT_DRIVES;
        let (count, drive) = question(
            input,
            screen,
            &format!(
                "Which drives, and how many? A number or a range, and a name of `fullstroke drive list` [{count} {drive}]"
            ),
            count_and_drive,
        )?;
        let uses: Vec<String> = READY_LOADS
            .iter()
            .enumerate()
            .map(|(place, load)| format!("  {} {}", place + 1, load.what))
            .collect();
        let load = question(
            input,
            screen,
            &format!(
                "What are they for? A number, or a stack file (.toml), a job file of fio or a trace [1]\n{}",
                uses.join("\n")
            ),
            load,
        )?;
        // The last number of a range is the largest.
        let most = count.rsplit("..").next().and_then(|most| most.parse().ok());
        let most: u32 = most.unwrap_or(u32::MAX);
        let failures = question(input, screen, "How many drives may fail? [1]", |text| {
            // One failure is what most arrays are bought for, and the question shows this default.
            let text = if text.is_empty() { "1" } else { text };
            match text.parse::<u32>() {
                // Refused here, where the person can answer again: `advise` would search all
                // layouts and find none.
                Ok(failures) if failures >= most => Err(format!(
                    "found {failures}; of {most} drives at most {} may fail",
                    most.saturating_sub(1)
                )),
                Ok(_) => Ok(text.to_owned()),
                Err(_) => Err(format!("found `{text}`; expected a number, such as 1")),
            }
        })?;
        let usable = question(
            input,
            screen,
            "How much usable capacity? Such as 20TB [any]",
            |text| match text {
                "" | "any" => Ok(None),
                text => text
                    .parse::<Bytes>()
                    .map(|_| Some(text.to_owned()))
                    .map_err(|error| error.to_string()),
            },
        )?;
        Ok(Answers {
            count,
            drive,
            load,
            failures,
            usable,
        })
    }

    /// Returns the arguments of the command that asks the same.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["advise"];
        arguments.extend(self.load.iter().map(String::as_str));
        let Answers {
            count,
            drive,
            failures,
            ..
        } = self;
        arguments.extend(["--drive", drive, "--drives", count, "--failures", failures]);
        if let Some(usable) = &self.usable {
            arguments.extend(["--usable", usable]);
        }
        // A smaller budget than the default of `advise`, because a person waits at the terminal.
        arguments.extend(["--budget", BUDGET]);
        arguments.into_iter().map(str::to_owned).collect()
    }
}

/// Asks a question until the answer can be used.
fn question<T>(
    input: &mut impl BufRead,
    screen: &mut impl Write,
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, CommandFailure> {
    let broken = |error: io::Error| CommandFailure::Input(format!("the terminal: {error}"));
    loop {
        writeln!(screen, "{text}").map_err(broken)?;
        write!(screen, "> ")
            .and_then(|()| screen.flush())
            .map_err(broken)?;
        let mut line = String::new();
        // End of input (Ctrl-D). Without this check the loop would ask for ever.
        if input.read_line(&mut line).map_err(broken)? == 0 {
            return Err(CommandFailure::Input("no answer was given".to_owned()));
        }
        match read(line.trim()) {
            Ok(answer) => return Ok(answer),
            Err(why) => writeln!(screen, "{why}").map_err(broken)?,
        }
    }
}

/// Reads a number or a range of drives and the name of a drive, in either order.
fn count_and_drive(text: &str) -> Result<(String, String), String> {
    let (mut count, mut drive) = (None, None);
    // People write `4 x NAME`.
    for word in text.split_whitespace().filter(|word| *word != "x") {
        let place = match word.parse::<DriveCounts>() {
            Ok(_) => &mut count,
            // A wrong number must not be sought among the drives, because the error would then name
            // a drive.
            Err(error) if is_count(word) => {
                return Err(error.to_string());
            }
            Err(_) => &mut drive,
        };
        // Two numbers or two drives are ambiguous, and the last word must not win silently.
        if place.replace(word.to_owned()).is_some() {
            return Err(format!(
                "found `{text}`; expected one number or range and one drive, such as `4 {}`",
                DEFAULT_DRIVES.1
            ));
        }
    }
    let drive = drive.unwrap_or_else(|| DEFAULT_DRIVES.1.to_owned());
    // A name that begins alike is enough for the loader, and an unknown name is an error with the
    // nearest known one.
    drives::load(&drive).map_err(|error| error.to_string())?;
    Ok((count.unwrap_or_else(|| DEFAULT_DRIVES.0.to_owned()), drive))
}

/// Returns true for a word that begins as a number, and not for the name of a drive file.
fn is_count(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit() || first == '-')
        && !word.ends_with(".toml")
}

/// Reads the number of a ready load, or the name of a file. A trace and a job file take the place of
/// the load of the first ready load.
fn load(text: &str) -> Result<Vec<String>, String> {
    let text = if text.is_empty() { "1" } else { text };
    let place = text.parse::<usize>().ok();
    if let Some(load) = place.and_then(|place| READY_LOADS.get(place.checked_sub(1)?)) {
        return Ok(vec![format!("{READY_PREFIX}{}", load.name)]);
    }
    if !std::path::Path::new(text).is_file() {
        return Err(format!(
            "found `{text}`; expected a number from 1 to {}, or a file",
            READY_LOADS.len()
        ));
    }
    if text.ends_with(".toml") {
        return Ok(vec![text.to_owned()]);
    }
    let option = match is_job_file(text) {
        true => "--fio",
        false => "--trace",
    };
    // A trace has no array, and `advise` needs a stack to take the other settings from.
    let first = format!("{READY_PREFIX}{}", READY_LOADS[0].name);
    Ok(vec![first, option.to_owned(), text.to_owned()])
}

/// Returns true for a file with a section in brackets, as job files of fio have and traces lack.
fn is_job_file(path: &str) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(str::trim)
        .any(|line| line.starts_with('[') && line.ends_with(']'))
}

/// Returns a word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,+%".contains(letter);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> (Answers, String) {
        let mut screen = Vec::new();
        let answers = Answers::ask(&mut text.as_bytes(), &mut screen).unwrap();
        (answers, String::from_utf8(screen).unwrap())
    }

    #[test]
    fn empty_answers_take_the_defaults() {
        let (answers, screen) = asked("\n\n\n\n");
        assert_eq!(
            answers.arguments().join(" "),
            "advise load:office --drive seagate-ironwolf-8tb --drives 4 --failures 1 --budget 500000"
        );
        assert_eq!(screen.matches("> ").count(), 4);
    }

    #[test]
    fn a_trace_and_a_job_file_take_the_place_of_the_load() {
        let folder = std::env::temp_dir().join(format!("fullstroke-ask-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let trace = file("my load.csv", "time_s,op,lba,bytes\n1,R,8,4096\n");
        let jobs = file("job.fio", "[j]\nrw=read\n");
        let of = |path: &str| load(path).unwrap();
        assert_eq!(of(&trace)[..2], ["load:office", "--trace"]);
        assert_eq!(of(&jobs)[..2], ["load:office", "--fio"]);
        assert_eq!(quoted(&trace), format!("'{trace}'"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_answer_that_cannot_be_used_is_asked_again() {
        let (answers, screen) = asked("4..6 wd-red-plus-8tb\n99\n2\ntwo\n2\n20\n20TB\n");
        assert_eq!(
            answers.arguments()[..10].join(" "),
            "advise load:vm-host --drive wd-red-plus-8tb --drives 4..6 --failures 2 --usable 20TB"
        );
        assert!(
            screen.contains("found `99`; expected a number from 1 to 11"),
            "{screen}"
        );
        assert!(screen.contains("found `two`"), "{screen}");
        let (answers, screen) = asked("-1 wd-red-plus-8tb\n4 wd-red-plus-8tb extra\n4\n\n4\n3\n\n");
        assert_eq!(
            (answers.count.as_str(), answers.failures.as_str()),
            ("4", "3")
        );
        assert!(screen.contains("-1"), "{screen}");
        assert!(
            screen.contains("found `4 wd-red-plus-8tb extra`"),
            "{screen}"
        );
        assert!(
            screen.contains("of 4 drives at most 3 may fail"),
            "{screen}"
        );
        assert!(
            Answers::ask(&mut "4\n".as_bytes(), &mut Vec::new()).is_err(),
            "the input ends before the last question"
        );
    }
}
