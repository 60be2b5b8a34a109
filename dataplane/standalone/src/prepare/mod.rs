//! `--prepare`: a file of SQL that makes databases in the PostgreSQL that standalone starts, as an application would. It runs once.

mod sessions;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rowgate_pg::connect::login::Login;
use rowgate_pg::connect::session;
use rowgate_pg::failure::PgError;
use rowgate_pg::undo;

use self::sessions::{Session, Statement};
use crate::state::roots::write_private;
use crate::terminal::say;

/// Why a file did not run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error("--prepare: cannot read {}: {error}; name a file of SQL", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(
        "--prepare: {}:{line}: `{command}` is not understood; of psql's commands the file may hold `\\connect DATABASE` only, on a \
         line of its own between two statements; write rows with INSERT (pg_dump --inserts)",
        path.display()
    )]
    Command { path: PathBuf, line: usize, command: String },
    #[error("--prepare: {}:{line}: {refusal}; {remedy}", path.display())]
    Refused { path: PathBuf, line: usize, refusal: String, remedy: String },
    #[error("--prepare: cannot look at the databases and roles of this PostgreSQL: {0}; start again")]
    Existing(PgError),
    #[error("--prepare: cannot read or write {}, the record of the files that ran: {error}", path.display())]
    Record { path: PathBuf, error: io::Error },
}

/// A file of SQL that can be taken apart.
#[derive(Debug)]
pub struct Script {
    path: PathBuf,
    text: String,
}

/// Where a script ended, and why.
struct Refusal {
    at: usize,
    error: PgError,
}

impl Script {
    /// Reads it, so that mistakes of its form are reported before anything is started.
    pub fn read(path: &Path) -> Result<Script, PrepareError> {
        let path = path.to_owned();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => return Err(PrepareError::Unreadable { path, error }),
        };
        let script = Script { path, text };
        script.sessions()?;
        Ok(script)
    }

    /// Runs it as `superuser`, unless `record` says that it ran in this PostgreSQL before.
    pub(super) async fn run_once(&self, superuser: &Login, record: &Path) -> Result<(), PrepareError> {
        let unrecorded = |error| PrepareError::Record { path: record.to_owned(), error };
        let mut ran = read(record).map_err(unrecorded)?;
        // a checkout may have moved since
        if ran.values().any(|text| *text == self.text) {
            return Ok(());
        }
        let file = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let file = file.to_string_lossy().into_owned();
        if ran.contains_key(&file) {
            say(&format!(
                "{} has changed since it ran, and a file runs once; to run it, start with an empty state folder (--state)",
                self.path.display()
            ));
            return Ok(());
        }
        say(&format!("running {}", self.path.display()));
        self.run(superuser).await?;
        ran.insert(file, self.text.clone());
        write(record, &ran).map_err(unrecorded)
    }

    /// All of it; or an error, and the databases and roles that it made are gone again.
    async fn run(&self, superuser: &Login) -> Result<(), PrepareError> {
        let mut conn = session::connect(superuser).await.map_err(PrepareError::Existing)?;
        let before = undo::existing(&mut conn).await.map_err(PrepareError::Existing)?;
        let sessions = self.sessions()?;
        let Err(refusal) = run_all(superuser, &sessions).await else { return Ok(()) };
        let remedy = match undo::drop_others(&mut conn, &before).await {
            Ok(()) => {
                "the databases and roles that the file had made were dropped: correct it and start again"
                    .to_owned()
            }
            Err(error) => format!(
                "what the file had made is still there ({error}): correct it and start with an empty state folder (--state)"
            ),
        };
        let (line, refusal) = (self.line(refusal.at), refusal.error.to_string());
        Err(PrepareError::Refused { path: self.path.clone(), line, refusal, remedy })
    }

    fn sessions(&self) -> Result<Vec<Session<'_>>, PrepareError> {
        sessions::of(&self.text).map_err(|command| PrepareError::Command {
            path: self.path.clone(),
            line: self.line(command.at),
            command: command.text.to_owned(),
        })
    }

    /// Counted from 1, of what stands after so many bytes.
    fn line(&self, at: usize) -> usize {
        1 + self.text[..at].matches('\n').count()
    }
}

/// Each session is a connection of its own, as in psql: what SET did in one ends with it.
async fn run_all(superuser: &Login, sessions: &[Session<'_>]) -> Result<(), Refusal> {
    for Session { database, at, statements } in sessions {
        let database = database.unwrap_or(&superuser.database).to_owned();
        let login = Login { database, ..superuser.clone() };
        let connected = session::connect(&login).await;
        let mut conn = connected.map_err(|error| Refusal { at: *at, error })?;
        for statement in statements {
            let done = session::script(&mut conn, statement.text).await;
            done.map_err(|error| Refusal { at: place_of(&error, statement), error })?;
        }
    }
    Ok(())
}

/// Where in the file PostgreSQL found the error, else where the statement begins.
fn place_of(error: &PgError, statement: &Statement<'_>) -> usize {
    let Some(position) = error.position() else { return statement.at };
    let mut places = statement.text.char_indices().map(|(at, _)| at);
    statement.at + places.nth(position.saturating_sub(1)).unwrap_or(statement.text.len())
}

/// The texts of the files that ran, by their paths.
fn read(record: &Path) -> io::Result<BTreeMap<String, String>> {
    match fs::read_to_string(record) {
        Ok(text) => Ok(serde_json::from_str(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

/// A file may hold passwords.
fn write(record: &Path, ran: &BTreeMap<String, String>) -> io::Result<()> {
    write_private(record, &format!("{}\n", serde_json::to_string_pretty(ran)?))
}
