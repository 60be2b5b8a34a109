//! One tenant, one team, one key: nothing of it reaches its neighbours.

mod crowd;
mod dead_keys;
mod hostile;
pub(crate) mod leaks;
mod neighbour;
mod owner;
pub(crate) mod resources;
mod restart;
mod retained;
mod roles;
mod secrets;
mod signals;
