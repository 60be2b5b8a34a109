//! Everything in one process, for a first look and for tests: PostgreSQL, the reconciliation of a folder, and a data plane.
//!
//! Nothing of it runs in a cluster. The crate does not know the data plane's library: the program passes one in, as
//! something that implements [`DataPlane`], and parses the flags of both. So the data plane can depend on [`state::found`] to
//! find a standalone installation, and a change of its settings changes nothing here.
//!
//! [`run()`] is `standalone`; [`psql`], [`check`], [`relationships`] and [`adopt`] are commands of their own. [`postgres`] starts a PostgreSQL, [`state`]
//! reads and writes the state folder, `prepare` runs a file of SQL before all else, `terminal` prints what becomes of each resource.

pub mod adopt;
pub mod check;
pub mod flags;
mod live_keys;
pub mod postgres;
mod prepare;
pub mod psql;
pub mod relationships;
mod run;
mod server;
pub mod state;
mod terminal;

pub use flags::StandaloneFlags;
pub use live_keys::{LiveKey, LiveKeys};
pub use prepare::{PrepareError, Script};
pub use run::{DataPlane, DataPlaneError, StandaloneError, run};
pub use state::{found, roots};
