//! Tests of the bank of questions, `questions/`.
//!
//! Each file holds a question that people ask, its source, the command that answers it, and the kind
//! of the answer. The test runs the command with a short load and looks for the kind of the answer,
//! not for its digits. The page docs/questions.md lists the questions;
//! `FULLSTROKE_GENERATE=1 cargo test -p fullstroke --test all questions` writes the page.

use crate::common::project;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;

/// A question with its answer.
#[derive(Debug)]
struct Question {
    file: String,
    question: String,
    topic: String,
    source: String,
    command: String,
    /// Arguments that shorten the run of the test.
    short: String,
    /// Parts of the answer, in any order. `#` stands for a number.
    answer: Vec<String>,
    /// What the answer tells.
    tells: String,
}

/// Smallest number of questions.
const QUESTIONS_MIN: usize = 40;

fn questions() -> Vec<Question> {
    let folder = project().join("questions");
    let mut all: Vec<Question> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| {
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let table: toml::Table = text
                .parse()
                .unwrap_or_else(|error| panic!("{file}: {error}"));
            let known = [
                "question", "topic", "source", "command", "short", "answer", "tells",
            ];
            for key in table.keys() {
                assert!(known.contains(&&key[..]), "{file}: unknown key `{key}`");
            }
            let word = |key: &str| -> String {
                let value = table.get(key).and_then(toml::Value::as_str);
                value
                    .unwrap_or_else(|| panic!("{file}: no text `{key}`"))
                    .to_owned()
            };
            let parts = table["answer"].as_array().unwrap();
            Question {
                question: word("question"),
                topic: word("topic"),
                source: word("source"),
                command: word("command"),
                short: table
                    .get("short")
                    .and_then(toml::Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                answer: parts
                    .iter()
                    .map(|part| part.as_str().unwrap().to_owned())
                    .collect(),
                tells: word("tells"),
                file,
            }
        })
        .collect();
    all.sort_by(|one, other| (&one.topic, &one.file).cmp(&(&other.topic, &other.file)));
    all
}

/// Splits a command at spaces outside single quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in command.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            letter => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns true if `text` contains `part`, where `#` in the part stands for a number.
fn contains(text: &str, part: &str) -> bool {
    (0..text.len())
        .filter(|at| text.is_char_boundary(*at))
        .any(|at| begins_with(&text[at..], part))
}

fn begins_with(text: &str, part: &str) -> bool {
    let (plain, rest) = part
        .split_once('#')
        .map_or((part, None), |(plain, rest)| (plain, Some(rest)));
    let Some(text) = text.strip_prefix(plain) else {
        return false;
    };
    let Some(rest) = rest else { return true };
    let digits = |letter: char| letter.is_ascii_digit() || ".,".contains(letter);
    let end = text.find(|letter| !digits(letter)).unwrap_or(text.len());
    text.starts_with(|letter: char| letter.is_ascii_digit())
        && (1..=end).rev().any(|end| begins_with(&text[end..], rest))
}

#[test]
fn every_question_has_an_answer_of_its_kind() {
    let mut wrong = Vec::new();
    for question in questions() {
        let Question {
            file,
            command,
            short,
            answer,
            ..
        } = &question;
        let mut all = words(command);
        assert_eq!(all.remove(0), "fullstroke", "{file}: {command}");
        // Options of the program go before fio's arguments.
        let end = all
            .iter()
            .position(|word| word == "--")
            .map_or(all.len(), |at| at - 1);
        all.splice(end..end, words(short));
        let output = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
            .args(&all)
            .current_dir(project())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            wrong.push(format!("{file}: {}: {error}", output.status));
        }
        for part in answer {
            if !contains(&text, part) {
                wrong.push(format!("{file}: no `{part}` in\n{text}{error}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn numbers_are_found_where_a_sign_stands_for_them() {
    for (text, part, found) in [
        ("the best of 4: 12.5 ms", "best of #: # ms", true),
        ("the best of 4: 12.5 s", "best of #: # ms", false),
        ("x ms", "# ms", false),
        ("1,234 hours.", "# hours.", true),
    ] {
        assert_eq!(contains(text, part), found, "{text} {part}");
    }
}

#[test]
fn questions_are_enough_and_differ() {
    let all = questions();
    assert!(all.len() >= QUESTIONS_MIN, "{} questions", all.len());
    let different =
        |of: fn(&Question) -> &String| all.iter().map(of).collect::<BTreeSet<_>>().len();
    assert_eq!(different(|question| &question.question), all.len());
    assert_eq!(different(|question| &question.command), all.len());
    for Question {
        file,
        question,
        answer,
        ..
    } in &all
    {
        assert!(question.ends_with('?'), "{file}");
        assert!(!answer.is_empty(), "{file}");
    }
}

#[test]
fn the_page_lists_every_question() {
    let mut topics: BTreeMap<&str, Vec<&Question>> = BTreeMap::new();
    let all = questions();
    for question in &all {
        topics.entry(&question.topic).or_default().push(question);
    }
    let mut page = String::from(
        "# Questions that people ask\n\n<!-- Written from questions/ by `FULLSTROKE_GENERATE=1 cargo test -p fullstroke --test all questions`. -->\n\n\
         Each question has the command that answers it on files of this project. Put your own stack, drives and load in their place: \
         [start.md](start.md) shows how. A test runs every command with a short load.\n",
    );
    for (topic, questions) in topics {
        write!(page, "\n## {topic}\n").unwrap();
        for one in questions {
            let command = &one.command;
            write!(
                page,
                "\n### {}\n\n```\n{command}\n```\n\n{} Source: {}.\n",
                one.question, one.tells, one.source
            )
            .unwrap();
        }
    }
    let path = project().join("docs/questions.md");
    if std::env::var_os("FULLSTROKE_GENERATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/questions.md differs from questions/; set FULLSTROKE_GENERATE=1 and run this test"
    );
}
