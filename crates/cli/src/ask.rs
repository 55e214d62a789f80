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
    load: String,
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
    let arguments = answers.arguments();
    let command = format!("fullstroke {}", arguments.join(" "));
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
                "What are they for? A number, or a stack file or trace file [1]\n{}",
                uses.join("\n")
            ),
            load,
        )?;
        let failures = question(input, screen, "How many drives may fail? [1]", |text| {
            let text = if text.is_empty() { "1" } else { text };
            match text.parse::<u32>() {
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
        let mut arguments = vec!["advise", &self.load];
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
    for word in text.split_whitespace().filter(|word| *word != "x") {
        match word.parse::<DriveCounts>() {
            Ok(_) => count = Some(word.to_owned()),
            Err(_) => drive = Some(word.to_owned()),
        }
    }
    let drive = drive.unwrap_or_else(|| DEFAULT_DRIVES.1.to_owned());
    // A name that begins alike is enough for the loader, and an unknown name is an error with the
    // nearest known one.
    drives::load(&drive).map_err(|error| error.to_string())?;
    Ok((count.unwrap_or_else(|| DEFAULT_DRIVES.0.to_owned()), drive))
}

/// Reads the number of a ready load, or the name of a file.
fn load(text: &str) -> Result<String, String> {
    let text = if text.is_empty() { "1" } else { text };
    let place = text.parse::<usize>().ok();
    if let Some(load) = place.and_then(|place| READY_LOADS.get(place.checked_sub(1)?)) {
        return Ok(format!("{READY_PREFIX}{}", load.name));
    }
    match std::path::Path::new(text).is_file() {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "found `{text}`; expected a number from 1 to {}, or a file",
            READY_LOADS.len()
        )),
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
    fn an_answer_that_cannot_be_used_is_asked_again() {
        let (answers, screen) = asked("4..6 wd-red-plus-8tb\n9\n2\ntwo\n2\n20\n20TB\n");
        assert_eq!(
            answers.arguments()[..10].join(" "),
            "advise load:vm-host --drive wd-red-plus-8tb --drives 4..6 --failures 2 --usable 20TB"
        );
        assert!(
            screen.contains("found `9`; expected a number from 1 to 8"),
            "{screen}"
        );
        assert!(screen.contains("found `two`"), "{screen}");
        assert!(
            Answers::ask(&mut "4\n".as_bytes(), &mut Vec::new()).is_err(),
            "the input ends before the last question"
        );
    }
}
