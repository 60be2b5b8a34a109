//! Databases that were there before (`database.create: false`): the application in one goes on, keys see what their policies let them see,
//! and everything is given back.

mod applications;
mod callers;
mod command;
mod example;
mod fixture;
mod given_back;
mod observe;
mod protected;
mod refused;
mod replaced;
mod served;
