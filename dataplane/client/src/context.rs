//! What every command is given: the flags of the connection, the environment, and standard output.

use std::env;
use std::path::PathBuf;

use crate::failure::Failure;
use crate::http::client::Api;
use crate::output::stdout::Output;
use crate::profiles::connection::{Connection, ConnectionFlags, Environment};
use crate::profiles::file::{self, Profiles};

/// One run of the program.
pub(crate) struct Context {
    pub(crate) flags: ConnectionFlags,
    pub(crate) output: Output,
}

impl Context {
    #[must_use]
    pub(crate) fn new(flags: ConnectionFlags) -> Context {
        Context { flags, output: Output::default() }
    }

    pub(crate) fn connection(&self) -> Result<Connection, Failure> {
        let environment = Environment::of(|name| env::var(name).ok());
        let profiles = || Profiles::read(&self.profiles_path()?).map_err(Failure::Usage);
        Connection::resolve(&self.flags, &environment, profiles)
    }

    pub(crate) fn api(&self) -> Result<Api, Failure> {
        Api::new(&self.connection()?)
    }

    pub(crate) fn profiles_path(&self) -> Result<PathBuf, Failure> {
        let of = |name: &str| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        file::path(of("XDG_CONFIG_HOME"), of("HOME")).ok_or_else(|| {
            Failure::Usage("neither XDG_CONFIG_HOME nor HOME is set; profiles have no folder".to_owned())
        })
    }
}
