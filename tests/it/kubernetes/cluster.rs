//! A real Kubernetes API server, and what stands in it.

mod admission;
mod harness;
mod leading;
mod outage;
mod reading;
mod resting;
mod secrets;
mod servers;
mod shop;
mod two_servers;
mod unreadable;
mod upgrading;
