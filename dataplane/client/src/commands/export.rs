//! `rowgate export`: starts a job, waits for it, and downloads its file.

mod download;
mod job;
mod part;
mod progress;
mod request;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use rowgate_core::backoff;

use self::job::{Job, Stage};
use self::part::Part;
use self::progress::Progress;
use super::exports;
use super::parameters::{self, Parameter};
use super::query::hinted;
use crate::context::Context;
use crate::failure::Failure;
use crate::http::client::Api;
use crate::http::request::Request;
use crate::interrupt::interrupted;
use crate::output::notice::notice;
use crate::output::size;

const INITIAL_POLL: Duration = Duration::from_millis(250);
const MAX_POLL: Duration = Duration::from_secs(2);

/// The flags of `export`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "The file is written as FILE.part and renamed at the end. A broken download goes on where it stopped.
Ctrl-C cancels the job while it runs; during the download it keeps the job, and says how to go on.

Examples:
  rowgate export orders -o orders.parquet
  rowgate export orders --filter \"state eq 'new'\" --select id,region -o new.csv.gz
  rowgate export --query 'select * from order_lines where quantity > @min' -p min=10 -o large.jsonl
  rowgate export orders --format parquet --no-wait
  rowgate export --resume 01JDGX... -o orders.parquet"
)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["entity", "query", "resume"]))]
pub(crate) struct ExportFlags {
    /// The entity whose rows are exported
    #[arg(value_name = "ENTITY", value_parser = NonEmptyStringValueParser::new())]
    entity: Option<String>,
    /// Export the result of a SELECT instead of an entity
    #[arg(long, value_name = "SQL", conflicts_with_all = ["select", "filter", "orderby"])]
    query: Option<String>,
    /// A value for @NAME in the query; may be repeated
    #[arg(long = "parameter", short, value_name = "NAME=VALUE", value_parser = parameters::parse)]
    parameters: Vec<Parameter>,
    /// The format of the file [default: by the ending of FILE: .parquet, .csv, .jsonl]
    #[arg(long, value_name = "FORMAT")]
    format: Option<FileFormat>,
    /// The file to write, or - for standard output; one that exists is replaced when the export is complete
    #[arg(long, short, value_name = "FILE", required_unless_present = "no_wait")]
    output: Option<PathBuf>,
    /// The fields to export, separated by commas [default: all that the key may read]
    #[arg(long, value_name = "FIELDS")]
    select: Option<String>,
    /// A condition on the rows [example: "state eq 'new'"]
    #[arg(long, value_name = "CONDITION")]
    filter: Option<String>,
    /// The order of the rows [example: 'placed_at desc,id']
    #[arg(long, value_name = "FIELDS")]
    orderby: Option<String>,
    /// The compression of the file [default: by the ending of FILE: .gz, .zst; else the server's choice]
    #[arg(long, value_name = "COMPRESSION")]
    compression: Option<Compression>,
    /// In CSV, write texts so that a spreadsheet does not run them as formulas
    #[arg(long)]
    csv_safe: bool,
    /// Print the id of the job, and do not wait for it
    #[arg(long, conflicts_with_all = ["output", "resume"])]
    no_wait: bool,
    /// Take up a job that was started before, running or finished
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["select", "filter", "orderby", "format", "compression", "csv_safe"])]
    resume: Option<String>,
}

/// The formats of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FileFormat {
    Parquet,
    Csv,
    Jsonl,
}

/// How the file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Compression {
    Zstd,
    Gzip,
    None,
}

pub(crate) async fn run(flags: ExportFlags, context: &mut Context) -> Result<(), Failure> {
    let api = context.api()?;
    let Some(file) = flags.output.clone() else {
        let job = start(&api, &flags).await?;
        context.output.line(&job.id)?;
        let command = resume(&job.id, Path::new("FILE"), context);
        notice(&format!("started; `{command}` waits for it and downloads the file"));
        return Ok(());
    };
    match &flags.resume {
        Some(id) => {
            let job = api.json(&Request::get(exports::path(id))).await.map_err(exports::listed)?;
            request::is_that_file(&file, Job::of(job.value)?.file.as_deref())
        }
        None => request::fits(&flags, &file, context.output.is_terminal),
    }
    .map_err(Failure::Usage)?;
    let mut part = Part::open(&file, flags.resume.as_deref())?;
    let id = match &flags.resume {
        Some(id) => id.clone(),
        None => start(&api, &flags).await?.id,
    };
    part.belongs_to(&id)?;
    let how = format!("`{}` goes on", resume(&id, &file, context));
    let progress = Progress::new();
    let job = tokio::select! {
        done = wait(&api, &id, &progress) => done.inspect_err(|failure| unfinished(failure, &how))?,
        () = interrupted() => {
            progress.clear();
            return Err(cancel(&api, &id, &how).await);
        }
    };
    tokio::select! {
        done = download::run(&api, &job, &mut part, &progress) => {
            done.inspect_err(|_| notice(&format!("the export is kept; {how}")))?;
        }
        () = interrupted() => {
            progress.clear();
            return Err(Failure::Interrupted(Some(format!("the export is kept; {how}"))));
        }
    }
    progress.clear();
    let len = part.finish()?;
    report(&job, &super::file_name(&file, "standard output"), len);
    Ok(())
}

/// The command that takes a job up again, as a shell reads it: for the key that started it.
fn resume(id: &str, file: &Path, context: &Context) -> String {
    // what is there already was written to a pipe, and cannot be written to it again
    let file = if file == Path::new("-") { Path::new("FILE") } else { file };
    let flags = &context.flags;
    let flags = [("--profile", &flags.profile), ("--url", &flags.url), ("--tenant", &flags.tenant)];
    let mut words = vec!["rowgate".to_owned()];
    words.extend(
        flags.into_iter().filter_map(|(flag, value)| Some(format!("{flag} {}", quoted(value.as_ref()?)))),
    );
    words.push(format!("export --resume {id} -o {}", quoted(&file.display().to_string())));
    words.join(" ")
}

/// As one word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:,@%+=".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

async fn start(api: &Api, flags: &ExportFlags) -> Result<Job, Failure> {
    let request = request::start(flags).map_err(Failure::Usage)?;
    tokio::select! {
        answer = api.json(&request) => Job::of(answer.map_err(|failure| hinted(failure, &flags.parameters))?.value),
        () = interrupted() => {
            let what = "interrupted; if the job was started already, `rowgate exports` lists it";
            Err(Failure::Interrupted(Some(what.to_owned())))
        }
    }
}

/// Until the job has ended; only one that succeeded is given.
async fn wait(api: &Api, id: &str, progress: &Progress) -> Result<Job, Failure> {
    let request = Request::get(exports::path(id));
    let mut n = 0;
    loop {
        let job = Job::of(api.json(&request).await?.value)?;
        match job.stage() {
            Stage::Waits => progress.job(&job),
            Stage::Succeeded => return Ok(job),
            Stage::Failed(why) => return Err(Failure::Refused(why)),
        }
        tokio::time::sleep(backoff::nth(INITIAL_POLL, MAX_POLL, n)).await;
        n += 1;
    }
}

/// A lost connection says nothing about the job.
fn unfinished(failure: &Failure, how: &str) {
    if let Failure::Unavailable(_) = failure {
        notice(&format!("the job was not cancelled; {how}"));
    }
}

async fn cancel(api: &Api, id: &str, how: &str) -> Failure {
    let request = Request::delete(exports::path(id)).once();
    let cancelled = tokio::select! {
        answer = api.json(&request) => answer.is_ok(),
        () = interrupted() => false,
    };
    Failure::Interrupted(Some(match cancelled {
        true => format!("interrupted; the export {id} was cancelled"),
        false => format!("interrupted; the export {id} could not be cancelled; {how}"),
    }))
}

fn report(job: &Job, file: &str, len: u64) {
    let rows = job.rows.map(|n| format!("{} rows, ", size::count(n))).unwrap_or_default();
    notice(&format!("{file}: {rows}{}", size::bytes(len)));
    if job.capped == Some(true) {
        notice(
            "the export is capped: it has as many rows or bytes as the tenant allows, and not all there are",
        );
    }
    if let Some(cursor) = &job.event_cursor {
        notice(&format!("`rowgate tail --since {cursor}` follows what has changed since"));
    }
}
