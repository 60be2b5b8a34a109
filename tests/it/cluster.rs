//! A real Kubernetes API server, and what stands in it.

mod admission;
mod harness;
mod leading;
mod reading;
mod shop;
mod unreadable;
