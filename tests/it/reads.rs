//! Pages, filters, values and refusals of reads, each against a second opinion: PostgreSQL's own answer, a model, a table.

mod aggregates;
pub(crate) mod differential;
pub(crate) mod expand;
mod joins_guarded;
mod mistakes;
pub(crate) mod paging;
mod paths;
pub(crate) mod refusals;
mod round_trips;
mod values;
