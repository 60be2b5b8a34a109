//! Writes that meet another writer, an outage, or a trigger that skips them.

mod contended;
mod outages;
mod passed_over;
