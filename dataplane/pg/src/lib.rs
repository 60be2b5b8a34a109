//! dataplane/pg
