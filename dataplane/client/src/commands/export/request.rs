//! From the flags of an export to the request that starts it.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Compression, ExportFlags, FileFormat};
use crate::commands::parameters;
use crate::http::request::Request;

pub(super) fn start(flags: &ExportFlags) -> Result<Request, String> {
    let (format, compression) = flags.output.as_deref().map(of_name).unwrap_or_default();
    let format = flags.format.or(format);
    let format = format.ok_or("give --format parquet, csv or jsonl, or a FILE with one of these endings")?;
    if flags.csv_safe && format != FileFormat::Csv {
        return Err("--csv-safe is for --format csv".to_owned());
    }
    if flags.query.is_none() && !flags.parameters.is_empty() {
        return Err("--parameter is for --query; conditions on an entity are --filter".to_owned());
    }
    let text = |value: &Option<String>| value.as_ref().map(|value| json!(value));
    let parameters = parameters::object(&flags.parameters)?;
    let members = [
        ("entity", text(&flags.entity)),
        ("query", text(&flags.query)),
        ("parameters", (!parameters.is_empty()).then_some(Value::Object(parameters))),
        ("format", Some(json!(format.name()))),
        ("select", text(&flags.select)),
        ("filter", text(&flags.filter)),
        ("orderby", text(&flags.orderby)),
        ("compression", flags.compression.or(compression).map(|it| json!(it.name()))),
        ("csvSafe", flags.csv_safe.then_some(json!(true))),
    ];
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let body = Value::Object(members.collect::<Map<_, _>>());
    Ok(Request::post("/api/ddl/exports".to_owned(), Some(body)))
}

/// Why nothing is to be started: bytes for a terminal, or a name that promises what the file is not.
pub(super) fn fits(flags: &ExportFlags, file: &Path, is_terminal: bool) -> Result<(), String> {
    let (of_name, packed) = of_name(file);
    let (format, compression) = (flags.format.or(of_name), flags.compression.or(packed));
    let is_packed = compression.is_some_and(|it| it != Compression::None);
    if is_terminal && file == Path::new("-") && (format == Some(FileFormat::Parquet) || is_packed) {
        return Err("such a file is not for a terminal: name a FILE, or redirect standard output".to_owned());
    }
    if of_name == Some(FileFormat::Parquet) && packed.is_some() {
        return Err(
            "Parquet is compressed within: leave the second ending out, and give --compression gzip or zstd"
                .to_owned(),
        );
    }
    Ok(())
}

/// `made`: what the server calls the file, whose endings tell what it is.
pub(super) fn is_that_file(file: &Path, made: Option<&str>) -> Result<(), String> {
    let Some(made) = made else { return Ok(()) };
    let (named, is) = (of_name(file), of_name(Path::new(made)));
    match named.0.is_none() || named == is {
        true => Ok(()),
        false => {
            Err(format!("the file of this export is {made}, and {} names another format", file.display()))
        }
    }
}

/// What the ending of a file's name says: `orders.csv.gz` is compressed CSV.
fn of_name(file: &Path) -> (Option<FileFormat>, Option<Compression>) {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
    let (name, compression) = match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
        (Some(name), _) => (name, Some(Compression::Gzip)),
        (_, Some(name)) => (name, Some(Compression::Zstd)),
        _ => (name.as_str(), None),
    };
    let format = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("parquet") => Some(FileFormat::Parquet),
        Some("csv") => Some(FileFormat::Csv),
        Some("jsonl" | "ndjson") => Some(FileFormat::Jsonl),
        _ => None,
    };
    // A plain .csv or .jsonl that was compressed would surprise; Parquet compresses within.
    let plain = format.filter(|format| *format != FileFormat::Parquet).map(|_| Compression::None);
    (format, compression.or(plain))
}

impl FileFormat {
    fn name(self) -> &'static str {
        match self {
            FileFormat::Parquet => "parquet",
            FileFormat::Csv => "csv",
            FileFormat::Jsonl => "jsonl",
        }
    }
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Compression::Zstd => "zstd",
            Compression::Gzip => "gzip",
            Compression::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: ExportFlags,
    }

    fn body(line: &[&str]) -> Result<Value, String> {
        let line = Line::try_parse_from([&["export"], line].concat()).map_err(|error| error.to_string())?;
        Ok(start(&line.flags)?.body.expect("a body"))
    }

    #[test]
    fn flags_become_members() {
        let line = [
            "orders",
            "--filter",
            "a eq 1",
            "--select",
            "a,b",
            "--orderby",
            "a",
            "-o",
            "x.csv.gz",
            "--csv-safe",
        ];
        let expected = json!({"entity": "orders", "format": "csv", "select": "a,b", "filter": "a eq 1", "orderby": "a",
            "compression": "gzip", "csvSafe": true});
        assert_eq!(body(&line), Ok(expected));
        let line = [
            "--query",
            "select @a",
            "-p",
            "a=1",
            "--format",
            "parquet",
            "--no-wait",
            "--compression",
            "zstd",
        ];
        let expected =
            json!({"query": "select @a", "parameters": {"a": 1}, "format": "parquet", "compression": "zstd"});
        assert_eq!(body(&line), Ok(expected));
    }

    #[test]
    fn the_ending_of_the_file_decides_what_no_flag_does() {
        let members = |line: &[&str]| {
            let body = body(line).expect("a body");
            (body["format"].clone(), body.get("compression").cloned())
        };
        assert_eq!(members(&["t", "-o", "T.PARQUET"]), (json!("parquet"), None));
        assert_eq!(members(&["t", "-o", "t.jsonl.zst"]), (json!("jsonl"), Some(json!("zstd"))));
        assert_eq!(members(&["t", "-o", "t.csv"]), (json!("csv"), Some(json!("none"))));
        assert_eq!(members(&["t", "-o", "t.csv", "--format", "jsonl"]).0, json!("jsonl"));
        body(&["t", "-o", "t"]).expect_err("no format");
    }

    #[test]
    fn a_name_promises_what_the_file_is() {
        let fits = |line: &[&str], is_terminal| {
            let flags = Line::parse_from([&["export", "t"], line].concat()).flags;
            let file = flags.output.clone().expect("a file");
            fits(&flags, &file, is_terminal).is_ok()
        };
        assert!(fits(&["-o", "t.csv.gz"], true) && fits(&["-o", "-", "--format", "csv"], true));
        assert!(!fits(&["-o", "t.parquet.gz"], false));
        assert!(
            !fits(&["-o", "-", "--format", "parquet"], true)
                && fits(&["-o", "-", "--format", "parquet"], false)
        );
        assert!(!fits(&["-o", "-", "--format", "csv", "--compression", "zstd"], true));
        let is_that = |file: &str, made| is_that_file(Path::new(file), made).is_ok();
        assert!(
            is_that("a.CSV", Some("orders.csv"))
                && is_that("a", Some("orders.csv"))
                && is_that("a.csv", None)
        );
        assert!(
            is_that("a.parquet", Some("query.parquet")) && is_that("a.ndjson.gz", Some("query.jsonl.gz"))
        );
        for (file, made) in [("a.parquet", "a.csv"), ("a.csv.gz", "a.csv"), ("a.csv", "a.csv.zst")] {
            assert!(!is_that(file, Some(made)), "{file} {made}");
        }
    }

    #[test]
    fn half_a_command_is_refused() {
        for line in [
            &["-o", "t.csv"][..],
            &["t"],
            &["t", "--query", "select 1", "-o", "t.csv"],
            &["t", "-p", "a=1", "-o", "t.csv"],
            &["t", "-o", "t.parquet", "--csv-safe"],
            &["t", "--resume", "j", "-o", "t.csv"],
            &["--resume", "j"],
            &["--resume", "j", "--filter", "x", "-o", "t.csv"],
            &["t", "--format", "csv", "-o", "t.csv", "--no-wait"],
        ] {
            assert!(body(line).is_err(), "{line:?}");
        }
    }
}
