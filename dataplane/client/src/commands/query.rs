//! `rowgate query`: runs a SELECT and prints its rows.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::parameters::{self, Parameter};
use super::{read_file, take_rows, unexpected};
use crate::context::Context;
use crate::failure::Failure;
use crate::http::request::Request;
use crate::output::Format;
use crate::output::notice::notice;
use crate::output::rows::RowPrinter;

/// The flags of `query`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Values given with -p never become a part of the statement. A value that is JSON (7, true, null,
\"7\", [1,2]) is that value; any other is a text.

The first rows are printed, 10,000 at most; a note on standard error says when there are more.
`rowgate export --query` writes all rows to a file.

Examples:
  rowgate query 'select id, state from orders where region = @region' -p region=north
  rowgate query --file report.sql -o csv > report.csv
  echo 'select 1 as one' | rowgate query --file -"
)]
pub(crate) struct QueryFlags {
    /// The statement
    #[arg(value_name = "SQL", required_unless_present = "file", conflicts_with = "file")]
    sql: Option<String>,
    /// Read the statement from a file; - is standard input
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A value for @NAME in the statement; may be repeated
    #[arg(long = "parameter", short, value_name = "NAME=VALUE", value_parser = parameters::parse)]
    parameters: Vec<Parameter>,
    /// The format of the output [default: table on a terminal, else json]
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Format>,
}

pub(crate) async fn run(flags: QueryFlags, context: &mut Context) -> Result<(), Failure> {
    let api = context.api()?;
    let sql = statement(flags.sql, flags.file)?;
    let answer = api.json(&request(&sql, &flags.parameters)?).await;
    let mut answer = answer.map_err(|failure| hinted(failure, &flags.parameters))?.value;
    let names = columns(&answer)?;
    let format = Format::or_default(flags.output, context.output.is_terminal);
    let output = &mut context.output;
    let mut printer = RowPrinter::new(format, Some(names), output.is_terminal, output.width());
    for row in take_rows(&mut answer, "value")? {
        let text = printer.row(&row);
        output.write(&text)?;
    }
    output.write(&printer.end())?;
    output.flush()?;
    if answer["truncated"] == true {
        let n = printer.n_rows();
        notice(&format!(
            "the result is truncated after {n} rows; add conditions or a limit, or use `rowgate export --query` for all rows"
        ));
    }
    Ok(())
}

/// A shell takes the quotes of `-p id="7"` away.
pub(super) fn hinted(failure: Failure, parameters: &[Parameter]) -> Failure {
    failure.hinted(|problem| {
        let is_missing = |text: &String| text.contains("to parameters");
        if is_missing(&problem.message) || problem.details.iter().any(is_missing) {
            return Some("a value is given with -p NAME=VALUE".to_owned());
        }
        let named = |parameter: &&Parameter| {
            let name = format!("the parameter {:?} ", parameter.name());
            problem.message.starts_with(&name) && problem.message.contains("double quotes")
        };
        let text = parameters.iter().find(named)?.as_text()?;
        Some(format!("a value that is JSON is no text; to send it as one, write -p {text}"))
    })
}

/// The statement that was given as text or as a file.
fn statement(sql: Option<String>, file: Option<PathBuf>) -> Result<String, Failure> {
    let sql = match (sql, file) {
        (Some(sql), _) => sql,
        (None, Some(file)) => read_file(&file)?,
        (None, None) => String::new(),
    };
    if sql.trim().is_empty() {
        return Err(Failure::Usage("the statement is empty; give a SELECT".to_owned()));
    }
    Ok(sql)
}

fn request(sql: &str, parameters: &[Parameter]) -> Result<Request, Failure> {
    let mut body = json!({"query": sql});
    let parameters = parameters::object(parameters).map_err(Failure::Usage)?;
    if !parameters.is_empty() {
        body["parameters"] = Value::Object(parameters);
    }
    Ok(Request::ask("/api/ddl/sql".to_owned(), body))
}

/// The names of the columns, which are there even without rows.
fn columns(answer: &Value) -> Result<Vec<String>, Failure> {
    let columns = answer["columns"].as_array().ok_or_else(|| unexpected("columns"))?;
    let name = |column: &Value| column["name"].as_str().map(str::to_owned);
    columns.iter().map(|column| name(column).ok_or_else(|| unexpected("columns"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_asked_with_its_parameters() {
        let parameters = ["id=7", "region=north"].map(|text| parameters::parse(text).expect(text));
        let request = request("select 1", &parameters).expect("a request");
        let body = json!({"query": "select 1", "parameters": {"id": 7, "region": "north"}});
        assert_eq!(request, Request::ask("/api/ddl/sql".to_owned(), body));
        assert!(request.is_repeatable);
        let bare = super::request("select 1", &[]).expect("a request").body;
        assert_eq!(bare, Some(json!({"query": "select 1"})));
    }

    #[test]
    fn columns_are_named_without_rows_too() {
        let answer = json!({"columns": [{"name": "id", "type": "int4"}], "value": [], "truncated": false});
        assert_eq!(columns(&answer).expect("columns"), ["id"]);
        columns(&json!({"value": []})).expect_err("no columns");
    }

    #[test]
    fn an_empty_statement_is_not_sent() {
        statement(Some(" \n".to_owned()), None).expect_err("empty");
    }
}
