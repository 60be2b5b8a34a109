//! REST over the rows of a tenant: `/auth/{tenant}/api`.

pub mod entity_tags;
pub mod next_link;
pub(crate) mod read;
pub mod rows;
pub(crate) mod target;
pub(crate) mod wording;
pub(crate) mod write;
pub mod write_request;
