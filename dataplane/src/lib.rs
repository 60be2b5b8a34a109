//! The data plane: REST over tenants' databases, and the standalone mode.

pub mod standalone;
