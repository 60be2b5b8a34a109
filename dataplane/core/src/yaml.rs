//! YAML, read and written as JSON values. Nothing else names the crate behind it.

use serde::Deserialize as _;
use serde_json::{Map, Number, Value};

mod lines;
pub use lines::{comment, document_of, indented, lines, scalar};

/// The value as one YAML document.
#[must_use]
pub fn to_string(value: &Value) -> String {
    serde_yaml::to_string(&to_yaml(value)).expect("every JSON value can be written as YAML")
}

/// The only document of `text`; null for an empty one.
///
/// # Errors
///
/// For what is not one YAML document, and for what JSON cannot hold.
pub fn document(text: &str) -> Result<Value, YamlError> {
    let parsed: serde_yaml::Value = serde_yaml::from_str(text).map_err(syntax)?;
    merged(parsed)
}

/// Each document of `text`, in order; nothing follows one that cannot be parsed.
pub fn documents(text: &str) -> impl Iterator<Item = Result<Value, YamlError>> {
    let mut is_broken = false;
    serde_yaml::Deserializer::from_str(text).map_while(move |document| {
        let parsed = (!is_broken).then(|| serde_yaml::Value::deserialize(document))?;
        is_broken = parsed.is_err();
        Some(parsed.map_err(syntax).and_then(merged))
    })
}

fn syntax(error: serde_yaml::Error) -> YamlError {
    YamlError::Syntax { line: error.location().map(|at| at.line()), message: error.to_string() }
}

/// With the entries of `<<` where they belong.
fn merged(mut value: serde_yaml::Value) -> Result<Value, YamlError> {
    value.apply_merge().map_err(|error| YamlError::Merge(error.to_string()))?;
    from_yaml(&value)
}

/// Serializing a JSON value directly would write its numbers as mappings: `arbitrary_precision` hands them over in a form
/// of serde_json's own.
fn to_yaml(value: &Value) -> serde_yaml::Value {
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

/// Why a text is no JSON value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// `line` counts from 1. The message may quote the text.
    #[error("{message}")]
    Syntax { message: String, line: Option<usize> },
    #[error("{0}")]
    Merge(String),
    #[error("the name {0} is not text; put it in quotes")]
    Name(String),
    #[error("the number {0} is not finite")]
    Number(String),
    #[error("tags such as {0} are not supported; leave them out")]
    Tag(String),
}

fn from_yaml(value: &serde_yaml::Value) -> Result<Value, YamlError> {
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
        assert_eq!(document(yaml), Ok(json.clone()));
        assert_eq!(document(&to_string(&json)), Ok(json));
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        for (yaml, error) in [
            ("{1: a}", YamlError::Name("Number(1)".to_owned())),
            ("a: .nan", YamlError::Number(".nan".to_owned())),
            ("a: !b c", YamlError::Tag("!b".to_owned())),
        ] {
            assert_eq!(document(yaml), Err(error), "{yaml}");
        }
    }

    #[test]
    fn documents_follow_each_other_up_to_one_that_cannot_be_parsed() {
        let text = "base: &base {a: 1}\n---\nx: {<<: {a: 1}, b: 2}\n---\n{1: a}\n---\n- [\n---\nd: 1\n";
        let read: Vec<_> = documents(text).collect();
        let [Ok(base), Ok(x), Err(YamlError::Name(_)), Err(YamlError::Syntax { line: Some(_), .. })] =
            &read[..]
        else {
            panic!("{read:?}");
        };
        assert_eq!(base["base"]["a"], 1);
        assert_eq!((&x["x"]["a"], &x["x"]["b"]), (&1.into(), &2.into()));
        assert_eq!(document(""), Ok(Value::Null));
        assert!(matches!(document("a: 1\n---\nb: 2\n"), Err(YamlError::Syntax { .. })));
    }
}
