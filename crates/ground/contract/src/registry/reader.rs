//! Reads a type from a JSON value, and keeps the path of the first error.
//!
//! serde_json and the crate serde_path_to_error do the same with several generic wrappers for each
//! type. The configs of this project have hundreds of types, so the wrappers are a tenth of the
//! module for browsers. This reader has few generic functions, and the others take the expectation
//! as a trait object. Rules and error messages are those of serde_json for a [`Value`], but for one:
//! a list without names is no struct.

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};
use std::cell::RefCell;

/// Reads `value`. An error has the path of the value that was refused, such as
/// `arrivals.times[2]`; the path of the whole value is empty.
pub fn read_value<C: DeserializeOwned>(value: Value) -> Result<C, (String, Error)> {
    let refused = RefCell::new(None);
    let read = C::deserialize(Reader {
        value,
        place: &Place::Whole,
        refused: &refused,
    });
    read.map_err(|error| (refused.into_inner().unwrap_or_default(), error))
}

/// The path of a value.
enum Place<'p> {
    Whole,
    /// A key of a table, or a variant of an enum.
    Key(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn write(&self, path: &mut String) {
        match self {
            Place::Whole => {}
            Place::Key(above, key) => {
                above.write(path);
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
            Place::Item(above, index) => {
                above.write(path);
                path.push_str(&format!("[{index}]"));
            }
        }
    }
}

/// The path of the first error.
type Refused = RefCell<Option<String>>;

/// Keeps the path of an error. The innermost value reports first, and its path stays.
#[cold]
#[inline(never)]
fn refuse(place: &Place<'_>, refused: &Refused) {
    let mut refused = refused.borrow_mut();
    if refused.is_none() {
        let mut path = String::new();
        place.write(&mut path);
        *refused = Some(path);
    }
}

#[cold]
#[inline(never)]
fn wrong_type(value: &Value, expected: &dyn Expected) -> Error {
    let found = match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(yes) => Unexpected::Bool(*yes),
        Value::Number(number) => {
            // In the order of serde_json: a positive number is unsigned in its messages.
            if let Some(number) = number.as_u64() {
                Unexpected::Unsigned(number)
            } else if let Some(number) = number.as_i64() {
                Unexpected::Signed(number)
            } else {
                Unexpected::Float(number.as_f64().unwrap_or(f64::NAN))
            }
        }
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    };
    Error::invalid_type(found, expected)
}

/// A value to read.
struct Reader<'p> {
    value: Value,
    place: &'p Place<'p>,
    refused: &'p Refused,
}

impl<'p> Reader<'p> {
    // The two generic functions are compiled for each type, so all but the call of the visitor stands
    // in functions that are not generic.
    fn table<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut fields = self.into_fields(&visitor)?;
        let read = visitor.visit_map(&mut fields)?;
        fields.end()?;
        Ok(read)
    }

    fn list<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut items = self.into_items(&visitor)?;
        let read = visitor.visit_seq(&mut items)?;
        items.end()?;
        Ok(read)
    }

    #[inline(never)]
    fn into_fields(self, expected: &dyn Expected) -> Result<Fields<'p>, Error> {
        match self.value {
            Value::Object(fields) => Ok(Fields {
                count: fields.len(),
                rest: fields.into_iter(),
                next: None,
                place: self.place,
                refused: self.refused,
            }),
            other => Err(wrong_type(&other, expected)),
        }
    }

    #[inline(never)]
    fn into_items(self, expected: &dyn Expected) -> Result<Items<'p>, Error> {
        match self.value {
            Value::Array(items) => Ok(Items {
                count: items.len(),
                rest: items.into_iter(),
                index: 0,
                place: self.place,
                refused: self.refused,
            }),
            other => Err(wrong_type(&other, expected)),
        }
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::String(text) => visitor.visit_string(text),
            other => Err(wrong_type(&other, &visitor)),
        }
    }

    fn number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            // serde_json converts between the kinds of numbers, so that `1` is read as a float and
            // `1.5` refused as an integer.
            Value::Number(number) => number.deserialize_any(visitor),
            other => Err(wrong_type(&other, &visitor)),
        }
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.number(visitor)
        }
    )*};
}

macro_rules! texts {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.text(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(yes) => visitor.visit_bool(yes),
            Value::String(_) => self.text(visitor),
            Value::Number(_) => self.number(visitor),
            Value::Array(_) => self.list(visitor),
            Value::Object(_) => self.table(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Bool(yes) => visitor.visit_bool(yes),
            other => Err(wrong_type(&other, &visitor)),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            other => Err(wrong_type(&other, &visitor)),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    texts! { deserialize_char deserialize_str deserialize_string deserialize_identifier }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            // `self` and not its value: the path and the place of errors stay those of the key.
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.table(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.table(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.list(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.list(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (name, value) = variant(self.value)?;
        visitor.visit_enum(Variant {
            name,
            value,
            place: self.place,
            refused: self.refused,
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // The value is dropped unread, so that ignored keys cannot have errors.
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { bytes byte_buf unit_struct }
}

/// Returns the name of a variant, and the value of a variant with contents.
fn variant(value: Value) -> Result<(String, Option<Value>), Error> {
    match value {
        Value::String(name) => Ok((name, None)),
        Value::Object(fields) => {
            let mut fields = fields.into_iter();
            match (fields.next(), fields.len()) {
                (Some((name, value)), 0) => Ok((name, Some(value))),
                _ => Err(Error::invalid_value(
                    Unexpected::Map,
                    &"map with a single key",
                )),
            }
        }
        other => Err(wrong_type(&other, &"string or map")),
    }
}

/// The items of an array.
struct Items<'p> {
    /// Number of items of the whole array.
    count: usize,
    rest: std::vec::IntoIter<Value>,
    index: usize,
    place: &'p Place<'p>,
    refused: &'p Refused,
}

impl Items<'_> {
    /// Refuses an array with unread items. A visitor of a tuple stops at its length, and the rest would
    /// be dropped without a word.
    #[inline(never)]
    fn end(self) -> Result<(), Error> {
        match self.rest.len() {
            0 => Ok(()),
            _ => Err(Error::invalid_length(
                self.count,
                &"fewer elements in array",
            )),
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(value) = self.rest.next() else {
            return Ok(None);
        };
        let place = Place::Item(self.place, self.index);
        self.index += 1;
        let read = seed.deserialize(Reader {
            value,
            place: &place,
            refused: self.refused,
        });
        if read.is_err() {
            refuse(&place, self.refused);
        }
        read.map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The fields of a table.
struct Fields<'p> {
    /// Number of fields of the whole table.
    count: usize,
    rest: serde_json::map::IntoIter,
    /// Key and value of which the key has been read.
    next: Option<(String, Value)>,
    place: &'p Place<'p>,
    refused: &'p Refused,
}

impl Fields<'_> {
    /// Refuses a table with unread fields, as for items.
    #[inline(never)]
    fn end(self) -> Result<(), Error> {
        match self.rest.len() {
            0 => Ok(()),
            _ => Err(Error::invalid_length(self.count, &"fewer elements in map")),
        }
    }

    /// Returns the next field; `None` at the end.
    #[inline(never)]
    fn advance(&mut self) -> Option<&str> {
        self.next = self.rest.next();
        self.next.as_ref().map(|(key, _)| key.as_str())
    }

    /// Keeps the path of an error at the key of the next field.
    #[cold]
    #[inline(never)]
    fn refuse_key(&self) {
        if let Some((key, _)) = &self.next {
            refuse(&Place::Key(self.place, key), self.refused);
        }
    }

    #[inline(never)]
    fn take(&mut self) -> Result<(String, Value), Error> {
        self.next
            .take()
            .ok_or_else(|| Error::custom("value is missing"))
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(key) = self.advance() else {
            return Ok(None);
        };
        let read = seed.deserialize(Key(key));
        if read.is_err() {
            self.refuse_key();
        }
        read.map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let (key, value) = self.take()?;
        let place = Place::Key(self.place, &key);
        let read = seed.deserialize(Reader {
            value,
            place: &place,
            refused: self.refused,
        });
        if read.is_err() {
            refuse(&place, self.refused);
        }
        read
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The key of a table. Numbers and truth values as keys are texts in JSON.
struct Key<'p>(&'p str);

macro_rules! keys {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            // Maps with numbers as keys: JSON has no keys but texts.
            match serde_json::from_str::<Value>(self.0) {
                Ok(Value::Number(number)) => number.deserialize_any(visitor),
                _ => visitor.visit_str(self.0),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.0)
    }

    keys! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        StringDeserializer::new(self.0.to_owned()).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// A variant of an enum.
struct Variant<'p> {
    name: String,
    value: Option<Value>,
    place: &'p Place<'p>,
    refused: &'p Refused,
}

impl<'de, 'p> EnumAccess<'de> for Variant<'p> {
    type Error = Error;
    type Variant = Variant<'p>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Variant<'p>), Error> {
        Ok((seed.deserialize(Key(&self.name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match &self.value {
            // `null` is serde_json's unit.
            None | Some(Value::Null) => Ok(()),
            Some(value) => {
                refuse(&Place::Key(self.place, &self.name), self.refused);
                Err(wrong_type(value, &"unit"))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        let place = Place::Key(self.place, &self.name);
        let read = match self.value {
            Some(value) => seed.deserialize(Reader {
                value,
                place: &place,
                refused: self.refused,
            }),
            None => Err(Error::invalid_type(
                Unexpected::UnitVariant,
                &"newtype variant",
            )),
        };
        if read.is_err() {
            refuse(&place, self.refused);
        }
        read
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        let place = Place::Key(self.place, &self.name);
        let read = match self.value {
            Some(value @ Value::Array(_)) => Reader {
                value,
                place: &place,
                refused: self.refused,
            }
            .list(visitor),
            value => Err(no_parts(value, &"tuple variant")),
        };
        if read.is_err() {
            refuse(&place, self.refused);
        }
        read
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let place = Place::Key(self.place, &self.name);
        let read = match self.value {
            Some(value @ Value::Object(_)) => Reader {
                value,
                place: &place,
                refused: self.refused,
            }
            .table(visitor),
            value => Err(no_parts(value, &"struct variant")),
        };
        if read.is_err() {
            refuse(&place, self.refused);
        }
        read
    }
}

/// Returns the error of a variant whose contents are missing or of another kind.
#[cold]
fn no_parts(value: Option<Value>, expected: &dyn Expected) -> Error {
    match value {
        Some(value) => wrong_type(&value, expected),
        None => Error::invalid_type(Unexpected::UnitVariant, expected),
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
