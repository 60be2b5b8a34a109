//! `rowgate profile`: servers and the keys for them.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::print_rows;
use crate::context::Context;
use crate::failure::Failure;
use crate::http::address::Base;
use crate::output::Format;
use crate::output::notice::notice;
use crate::output::rows::Row;
use crate::profiles::file::{Profile, Profiles};
use crate::profiles::key::Key;
use crate::profiles::prompt;

/// The flags of `profile`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProfileFlags {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Clone, Subcommand)]
enum Act {
    /// Add a profile, or replace one; the URL is that of --url
    ///
    /// The key is read from standard input, or asked for without being shown. The first profile becomes the current one.
    #[command(after_help = "Examples:
  rowgate profile add shop --url http://127.0.0.1:8080
  rowgate profile add shop --url https://api.example.com < key.txt")]
    Add {
        /// A name for people
        #[arg(value_name = "NAME", value_parser = name)]
        name: String,
    },
    /// List the profiles, without their keys [example: rowgate profile list]
    List {
        /// The format of the output [default: table on a terminal, else json]
        #[arg(long, short, value_name = "FORMAT")]
        output: Option<Format>,
    },
    /// Make a profile the current one [example: rowgate profile use shop]
    Use {
        /// The name, as `rowgate profile list` prints it
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove a profile and its key from this machine [example: rowgate profile remove shop]
    Remove {
        /// The name, as `rowgate profile list` prints it
        #[arg(value_name = "NAME")]
        name: String,
    },
}

const NO_URL: &str = "give the URL of the server with --url, such as --url http://127.0.0.1:8080";

pub(crate) fn run(flags: ProfileFlags, context: &mut Context) -> Result<(), Failure> {
    let path = context.profiles_path()?;
    // a file that cannot be used is said before anything is asked
    let saved = Profiles::read(&path).map_err(Failure::Usage)?;
    let locked = || Profiles::locked(&path).map_err(Failure::Usage);
    match flags.act {
        Act::Add { name } => {
            let flags = &context.flags;
            let url = flags.url.as_ref();
            let url = url.ok_or_else(|| Failure::Usage(NO_URL.to_owned()))?;
            let base: Base = url.parse().map_err(Failure::Usage)?;
            let ca = flags.ca.as_ref().map(std::path::absolute).transpose();
            let ca: Option<PathBuf> = ca.map_err(|error| Failure::Usage(format!("--ca: {error}")))?;
            if base.is_clear_text() {
                notice(
                    "note: with http the key crosses the network in clear text; use https where the server has it",
                );
            }
            let key = Key::parse(&typed()?).map_err(Failure::Usage)?;
            let profile = Profile { url: base.to_string(), tenant: flags.tenant.clone(), ca, key };
            let (mut profiles, _lock) = locked()?;
            profiles.profiles.insert(name.clone(), profile);
            let is_current = *profiles.current.get_or_insert(name.clone()) == name;
            profiles.write(&path).map_err(Failure::Local)?;
            notice(&match is_current {
                true => {
                    format!("saved the profile {name:?}, which is the current one; `rowgate whoami` tries it")
                }
                false => format!(
                    "saved the profile {name:?}; `rowgate profile use {name}` makes it the current one"
                ),
            });
            Ok(())
        }
        Act::List { output } => {
            let format = Format::or_default(output, context.output.is_terminal);
            let names = ["name", "url", "tenant", "current"];
            print_rows(&mut context.output, format, Some(&names), &listed(&saved))
        }
        Act::Use { name } => {
            let (mut profiles, _lock) = locked()?;
            there(&profiles, &name)?;
            profiles.current = Some(name);
            profiles.write(&path).map_err(Failure::Local)
        }
        Act::Remove { name } => {
            let (mut profiles, _lock) = locked()?;
            there(&profiles, &name)?;
            profiles.profiles.remove(&name);
            profiles.current = profiles.current.filter(|current| *current != name);
            profiles.write(&path).map_err(Failure::Local)
        }
    }
}

/// The key, from a prompt that does not show it, or from standard input.
fn typed() -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::Local(format!("cannot read the key: {error}"));
    if io::stdin().is_terminal() {
        return prompt::ask("API key");
    }
    let mut text = String::new();
    io::stdin().take(64 << 10).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

fn name(text: &str) -> Result<String, String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match (1..=64).contains(&text.len()) && text.chars().all(is_fine) {
        true => Ok(text.to_owned()),
        false => Err("a name has 1 to 64 letters, digits, and the characters - _ .".to_owned()),
    }
}

fn there(profiles: &Profiles, name: &str) -> Result<(), Failure> {
    match profiles.profiles.contains_key(name) {
        true => Ok(()),
        false => {
            Err(Failure::Usage(format!("there is no profile {name:?}; `rowgate profile list` lists them")))
        }
    }
}

fn listed(profiles: &Profiles) -> Vec<Row> {
    let row = |(name, profile): (&String, &Profile)| {
        let tenant = profile.tenant.as_deref().or_else(|| profile.key.tenant());
        let current = profiles.current.as_ref() == Some(name);
        let row = json!({"name": name, "url": profile.url, "tenant": tenant, "current": current});
        if let Value::Object(row) = row { row } else { unreachable!("an object was made") }
    };
    profiles.profiles.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_no_key() {
        let key = Key::parse("shop:dlk_secret").expect("a key");
        let profile = Profile { url: "http://a".to_owned(), tenant: None, ca: None, key };
        let profiles =
            Profiles { current: Some("a".to_owned()), profiles: [("a".to_owned(), profile)].into() };
        let listed = serde_json::to_string(&listed(&profiles)).expect("JSON");
        assert_eq!(listed, r#"[{"name":"a","url":"http://a","tenant":"shop","current":true}]"#);
    }

    #[test]
    fn names_are_plain() {
        assert!(name("shop-1.eu_x").is_ok());
        for text in ["", "a b", "ä", "../x"] {
            name(text).expect_err(text);
        }
    }
}
