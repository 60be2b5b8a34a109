//! One tenant, one team, one key: nothing of it reaches its neighbours.

mod bounds;
mod roles;
