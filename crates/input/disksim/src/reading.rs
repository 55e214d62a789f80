//! The interpretation of a file's numbers: rules and constants that are in no file. Each rule can
//! be changed or switched off.

use thiserror::Error;

/// Declares a struct of numbers, and the table of these numbers.
macro_rules! rules {
    ($($(#[doc = $doc:literal])* $field:ident: $default:literal, off $off:literal, tried $tried:expr;)*) => {
        /// The interpretation of a file's numbers. A rule is 1 (on) or 0 (off), unless it is a
        /// constant.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Reading {
            $($(#[doc = $doc])* pub $field: f64,)*
        }

        impl Default for Reading {
            /// Returns the rules whose answers are nearest to the measured disks.
            fn default() -> Reading {
                Reading { $($field: $default,)* }
            }
        }

        impl Reading {
            /// The interpretation by the documentation of the keys alone.
            pub const AS_WRITTEN: Reading = Reading { $($field: $off,)* };

            /// All rules.
            pub const RULES: &[Rule] = &[$(Rule {
                name: stringify!($field),
                summary: concat!($($doc),*),
                off: $off,
                tried: &$tried,
                get: |reading| reading.$field,
                set: |reading, value| reading.$field = value,
            },)*];
        }
    };
}

/// One rule or constant of a [`Reading`].
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Name of the field in [`Reading`], and name on the command line.
    pub name: &'static str,
    /// Description of the rule.
    pub summary: &'static str,
    /// Value without effect.
    pub off: f64,
    /// Values for a fit to choose from.
    pub tried: &'static [f64],
    /// Returns the value in a reading.
    pub get: fn(&Reading) -> f64,
    /// Sets the value in a reading.
    pub set: fn(&mut Reading, f64),
}

rules! {
    /// Settling of a head as a part of a revolution, where the file's head
    /// switch is only the electronic one: within the track skew and the shortest
    /// seek.
    settling: 0.11, off 0.0, tried [0.0, 0.09, 0.1, 0.11, 0.12, 0.13];
    /// The same on the track that was written last, for the read element is not
    /// where the write element is.
    turn_round: 1.0, off 0.0, tried [0.0, 1.0];
    /// The short overhead of a write hit is that of a write near the last
    /// request, whatever that was; the long one is that of the others.
    near_write_hits: 1.0, off 0.0, tried [0.0, 1.0];
    /// A drive that reads on arrival and keeps free blocks holds whole tracks.
    whole_tracks: 1.0, off 0.0, tried [0.0, 1.0];
    /// Writes drop all read segments, unless read-ahead follows streams.
    writes_drop_reads: 1.0, off 0.0, tried [0.0, 1.0];
    /// A write does not begin before the part of it that the low water mark names
    /// is in the buffer, unless it left the bus before its data were sent.
    write_mark: 1.0, off 0.0, tried [0.0, 1.0];
    /// A read without a seek has at least the overhead of a hit: a curve that was
    /// extracted with the overhead in it does not have that of no distance.
    in_place: 1.0, off 0.0, tried [0.0, 1.0];
    /// Where read-ahead follows streams in segments that hold a track, they are
    /// filled behind every read, and not to the track's end only.
    fill: 1.0, off 0.0, tried [0.0, 1.0];
    /// Where read-ahead follows streams in segments that are neither rings nor
    /// as long as a track, it begins with the second read of a stream.
    streams_only: 1.0, off 0.0, tried [0.0, 1.0];
}

/// An invalid setting of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadingError {
    /// There is no rule of this name.
    #[error("there is no rule `{name}`; expected one of {known}")]
    NoRule {
        /// Name in the setting.
        name: String,
        /// Names of all rules.
        known: String,
    },
    /// The value is not a number from 0 to 1.
    #[error("found `{setting}`; expected {name}=on, {name}=off or a number from 0 to 1")]
    NoValue {
        /// Setting as given: rule and value.
        setting: String,
        /// Name of the rule.
        name: String,
    },
}

impl Reading {
    /// Sets a rule: `NAME=VALUE`, `NAME=on` or `NAME=off`.
    ///
    /// # Errors
    /// If the rule is unknown, or if the value is not a number from 0 to 1.
    pub fn set(&mut self, setting: &str) -> Result<(), ReadingError> {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let Some(rule) = Reading::RULES.iter().find(|rule| rule.name == name) else {
            let names: Vec<&str> = Reading::RULES.iter().map(|rule| rule.name).collect();
            return Err(ReadingError::NoRule {
                name: name.to_owned(),
                known: names.join(", "),
            });
        };
        let number = match value {
            "on" => Some((rule.get)(&Reading::default()))
                .filter(|&value| value != rule.off)
                .or(Some(1.0)),
            "off" => Some(rule.off),
            number => number
                .parse()
                .ok()
                .filter(|number| (0.0..=1.0).contains(number)),
        };
        let no_value = || ReadingError::NoValue {
            setting: setting.to_owned(),
            name: name.to_owned(),
        };
        (rule.set)(self, number.ok_or_else(no_value)?);
        Ok(())
    }

    /// Returns the rules that differ from `other`, as `name=value`.
    pub fn differences(&self, other: &Reading) -> Vec<String> {
        let differs = Reading::RULES
            .iter()
            .filter(|rule| (rule.get)(self) != (rule.get)(other));
        differs
            .map(|rule| format!("{}={}", rule.name, (rule.get)(self)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_can_be_named_and_switched_off() {
        let mut reading = Reading::default();
        for rule in Reading::RULES {
            reading.set(&format!("{}=off", rule.name)).unwrap();
            assert!(
                rule.tried.contains(&rule.off) && !rule.summary.is_empty(),
                "{}",
                rule.name
            );
            assert!(
                rule.tried.contains(&(rule.get)(&Reading::default())),
                "{}",
                rule.name
            );
        }
        assert_eq!(reading, Reading::AS_WRITTEN);
        for rule in Reading::RULES
            .iter()
            .filter(|rule| (rule.get)(&Reading::default()) != rule.off)
        {
            reading.set(&format!("{}=on", rule.name)).unwrap();
        }
        assert_eq!(reading, Reading::default());
    }

    #[test]
    fn what_is_no_rule_or_value_is_named() {
        let mut reading = Reading::default();
        assert!(
            reading
                .set("settlin=on")
                .unwrap_err()
                .to_string()
                .contains("`settlin`")
        );
        for value in [
            "settling",
            "settling=",
            "settling=2",
            "settling=NaN",
            "settling=-0.1",
        ] {
            assert!(
                reading
                    .set(value)
                    .unwrap_err()
                    .to_string()
                    .contains("settling=off"),
                "{value}"
            );
        }
        assert_eq!(reading, Reading::default());
    }
}
