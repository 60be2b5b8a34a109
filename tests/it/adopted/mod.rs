//! Databases that were there before (`database.create: false`): the application in one goes on, keys see what their policies let them see,
//! and everything is given back.

mod applications;
mod command;
mod example;
mod fixture;
mod given_back;
mod protected;
mod observe;
mod refused;
mod served;
