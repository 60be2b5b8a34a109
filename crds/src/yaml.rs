//! YAML and JSON, each as the other.

use serde_json::{Map, Number, Value};

/// JSON as YAML. Serializing a JSON value directly would write its numbers as mappings: `arbitrary_precision` hands
/// them over in a form of serde_json's own.
#[must_use]
pub fn to_yaml(value: &Value) -> serde_yaml::Value {
    match value {
        Value::Null => serde_yaml::Value::Null,
        Value::Bool(it) => (*it).into(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(it), _) => it.into(),
            (None, Some(it)) => it.into(),
            (None, None) => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Value::String(it) => it.as_str().into(),
        Value::Array(items) => serde_yaml::Value::Sequence(items.iter().map(to_yaml).collect()),
        Value::Object(map) => {
            let entries = map.iter().map(|(name, value)| (name.as_str().into(), to_yaml(value)));
            serde_yaml::Value::Mapping(entries.collect())
        }
    }
}

/// What YAML can say and JSON, and so a manifest, cannot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    #[error("the name {0} is not text; put it in quotes")]
    Name(String),
    #[error("the number {0} is not finite")]
    Number(String),
    #[error("tags such as {0} mean nothing here; leave them out")]
    Tag(String),
}

/// YAML as JSON. Names must be texts.
///
/// # Errors
///
/// For what JSON cannot hold.
pub fn from_yaml(value: &serde_yaml::Value) -> Result<Value, YamlError> {
    Ok(match value {
        serde_yaml::Value::Null => Value::Null,
        serde_yaml::Value::Bool(it) => Value::Bool(*it),
        serde_yaml::Value::Number(it) => Value::Number(match (it.as_i64(), it.as_u64()) {
            (Some(it), _) => it.into(),
            (None, Some(it)) => it.into(),
            (None, None) => {
                it.as_f64().and_then(Number::from_f64).ok_or_else(|| YamlError::Number(it.to_string()))?
            }
        }),
        serde_yaml::Value::String(it) => Value::String(it.clone()),
        serde_yaml::Value::Sequence(items) => {
            Value::Array(items.iter().map(from_yaml).collect::<Result<_, _>>()?)
        }
        serde_yaml::Value::Mapping(map) => {
            let mut object = Map::new();
            for (name, value) in map {
                let name = name.as_str().ok_or_else(|| YamlError::Name(format!("{name:?}")))?;
                object.insert(name.to_owned(), from_yaml(value)?);
            }
            Value::Object(object)
        }
        serde_yaml::Value::Tagged(tagged) => return Err(YamlError::Tag(tagged.tag.to_string())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_say_the_same() {
        let yaml = "a: [1, -2, 1.5, true, null, x, 18446744073709551615]\nb: {c: {}}\n";
        let json: Value = serde_json::from_str(
            r#"{"a": [1, -2, 1.5, true, null, "x", 18446744073709551615], "b": {"c": {}}}"#,
        )
        .expect("the test's JSON parses");
        let parsed: serde_yaml::Value = serde_yaml::from_str(yaml).expect("the test's YAML parses");
        assert_eq!(from_yaml(&parsed), Ok(json.clone()));
        assert_eq!(to_yaml(&json), parsed);
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        for (yaml, error) in [
            ("{1: a}", YamlError::Name("Number(1)".to_owned())),
            ("a: .nan", YamlError::Number(".nan".to_owned())),
            ("a: !b c", YamlError::Tag("!b".to_owned())),
        ] {
            let parsed: serde_yaml::Value = serde_yaml::from_str(yaml).expect("the test's YAML parses");
            assert_eq!(from_yaml(&parsed), Err(error), "{yaml}");
        }
    }
}
