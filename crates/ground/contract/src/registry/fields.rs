//! The names of the fields that a config type reads.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the names of the fields of a struct, in the order of the struct. The names are those that
/// serde's derived reader asks for. A type that is no struct, or has a flattened field, has none here.
pub(super) fn field_names<C: DeserializeOwned>() -> &'static [&'static str] {
    let mut found: &'static [&'static str] = &[];
    // The reader always fails, because there is nothing to read.
    let _ = C::deserialize(Asked(&mut found));
    found
}

/// A source without data that keeps the names of the fields for which a reader asks.
struct Asked<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("no data"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no data"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn names_are_those_that_the_reader_knows() {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only the names are read")]
        struct Config {
            chunk: u64,
            #[serde(default, rename = "kind")]
            other: Option<u64>,
            #[serde(skip)]
            hidden: u64,
        }
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only the names are read")]
        struct Wrapped(Config);
        assert_eq!(field_names::<Config>(), ["chunk", "kind"]);
        assert_eq!(field_names::<Wrapped>(), ["chunk", "kind"]);
        assert!(field_names::<u64>().is_empty());
    }
}
