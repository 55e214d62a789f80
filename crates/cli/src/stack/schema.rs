//! `fullstroke stack schema`: prints the JSON schema for editors.

use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_stack::Stack;

/// Print the JSON schema of stack files. Editors use the schema for completion.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(crate) fn execute(_: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    output.show_json(&Stack::schema())
}
