//! The connection that flags, environment and profiles lead to. A key goes only where its owner said: the URL and the key come
//! from one source, unless a flag names another URL.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::file::{Profile, Profiles};
use super::key::Key;
use crate::failure::Failure;
use crate::http::address::Base;

const HOW: &str = "add a profile with `rowgate profile add`, or set ROWGATE_URL and ROWGATE_KEY";

/// The flags of every command that asks a server.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionFlags {
    /// The profile to use instead of the current one [env: ROWGATE_PROFILE]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// The URL of the server, without the path of a tenant [env: ROWGATE_URL] [example: `https://api.example.com`]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The tenant; an API key names its own, so that only tokens need this [env: ROWGATE_TENANT]
    #[arg(long, global = true, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
    /// A PEM file of an authority to trust besides those of the system [env: ROWGATE_CA]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// How often a request is sent again while the server is unavailable or asks to wait; only requests that may be repeated
    #[arg(long, global = true, value_name = "N", default_value_t = 4)]
    pub(crate) retries: u32,
    /// Seconds to wait for the beginning of an answer
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
}

/// The variables that count. An empty one is as if it were not set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    pub(crate) profile: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) ca: Option<String>,
}

impl Environment {
    #[must_use]
    pub(crate) fn of(variable: impl Fn(&str) -> Option<String>) -> Environment {
        let of = |name: &str| variable(name).filter(|value| !value.is_empty());
        Environment {
            profile: of("ROWGATE_PROFILE"),
            url: of("ROWGATE_URL"),
            tenant: of("ROWGATE_TENANT"),
            key: of("ROWGATE_KEY"),
            ca: of("ROWGATE_CA"),
        }
    }
}

/// A server, and the key for it.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) base: Base,
    tenant: Option<String>,
    pub(crate) key: Key,
    /// Where the key came from, in words.
    pub(crate) source: String,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) retries: u32,
    pub(crate) timeout: Duration,
}

impl Connection {
    /// The first of: the profile that is named, the environment, the current profile. Flags replace single settings.
    pub(crate) fn resolve(
        flags: &ConnectionFlags,
        environment: &Environment,
        profiles: impl FnOnce() -> Result<Profiles, Failure>,
    ) -> Result<Connection, Failure> {
        let named = flags.profile.as_ref().or(environment.profile.as_ref());
        let (url, tenant, key, ca, source) = match (named, &environment.key) {
            (None, Some(key)) => {
                let key = Key::parse(key).map_err(|why| Failure::Usage(format!("ROWGATE_KEY: {why}")))?;
                (environment.url.clone(), environment.tenant.clone(), key, None, "ROWGATE_KEY".to_owned())
            }
            (None, None) if environment.url.is_some() => {
                return Err(Failure::Usage(
                    "ROWGATE_URL is set, and ROWGATE_KEY is not; set both, or name a profile with --profile"
                        .to_owned(),
                ));
            }
            (named, _) => {
                let (name, profile) = chosen(profiles()?, named.map(String::as_str))?;
                let Profile { url, tenant, ca, key } = profile;
                (Some(url), tenant, key, ca, format!("the profile {name:?}"))
            }
        };
        let url = flags.url.clone().or(url);
        let url =
            url.ok_or_else(|| Failure::Usage("ROWGATE_URL is not set; set it, or use --url".to_owned()))?;
        Ok(Connection {
            base: url.parse().map_err(Failure::Usage)?,
            tenant: flags.tenant.clone().or(tenant),
            key,
            source,
            ca: flags.ca.clone().or_else(|| environment.ca.as_ref().map(PathBuf::from)).or(ca),
            retries: flags.retries,
            timeout: Duration::from_secs(flags.timeout),
        })
    }

    /// To a scripted server of a test.
    #[cfg(test)]
    pub(crate) fn of_test(url: &str, retries: u32) -> Connection {
        Connection {
            base: url.parse().expect("a URL"),
            tenant: None,
            key: Key::parse("shop:dlk_test").expect("a key"),
            source: "a test".to_owned(),
            ca: None,
            retries,
            timeout: Duration::from_secs(5),
        }
    }

    /// The tenant whose rows are read.
    pub(crate) fn tenant(&self) -> Result<&str, Failure> {
        self.tenant.as_deref().or_else(|| self.key.tenant()).ok_or_else(|| {
            Failure::Usage("a token does not name its tenant; use --tenant, or set ROWGATE_TENANT".to_owned())
        })
    }
}

fn chosen(mut profiles: Profiles, named: Option<&str>) -> Result<(String, Profile), Failure> {
    let name = match (named, profiles.current.clone()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(current)) => current,
        (None, None) if profiles.profiles.is_empty() => {
            return Err(Failure::Usage(format!("there is no profile yet; {HOW}")));
        }
        (None, None) => {
            return Err(Failure::Usage(
                "choose a profile with `rowgate profile use` or --profile".to_owned(),
            ));
        }
    };
    profiles.profiles.remove_entry(&name).ok_or_else(|| {
        let names: Vec<&str> = profiles.profiles.keys().map(String::as_str).collect();
        let there = if names.is_empty() {
            "there is none yet".to_owned()
        } else {
            format!("there are {}", names.join(", "))
        };
        Failure::Usage(format!("there is no profile {name:?}; {there}"))
    })
}

#[cfg(test)]
mod tests;
