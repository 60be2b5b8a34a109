//! Secrets of keys and of tokens that follow one another, and when a key was last used: through HTTP and files. Time is
//! never waited for: recorded times are moved by SQL.

mod crash;
mod fixture;
mod keys;
mod signing;
mod used;
