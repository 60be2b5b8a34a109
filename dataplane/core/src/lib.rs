//! dataplane/core
