//! Output of a search, with the runs of the best candidates on the whole load for a page.

use fullstroke_lab::WholeLoad;
use fullstroke_report::{AnswerBody, CommandAnswer};
use serde::Serialize;

/// Output of a search.
#[derive(Debug, Serialize)]
pub(crate) struct LoadSearchOutput<'a, T> {
    #[serde(flatten)]
    found: &'a T,
    /// Runs of the best candidates on the whole load. `None` if no page was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_load: Option<Vec<WholeLoad>>,
    version: &'static str,
}

impl<'a, T> LoadSearchOutput<'a, T> {
    pub(crate) fn new(found: &'a T, whole_load: Option<Vec<WholeLoad>>) -> LoadSearchOutput<'a, T> {
        LoadSearchOutput {
            found,
            whole_load,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// Returns the runs on the whole load.
    pub(crate) fn ran(&self) -> &[WholeLoad] {
        self.whole_load.as_deref().unwrap_or_default()
    }

    /// Returns the answer for a page.
    pub(crate) fn answer<'b>(&'b self, found: AnswerBody<'b>) -> CommandAnswer<'b> {
        CommandAnswer {
            found,
            version: self.version,
            wall_s: None,
        }
    }
}
