//! What storage looks out for, `[[opportunities]]`.

use crate::document::Document;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_engine::Branch;
use fullstroke_opportunity::{Opportunity, Watch, build};
use serde_json::Value;

/// The tables, each checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opportunities(Vec<Keys>);

impl Opportunities {
    /// Reads them.
    ///
    /// # Errors
    /// At the key of what cannot be.
    pub(crate) fn read(document: &Document) -> Result<Opportunities, ConfigError> {
        let expected = |found: &Value| {
            ConfigError::new("opportunities", format!("found {found}; expected [[opportunities]]"))
        };
        let items = match document.values().get("opportunities") {
            None => return Ok(Opportunities::default()),
            Some(Value::Array(items)) if !items.is_empty() => items,
            Some(other) => return Err(expected(other)),
        };
        let table = |item: &Value| item.as_object().cloned().ok_or_else(|| expected(item));
        let read = Opportunities(items.iter().map(table).collect::<Result<_, _>>()?);
        read.build().map(|_| read)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn build(&self) -> Result<Vec<Box<dyn Opportunity>>, ConfigError> {
        let each = |(index, table)| {
            build(table).map_err(|error: ConfigError| error.below(&format!("opportunities[{index}]")))
        };
        self.0.iter().enumerate().map(each).collect()
    }

    /// An array that they watch.
    ///
    /// # Errors
    /// None that reading has not found.
    pub(crate) fn over(&self, array: Branch) -> Result<Branch, ConfigError> {
        if self.is_empty() {
            return Ok(array);
        }
        Ok(Branch::over(Box::new(Watch::new(self.build()?)), array))
    }
}
