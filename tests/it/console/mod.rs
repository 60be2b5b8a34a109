//! The console of standalone: what its page may ask, what every other page and program is refused, and that it is nowhere else.

mod browser;
pub(crate) mod fixture;
mod requests;
mod switched_off;
