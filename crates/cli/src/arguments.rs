//! Parses the command line, with clap's messages about numbers in plain words.

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
        .map_err(|error| plain(error, &command))
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

    #[test]
    fn options_are_read_as_before() {
        let arguments = ["program", "--json", "--scale", "-2", "--requests", "7"];
        let options = parse_from::<Options>(arguments.map(OsString::from)).unwrap();
        assert!(options.json);
        assert_eq!((options.scale, options.requests), (Some(-2.0), Some(7)));
    }
}
