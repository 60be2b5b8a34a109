//! One tenant, one team, one key: nothing of it reaches its neighbours.

mod bodies;
mod bounds;
mod crowd;
mod dead_keys;
mod growth;
mod hostile;
mod names;
mod neighbour;
mod places;
mod restart;
mod retained;
mod roles;
mod secrets;
mod signals;
mod slow_readers;
mod strangers;
mod views;
mod wakes;
