//! dataplane/sql
