//! The scripts that a Tenant lists, compared with those that ran in its database: which one is next, or what is wrong with the list.
//! A script is known by its place and by the hash of its text.

use std::fmt;
use std::fmt::Write as _;

use rowgate_crds::Reason;
use rowgate_pg::tenant::scripts::Ran;
use sha2::{Digest as _, Sha256};

use super::Finding;

/// Of a hash, what messages show.
const SHOWN: usize = 12;

/// A script as the Tenant names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script<'a> {
    /// Of its ConfigMap.
    pub name: &'a str,
    /// Its key there.
    pub key: &'a str,
    /// `None`: there is no such ConfigMap, or it has no such key.
    pub text: Option<&'a str>,
}

/// What is to be done about a list of scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<'a> {
    /// Each ran.
    Done,
    /// Runs the text, and notes that it ran at this place, from 1 on.
    Run { number: usize, text: &'a str, note: Ran },
    /// Notes that the first ran: the database was made from one script.
    CountFirst(Ran),
    /// A person has to change something. `waits`: others behind it have not run.
    Stalled { finding: Finding, waits: bool },
}

impl fmt::Display for Script<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigMap {} key {}", self.name, self.key)
    }
}

/// What follows from the scripts that are `listed` and those that `ran`, each in its order. `bootstrapped`: one script ran, whether it
/// was listed then or named alone.
#[must_use]
pub fn next<'a>(listed: &[Script<'a>], ran: &[Ran], bootstrapped: bool) -> Next<'a> {
    let waits = ran.len() < listed.len();
    let stalled = |reason, message: String| Next::Stalled { finding: Finding::new(reason, message), waits };
    for (number, before) in (1..).zip(ran) {
        if let Err((reason, message)) = stands(number, before, listed) {
            return stalled(reason, message);
        }
    }
    let Some(script) = listed.get(ran.len()) else { return Next::Done };
    let number = ran.len() + 1;
    let Some(text) = script.text else {
        let message =
            format!("script {number} of bootstrap.scripts names {script}, which does not exist; apply it");
        return stalled(Reason::ConfigMapNotFound, message);
    };
    let note = Ran { name: script.name.to_owned(), key: script.key.to_owned(), sha256: sha256(text) };
    match bootstrapped && ran.is_empty() {
        true => Next::CountFirst(note),
        false => Next::Run { number, text, note },
    }
}

/// Whether the script that ran at a place is listed there with the text that ran.
fn stands(number: usize, before: &Ran, listed: &[Script<'_>]) -> Result<(), (Reason, String)> {
    let Ran { name, key, sha256: hash } = before;
    let hash = hash.get(..SHOWN).unwrap_or(hash);
    let Some(script) = listed.get(number - 1) else {
        let message = format!(
            "script {number} of bootstrap.scripts, ConfigMap {name} key {key}, ran and is not listed any more; restore it at its place (its \
             SHA-256 begins with {hash}), and append a new script to undo what it did"
        );
        return Err((Reason::ScriptChanged, message));
    };
    let Some(text) = script.text else {
        let message = format!(
            "script {number} of bootstrap.scripts ran, and {script} does not exist any more; apply it with the text that ran (its SHA-256 begins \
             with {hash})"
        );
        return Err((Reason::ConfigMapNotFound, message));
    };
    if sha256(text) == before.sha256 {
        return Ok(());
    }
    let message = match script.name == name && script.key == key {
        false => format!(
            "script {number} of bootstrap.scripts is {script}, but ConfigMap {name} key {key} ran at this place; restore the order of the \
             scripts that ran (the SHA-256 of that one begins with {hash}), and append new ones behind them"
        ),
        true => format!(
            "script {number} of bootstrap.scripts, {script}, was changed after it ran; restore the text that ran (its SHA-256 begins with {hash}), \
             and append a new script with the change"
        ),
    };
    Err((Reason::ScriptChanged, message))
}

/// In hexadecimal digits.
fn sha256(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text) {
        write!(hex, "{byte:02x}").expect("a String takes it");
    }
    hex
}

#[cfg(test)]
mod tests;
