//! Concurrency Protection as SQL users meet it: whoever writes, by whatever statement, says which version of the row it
//! knows, and deletes nothing.
//!
//! Seen to fail with `dl.protect_stamp` that does not look for what `dl.protect_echo` leaves, with `dl.protect_echo` that
//! does not compare, with `dl.protect_keep` that lets rows go, and with the two for updates in the other order.

mod beside;
mod fixture;
mod held;
mod plain;
mod shapes;
mod writers;
