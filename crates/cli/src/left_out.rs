//! Commands that a build leaves out.
//!
//! `cargo build --no-default-features` has no commands on real clients, devices and clocks. A
//! missing command stays in the list of commands, accepts any arguments, and names the feature of
//! its code.

use crate::output::CommandFailure;
use std::ffi::OsString;

/// Ignored arguments of a missing command.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Ignored {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

/// Returns the error that `command` needs `feature`.
pub(crate) fn needs(command: &str, feature: &str) -> CommandFailure {
    CommandFailure::Input(format!(
        "`fullstroke {command}` is not in this build; build with the feature `{feature}`: cargo build --release --package fullstroke --features {feature}"
    ))
}

/// Declares modules of left-out commands: `serve: "serve" needs "real";`.
macro_rules! left_out {
    ($($module:ident: $command:literal needs $feature:literal;)*) => {$(
        mod $module {
            #[doc = concat!("Not in this build. Needs the feature `", $feature, "`.")]
            #[derive(Debug, clap::Args)]
            pub(crate) struct Arguments {
                #[command(flatten)]
                _ignored: crate::left_out::Ignored,
            }

            pub(crate) fn execute(_: &Arguments, _: &crate::output::CommandOutput) -> Result<(), crate::output::CommandFailure> {
                Err(crate::left_out::needs($command, $feature))
            }
        }
    )*};
}
pub(crate) use left_out;
