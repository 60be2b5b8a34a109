//! REST as a surface: what stands in the query string and the body of a request becomes a [`crate::request`], or a problem
//! that says what to write instead.

pub mod body;
pub mod filter;
pub mod query_string;

pub(crate) use filter::{Spelt, advice_on_name, is_bare_name, is_guid, is_number, like};
pub(crate) use query_string::{order_here, refuse_strays};
