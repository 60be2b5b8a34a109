//! Which server is asked with which key: profiles in a file, the environment, and the flags.

pub(crate) mod connection;
pub(crate) mod file;
pub(crate) mod key;
pub(crate) mod prompt;
