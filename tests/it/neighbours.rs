//! One tenant, one team, one key: nothing of it reaches its neighbours.

mod bounds;
mod roles;
//! Nothing of one tenant, one team or one key reaches its neighbours.

mod asked;

mod names;
mod retained;
mod secrets;
//! What one tenant, one team or one key does reaches no other: each attack beside a neighbour that is asked all the time.

mod growth;
mod steady;
mod views;
