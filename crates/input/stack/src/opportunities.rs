//! The opportunities that storage watches, `[[opportunities]]`.

use crate::document::Document;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_engine::Branch;
use fullstroke_opportunity::{
    Opportunity, OpportunityLayer, OpportunitySite, SignalKind, Trial, build, kind_of,
};
use serde_json::Value;

/// Returns the path of table number `index`.
fn at(index: usize) -> String {
    format!("opportunities[{index}]")
}

/// The tables, each of a known kind, and opportunities from outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opportunities {
    tables: Vec<Keys>,
    trials: Vec<Trial>,
}

/// Largest number of opportunities for which one watch can hold requests.
const MOST: usize = 64;

impl Opportunities {
    /// Reads the tables.
    ///
    /// # Errors
    /// Returns errors at the wrong key.
    pub(crate) fn read(document: &Document) -> Result<Opportunities, ConfigError> {
        let expected = |found: &Value| {
            ConfigError::new(
                "opportunities",
                format!("found {found}; expected [[opportunities]]"),
            )
        };
        let items = match document.values().get("opportunities") {
            None => return Ok(Opportunities::default()),
            Some(Value::Array(items)) if !items.is_empty() => items,
            Some(other) => return Err(expected(other)),
        };
        let table = |item: &Value| item.as_object().cloned().ok_or_else(|| expected(item));
        let tables = items.iter().map(table).collect::<Result<_, _>>()?;
        let read = Opportunities {
            tables,
            trials: Vec::new(),
        };
        read.words()?;
        read.check_count()?;
        Ok(read)
    }

    /// Adds an opportunity from outside, behind all others.
    ///
    /// # Errors
    /// If the number of opportunities is at its limit.
    pub(crate) fn try_out(&mut self, trial: Trial) -> Result<(), ConfigError> {
        self.trials.push(trial);
        self.check_count()
    }

    fn check_count(&self) -> Result<(), ConfigError> {
        let found = self.tables.len() + self.trials.len();
        match found > MOST {
            true => Err(ConfigError::new(
                "opportunities",
                format!("found {found}; expected {MOST} at most"),
            )),
            false => Ok(()),
        }
    }

    /// Returns the kind of signal of each table.
    fn words(&self) -> Result<Vec<SignalKind>, ConfigError> {
        let word = |table: &Keys| kind_of(table).map(|(entry, _)| entry.build.word);
        let each = self.tables.iter().enumerate();
        each.map(|(index, table)| word(table).map_err(|error| error.below(&at(index))))
            .collect()
    }

    /// Checks that a host reacts to each opportunity.
    ///
    /// # Errors
    /// Returns the first opportunity without effect.
    pub(crate) fn check_heard(&self, memory: bool, pushed: bool) -> Result<(), ConfigError> {
        for (index, word) in self.words()?.into_iter().enumerate() {
            let message = match word {
                // A signal without a reader is an error, because the user would take the unchanged
                // result for the effect of the signal.
                SignalKind::Pull if !memory => {
                    "no host has [host.memory], so there are no dirty data to ask for; add [host.memory], or remove this opportunity"
                }
                SignalKind::Push if !pushed => {
                    "no host has [host.pushed], so no host keeps offered data; add [host.pushed], or remove this opportunity"
                }
                _ => continue,
            };
            return Err(ConfigError::new(at(index), message));
        }
        Ok(())
    }

    /// Checks that each opportunity works with the clients of a served stack.
    ///
    /// # Errors
    /// Returns the first opportunity that issues I/O of its own. The stored bytes would not follow
    /// this I/O.
    pub(crate) fn check_served(&self) -> Result<(), ConfigError> {
        match self
            .words()?
            .into_iter()
            .position(|word| word == SignalKind::Nothing)
        {
            None => Ok(()),
            Some(index) => {
                let message = "the opportunity issues I/O of its own, which a served stack cannot carry out on its bytes; remove this table";
                Err(ConfigError::new(at(index), message))
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.trials.is_empty()
    }

    fn build(&self, site: &OpportunitySite) -> Result<Vec<Box<dyn Opportunity>>, ConfigError> {
        let each = |(index, table)| {
            build(table, site).map_err(|error: ConfigError| error.below(&at(index)))
        };
        let trials = self.trials.iter().map(|trial| trial.build(site));
        self.tables
            .iter()
            .enumerate()
            .map(each)
            .chain(trials)
            .collect()
    }

    /// Builds the watch above an array.
    ///
    /// # Errors
    /// Returns errors at the wrong key.
    pub(crate) fn over(
        &self,
        array: Branch,
        site: impl FnOnce() -> Result<OpportunitySite, ConfigError>,
    ) -> Result<Branch, ConfigError> {
        // A layer without opportunities would pass every request on, and cost time on each.
        if self.is_empty() {
            return Ok(array);
        }
        Ok(Branch::over(
            Box::new(OpportunityLayer::new(self.build(&site()?)?)),
            array,
        ))
    }
}
