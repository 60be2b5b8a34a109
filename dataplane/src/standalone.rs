//! The data plane that `standalone` runs, and its flags.

use std::net::Ipv4Addr;

use clap::Args;
use rowgate_core::derive::Root;
use rowgate_pg::connect::login::Endpoint;
use rowgate_program::settings::Mistakes;
use rowgate_standalone::flags::StandaloneSettings;
use rowgate_standalone::{DataPlane, DataPlaneError, StandaloneFlags};
use tokio_util::sync::CancellationToken;

use crate::app::{self, AppConfig, Listeners};
use crate::config::{ServerFlags, ServerSettings};

/// The flags of `standalone`: those of a data plane, and its own.
#[derive(Debug, Clone, Default, Args)]
pub struct Flags {
    #[command(flatten)]
    pub server: ServerFlags,
    #[command(flatten)]
    pub standalone: StandaloneFlags,
}

impl Flags {
    /// Checks all flags and reports all mistakes at once.
    pub fn settings(self) -> Result<(ServerSettings, StandaloneSettings), Mistakes> {
        match (self.server.settings(), self.standalone.settings()) {
            (Ok(server), Ok(standalone)) => Ok((server, standalone)),
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
}

impl Bound {
    pub async fn new(settings: ServerSettings) -> Result<Bound, DataPlaneError> {
        let listeners = Listeners::bind(&settings).await?;
        Ok(Bound { settings, listeners })
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

    async fn serve(
        self,
        control: Endpoint,
        root: Root,
        shutdown: CancellationToken,
    ) -> Result<(), DataPlaneError> {
        let Bound { settings, listeners } = self;
        let config = AppConfig { listeners, settings, control, root, pooler: None };
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
        };
        let Mistakes(lines) = flags.settings().expect_err("two mistakes");
        let [first, second] = &lines[..] else { panic!("{lines:?}") };
        assert!(first.starts_with("--listen") && second.starts_with("--resync-seconds"), "{lines:?}");
    }
}
