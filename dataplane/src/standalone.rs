//! The data plane that `standalone` runs, and its flags.

use std::env;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::Args;
use rowgate_core::derive::Root;
use rowgate_pg::connect::login::Endpoint;
use rowgate_program::settings::Mistakes;
use rowgate_standalone::flags::StandaloneSettings;
use rowgate_standalone::{DataPlane, DataPlaneError, LiveKeys, StandaloneFlags};
use tokio_util::sync::CancellationToken;

use crate::api::console::{Console, ConsoleFiles};
use crate::app::{self, AppConfig, Listeners};
use crate::config::{ServerFlags, ServerSettings};
use crate::export_jobs::storage::StorageConfig;

/// The flags of `standalone`: those of a data plane, and its own.
#[derive(Debug, Clone, Default, Args)]
pub struct Flags {
    #[command(flatten)]
    pub server: ServerFlags,
    #[command(flatten)]
    pub standalone: StandaloneFlags,
    /// Folder with the files of the console, the page for browsers at `/`, as `make console` prints it; `off` serves no console.
    /// Only a loopback --listen has a console, because every program that reaches it can use every key
    /// [default: the folder `console` beside this program]
    #[arg(long, env = "ROWGATE_CONSOLE", value_name = "FOLDER|off")]
    pub console: Option<PathBuf>,
}

/// Which console standalone serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsoleSetting {
    Off,
    /// With the files of this folder; `None`: there is none.
    Files(Option<PathBuf>),
}

impl ConsoleSetting {
    fn of(flag: Option<PathBuf>) -> ConsoleSetting {
        let beside =
            || Some(env::current_exe().ok()?.parent()?.join("console")).filter(|folder| folder.is_dir());
        match flag {
            Some(word) if word.as_os_str() == "off" => ConsoleSetting::Off,
            Some(folder) => ConsoleSetting::Files(Some(folder)),
            None => ConsoleSetting::Files(beside()),
        }
    }
}

impl Flags {
    /// Checks all flags and reports all mistakes at once.
    pub fn settings(self) -> Result<(ServerSettings, ConsoleSetting, StandaloneSettings), Mistakes> {
        match (self.server.settings(), self.standalone.settings()) {
            (Ok(mut server), Ok(standalone)) => {
                server.exports.get_or_insert_with(|| StorageConfig::Folder(standalone.state.join("exports")));
                Ok((server, ConsoleSetting::of(self.console), standalone))
            }
            (server, standalone) => {
                let mistakes = [server.err(), standalone.err()].into_iter().flatten();
                Err(Mistakes(mistakes.flat_map(|Mistakes(lines)| lines).collect()))
            }
        }
    }
}

/// A data plane whose ports are bound and whose database is not known yet.
pub struct Bound {
    settings: ServerSettings,
    listeners: Listeners,
    /// What the page is made of; `None`: no console.
    console: Option<ConsoleFiles>,
}

impl Bound {
    pub async fn new(settings: ServerSettings, console: ConsoleSetting) -> Result<Bound, DataPlaneError> {
        let listeners = Listeners::bind(&settings).await?;
        let address = listeners.api.local_addr()?;
        let console = match console {
            ConsoleSetting::Off => None,
            // others would read with every key
            ConsoleSetting::Files(_) if !address.ip().is_loopback() => {
                let address = address.to_string();
                tracing::warn!(
                    address,
                    "the console is off: --listen is not an address of this machine alone, such as 127.0.0.1"
                );
                None
            }
            ConsoleSetting::Files(folder) => Some(ConsoleFiles::read(folder.as_deref())),
        };
        if let Some(why) = console.as_ref().and_then(ConsoleFiles::lacks) {
            tracing::info!("{why}");
        }
        Ok(Bound { settings, listeners, console })
    }
}

impl DataPlane for Bound {
    fn url(&self) -> String {
        let mut address = self.listeners.api.local_addr().expect("a bound socket has an address");
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{address}")
    }

    fn console(&self) -> Option<String> {
        let is_shown = self.console.as_ref().is_some_and(|files| files.lacks().is_none());
        is_shown.then(|| format!("{}/", self.url()))
    }

    async fn serve(
        self,
        control: Endpoint,
        root: Root,
        keys: LiveKeys,
        shutdown: CancellationToken,
    ) -> Result<(), DataPlaneError> {
        let Bound { settings, listeners, console } = self;
        let port = listeners.api.local_addr()?.port();
        let console = console.map(|files| Console::new(port, files, keys));
        let config = AppConfig { listeners, settings, control, root, pooler: None, console };
        Ok(app::run(config, shutdown).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let flags = Flags {
            server: ServerFlags { listen: Some("nowhere".into()), ..ServerFlags::default() },
            standalone: StandaloneFlags { resync_seconds: Some("0".into()), ..StandaloneFlags::default() },
            console: None,
        };
        let Mistakes(lines) = flags.settings().expect_err("two mistakes");
        let [first, second] = &lines[..] else { panic!("{lines:?}") };
        assert!(first.starts_with("--listen") && second.starts_with("--resync-seconds"), "{lines:?}");
    }
}
