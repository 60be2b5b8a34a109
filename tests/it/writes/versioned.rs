//! Rows that keep their version, over HTTP.

mod protected;
mod racing;
mod tags;
