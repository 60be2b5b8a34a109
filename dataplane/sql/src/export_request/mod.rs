//! What an export is asked: the body of its request. A query has the rules of the SQL endpoint, an entity those of REST, whose options
//! have no dollar signs here.

mod entity;

use rowgate_core::name::EntityName;
use rowgate_core::nearest::nearest;
use rowgate_core::problem::{Code, Problem};

use crate::request::{Input, ReadRequest};
use crate::rest::body;
use crate::sql_request::{SqlRequest, given, of_query};
pub use entity::all_rows;

const EXAMPLE: &str = r#"send an object such as {"entity": "orders", "format": "csv"}"#;
const MEMBERS: [&str; 9] =
    ["entity", "query", "parameters", "format", "select", "filter", "orderby", "compression", "csvSafe"];

/// An export that passed the checks for which no catalog is needed.
#[derive(Debug, Clone)]
pub struct ExportRequest {
    pub source: Source,
    pub format: Format,
    pub compression: Compression,
}

/// Where its rows come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// All rows of an entity that pass a filter.
    Entity {
        name: String,
        request: ReadRequest,
    },
    Query(SqlRequest),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `safe`: what a spreadsheet would run as a formula gets an apostrophe in front.
    Csv {
        safe: bool,
    },
    JsonLines,
    Parquet,
}

/// Of the file in CSV and JSON lines, within the file in Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

/// The members of the body as texts.
#[derive(Default)]
struct Members {
    texts: Vec<(&'static str, String)>,
    parameters: Option<String>,
    csv_safe: bool,
}

/// The body of `POST /api/ddl/exports`.
///
/// # Errors
/// `BadRequest` for a body of another form, and what the SQL endpoint and REST answer for a query and for options.
pub fn parse(bytes: &[u8]) -> Result<ExportRequest, Problem> {
    let mut members = Members::default();
    for (name, value) in body::object(bytes, EXAMPLE)? {
        let known = MEMBERS.into_iter().find(|known| *known == name).ok_or_else(|| unknown_member(&name))?;
        match (known, value) {
            (_, Input::Null) => {}
            ("parameters", Input::Object(raw)) => members.parameters = Some(raw.to_owned()),
            ("parameters", _) => {
                return Err(refused("parameters is not an object; write {\"id\": 7} for the parameter @id"));
            }
            ("csvSafe", Input::Bool(safe)) => members.csv_safe = safe,
            ("csvSafe", _) => return Err(refused("csvSafe is true or false, without quotes")),
            (known, Input::Text(text)) => members.texts.push((known, text)),
            (known, _) => return Err(refused(format!("{known} is not a text; write it in double quotes"))),
        }
    }
    members.request()
}

impl Members {
    fn text(&self, name: &str) -> Option<&str> {
        self.texts.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str())
    }

    fn request(self) -> Result<ExportRequest, Problem> {
        let format = match self.text("format") {
            Some("csv") => Format::Csv { safe: self.csv_safe },
            Some("jsonl") => Format::JsonLines,
            Some("parquet") => Format::Parquet,
            Some(_) => return Err(refused("format is not known; write csv, jsonl or parquet")),
            None => return Err(refused("format is missing; write csv, jsonl or parquet")),
        };
        if self.csv_safe && !matches!(format, Format::Csv { .. }) {
            return Err(refused("csvSafe is for the format csv; leave it out"));
        }
        let compression = match (self.text("compression"), format) {
            (Some("zstd"), _) | (None, Format::Parquet) => Compression::Zstd,
            (Some("gzip"), _) => Compression::Gzip,
            (Some("none"), _) | (None, _) => Compression::None,
            (Some(_), _) => return Err(refused("compression is not known; write zstd, gzip or none")),
        };
        Ok(ExportRequest { source: self.source()?, format, compression })
    }

    fn source(&self) -> Result<Source, Problem> {
        match (self.text("entity"), self.text("query")) {
            (Some(_), Some(_)) => Err(refused("the body has both entity and query; send one of them")),
            (None, None) => Err(refused(format!("entity and query are missing; {EXAMPLE}"))),
            (Some(_), None) if self.parameters.is_some() => {
                Err(refused("parameters is for a query; write conditions on an entity in filter"))
            }
            (Some(name), None) => {
                let options = ["select", "filter", "orderby"];
                let options = options.into_iter().filter_map(|name| Some((name, self.text(name)?)));
                Ok(Source::Entity { name: name.to_owned(), request: entity::options(options)? })
            }
            (None, Some(query)) => {
                let options = ["select", "filter", "orderby"];
                if let Some(name) = options.into_iter().find(|name| self.text(name).is_some()) {
                    return Err(refused(format!("{name} is for an entity; write it into the query")));
                }
                let arguments = self.parameters.as_deref().map_or(Ok(Vec::new()), given)?;
                Ok(Source::Query(of_query(query, arguments, false)?))
            }
        }
    }
}

impl ExportRequest {
    /// What the file is called where it is downloaded.
    #[must_use]
    pub fn file_name(&self) -> String {
        let name = match &self.source {
            // a name that is none is refused before there is a file
            Source::Entity { name, .. } if name.parse::<EntityName>().is_ok() => name.as_str(),
            Source::Entity { .. } | Source::Query(_) => "query",
        };
        let ending = match self.format {
            Format::Csv { .. } => "csv",
            Format::JsonLines => "jsonl",
            Format::Parquet => "parquet",
        };
        let outer = match (self.format, self.compression) {
            (Format::Parquet, _) | (_, Compression::None) => "",
            (_, Compression::Gzip) => ".gz",
            (_, Compression::Zstd) => ".zst",
        };
        format!("{name}.{ending}{outer}")
    }
}

fn unknown_member(name: &str) -> Problem {
    let shown: String = name.chars().take(64).collect();
    let what = format!("the body has no member {shown:?}; its members are {}", MEMBERS.join(", "));
    match nearest(name, MEMBERS) {
        Some(near) => refused(what).detail(format!("did you mean {near:?}?")),
        None => refused(what),
    }
}

fn refused(what: impl Into<String>) -> Problem {
    Problem::new(Code::BadRequest, what)
}

#[cfg(test)]
mod tests;
