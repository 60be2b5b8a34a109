//! What proves who asks, and what is derived to prove it: roots, passwords, API key strings, tokens and the keys that sign them.

pub mod derive;
pub mod export_link;
pub mod scram;
pub mod secret;

pub mod jwt;
pub mod signing;
