use super::*;
use serde::Deserialize;
use serde_json::Map;
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Array {
    name: String,
    #[serde(default)]
    members: Vec<Member>,
    chunk: Option<Size>,
    #[serde(default)]
    shares: BTreeMap<u8, f64>,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    pair: (u64, i32),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    slot: u32,
    #[serde(default)]
    spare: bool,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Size(u64);

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    #[default]
    LeftSymmetric,
    Of(Member),
    Between(u64, u64),
    With {
        first: u64,
    },
}

#[derive(Debug, PartialEq, Deserialize)]
struct Flat {
    policy: String,
    #[serde(flatten)]
    keys: Map<String, Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Either {
    Number(f64),
    Text(String),
    Member(Member),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Tagged {
    Array(Box<Array>),
    Nothing {},
}

/// Holds the reader to serde_json and serde_path_to_error: the same value, or the same message at
/// the same path.
fn alike<C: DeserializeOwned + PartialEq + std::fmt::Debug>(value: &Value) {
    let expected = serde_path_to_error::deserialize::<_, C>(value.clone()).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        (path, error.into_inner().to_string())
    });
    let found = read_value::<C>(value.clone()).map_err(|(path, error)| (path, error.to_string()));
    // serde_json reads a list as a struct, field by field.
    if let Err((_, message)) = &found
        && message.starts_with("invalid type: sequence, expected")
        && message.contains("struct")
    {
        return;
    }
    assert_eq!(found, expected, "{value}");
}

/// Values to put at each place of a whole value.
fn odd_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(7),
        json!(-7),
        json!(1e300),
        json!(0.5),
        json!(u64::MAX),
        json!(""),
        json!("left-symmetric"),
        json!("of"),
        json!("array"),
        json!([]),
        json!([1, 2]),
        json!([1, 2, 3]),
        json!(["x"]),
        json!({}),
        json!({ "slot": 1 }),
        json!({ "slot": "x" }),
        json!({ "of": { "slot": 1, "nokey": 2 } }),
        json!({ "of": 3 }),
        json!({ "between": [1, "2"] }),
        json!({ "between": 3 }),
        json!({ "with": { "first": -1 } }),
        json!({ "with": [1] }),
        json!({ "left-symmetric": 3 }),
        json!({ "left-symmetric": null }),
        json!({ "of": {}, "with": {} }),
        json!({ "3": 0.5, "4": 1 }),
        json!({ "300": 0.5 }),
        json!({ "x": 0.5 }),
    ]
}

/// Puts `odd` at each place of `value` in turn, and calls `check` with the whole value.
fn each_place(value: &Value, odd: &Value, check: &mut dyn FnMut(&Value)) {
    check(odd);
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                each_place(inner, odd, &mut |changed| {
                    let mut whole = fields.clone();
                    whole.insert(key.clone(), changed.clone());
                    check(&Value::Object(whole));
                });
                let mut without = fields.clone();
                without.remove(key);
                check(&Value::Object(without));
            }
            let mut more = fields.clone();
            more.insert("nokey".to_owned(), odd.clone());
            check(&Value::Object(more));
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                each_place(inner, odd, &mut |changed| {
                    let mut whole = items.clone();
                    whole[index] = changed.clone();
                    check(&Value::Array(whole));
                });
            }
        }
        _ => {}
    }
}

#[test]
fn values_messages_and_paths_are_those_of_serde_json() {
    let array = json!({
        "name": "a", "members": [{ "slot": 1 }, { "slot": 2, "spare": true }], "chunk": 4,
        "order": { "of": { "slot": 3 } }, "pair": [1, -2],
    });
    let mut checked = 0;
    for odd in odd_values() {
        each_place(&array, &odd, &mut |value| {
            alike::<Array>(value);
            alike::<Flat>(value);
            alike::<Either>(value);
            let mut tagged = value.clone();
            if let Some(fields) = tagged.as_object_mut() {
                fields.insert("kind".to_owned(), json!("array"));
            }
            alike::<Tagged>(&tagged);
            alike::<Vec<Option<Order>>>(&json!([value, null, value]));
            alike::<BTreeMap<String, Array>>(&json!({ "a": array, "b": value }));
            checked += 1;
        });
    }
    assert!(checked > 500, "{checked}");
}

#[test]
fn keys_that_are_numbers_are_read() {
    let mut array = json!({ "name": "a", "shares": { "3": 0.5, "4": 1 } });
    alike::<Array>(&array);
    array["shares"] = json!({ "x": 1 });
    assert_eq!(
        read_value::<Array>(array).unwrap_err().0,
        "shares.x",
        "the key is named"
    );
}
