//! Claims of a key, kept as small as they are: a map of the standard library takes 550 bytes for one of them, and an operator
//! may know ten thousand keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Names and values, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims(Box<[(Box<str>, Box<str>)]>);

impl Claims {
    /// Each claim's name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl Serialize for Claims {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Claims, D::Error> {
        let claims: BTreeMap<Box<str>, Box<str>> = BTreeMap::deserialize(deserializer)?;
        Ok(Claims(claims.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn they_are_an_object_of_texts_and_nothing_else() {
        let claims: Claims = serde_json::from_value(json!({"b": "2", "a": "1"})).expect("an object");
        assert_eq!(claims.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
        assert_eq!(serde_json::to_value(&claims).ok(), Some(json!({"a": "1", "b": "2"})));
        for bad in [json!(["a"]), json!({"a": 1}), Value::Null] {
            assert!(serde_json::from_value::<Claims>(bad.clone()).is_err(), "{bad}");
        }
    }
}
