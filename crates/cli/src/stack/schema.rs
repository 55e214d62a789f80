//! `fullstroke stack schema`: for editors.

use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_stack::Stack;

/// Print the JSON schema of stack files, by which editors complete them.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(crate) fn execute(_: &Arguments, output: &Output) -> Result<(), Failure> {
    output.show_json(&Stack::schema())
}
