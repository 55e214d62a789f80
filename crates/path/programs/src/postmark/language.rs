//! PostMark's configuration language as in 1.51: one command per line.

use super::settings::{
    FILES_MAX, LOCATIONS_MAX, PostmarkSettings, SIZE_MAX, SUBDIRECTORIES_MAX, Style,
    TRANSACTIONS_MAX, WeightedDirectory, bias, location, whole, within,
};
use crate::program::ProgramError;
use fullstroke_contract::registry::nearest;
use fullstroke_contract::{Reason, reason};

const RUNS_MAX: usize = 1000;

const COMMANDS: &[&str] = &["set", "run", "show", "help", "load", "quit"];
const SETTINGS: &[&str] = &[
    "size",
    "number",
    "seed",
    "transactions",
    "location",
    "subdirectories",
    "read",
    "write",
    "buffering",
    "bias read",
    "bias create",
    "report",
];

/// A configuration: the settings of each run.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    pub runs: Vec<PostmarkSettings>,
    /// Sentences about lines without meaning here.
    pub notes: Vec<String>,
}

/// Counts of lines without meaning here.
#[derive(Default)]
struct Passed {
    shows: u64,
    shells: u64,
    outputs: u64,
    after_quit: u64,
}

impl Passed {
    fn notes(&self, runs: usize) -> Vec<String> {
        let mut notes = Vec::new();
        let mut say = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{what} ({count} of them)."));
            }
        };
        say(self.shows, "Lines `show` and `help` print nothing here");
        say(
            self.shells,
            "Lines beginning with `!` are shell commands; they are ignored",
        );
        say(
            self.outputs,
            "File names after `run` are ignored; the report appears here",
        );
        say(self.after_quit, "Lines after `quit` are not read");
        if runs == 0 {
            notes.push("The configuration has no `run`; its settings are run once.".into());
        }
        notes
    }
}

/// Reads a configuration. Skips empty lines and lines with a leading `#`. PostMark itself answers
/// these lines with "Eh?".
pub(super) fn parse(text: &str) -> Result<Configuration, ProgramError> {
    let mut settings = PostmarkSettings::default();
    let mut configuration = Configuration::default();
    let mut passed = Passed::default();
    let mut quit = false;
    for (number, line) in (1u64..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = |reason: Reason| ProgramError::Line(number, reason.into());
        match words[..] {
            [] => {}
            _ if words[0].starts_with('#') => {}
            _ if quit => passed.after_quit += 1,
            _ if words[0].starts_with('!') => passed.shells += 1,
            ["quit" | "exit", ..] => quit = true,
            ["show" | "help" | "?", ..] => passed.shows += 1,
            ["run", ..] => {
                passed.outputs += u64::from(words.len() > 1);
                if configuration.runs.len() == RUNS_MAX {
                    return Err(at(reason!(
                        "found one `run` more; expected at most {RUNS_MAX}"
                    )));
                }
                configuration.runs.push(settings.clone());
            }
            ["load", ..] => {
                return Err(at(
                    "found `load`; expected the other file's lines in its place".into(),
                ));
            }
            ["set", ref what @ ..] => set(&mut settings, what).map_err(at)?,
            _ => {
                let near = nearest(words[0], COMMANDS);
                let known = COMMANDS.join(", ");
                return Err(at(reason!(
                    "found `{}`{near}; expected one of {known}",
                    words[0]
                )));
            }
        }
    }
    configuration.notes = passed.notes(configuration.runs.len());
    if configuration.runs.is_empty() {
        configuration.runs.push(settings);
    }
    Ok(configuration)
}

/// Carries out one `set` command.
fn set(settings: &mut PostmarkSettings, words: &[&str]) -> Result<(), Reason> {
    match *words {
        ["size", low] => size(settings, low, low)?,
        ["size", low, high] => size(settings, low, high)?,
        ["number", word] => settings.number = within(whole(word)?, 1, FILES_MAX)?,
        ["seed", word] => settings.seed = within(whole(word)?, 1, i32::MAX as u64)?,
        ["transactions", word] => {
            settings.transactions = within(whole(word)?, 1, TRANSACTIONS_MAX)?
        }
        ["subdirectories", word] => {
            settings.subdirectories = within(whole(word)?, 1, SUBDIRECTORIES_MAX)?
        }
        ["read", word] => settings.read = within(whole(word)?, 1, SIZE_MAX)?,
        ["write", word] => settings.write = within(whole(word)?, 1, SIZE_MAX)?,
        ["buffering", word] => {
            settings.buffering = one_of(word, &[("true", true), ("false", false)])?
        }
        ["bias", "read", word] => settings.bias_read = tenths(word)?,
        ["bias", "create", word] => settings.bias_create = tenths(word)?,
        ["report", word] => {
            settings.style = one_of(
                word,
                &[("verbose", Style::Verbose), ("terse", Style::Terse)],
            )?;
        }
        ["location", ref words @ ..] if !words.is_empty() => place(&mut settings.locations, words)?,
        _ => return Err(unknown(words)),
    }
    Ok(())
}

fn size(settings: &mut PostmarkSettings, low: &str, high: &str) -> Result<(), Reason> {
    let (low, high) = (
        within(whole(low)?, 1, SIZE_MAX)?,
        within(whole(high)?, 1, SIZE_MAX)?,
    );
    if high < low {
        return Err(reason!(
            "found sizes from {low} to {high}; expected the lower bound first"
        ));
    }
    (settings.size_low, settings.size_high) = (low, high);
    Ok(())
}

fn tenths(word: &str) -> Result<Option<u32>, Reason> {
    let number = word
        .parse()
        .map_err(|_| reason!("found `{word}`; expected 0 to 10, or -1 for neither"))?;
    bias(number)
}

fn one_of<T: Copy>(word: &str, known: &[(&str, T)]) -> Result<T, Reason> {
    known
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            reason!("found `{word}`; expected {}", names.join(" or "))
        })
}

/// `PATH` replaces all locations, `+PATH` adds one, `-PATH` removes one.
fn place(locations: &mut Vec<WeightedDirectory>, words: &[&str]) -> Result<(), Reason> {
    let (first, rest) = words.split_first().expect("there is a word");
    let with = |path: &str| location(&[&[path], rest].concat());
    if let Some(path) = first.strip_prefix('+') {
        if locations.len() == LOCATIONS_MAX {
            return Err(reason!(
                "found one location more; expected at most {LOCATIONS_MAX}"
            ));
        }
        locations.push(with(path)?);
    } else if let Some(path) = first.strip_prefix('-') {
        let gone = location(&[path])?.path;
        let at = locations.iter().position(|one| one.path == gone);
        locations
            .remove(at.ok_or_else(|| reason!("found `-{path}`; expected one of the locations"))?);
    } else {
        *locations = vec![with(first)?];
    }
    Ok(())
}

fn unknown(words: &[&str]) -> Reason {
    let found = match *words {
        ["bias", second, ..] => format!("bias {second}"),
        [first, ..] => first.to_owned(),
        [] => String::new(),
    };
    if SETTINGS.contains(&found.as_str()) {
        return reason!(
            "found `set {}`; expected `set {found}` and its value",
            words.join(" ")
        );
    }
    reason!(
        "found `set {found}`{}; expected one of {}",
        nearest(&found, SETTINGS),
        SETTINGS.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_setting_is_read_and_what_is_run_is_what_was_set_before() {
        let text = "set size 512 2097152\nset number 10000\nset transactions 15000\nset subdirectories 100\n\
                    set location /a 2\nset location +/b/c 3\nset location +d\nset location -/a\n\
                    set read 4096\nset write 8192\nset buffering false\nset bias read 7\nset bias create -1\n\
                    set seed 9\nset report terse\nshow\nrun out.txt\nset number 5\nrun\nquit\nrun\n";
        let configuration = parse(text).unwrap();
        let first = PostmarkSettings {
            size_low: 512,
            size_high: 2_097_152,
            number: 10_000,
            transactions: 15_000,
            subdirectories: 100,
            locations: vec![
                WeightedDirectory {
                    path: "b/c".into(),
                    weight: 3,
                },
                WeightedDirectory {
                    path: "d".into(),
                    weight: 1,
                },
            ],
            read: 4096,
            write: 8192,
            buffering: false,
            bias_read: Some(7),
            bias_create: None,
            seed: 9,
            style: Style::Terse,
        };
        let second = PostmarkSettings {
            number: 5,
            ..first.clone()
        };
        assert_eq!(configuration.runs, [first, second]);
        assert_eq!(configuration.notes.len(), 3, "{:?}", configuration.notes);
    }

    #[test]
    fn without_a_run_the_settings_are_run_once_and_that_is_said() {
        let configuration = parse("# only\n\nset size 512\n").unwrap();
        assert_eq!(
            configuration.runs,
            [PostmarkSettings {
                size_low: 512,
                size_high: 512,
                ..PostmarkSettings::default()
            }]
        );
        assert!(configuration.notes[0].contains("no `run`"));
    }

    #[test]
    fn what_cannot_be_names_its_line_what_was_found_and_what_was_expected() {
        for (text, found, expected) in [
            (
                "run\nsett size 1\n",
                "line 2: found `sett` (did you mean `set`?)",
                "expected one of set",
            ),
            (
                "set sise 1 2\n",
                "found `set sise` (did you mean `size`?)",
                "expected one of",
            ),
            (
                "set size 10 5\n",
                "found sizes from 10 to 5",
                "lower bound first",
            ),
            ("set size 0\n", "found 0", "1 to 1073741823"),
            (
                "set size 1 9999999999\n",
                "found 9999999999",
                "1 to 1073741823",
            ),
            ("set number 0\n", "found 0", "expected 1 to 10000000"),
            (
                "set number 20000000\n",
                "found 20000000",
                "expected 1 to 10000000",
            ),
            ("set number\n", "found `set number`", "and its value"),
            ("set number ten\n", "found `ten`", "a whole number"),
            ("set transactions 0\n", "found 0", "1 to"),
            ("set bias read 11\n", "found 11", "-1 for neither"),
            ("set bias reed 1\n", "found `set bias reed`", "bias read"),
            ("set buffering maybe\n", "found `maybe`", "true or false"),
            ("set report long\n", "found `long`", "verbose or terse"),
            ("set location /a b\n", "found `b`", "a whole number"),
            ("set location ../a\n", "found `../a`", "without `..`"),
            ("set location -/a\n", "found `-/a`", "one of the locations"),
            ("load other\n", "found `load`", "the other file's lines"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(
                error.contains(found) && error.contains(expected),
                "{text:?}: {error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_configuration_or_an_error(text in any::<String>()) {
            let _ = parse(&text);
        }

        #[test]
        fn any_words_of_the_language_are_a_configuration_or_an_error(
            lines in prop::collection::vec((0usize..14, -2i64..1 << 33, -2i64..20), 0..30),
        ) {
            let text: String = lines
                .iter()
                .map(|&(which, one, two)| match SETTINGS.get(which) {
                    Some(setting) => format!("set {setting} {one} {two}\n"),
                    None => "run\n".to_owned(),
                })
                .collect();
            if let Ok(configuration) = parse(&text) {
                for run in configuration.runs {
                    prop_assert!(run.number > 0 && run.size_low > 0 && run.size_low <= run.size_high);
                }
            }
        }
    }
}
