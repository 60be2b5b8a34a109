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
//! Nothing that one tenant's team writes reaches another tenant: a neighbour is asked all the time meanwhile, and stays Ready.

mod hostile;
mod neighbour;
mod restart;
mod signals;
mod wakes;
//! What one tenant, one team or one key does reaches none of its neighbours.

mod crowd;
mod dead_keys;
mod places;
mod slow_readers;
