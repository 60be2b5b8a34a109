//! Settings: from a flag, else from `ROWGATE_*`, else from a file. All mistakes are reported at once, each with its flag.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rowgate_core::yaml;
use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::connect::tls::Tls;
use serde_json::Value;

/// All mistakes, one on each line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes(pub Vec<String>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

/// Where a setting's text comes from, and the mistakes found so far.
#[derive(Debug, Default)]
pub struct Given {
    file: BTreeMap<String, String>,
    mistakes: Vec<String>,
}

impl Given {
    /// With the settings of `file`, a YAML mapping.
    #[must_use]
    pub fn new(file: Option<&Path>) -> Given {
        let mut given = Given::default();
        let Some(path) = file else { return given };
        match read_file(path) {
            Ok(settings) => given.file = settings,
            Err(why) => given.mistakes.push(format!("--config: {} {why}", path.display())),
        }
        given
    }

    /// The setting `name` from the flag or the environment (`text`), else from the file, else `default`.
    pub fn or<T>(
        &mut self,
        name: &str,
        text: Option<&str>,
        default: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let from_file = self.file.remove(name);
        self.check(name, text.or(from_file.as_deref()).unwrap_or(default), parse)
    }

    /// Like [`Given::or`], for a setting without a default.
    pub fn required<T>(
        &mut self,
        name: &str,
        text: Option<&str>,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let from_file = self.file.remove(name);
        let Some(text) = text.or(from_file.as_deref()) else {
            self.mistakes.push(format!(
                "--{name}: is required; give the flag, set {}, or add it to the file of --config",
                variable(name)
            ));
            return None;
        };
        self.check(name, text, parse)
    }

    /// A setting that holds a secret: its text is read elsewhere, and no error message quotes it.
    pub fn secret<T>(&mut self, name: &str, read: Option<Result<T, String>>) -> Option<T> {
        let Some(read) = read else { return self.required(name, None, |_| Err(String::new())) };
        read.map_err(|why| self.mistakes.push(format!("--{name}: {why}"))).ok()
    }

    /// The mistakes, including unknown names in the file.
    pub fn finish(mut self) -> Result<(), Mistakes> {
        for name in self.file.keys() {
            self.mistakes.push(format!("--config: unknown setting {name:?}; --help lists all settings"));
        }
        if self.mistakes.is_empty() { Ok(()) } else { Err(Mistakes(self.mistakes)) }
    }

    fn check<T>(
        &mut self,
        name: &str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        match parse(text) {
            Ok(value) => Some(value),
            Err(why) => {
                self.mistakes.push(format!("--{name}: {text:?} {why}"));
                None
            }
        }
    }
}

/// The text of a variable under its former name, where a setting was renamed.
#[must_use]
pub fn renamed_variable(old: &str) -> Option<String> {
    std::env::var(old).ok()
}

/// The environment variable of a setting.
fn variable(name: &str) -> String {
    format!("ROWGATE_{}", name.to_uppercase().replace('-', "_"))
}

fn read_file(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot be read: {e}"))?;
    let wrong = |why| format!("is not a YAML mapping of settings such as `drain-seconds: 5`{why}");
    let values = match yaml::document(&text).map_err(|error| wrong(format!(" ({error})")))? {
        Value::Object(values) => values,
        Value::Null => return Ok(BTreeMap::new()),
        _ => return Err(wrong(String::new())),
    };
    values.into_iter().map(|(name, value)| Ok((name.clone(), scalar(&name, value)?))).collect()
}

fn scalar(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        Value::Array(values) => {
            let texts: Result<Vec<_>, _> = values.into_iter().map(|value| scalar(name, value)).collect();
            Ok(texts?.join(","))
        }
        _ => Err(format!("has a value of {name} that is neither text, nor a number, nor a list of these")),
    }
}

/// An address to listen on; `localhost` is 127.0.0.1.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.replacen("localhost:", "127.0.0.1:", 1);
    numeric.parse().map_err(|_| "is not an address with a port; give one such as 127.0.0.1:8080".to_owned())
}

/// A whole number within bounds.
pub fn between(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("is not a whole number from {least} to {most}"))
}

/// The URL of a server, without a slash at its end.
pub fn url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match host.is_some_and(|host| !host.is_empty() && !host.contains(char::is_whitespace)) {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => Err("is not a URL; give one such as https://api.example.com".to_owned()),
    }
}

/// `host`, `host:port`, `[::1]:port`, `/folder` or `/folder:port`; the port is 5432 when left out.
pub fn endpoint(text: &str) -> Result<Endpoint, String> {
    let wrong =
        || "is not the address of a PostgreSQL server; give host:port or the folder of its socket".to_owned();
    let (place, port) = match text.rsplit_once(':') {
        Some((place, port)) if !port.ends_with(']') => (place, port.parse().map_err(|_| wrong())?),
        _ => (text, 5432),
    };
    if place.starts_with('/') {
        return Ok(Endpoint::Unix { directory: PathBuf::from(place), port });
    }
    let host = place.trim_start_matches('[').trim_end_matches(']');
    let bare = place.len() == host.len();
    if host.is_empty() || host.contains('/') || (bare && host.contains(':')) {
        return Err(wrong());
    }
    Ok(Endpoint::Tcp { host: host.to_owned(), port, tls: Tls::default() })
}
