//! One tenant, one team, one key: nothing of it reaches its neighbours.

mod asked;
mod bounds;
mod growth;
mod names;
mod retained;
mod roles;
mod secrets;
mod steady;
mod views;
mod bodies;
mod strangers;
