//! Bodies of JSON of which every member is known, and values of it within their bounds.

use rowgate_core::nearest::nearest;
use rowgate_core::problem::{Code, Problem};
use serde_json::{Map, Value};

/// The members of an object that are not read yet.
pub(super) struct Members {
    /// Before the names of members in messages: `batch.`.
    path: String,
    members: Map<String, Value>,
}

impl Members {
    /// Of the body. None is an empty object.
    pub(super) fn read(bytes: Option<&[u8]>, known: &[&str]) -> Result<Members, Problem> {
        let Some(bytes) = bytes else { return Members::of(String::new(), Map::new(), known) };
        let value = serde_json::from_slice(bytes).map_err(|error| {
            bad(format!("the body is not JSON, at line {} and column {}", error.line(), error.column()))
        })?;
        match value {
            Value::Object(members) => Members::of(String::new(), members, known),
            _ => Err(bad(format!("the body is not a JSON object; its members are {}", known.join(", ")))),
        }
    }

    fn of(path: String, members: Map<String, Value>, known: &[&str]) -> Result<Members, Problem> {
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            let place = if path.is_empty() { "of the body" } else { "there" };
            let what = format!(
                "{:?} is not a member {place}; the members are {}",
                format!("{path}{name}"),
                known.join(", ")
            );
            let problem = bad(what);
            return Err(match nearest(name, known.iter().copied()) {
                Some(near) => problem.detail(format!("did you mean {near:?}?")),
                None => problem,
            });
        }
        Ok(Members { path, members })
    }

    /// The value of a member that is there, with the name for messages. `null` is a value.
    fn any(&mut self, name: &str) -> Option<(String, Value)> {
        self.members.shift_remove(name).map(|value| (format!("{}{name}", self.path), value))
    }

    /// As [`Members::any`], where null is none.
    fn some(&mut self, name: &str) -> Option<(String, Value)> {
        self.any(name).filter(|(_, value)| !value.is_null())
    }

    pub(super) fn object(&mut self, name: &str, known: &[&str]) -> Result<Option<Members>, Problem> {
        match self.some(name) {
            None => Ok(None),
            Some((path, Value::Object(members))) => Members::of(format!("{path}."), members, known).map(Some),
            Some((path, _)) => Err(bad(format!("{path} is an object; its members are {}", known.join(", ")))),
        }
    }

    /// An object whose members have any name.
    pub(super) fn map(&mut self, name: &str) -> Result<Option<Map<String, Value>>, Problem> {
        match self.some(name) {
            None => Ok(None),
            Some((_, Value::Object(members))) => Ok(Some(members)),
            Some((path, _)) => Err(bad(format!("{path} is an object"))),
        }
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        self.text_or_null(name).map(Option::flatten)
    }

    /// `Some(None)`: null is given.
    pub(super) fn text_or_null(&mut self, name: &str) -> Result<Option<Option<String>>, Problem> {
        match self.any(name) {
            None => Ok(None),
            Some((_, Value::Null)) => Ok(Some(None)),
            Some((path, Value::String(text))) if text.contains('\0') => {
                Err(bad(format!("{path} holds a NUL character; leave it out")))
            }
            Some((_, Value::String(text))) => Ok(Some(Some(text))),
            Some((path, _)) => Err(bad(format!("{path} is a text in quotes"))),
        }
    }

    /// `Some(None)`: null is given.
    pub(super) fn texts_or_null(&mut self, name: &str) -> Result<Option<Option<Vec<String>>>, Problem> {
        let Some((path, value)) = self.any(name) else { return Ok(None) };
        let wrong = || bad(format!("{path} is an array of texts"));
        let values = match value {
            Value::Null => return Ok(Some(None)),
            Value::Array(values) => values,
            _ => return Err(wrong()),
        };
        let texts = values.into_iter().map(|value| match value {
            Value::String(text) if !text.contains('\0') => Ok(text),
            _ => Err(wrong()),
        });
        texts.collect::<Result<Vec<_>, _>>().map(|texts| Some(Some(texts)))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        match self.some(name) {
            None => Ok(None),
            Some((_, Value::Bool(flag))) => Ok(Some(flag)),
            Some((path, _)) => Err(bad(format!("{path} is true or false, without quotes"))),
        }
    }

    pub(super) fn number(&mut self, name: &str, least: i32, most: i32) -> Result<Option<i32>, Problem> {
        let Some((path, value)) = self.some(name) else { return Ok(None) };
        let Value::Number(number) = value else {
            return Err(bad(format!("{path} is a whole number, without quotes")));
        };
        let number = number.as_i64().and_then(|number| i32::try_from(number).ok());
        let number = number.filter(|number| (least..=most).contains(number));
        number.map(Some).ok_or_else(|| invalid(format!("{path} is a whole number from {least} to {most}")))
    }
}

/// What has the wrong form.
pub(super) fn bad(what: impl Into<String>) -> Problem {
    Problem::new(Code::BadRequest, what)
}

/// A value of the right form that is not one of those that may be.
pub(super) fn invalid(what: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidValue, what)
}
