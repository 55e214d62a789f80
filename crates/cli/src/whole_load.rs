//! What a search found, with the runs of its best on the whole load, where a page is written.

use fullstroke_lab::WholeLoad;
use fullstroke_report::{Answer, Found};
use serde::Serialize;

/// What a search found, and the runs of its best.
#[derive(Debug, Serialize)]
pub(crate) struct Searched<'a, T> {
    #[serde(flatten)]
    found: &'a T,
    /// Those that bear most on the whole load, where a page is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_load: Option<Vec<WholeLoad>>,
    version: &'static str,
}

impl<'a, T> Searched<'a, T> {
    pub(crate) fn new(found: &'a T, whole_load: Option<Vec<WholeLoad>>) -> Searched<'a, T> {
        Searched {
            found,
            whole_load,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// The runs.
    pub(crate) fn ran(&self) -> &[WholeLoad] {
        self.whole_load.as_deref().unwrap_or_default()
    }

    /// What a page shows of it.
    pub(crate) fn answer<'b>(&'b self, found: Found<'b>) -> Answer<'b> {
        Answer {
            found,
            version: self.version,
            wall_s: None,
        }
    }
}
