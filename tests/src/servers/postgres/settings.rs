//! The settings of every server that tests start.

/// What tests give up: surviving a power failure. A new segment of the log is not filled with zeros, which are memory here.
pub const QUICK: [&str; 6] = [
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "shared_buffers=32MB",
    "wal_init_zero=off",
    "wal_recycle=off",
];

/// The environment variable with further settings, separated by blanks: a run of the tests beside another autovacuum or planner.
pub const SETTINGS: &str = "ROWGATE_TESTS_SETTINGS";

/// [`QUICK`] and those of [`SETTINGS`].
#[must_use]
pub fn of_all() -> Vec<String> {
    let further = std::env::var(SETTINGS).unwrap_or_default();
    QUICK.into_iter().chain(further.split_whitespace()).map(str::to_owned).collect()
}
