//! Parameters of a statement, as `-p name=value`.

use serde_json::{Map, Value};

/// One parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    name: String,
    value: Value,
}

impl Parameter {
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What makes a text of a value that is JSON, for the shell: `'id="7"'`. `None` of a text.
    #[must_use]
    pub(crate) fn as_text(&self) -> Option<String> {
        let text = Value::String(self.value.to_string());
        (!self.value.is_string()).then(|| format!("'{}={text}'", self.name))
    }
}

/// `name=value`: a value that is JSON is that value, any other is a text.
pub(crate) fn parse(text: &str) -> Result<Parameter, String> {
    let (name, value) = text.split_once('=').ok_or("write it as name=value, such as id=7")?;
    let name = name.strip_prefix('@').unwrap_or(name);
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Err(format!("{name:?} is not the name of a parameter; for @id write id=7"));
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok(Parameter { name: name.to_owned(), value })
}

/// As the member `parameters` of a request. A name that comes twice is a mistake.
pub(crate) fn object(parameters: &[Parameter]) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    for Parameter { name, value } in parameters {
        if object.insert(name.clone(), value.clone()).is_some() {
            return Err(format!("the parameter {name} is given twice"));
        }
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_json_or_texts() {
        for (text, value) in [
            ("id=7", json!(7)),
            ("id=-1.50", serde_json::from_str("-1.50").expect("JSON")),
            ("paid=true", json!(true)),
            ("x=null", Value::Null),
            ("ids=[1,2]", json!([1, 2])),
            ("zip=007", json!("007")),
            ("zip=\"7\"", json!("7")),
            ("name=O'Brien", json!("O'Brien")),
            ("a=b=c", json!("b=c")),
            ("empty=", json!("")),
            ("@id=7", json!(7)),
        ] {
            assert_eq!(parse(text).expect(text).value, value, "{text}");
        }
        for text in ["id", "=7", "a b=7", "$1=7"] {
            parse(text).expect_err(text);
        }
    }

    #[test]
    fn a_number_becomes_a_text_in_quotes() {
        let as_text = |text: &str| parse(text).expect(text).as_text();
        assert_eq!(as_text("id=7").as_deref(), Some("'id=\"7\"'"));
        assert_eq!(as_text("id=x"), None);
    }

    #[test]
    fn a_name_comes_once() {
        let of =
            |texts: &[&str]| object(&texts.iter().map(|text| parse(text).expect(text)).collect::<Vec<_>>());
        assert_eq!(Value::Object(of(&["b=1", "a=x"]).expect("an object")), json!({"b": 1, "a": "x"}));
        of(&["a=1", "a=2"]).expect_err("twice");
    }
}
