//! Parses the command line, with clap's messages about numbers in plain words.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error, Parser};
use std::error::Error as _;
use std::ffi::OsString;
use std::num::{ParseFloatError, ParseIntError};

/// Parses the arguments of the program. Help and errors end the program.
pub(crate) fn parse<C: Parser>() -> C {
    parse_from(std::env::args_os()).unwrap_or_else(|error| error.exit())
}

fn parse_from<C: Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<C, Error> {
    let mut command = with_negative_numbers(C::command());
    let matches = command.try_get_matches_from_mut(arguments);
    matches
        .and_then(|mut matches| C::from_arg_matches_mut(&mut matches))
        .map_err(|error| with_owners(plain(error, &command), &command))
}

/// Lets every option take a negative number. Otherwise clap takes `-5` for an unknown option, and
/// the message does not say which numbers the option takes.
fn with_negative_numbers(command: Command) -> Command {
    command
        .mut_args(|argument| {
            let takes_values = argument.get_action().takes_values();
            argument.allow_negative_numbers(takes_values)
        })
        .mut_subcommands(with_negative_numbers)
}

/// Replaces the words of Rust about a number ("invalid digit found in string") by the value found
/// and the values expected.
fn plain(error: Error, command: &Command) -> Error {
    let expected = match error.source() {
        Some(source) if source.is::<ParseIntError>() => "a whole number, at least 0",
        Some(source) if source.is::<ParseFloatError>() => "a number",
        _ => return error,
    };
    let (Some(ContextValue::String(option)), Some(ContextValue::String(value))) = (
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::InvalidValue),
    ) else {
        return error;
    };
    let message = format!("{option}: found `{value}`; expected {expected}\n");
    Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
}

/// Adds to an error about an unknown option the names of other subcommands with this option. If the
/// chosen subcommand has a similar option, the error stays, because a misspelling is more likely.
fn with_owners(mut error: Error, command: &Command) -> Error {
    if error.kind() != ErrorKind::UnknownArgument || error.get(ContextKind::SuggestedArg).is_some()
    {
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let Some(long) = option.strip_prefix("--") else {
        return error;
    };
    let mut owners = Vec::new();
    add_owners(command, "", long, &mut owners);
    if owners.is_empty() {
        return error;
    }
    let tip = format!("'--{long}' is an option of {}", owners.join(", "));
    let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
    error.insert(ContextKind::Suggested, tips);
    error
}

/// Adds the path of each subcommand with the option, such as `trace info`.
fn add_owners(command: &Command, path: &str, long: &str, owners: &mut Vec<String>) {
    for subcommand in command.get_subcommands() {
        let path = format!("{path} {}", subcommand.get_name());
        let has_option = subcommand
            .get_arguments()
            .any(|argument| argument.get_long() == Some(long));
        if has_option {
            owners.push(format!("'{}'", path.trim_start()));
        }
        add_owners(subcommand, &path, long, owners);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    struct Options {
        #[arg(long, value_name = "NUMBER")]
        requests: Option<u64>,
        #[arg(long)]
        json: bool,
        #[arg(long, value_name = "FACTOR")]
        scale: Option<f64>,
    }

    fn message(option: &str, value: &str) -> String {
        let arguments = ["program", option, value].map(OsString::from);
        let error = parse_from::<Options>(arguments).unwrap_err();
        error.to_string()
    }

    #[test]
    fn a_wrong_number_is_refused_with_the_value_found_and_the_values_expected() {
        for value in ["many", "-5", "1.5", "99999999999999999999"] {
            let found = format!(
                "--requests <NUMBER>: found `{value}`; expected a whole number, at least 0"
            );
            let message = message("--requests", value);
            assert!(message.contains(&found), "{message}");
        }
        let message = message("--scale", "half");
        assert!(message.contains("--scale <FACTOR>: found `half`; expected a number"));
    }

    #[derive(Debug, Parser)]
    struct Commands {
        #[command(subcommand)]
        command: Subcommands,
    }

    #[derive(Debug, clap::Subcommand)]
    enum Subcommands {
        Run(Options),
        Compare {
            #[arg(long)]
            vary: Vec<String>,
        },
    }

    #[test]
    fn an_option_of_another_subcommand_is_refused_with_the_name_of_that_subcommand() {
        let message = |option: &str| {
            let arguments = ["program", "run", option, "1"].map(OsString::from);
            parse_from::<Commands>(arguments).unwrap_err().to_string()
        };
        assert!(message("--vary").contains("tip: '--vary' is an option of 'compare'"));
        assert!(message("--request").contains("'--requests'"));
        assert!(!message("--nothing").contains("is an option of"));
    }

    #[test]
    fn options_are_read_as_before() {
        let arguments = ["program", "--json", "--scale", "-2", "--requests", "7"];
        let options = parse_from::<Options>(arguments.map(OsString::from)).unwrap();
        assert!(options.json);
        assert_eq!((options.scale, options.requests), (Some(-2.0), Some(7)));
    }
}
