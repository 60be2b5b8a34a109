//! `rowgate webhooks create`: a subscription from flags, or from a file.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::object;
use crate::commands::{file_name, read_file};
use crate::failure::Failure;

/// The flags of `webhooks create`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "A file has what flags do not, such as batch and retry:
{\"name\": ..., \"url\": ..., \"filter\": {\"tables\": [...]}, ...}. Put headers with credentials there as
well, since other users of this machine see the arguments of a command.

Examples:
  rowgate webhooks create --name orders --to https://example.com/hooks --tables orders --ops insert,update
  rowgate webhooks create --file subscription.json")]
pub(in crate::commands) struct CreateFlags {
    /// A name for people
    #[arg(long, value_name = "NAME", required_unless_present = "file", conflicts_with = "file")]
    name: Option<String>,
    /// The URL that is sent the events
    #[arg(long, value_name = "URL", required_unless_present = "file", conflicts_with = "file")]
    to: Option<String>,
    /// Entities, separated by commas [default: all whose events the key may read]
    #[arg(long, value_name = "ENTITIES", value_delimiter = ',', conflicts_with = "file")]
    tables: Vec<String>,
    /// Some of insert, update, delete, truncate, separated by commas [default: the first three]
    #[arg(long, value_name = "OPS", value_delimiter = ',', conflicts_with = "file")]
    ops: Vec<String>,
    /// A SELECT with FOR JSON whose result is sent as `data` of each event
    #[arg(long, value_name = "SQL", conflicts_with = "file")]
    payload_query: Option<String>,
    /// A header that is sent along; may be repeated [example: 'X-Team: shop']
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header, conflicts_with = "file")]
    headers: Vec<(String, String)>,
    /// Send nothing until the subscription is changed
    #[arg(long, conflicts_with = "file")]
    suspend: bool,
    /// The whole subscription as JSON; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write it as 'NAME: VALUE'".to_owned()),
    }
}

/// A JSON object from a file.
pub(super) fn file(path: &Path) -> Result<Value, Failure> {
    let text = read_file(path)?;
    let wrong = |why: String| Failure::Usage(format!("{} is not {why}", file_name(path, "standard input")));
    match serde_json::from_str(&text).map_err(|error| wrong(format!("JSON: {error}")))? {
        body @ Value::Object(_) => Ok(body),
        _ => Err(wrong("a JSON object".to_owned())),
    }
}

impl CreateFlags {
    pub(super) fn body(&self) -> Result<Value, Failure> {
        self.file.as_ref().map_or_else(|| Ok(self.members()), |path| file(path))
    }

    fn members(&self) -> Value {
        let list = |list: &[String]| (!list.is_empty()).then(|| json!(list));
        let filter = object([("tables", list(&self.tables)), ("ops", list(&self.ops))]);
        let headers: Map<String, Value> =
            self.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        object([
            ("name", self.name.as_ref().map(|name| json!(name))),
            ("url", self.to.as_ref().map(|to| json!(to))),
            ("filter", (filter != json!({})).then_some(filter)),
            ("payloadQuery", self.payload_query.as_ref().map(|query| json!(query))),
            ("headers", (!headers.is_empty()).then_some(Value::Object(headers))),
            ("suspend", self.suspend.then_some(json!(true))),
        ])
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: CreateFlags,
    }

    fn body(line: &[&str]) -> Value {
        let flags = Line::parse_from([&["create", "--name", "n", "--to", "https://a"], line].concat()).flags;
        flags.body().expect("a body")
    }

    #[test]
    fn flags_become_members() {
        assert_eq!(body(&[]), json!({"name": "n", "url": "https://a"}));
        let line = ["--tables", "a,b", "--ops", "insert", "--header", "X-Team: shop", "--suspend"];
        let filter = json!({"tables": ["a", "b"], "ops": ["insert"]});
        let headers = json!({"X-Team": "shop"});
        let expected =
            json!({"name": "n", "url": "https://a", "filter": filter, "headers": headers, "suspend": true});
        assert_eq!(body(&line), expected);
    }

    #[test]
    fn a_file_is_the_whole_subscription() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("body.json");
        let of = |text: &str| {
            std::fs::write(&path, text).expect("written");
            Line::parse_from(["create", "--file", path.to_str().expect("UTF-8")]).flags.body()
        };
        assert_eq!(of("{\"name\": \"n\"}").expect("a body"), json!({"name": "n"}));
        of("[]").expect_err("no object");
        of("{").expect_err("no JSON");
    }
}
