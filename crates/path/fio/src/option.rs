//! One option of a job file: the parser of its value, and its treatment.

use crate::job::FioJob;
use fullstroke_contract::Reason;

/// Value of a setting, with the context for its parser.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionValue<'a> {
    /// Text of the value; `None` if the option stands alone.
    pub(crate) text: Option<&'a str>,
    pub(crate) kb_base: u64,
}

/// Parser that writes a value into the job. The error tells the found and the expected text.
pub(crate) type Read = fn(&mut FioJob, OptionValue<'_>) -> Result<(), Reason>;

/// Treatment of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Treatment {
    /// Has the same effect as in fio.
    Simulated(Read),
    /// Has the same effect as in fio, on files. Jobs on a volume ignore the option. If the list has
    /// values, any other value would change a volume's I/O, so that jobs on a volume accept only
    /// the listed values.
    OnFiles(Read, &'static [&'static str]),
    /// Does not change the I/O of a volume.
    Ignored,
    /// Would change the I/O. Only the listed values are accepted, because they switch the option
    /// off.
    Refused(&'static [&'static str]),
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionEntry {
    /// Name of the option, followed by its aliases.
    pub(crate) names: &'static [&'static str],
    pub(crate) treatment: Treatment,
    /// Meaning of the option here, or the reason why it is ignored or refused.
    pub(crate) note: &'static str,
    /// Restriction for jobs on files; `None` if there is none.
    pub(crate) files: Option<OnFiles>,
}

/// Values that jobs on files accept for an option with another meaning on a volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnFiles {
    /// Accepted values.
    pub(crate) taken: &'static [&'static str],
    /// Reason why no other value is accepted.
    pub(crate) why: &'static str,
}

/// Returns true if each part of a value is in the list of values that switch an option off. Parts
/// stand for directions (`0,0`) and are separated by commas.
pub(crate) fn is_off(off: &[&str], value: Option<&str>) -> bool {
    value.is_some_and(|value| {
        off.contains(&value) || value.split(',').all(|part| off.contains(&part.trim()))
    })
}

impl OnFiles {
    /// Returns the text for an error message: `files stay; expected 0`.
    pub(crate) fn expected(self) -> String {
        match self.taken {
            [] => format!("{}; remove the option", self.why),
            [only] => format!("{}; expected {only}", self.why),
            several => format!("{}; expected one of {}", self.why, several.join(", ")),
        }
    }
}

impl OptionEntry {
    /// Returns the entry with a restriction: jobs on files accept only the values `taken`.
    pub(crate) const fn on_files(
        self,
        taken: &'static [&'static str],
        why: &'static str,
    ) -> OptionEntry {
        OptionEntry {
            files: Some(OnFiles { taken, why }),
            ..self
        }
    }
}
